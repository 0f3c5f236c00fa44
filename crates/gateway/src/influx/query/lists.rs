//! SHOW statements about databases and the server, which read no table.

use hub::Hub;
use hub::caller::Caller;
use timeseries::influxql::ast::{Listing, Show};
use timeseries::influxql::{Head, Value};

use super::scope::{Scope, open};
use super::text::ResultText;
use crate::error::ApiError;

/// The result of a statement; `None` for one that reads tables.
pub(super) fn list(
    hub: &Hub,
    caller: &Caller,
    show: &Show,
    scope: Scope<'_>,
    text: ResultText,
) -> Option<Result<Vec<u8>, ApiError>> {
    Some(match show.listing {
        Listing::Databases => databases(hub, caller, text),
        Listing::RetentionPolicies => policies(hub, caller, show, scope, text),
        // There are none.
        Listing::Subscriptions | Listing::ContinuousQueries => Ok(text.end()),
        Listing::Users => Err(refused("SHOW USERS", "`GET /api/tacho/users` lists them")),
        Listing::Diagnostics => {
            Err(refused("SHOW DIAGNOSTICS", "`GET /api/status` has facts about the server"))
        }
        Listing::Stats => Err(refused("SHOW STATS", "`GET /metrics` has the counters of the server")),
        Listing::Queries => {
            Err(refused("SHOW QUERIES", "a query ends when its client closes the connection"))
        }
        Listing::Shards => Err(refused("SHOW SHARDS", "tables have no shards")),
        Listing::ShardGroups => Err(refused("SHOW SHARD GROUPS", "tables have no shards")),
        _ => return None,
    })
}

fn refused(statement: &str, instead: &str) -> ApiError {
    ApiError::argument(format!("{statement} is not supported: {instead}"))
}

fn databases(hub: &Hub, caller: &Caller, mut text: ResultText) -> Result<Vec<u8>, ApiError> {
    let head = head("databases", &["name"]);
    for database in hub.databases(caller)? {
        text.row(&head, &[Value::text(database.name())]);
    }
    Ok(text.end())
}

/// Every database has one retention policy, which keeps everything.
fn policies(
    hub: &Hub,
    caller: &Caller,
    show: &Show,
    scope: Scope<'_>,
    mut text: ResultText,
) -> Result<Vec<u8>, ApiError> {
    let name = scope.of_show(show).map_err(ApiError::argument)?;
    open(hub, caller, name)?;
    let head = head("", &["name", "duration", "shardGroupDuration", "replicaN", "default"]);
    let [policy, duration, shard] = ["autogen", "0s", "168h0m0s"].map(Value::text);
    text.row(&head, &[policy, duration, shard, Value::Int(1), Value::Bool(true)]);
    Ok(text.end())
}

fn head(name: &str, columns: &[&str]) -> Head {
    Head {
        name: name.to_owned(),
        tags: Vec::new(),
        columns: columns.iter().map(|column| (*column).to_owned()).collect(),
        timed: false,
        zone: None,
    }
}
