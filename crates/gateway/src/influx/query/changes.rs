//! Statements that change something: databases, measurements, series and rows.

use std::sync::Arc;

use hub::Hub;
use hub::caller::Caller;
use hub::clock::system_now;
use timeseries::influxql::ast::{Expr, Measurement, Statement, quoted_ident};
use timeseries::influxql::{Error, Removal};

use super::scope::{Scope, open};
use crate::error::ApiError;
use crate::http::tools::state::HttpState;

/// Runs a statement. Returns its text if InfluxDB would run it in a GET request only with a warning.
pub(super) async fn change(
    state: &HttpState,
    caller: &Caller,
    scope: Scope<'_>,
    statement: Statement,
) -> Result<Option<String>, ApiError> {
    let (hub, caller) = (Arc::clone(&state.hub), caller.clone());
    match statement {
        Statement::CreateDatabase { name, duration, policy } => {
            if name.is_empty() {
                return Err(ApiError::argument("invalid name"));
            }
            check_policy(duration, policy.as_deref())?;
            let text = format!("CREATE DATABASE {}", quoted_ident(&name));
            state.changes.run(move || hub.create_database(&caller, &name)).await??;
            Ok(Some(text))
        }
        Statement::DropDatabase { name } => {
            let text = format!("DROP DATABASE {}", quoted_ident(&name));
            state.changes.run(move || hub.drop_database(&caller, &name)).await??;
            Ok(Some(text))
        }
        Statement::DropMeasurement { name } => {
            let database = open(&hub, &caller, scope.of_change().map_err(ApiError::argument)?)?;
            let text = format!("DROP MEASUREMENT {}", quoted_ident(&name));
            state.changes.run(move || hub.drop_measurement(&caller, &database, &name)).await??;
            Ok(Some(text))
        }
        Statement::DropSeries { from, condition } => {
            let text = format!("DROP SERIES{}", clauses(&from, condition.as_ref()));
            let removal = Removal::of_series(from, condition.as_ref(), now());
            remove(state, hub, caller, scope, removal).await?;
            Ok(Some(text))
        }
        Statement::Delete { from, condition } => {
            let removal = Removal::of_rows(from, condition.as_ref(), now());
            remove(state, hub, caller, scope, removal).await?;
            Ok(None)
        }
        Statement::RetentionPolicy(policy) => {
            let verb = if policy.create { "CREATE" } else { "ALTER" };
            Err(ApiError::argument(format!(
                "{verb} RETENTION POLICY is not supported: a database has the policy autogen only, which keeps every row; \
                 a time to live of single tables is set with `tacho table set`"
            )))
        }
        Statement::Select(_) | Statement::Show(_) | Statement::Refused(_) => {
            Err(ApiError::internal("BUG: the statement changes nothing"))
        }
    }
}

fn check_policy(duration: Option<i64>, policy: Option<&str>) -> Result<(), ApiError> {
    if duration.is_some_and(|duration| duration > 0) {
        let message = "CREATE DATABASE ... WITH DURATION is not supported: a database keeps every row; \
                       a time to live of single tables is set with `tacho table set`";
        return Err(ApiError::argument(message));
    }
    match policy {
        None | Some("autogen" | "default") => Ok(()),
        Some(name) => Err(ApiError::argument(format!(
            "CREATE DATABASE ... NAME {} is not supported: a database has the policy autogen only",
            quoted_ident(name)
        ))),
    }
}

async fn remove(
    state: &HttpState,
    hub: Arc<Hub>,
    caller: Caller,
    scope: Scope<'_>,
    removal: Result<Removal, Error>,
) -> Result<(), ApiError> {
    let removal = removal.map_err(|error| ApiError::argument(error.to_string()))?;
    let database = open(&hub, &caller, scope.of_change().map_err(ApiError::argument)?)?;
    state.changes.run(move || hub.remove(&caller, &database, &removal)).await??;
    Ok(())
}

fn now() -> i64 {
    system_now().micros().saturating_mul(1_000)
}

/// FROM and WHERE of a statement, as text.
fn clauses(from: &[Measurement], condition: Option<&Expr>) -> String {
    let name = |measurement: &Measurement| match &measurement.pattern {
        Some(pattern) => Expr::Regex(pattern.clone()).to_string(),
        None => quoted_ident(&measurement.name),
    };
    let names: Vec<String> = from.iter().map(name).collect();
    let from = if names.is_empty() { String::new() } else { format!(" FROM {}", names.join(", ")) };
    let condition = condition.map(|condition| format!(" WHERE {condition}")).unwrap_or_default();
    format!("{from}{condition}")
}
