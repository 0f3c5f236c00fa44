//! The check of a request against the description of its operation: a parameter or a member of the body that the operation does
//! not have is refused, so nothing is accepted and then ignored.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use axum::extract::{MatchedPath, Request, State};
use axum::http::Method;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use hub::caller::Action;

use super::document::{Operation, operations, schemas, shape};
use super::members::{Members, Schemas};
use super::parameters::{self, Parameter};
use super::words::NOT_DESCRIBED;
use crate::error::ApiError;
use crate::http::tools::body_check::BodyCheck;
use crate::http::tools::error_response::RefusalLabel;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// What a request of an operation may have.
#[derive(Debug)]
pub(super) struct Rules {
    route: String,
    /// Whether the operation needs a session.
    login: bool,
    /// What a caller needs to be told what is wrong with a request.
    needs: Option<Action>,
    parameters: Vec<Parameter>,
    /// None for a body that is not a JSON object with described members.
    body: Option<Members>,
}

/// The schemas of bodies and answers by name.
static SCHEMAS: LazyLock<Schemas> = LazyLock::new(schemas);

/// The rules of all operations by path and method.
static RULES: LazyLock<HashMap<String, Vec<(String, Rules)>>> = LazyLock::new(|| {
    let mut rules: HashMap<String, Vec<(String, Rules)>> = HashMap::new();
    for (method, path, operation) in operations() {
        let of_operation = Rules::new(&method, &path, &operation);
        rules.entry(path).or_default().push((method, of_operation));
    }
    rules
});

impl Rules {
    fn new(method: &str, path: &str, operation: &Operation) -> Self {
        let route = format!("{method} {path}");
        let body = operation.body.as_deref().map(shape);
        let body = body.map(|schema| Members { route: route.clone(), schema, schemas: &SCHEMAS });
        let needs = operation.needs.as_deref().map(|name| {
            let found = Action::ALL.into_iter().find(|action| format!("{action:?}") == name);
            found.unwrap_or_else(|| panic!("BUG: {route} needs {name}, which is not a permission"))
        });
        let (login, parameters) = (operation.login, operation.parameters());
        Self { route, login, needs, parameters, body }
    }

    /// The rules of the operation with a method and a path. Paths outside of `/api`, such as those of health checks, have none.
    pub(super) fn find(method: &Method, path: &str) -> Option<&'static Self> {
        if !path.starts_with("/api/") {
            return None;
        }
        let method = if method == Method::HEAD { &Method::GET } else { method };
        let of_path = RULES.get(path)?;
        of_path.iter().find(|(name, _)| name == method.as_str()).map(|(_, rules)| rules)
    }

    pub(super) fn check_query(&self, query: &str) -> Result<(), ApiError> {
        parameters::check(&self.parameters, &self.route, query)
    }

    /// The rules for the body.
    pub(super) fn body(&self) -> Option<&Members> {
        self.body.as_ref()
    }

    /// Refuses a caller who may not use the operation.
    fn permit(&self, session: Result<Session, ApiError>) -> Result<(), ApiError> {
        match (session, self.needs) {
            (Err(refused), _) if self.login => Err(refused),
            (Ok(session), Some(action)) => session.check(action),
            _ => Ok(()),
        }
    }
}

/// Checks a request before its handler. A caller without a session, or without the permission, is told that first.
pub(crate) async fn check(
    State(state): State<Arc<HttpState>>,
    path: MatchedPath,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(rules) = Rules::find(request.method(), path.as_str()) else { return next.run(request).await };
    if let Err(refused) = rules.check_query(request.uri().query().unwrap_or_default()) {
        let permitted = rules.permit(Session::of(&state, request.headers()));
        return permitted.err().unwrap_or(refused).into_response();
    }
    let Some(body) = rules.body() else { return next.run(request).await };
    request.extensions_mut().insert(BodyCheck(body));
    let headers = rules.needs.map(|_| request.headers().clone());
    let response = next.run(request).await;
    let is_refused = response
        .extensions()
        .get::<RefusalLabel>()
        .is_some_and(|RefusalLabel(label)| *label == NOT_DESCRIBED);
    let permitted = headers.filter(|_| is_refused).map(|headers| rules.permit(Session::of(&state, &headers)));
    match permitted {
        Some(Err(forbidden)) => forbidden.into_response(),
        _ => response,
    }
}
