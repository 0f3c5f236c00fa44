//! Whole tables in and out: listing, export as a streamed file, import of Parquet files.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hub::ParquetImport;
use hub::bulk::{
    ClockChange, ExportFormat, ExportRequest, ImportCounts, ParquetBounds, TableColumn, Zone, parse_matcher,
};
use hub::caller::Action;
use model::limits::Portion;
use model::{TimeRange, Timestamp};
use serde::Deserialize;
use serde_json::{Value as JsonValue, json};

use crate::error::ApiError;
use crate::http::limits::{
    BUSY_TIMEOUT, IMPORT_BODY_BYTES_MAX, IMPORT_HELD_BYTES_MAX, IMPORT_HELD_BYTES_MIN, IMPORT_ROWS_MAX,
};
use crate::http::tools::json::Json;
use crate::http::tools::request::{JsonBody, Params, read_body};
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;
use crate::http::tools::stream::streamed;

/// Header with an upper bound of the rows of an export.
const ROWS: header::HeaderName = header::HeaderName::from_static("x-tacho-rows");

/// `GET /api/tacho/tables`
pub(crate) async fn tables(
    State(state): State<Arc<HttpState>>,
    session: Session,
) -> Result<Response, ApiError> {
    session.check(Action::ManageTables)?;
    let (hub, caller) = (Arc::clone(&state.hub), session.caller().clone());
    let tables = state.reads.run(move || hub.tables(&caller)).await??;
    let tables: Vec<JsonValue> = tables
        .iter()
        .map(|table| {
            json!({
                "table": table.table.name(),
                "series": table.series,
                "rows": table.rows,
                "points": table.points,
                "bytes": table.bytes,
                "rawBytes": table.raw_bytes,
                "oldestUs": table.time_range.map(|range| range.start.micros()),
                "newestUs": table.time_range.map(|range| range.end.micros()),
                "ttlS": table.ttl.map(|ttl| ttl.as_secs()),
            })
        })
        .collect();
    Ok(Json(json!({ "tables": tables })).into_response())
}

/// `GET /api/tacho/tables/columns?table=NAME`
pub(crate) async fn table_columns(
    State(state): State<Arc<HttpState>>,
    session: Session,
    params: Params,
) -> Result<Response, ApiError> {
    session.check(Action::ManageTables)?;
    let table =
        params.text("table").ok_or_else(|| ApiError::argument("name the table in the parameter table"))?;
    let (hub, caller) = (Arc::clone(&state.hub), session.caller().clone());
    let name = table.to_owned();
    let columns = state.reads.run(move || hub.columns(&caller, &name)).await??;
    let columns: Vec<JsonValue> = columns.iter().map(column_json).collect();
    Ok(Json(json!({ "table": table, "columns": columns })).into_response())
}

/// `DELETE /api/tacho/tables/columns?table=NAME&key=KEY&dryRun=true`: drops a key with the columns of all its types, which
/// the answer lists. With `dryRun` nothing changes.
pub(crate) async fn drop_key(
    State(state): State<Arc<HttpState>>,
    session: Session,
    params: Params,
) -> Result<Response, ApiError> {
    session.check(Action::ManageTables)?;
    let (Some(table), Some(key)) = (params.text("table"), params.text("key")) else {
        return Err(ApiError::argument("name the table and the key in the parameters table and key"));
    };
    let dry_run = params.flag("dryRun")?;
    let (hub, caller) = (Arc::clone(&state.hub), session.caller().clone());
    let (name, of) = (table.to_owned(), key.to_owned());
    let columns = state.changes.run(move || hub.drop_key(&caller, &name, &of, dry_run)).await??;
    let columns: Vec<JsonValue> = columns.iter().map(column_json).collect();
    Ok(Json(json!({ "table": table, "key": key, "columns": columns, "changed": !dry_run })).into_response())
}

fn column_json(column: &TableColumn) -> JsonValue {
    json!({ "column": column.column, "type": column.kind, "key": column.name })
}

/// Settings of a table.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TableBody {
    table: String,
    /// For how long the table keeps rows, in seconds; 0 forever.
    ttl_s: u64,
    /// Whether to create the table if it does not exist.
    #[serde(default)]
    create: bool,
    /// Whether to change nothing and only list the expiring days.
    #[serde(default)]
    dry_run: bool,
}

/// `POST /api/tacho/tables`: sets how long a table keeps rows. With `dryRun` it changes nothing, and `days` lists the days
/// (UTC) that would expire, with their numbers of rows.
pub(crate) async fn set_table(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(body): JsonBody<TableBody>,
) -> Result<Response, ApiError> {
    session.check(Action::ManageTables)?;
    let (hub, caller) = (Arc::clone(&state.hub), session.caller().clone());
    let ttl = (body.ttl_s > 0).then(|| Duration::from_secs(body.ttl_s));
    let mut answer = json!({ "table": body.table, "ttlS": ttl.map(|ttl| ttl.as_secs()) });
    if body.dry_run {
        let days = state.reads.run(move || hub.expiring(&caller, &body.table, ttl, body.create)).await??;
        let days = days.iter().map(|(day, rows)| json!({ "day": day.to_string(), "rows": rows }));
        answer["days"] = days.collect();
        return Ok(Json(answer).into_response());
    }
    state.changes.run(move || hub.set_ttl(&caller, &body.table, ttl, body.create)).await??;
    Ok(Json(answer).into_response())
}

/// A request to export a table.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct ExportBody {
    table: String,
    #[serde(default, rename = "where")]
    conditions: Vec<String>,
    from_us: Option<i64>,
    to_us: Option<i64>,
    format: String,
}

