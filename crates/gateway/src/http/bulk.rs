//! Whole tables in and out: listing, export as a streamed file, import of Parquet files.

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hub::bulk::{
    BulkError, ClockChange, ExportFormat, ExportRequest, ImportCounts, ParquetBounds, Zone, parse_matcher,
};
use hub::caller::Action;
use model::limits::Portion;
use model::{TimeRange, Timestamp};
use serde::Deserialize;
use serde_json::{Value as JsonValue, json};

use super::Door;
use super::auth::Session;
use super::error::ApiError;
use super::json::Json;
use super::limits::{
    BUSY_PATIENCE, IMPORT_BODY_BYTES_MAX, IMPORT_HELD_BYTES_MAX, IMPORT_HELD_BYTES_MIN, IMPORT_ROWS_MAX,
};
use super::request::{JsonBody, Params, read_body};
use super::stream::streamed;

/// At least as many rows as an export brings.
const ROWS: header::HeaderName = header::HeaderName::from_static("x-tacho-rows");

impl From<BulkError> for ApiError {
    fn from(error: BulkError) -> Self {
        let message = error.to_string();
        match error {
            BulkError::Store(error) => error.into(),
            BulkError::NoTable { .. } => Self::not_found(message),
            BulkError::Asked(_) | BulkError::Data(_) => Self::argument(message),
            BulkError::Write(_) => Self::internal(message),
        }
    }
}

/// `GET /api/tacho/tables`
pub(crate) async fn tables(State(door): State<Arc<Door>>, session: Session) -> Result<Response, ApiError> {
    session.check(Action::ManageTables)?;
    let hub = Arc::clone(&door.hub);
    let tables = door.reads.run(move || hub.tables()).await??;
    let tables: Vec<JsonValue> = tables
        .iter()
        .map(|table| {
            json!({
                "table": table.table,
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
    State(door): State<Arc<Door>>,
    session: Session,
    params: Params,
) -> Result<Response, ApiError> {
    session.check(Action::ManageTables)?;
    let table =
        params.text("table").ok_or_else(|| ApiError::argument("name the table in the parameter table"))?;
    let (hub, name) = (Arc::clone(&door.hub), table.to_owned());
    let columns = door.reads.run(move || hub.columns(&name)).await??;
    let columns: Vec<JsonValue> =
        columns.iter().map(|it| json!({ "column": it.column, "type": it.kind, "key": it.name })).collect();
    Ok(Json(json!({ "table": table, "columns": columns })).into_response())
}

/// What is to be true of a table.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(crate) struct TableBody {
    table: String,
    /// How long its rows are kept, in seconds; 0 for good.
    ttl_s: u64,
    /// Whether to make the table if there is none.
    #[serde(default)]
    create: bool,
    /// Whether only to say what would go.
    #[serde(default)]
    dry_run: bool,
}

/// `POST /api/tacho/tables`: how long a table keeps its rows. With `dryRun` nothing changes, and `days` lists the days
/// (UTC) whose rows are too old for it, with their numbers of rows.
pub(crate) async fn set_table(
    State(door): State<Arc<Door>>,
    session: Session,
    JsonBody(body): JsonBody<TableBody>,
) -> Result<Response, ApiError> {
    session.check(Action::ManageTables)?;
    let hub = Arc::clone(&door.hub);
    let ttl = (body.ttl_s > 0).then(|| Duration::from_secs(body.ttl_s));
    let mut answer = json!({ "table": body.table, "ttlS": ttl.map(|ttl| ttl.as_secs()) });
    if body.dry_run {
        let days = door.reads.run(move || hub.expiring(&body.table, ttl, body.create)).await??;
        let days = days.iter().map(|(day, rows)| json!({ "day": day.to_string(), "rows": rows }));
        answer["days"] = days.collect();
        return Ok(Json(answer).into_response());
    }
    door.changes.run(move || hub.set_ttl(&body.table, ttl, body.create)).await??;
    Ok(Json(answer).into_response())
}

/// What to export.
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
    fn parse(self) -> Result<ExportRequest, String> {
        let matchers = self.conditions.iter().map(|condition| parse_matcher(condition));
        let time = |micros: Option<i64>, default| micros.map_or(default, Timestamp::from_micros);
        let range =
            TimeRange::new(time(self.from_us, TimeRange::ALL.start), time(self.to_us, TimeRange::ALL.end));
        let format: ExportFormat = self.format.parse()?;
        Ok(ExportRequest { table: self.table, matchers: matchers.collect::<Result<_, _>>()?, range, format })
    }
}

/// `POST /api/tacho/export`: the file as a stream. One that breaks off is not whole.
pub(crate) async fn export(
    State(door): State<Arc<Door>>,
    session: Session,
    JsonBody(body): JsonBody<ExportBody>,
) -> Result<Response, ApiError> {
    session.check(Action::MoveData)?;
    let request = body.parse().map_err(ApiError::argument)?;
    let turn = door.maintenance_permit()?;
    let kind = match request.format {
        ExportFormat::Csv => "text/csv; charset=utf-8",
        ExportFormat::Parquet => "application/vnd.apache.parquet",
    };
    let hub = Arc::clone(&door.hub);
    let export = door.reads.run(move || hub.export(&request)).await??;
    let rows = export.rows_max().to_string();
    let (mut writer, body) = streamed();
    tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let written = export.write(&mut writer, &mut |_| {}).map_err(std::io::Error::other);
        if let Err(error) = written.and_then(|_| writer.flush()) {
            tracing::warn!(%error, "an export was broken off");
            writer.abort(error);
        }
    });
    Ok(([(header::CONTENT_TYPE, kind.to_owned()), (ROWS, rows)], body).into_response())
}

