//! A list of routes: the router and the description of the interface are made from the same list.

use std::sync::Arc;

use axum::handler::Handler;
use axum::http::Method;
use axum::middleware::from_fn;
use axum::routing::{MethodRouter, delete, get, post, put};
use axum::{Extension, Router};

use super::compression;
use super::state::HttpState;

/// Routes with their methods.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    router: Router<Arc<HttpState>>,
    #[cfg(test)]
    listed: Vec<(Method, &'static str)>,
}

impl Routes {
    /// Adds a path for GET.
    pub(crate) fn get<T: 'static>(
        self,
        path: &'static str,
        handler: impl Handler<T, Arc<HttpState>>,
    ) -> Self {
        self.add(Method::GET, path, get(handler))
    }

    /// Adds a path for GET whose answers are compressed for clients that accept it.
    pub(crate) fn get_compressed<T: 'static>(
        self,
        path: &'static str,
        handler: impl Handler<T, Arc<HttpState>>,
    ) -> Self {
        self.add(Method::GET, path, get(handler).layer(from_fn(compression::gzip)))
    }

    /// Compresses the answers of these routes for clients that accept it.
    pub(crate) fn compressed(mut self) -> Self {
        self.router = self.router.route_layer(from_fn(compression::gzip));
        self
    }

    /// Gives these routes a value that is not part of the state of the door. Their handlers take it as `Extension`.
    pub(crate) fn sharing(mut self, value: impl Clone + Send + Sync + 'static) -> Self {
        self.router = self.router.route_layer(Extension(value));
        self
    }

    /// Adds a path for POST.
    pub(crate) fn post<T: 'static>(
        self,
        path: &'static str,
        handler: impl Handler<T, Arc<HttpState>>,
    ) -> Self {
        self.add(Method::POST, path, post(handler))
    }

    /// Adds a path for PUT.
    pub(crate) fn put<T: 'static>(
        self,
        path: &'static str,
        handler: impl Handler<T, Arc<HttpState>>,
    ) -> Self {
        self.add(Method::PUT, path, put(handler))
    }

    /// Adds a path for DELETE.
    pub(crate) fn delete<T: 'static>(
        self,
        path: &'static str,
        handler: impl Handler<T, Arc<HttpState>>,
    ) -> Self {
        self.add(Method::DELETE, path, delete(handler))
    }

    /// Adds the routes of another list.
    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        #[cfg(test)]
        self.listed.extend(other.listed);
        self
    }

    /// The methods and paths, in the order in which they were added.
    #[cfg(test)]
    pub(crate) fn listed(&self) -> &[(Method, &'static str)] {
        &self.listed
    }

    /// The router of all routes.
    pub(crate) fn into_router(self) -> Router<Arc<HttpState>> {
        self.router
    }

    fn add(mut self, method: Method, path: &'static str, handlers: MethodRouter<Arc<HttpState>>) -> Self {
        #[cfg(test)]
        self.listed.push((method, path));
        #[cfg(not(test))]
        drop(method);
        self.router = self.router.route(path, handlers);
        self
    }
}