impl ExportBody {
    fn parse(self) -> Result<(String, ExportRequest), String> {
        let matchers = self.conditions.iter().map(|condition| parse_matcher(condition));
        let time = |micros: Option<i64>, default| micros.map_or(default, Timestamp::from_micros);
        let range =
            TimeRange::new(time(self.from_us, TimeRange::ALL.start), time(self.to_us, TimeRange::ALL.end));
        let format: ExportFormat = self.format.parse()?;
        let matchers = matchers.collect::<Result<_, _>>()?;
        Ok((self.table, ExportRequest { matchers, range, format }))
    }
}

/// `POST /api/tacho/export`: the file as a stream. A stream that breaks off is incomplete.
pub(crate) async fn export(
    State(state): State<Arc<HttpState>>,
    session: Session,
    JsonBody(body): JsonBody<ExportBody>,
) -> Result<Response, ApiError> {
    session.check(Action::MoveData)?;
    let (table, request) = body.parse().map_err(ApiError::argument)?;
    let permit = state.maintenance_permit()?;
    let kind = match request.format {
        ExportFormat::Csv => "text/csv; charset=utf-8",
        ExportFormat::Parquet => "application/vnd.apache.parquet",
    };
    let (hub, caller) = (Arc::clone(&state.hub), session.caller().clone());
    let export = state.reads.run(move || hub.export(&caller, &table, &request)).await??;
    let rows = export.rows_max().to_string();
    let (mut writer, body) = streamed();
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let written = export.write(&mut writer, &mut |_| {}).map_err(std::io::Error::other);
        if let Err(error) = written.and_then(|_| writer.flush()) {
            tracing::warn!(%error, "an export was broken off");
            writer.abort(error);
        }
    });
    Ok(([(header::CONTENT_TYPE, kind.to_owned()), (ROWS, rows)], body).into_response())
}

/// The bounds of one piece of an import.
fn bounds(memory: Portion) -> ParquetBounds {
    let held = memory.of(IMPORT_HELD_BYTES_MAX as usize) as u64;
    ParquetBounds { held_bytes_max: held.max(IMPORT_HELD_BYTES_MIN), rows_max: IMPORT_ROWS_MAX }
}

/// `POST /api/tacho/import?table=&timezone=&clockChange=&anyTime=`: imports a Parquet file. Its schema defines the columns. Times
/// without a zone are local times of `timezone`. The import leaves out and counts rows with a time that no device could send,
/// unless `anyTime` is true. The answer comes when the rows are durable.
pub(crate) async fn import(
    State(state): State<Arc<HttpState>>,
    session: Session,
    params: Params,
    request: Request,
) -> Result<Response, ApiError> {
    session.check(Action::MoveData)?;
    let table = params.text("table").ok_or_else(|| ApiError::argument("name the table (table=)"))?.to_owned();
    let any_time = params.flag("anyTime")?;
    let zone = zone_of(&params)?;
    let body = read_body(request, IMPORT_BODY_BYTES_MAX, "", session.body_account(&state)).await?;
    let (hub, caller) = (Arc::clone(&state.hub), session.caller().clone());
    let bounds = bounds(state.options.memory);
    // It waits for the disk like a change of the registry, and must not block reads.
    let counts = state.changes.run(move || {
        let import = ParquetImport { bounds, zone: zone.as_ref(), any_time, busy_timeout: BUSY_TIMEOUT };
        hub.import_parquet(&caller, &table, body.bytes.clone(), &import)
    });
    Ok(Json(counts_json(&counts.await??)).into_response())
}

/// The time zone of times without a zone, and the rule for times at clock changes.
fn zone_of(params: &Params) -> Result<Option<Zone>, ApiError> {
    let clock_change = params.text("clockChange").map(str::parse::<ClockChange>).transpose();
    let clock_change = clock_change.map_err(|reason| ApiError::argument(format!("clockChange: {reason}")))?;
    let Some(zone) = params.text("timezone") else {
        return match clock_change {
            Some(_) => Err(ApiError::argument("clockChange does not apply: there is no timezone")),
            None => Ok(None),
        };
    };
    let zone: Zone = zone.parse().map_err(ApiError::argument)?;
    match clock_change {
        Some(_) if zone.is_fixed() => {
            Err(ApiError::argument("clockChange does not apply: timezone is an offset that never changes"))
        }
        Some(clock_change) => Ok(Some(zone.with_clock_change(clock_change))),
        None => Ok(Some(zone)),
    }
}

/// `GET /api/tacho/import/device?name=`: the table of the rows of a device, which is that of its profile.
pub(crate) async fn table_of_device(
    State(state): State<Arc<HttpState>>,
    session: Session,
    params: Params,
) -> Result<Response, ApiError> {
    session.check(Action::MoveData)?;
    let name = params.text("name").ok_or_else(|| ApiError::argument("name the device (name=)"))?;
    let device = state.hub.device_by_name(session.caller(), name)?;
    let answer = json!({ "id": device.id.to_string(), "table": device.profile.table.name() });
    Ok(Json(answer).into_response())
}

fn counts_json(counts: &ImportCounts) -> JsonValue {
    json!({
        "rows": counts.rows,
        "values": counts.values,
        "withoutTime": counts.without_time,
        "withoutValue": counts.without_value,
        "timeOutOfRange": counts.time_out_of_range,
        "implausible": counts.implausible,
        "firstImplausibleUs": counts.first_implausible_us,
        "tooOld": counts.too_old,
        "badTags": counts.bad_tags,
        "badTagsReason": counts.bad_tags_reason,
        "tooLarge": counts.too_large,
        "tooLong": counts.too_long,
        "clockChanges": counts.clock_changes,
        "clockChangesReason": counts.clock_changes_reason,
        "chosenTimes": counts.chosen_times,
        "cutTimes": counts.cut_times,
        "rounded": counts.rounded,
    })
}