/// What a file may ask of the server.
fn bounds(memory: Portion) -> ParquetBounds {
    let held = memory.of(IMPORT_HELD_BYTES_MAX as usize) as u64;
    ParquetBounds { held_bytes_max: held.max(IMPORT_HELD_BYTES_MIN), rows_max: IMPORT_ROWS_MAX }
}

/// `POST /api/tacho/import?table=&timezone=&clockChange=&anyTime=`: a Parquet file whose schema says what its columns are.
/// Times without a zone are those of `timezone`. Rows whose time no device could send are left out and counted, unless
/// `anyTime` is true. The answer comes when the rows are durable.
pub(crate) async fn import(
    State(door): State<Arc<Door>>,
    session: Session,
    params: Params,
    request: Request,
) -> Result<Response, ApiError> {
    session.check(Action::MoveData)?;
    let table = params.text("table").ok_or_else(|| ApiError::argument("name the table (table=)"))?.to_owned();
    let any_time = params.flag("anyTime")?;
    let zone = zone_of(&params)?;
    let body = read_body(request, IMPORT_BODY_BYTES_MAX, "", session.body_account(&door)).await?;
    let (hub, bounds) = (Arc::clone(&door.hub), bounds(door.options.memory));
    // Blocks for the disk like a change of the registry, and must not take the place of reads.
    let import = move || {
        hub.import_parquet(&table, body.bytes.clone(), bounds, zone.as_ref(), any_time, BUSY_PATIENCE)
    };
    let counts = door.changes.run(import);
    Ok(Json(counts_json(&counts.await??)).into_response())
}

/// Where times without a zone were written, and what is done where its clocks were changed.
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

/// `GET /api/tacho/import/device?name=`: the table that rows of a device belong to, that of its profile.
pub(crate) async fn table_of_device(
    State(door): State<Arc<Door>>,
    session: Session,
    params: Params,
) -> Result<Response, ApiError> {
    session.check(Action::MoveData)?;
    let name = params.text("name").ok_or_else(|| ApiError::argument("name the device (name=)"))?;
    let registry = door.hub.registry();
    let device = registry.device_by_name(registry.default_tenant(), name);
    let device = device.ok_or_else(|| ApiError::not_found(format!("there is no device {name:?}")))?;
    let answer = json!({ "id": device.id.to_string(), "table": device.profile.table });
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
