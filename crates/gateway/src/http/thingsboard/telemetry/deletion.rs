//! Deletes values, rows, series and tables.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hub::bulk::{DeleteRequest, Deleted, parse_matcher};
use hub::caller::Action;
use model::{TimeRange, Timestamp};
use serde::Deserialize;
use serde_json::json;

use super::entity::series_owner;
use super::read::{range, unique_keys};
use crate::error::ApiError;
use crate::http::tools::json::Json;
use crate::http::tools::request::{JsonBody, Params, PathOf};
use crate::http::tools::route_list::Routes;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// The routes of this file.
pub(crate) fn routes() -> Routes {
    Routes::default()
        .delete("/api/plugins/telemetry/{kind}/{id}/timeseries/delete", values)
        .delete("/api/tacho/tables", table)
        .post("/api/tacho/delete", rows)
}

/// `DELETE .../{entityType}/{entityId}/timeseries/delete`: deletes values of keys of a device or an asset. Path and parameters are
/// ThingsBoard's. The answer comes when the deletion is on the disk.
async fn values(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf((kind, id)): PathOf<(String, String)>,
    params: Params,
) -> Result<(), ApiError> {
    session.check(Action::DeleteData)?;
    let (keys, range) = parse_values(&params)?;
    let owner = series_owner(&state, &session, &kind, &id)?;
    let (hub, caller) = (Arc::clone(&state.hub), session.caller().clone());
    state.changes.run(move || hub.delete_values(&caller, &owner, Some(&keys), range)).await??;
    Ok(())
}

fn parse_values(params: &Params) -> Result<(Vec<String>, TimeRange), ApiError> {
    let keys = unique_keys(params.keys())?;
    if keys.is_empty() {
        return Err(ApiError::argument("name the keys to delete in the parameter keys, separated by commas"));
    }
    if params.text("deleteLatest").is_some() && !params.flag("deleteLatest")? {
        let message = "deleteLatest=false does not apply: the latest value is the newest value of the history; leave it out";
        return Err(ApiError::argument(message));
    }
    // The latest value is always the newest that is left, so both values of this parameter have the same effect.
    params.flag("rewriteLatestIfDeleted")?;
    let times = (params.number("startTs")?, params.number("endTs")?);
    let range = match (params.flag("deleteAllDataForKeys")?, times) {
        (true, (None, None)) => TimeRange::ALL,
        (true, _) => {
            let message = "startTs and endTs do not apply with deleteAllDataForKeys=true; leave them out";
            return Err(ApiError::argument(message));
        }
        (false, (Some(start), Some(end))) => range(start, end),
        (false, _) => {
            let message =
                "give startTs and endTs, or deleteAllDataForKeys=true to delete all values of the keys";
            return Err(ApiError::argument(message));
        }
    };
    check_range(range, "startTs", "endTs")?;
    Ok((keys, range))
}

fn check_range(range: TimeRange, from: &str, to: &str) -> Result<(), ApiError> {
    if range.is_empty() {
        let message = format!("no time lies between {from} and {to}; {from} must be smaller");
        return Err(ApiError::argument(message));
    }
    Ok(())
}

/// A request to delete from a table.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct DeleteBody {
    table: String,
    #[serde(default, rename = "where")]
    conditions: Vec<String>,
    keys: Option<Vec<String>>,
    from_us: Option<i64>,
    to_us: Option<i64>,
    /// Whether to delete the series too. Then all their rows go.
    #[serde(default)]
    series: bool,
    /// Whether to change nothing and only count the rows.
    #[serde(default)]
    dry_run: bool,
}

impl DeleteBody {
    fn request(&self) -> Result<DeleteRequest, ApiError> {
        let matchers = self.conditions.iter().map(|condition| parse_matcher(condition));
        let matchers = matchers.collect::<Result<_, _>>().map_err(ApiError::argument)?;
        let what = if self.series { self.whole_series()? } else { self.rows()? };
        Ok(DeleteRequest { matchers, what })
    }

