//! Logins, users, API keys and tenants in ThingsBoard's shapes.

mod activation;
mod api_keys;
mod auth;
mod tenants;
mod users;

use crate::http::tools::route_list::Routes;

/// The routes of accounts.
pub(crate) fn routes() -> Routes {
    auth::routes()
        .merge(activation::routes())
        .merge(users::routes())
        .merge(tenants::routes())
        .merge(api_keys::routes())
}