    fn whole_series(&self) -> Result<Deleted, ApiError> {
        if self.keys.is_some() || self.from_us.is_some() || self.to_us.is_some() {
            let message = "keys, fromUs and toUs do not apply with series: a series goes with all its rows";
            return Err(ApiError::argument(message));
        }
        Ok(Deleted::Series)
    }

    fn rows(&self) -> Result<Deleted, ApiError> {
        let time = |micros: Option<i64>, default| micros.map_or(default, Timestamp::from_micros);
        let range =
            TimeRange::new(time(self.from_us, TimeRange::ALL.start), time(self.to_us, TimeRange::ALL.end));
        check_range(range, "fromUs", "toUs")?;
        let keys = self.keys.as_ref().map(|keys| unique_keys(keys.iter().map(String::as_str))).transpose()?;
        if keys.as_ref().is_some_and(Vec::is_empty) {
            return Err(ApiError::argument("keys is empty; name keys, or leave it out to delete whole rows"));
        }
        Ok(Deleted::Rows { keys, range })
    }
}

/// `POST /api/tacho/delete`: deletes rows, values or series of a table, and answers with the number of rows that lost values,
/// when the deletion is on the disk. With `dryRun` it only counts them.
async fn rows(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(body): JsonBody<DeleteBody>,
) -> Result<Response, ApiError> {
    session.check(Action::DeleteData)?;
    let request = body.request()?;
    let (hub, caller) = (Arc::clone(&state.hub), session.caller().clone());
    let (table, dry_run) = (body.table.clone(), body.dry_run);
    let delete = move || hub.delete_rows(&caller, &table, &request, dry_run);
    let rows = match dry_run {
        true => state.reads.run(delete).await??,
        false => state.changes.run(delete).await??,
    };
    Ok(Json(json!({ "table": body.table, "rows": rows, "changed": !dry_run })).into_response())
}

/// `DELETE /api/tacho/tables?table=NAME&dryRun=true`: drops a table. With `dryRun` nothing changes.
async fn table(
    State(state): State<Arc<HttpState>>,
    session: Session,
    params: Params,
) -> Result<Response, ApiError> {
    session.check(Action::DeleteData)?;
    let table =
        params.text("table").ok_or_else(|| ApiError::argument("name the table in the parameter table"))?;
    let dry_run = params.flag("dryRun")?;
    let (hub, caller, name) = (Arc::clone(&state.hub), session.caller().clone(), table.to_owned());
    state.changes.run(move || hub.drop_table(&caller, &name, dry_run)).await??;
    Ok(Json(json!({ "table": table, "changed": !dry_run })).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_deleted_in_a_range_or_for_all_times() {
        let parse = |query: &str| parse_values(&Params::parse(query));
        let (keys, range) =
            parse("keys=a,b&startTs=1&endTs=2&deleteLatest=true&rewriteLatestIfDeleted=false").unwrap();
        assert_eq!((keys.len(), range.start.micros(), range.end.micros()), (2, 1_000, 2_000));
        assert_eq!(parse("keys=a&deleteAllDataForKeys=true").unwrap().1, TimeRange::ALL);
        for (query, part) in [
            ("deleteAllDataForKeys=true", "name the keys"),
            ("keys=a", "give startTs and endTs"),
            ("keys=a&startTs=1", "give startTs and endTs"),
            ("keys=a&startTs=2&endTs=1", "no time lies between"),
            ("keys=a&startTs=1&endTs=1", "no time lies between"),
            ("keys=a&startTs=1&endTs=2&deleteAllDataForKeys=true", "do not apply"),
            ("keys=a&deleteAllDataForKeys=true&deleteLatest=false", "deleteLatest=false"),
            ("keys=a&deleteAllDataForKeys=yes", "must be true or false"),
        ] {
            let error = parse(query).unwrap_err();
            assert!(error.message.contains(part), "{query}: {}", error.message);
        }
    }
}
