//! Checks, backups, flushes and compactions of a running server, one at a time.
//!
//! The server writes no file for them: the answer to a backup request is a tar stream, which the tool (or curl) stores.

use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hub::caller::{Action, Caller};
use hub::{BackupList, CheckReport, Error, Finding, Hub, Rewritten, Severity};
use serde_json::{Value as JsonValue, json};

use crate::error::ApiError;
use crate::http::limits::MAINTENANCE_BODY_BYTES_MAX;
use crate::http::tools::json::Json;
use crate::http::tools::request::read_body;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;
use crate::http::tools::stream::{StreamWriter, streamed};

/// Header with the bytes of the files in a backup.
const BYTES_HEADER: &str = "x-tacho-bytes";
/// Pause between two lines of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

/// `POST /api/tacho/check`: JSON lines: `{"done":..,"total":..}` in bytes, and finally `{"report":..}`.
pub(crate) async fn check(
    State(state): State<Arc<HttpState>>,
    session: Session,
) -> Result<Response, ApiError> {
    state.hub.check_installation(session.caller(), Action::Maintain)?;
    let permit = state.maintenance_permit()?;
    let (writer, body) = streamed();
    let (hub, caller) = (Arc::clone(&state.hub), session.caller().clone());
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        let mut lines = Lines { writer, told: Instant::now(), gone: false };
        match hub.check(&caller, &mut |done, total| lines.progress(done, total)) {
            Ok(report) if !report.interrupted => lines.line(&json!({ "report": report_json(&report) })),
            Ok(_) => {}
            Err(error) => lines.line(&json!({ "error": error.to_string() })),
        }
    });
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], body).into_response())
}

struct Lines {
    writer: StreamWriter,
    told: Instant,
    gone: bool,
}

impl Lines {
    fn progress(&mut self, done: u64, total: u64) -> ControlFlow<()> {
        if self.told.elapsed() >= PROGRESS_INTERVAL {
            self.told = Instant::now();
            self.line(&json!({ "done": done, "total": total }));
        }
        if self.gone { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn line(&mut self, line: &JsonValue) {
        self.gone |= writeln!(self.writer, "{line}").and_then(|()| self.writer.flush()).is_err();
    }
}

/// The report of a check as JSON, for this door and for `tacho check --json`.
pub fn report_json(report: &CheckReport) -> JsonValue {
    let findings: Vec<JsonValue> = report.findings.iter().map(finding_json).collect();
    json!({
        "findings": findings,
        "bytes": report.bytes,
        "tables": report.tables,
        "series": report.series,
        "parts": report.parts,
        "partRows": report.part_rows,
        "logSegments": report.log_segments,
        "logRows": report.log_rows,
    })
}

fn finding_json(finding: &Finding) -> JsonValue {
    json!({
        "severity": match finding.severity { Severity::Note => "note", Severity::Damage => "damage" },
        "path": finding.path.to_string_lossy(),
        "offset": finding.offset,
        "what": finding.what,
        "means": finding.means,
        "action": finding.action,
        "table": finding.table,
        "rows": finding.rows,
    })
}

/// `POST /api/tacho/backup`: a tar stream of everything acknowledged before. If the body is the list of an earlier backup, the
/// stream leaves out the parts of that backup.
pub(crate) async fn backup(
    State(state): State<Arc<HttpState>>,
    session: Session,
    request: Request,
) -> Result<Response, ApiError> {
    state.hub.check_installation(session.caller(), Action::Maintain)?;
    let body = read_body(request, MAINTENANCE_BODY_BYTES_MAX, "", session.body_account(&state)).await?;
    let have = match body.bytes.is_empty() {
        true => BackupList::default(),
        false => std::str::from_utf8(&body.bytes)
            .map_err(|_| "it is not text".to_owned())
            .and_then(BackupList::decode)
            .map_err(|reason| {
                ApiError::bad_request(format!("the body is not the list of a backup: {reason}"))
            })?,
    };
    drop(body);
    let permit = state.maintenance_permit()?;
    let (hub, caller) = (Arc::clone(&state.hub), session.caller().clone());
    let begun = tokio::task::spawn_blocking(move || hub.backup(&caller, have)).await;
    let stream =
        begun.map_err(|_| ApiError::internal("the server failed at this request; its log says why"))??;
    let bytes = stream.bytes();
    let (mut writer, body) = streamed();
    tokio::task::spawn_blocking(move || {
        let _permit = permit;
        if let Err(error) = stream.write(&mut writer) {
            tracing::warn!(%error, "a backup was broken off");
            writer.abort(error);
        }
    });
    let headers = [(header::CONTENT_TYPE, "application/x-tar".to_owned()), (BYTES, bytes.to_string())];
    Ok((headers, body).into_response())
}

/// `POST /api/tacho/maintenance/flush`: writes the rows in memory into parts.
pub(crate) async fn flush(
    State(state): State<Arc<HttpState>>,
    session: Session,
) -> Result<Json<JsonValue>, ApiError> {
    rewrite(&state, &session, Hub::flush).await
}

/// `POST /api/tacho/maintenance/compact`: merges parts until there is nothing to merge.
pub(crate) async fn compact(
    State(state): State<Arc<HttpState>>,
    session: Session,
) -> Result<Json<JsonValue>, ApiError> {
    rewrite(&state, &session, Hub::compact).await
}

async fn rewrite(
    state: &Arc<HttpState>,
    session: &Session,
    act: fn(&Hub, &Caller) -> Result<Rewritten, Error>,
) -> Result<Json<JsonValue>, ApiError> {
    state.hub.check_installation(session.caller(), Action::Maintain)?;
    let permit = state.maintenance_permit()?;
    let (hub, caller) = (Arc::clone(&state.hub), session.caller().clone());
    let done = tokio::task::spawn_blocking(move || {
        let _permit = permit;
        act(&hub, &caller)
    });
    let done = done
        .await
        .map_err(|_| ApiError::internal("the server failed at this request; its log says why"))??;
    Ok(Json(rewritten_json(&done)))
}

/// The result of a flush or a compaction as JSON, for this door and for `tacho flush --json`.
pub fn rewritten_json(done: &Rewritten) -> JsonValue {
    json!({
        "rows": done.rows,
        "bytes": done.bytes,
        "partsBefore": done.before.parts,
        "partsAfter": done.after.parts,
        "bytesBefore": done.before.bytes,
        "bytesAfter": done.after.bytes,
    })
}

const BYTES: header::HeaderName = header::HeaderName::from_static(BYTES_HEADER);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_has_all_details() {
        let finding =
            Finding::damage("/x/parts/1", Some(32_768), "bad").with("lost", "restore").of(Some("t"), Some(7));
        let told = finding_json(&finding);
        assert_eq!((told["severity"].as_str(), told["offset"].as_u64()), (Some("damage"), Some(32_768)));
        assert_eq!((told["table"].as_str(), told["rows"].as_u64()), (Some("t"), Some(7)));
        assert_eq!(told["means"], "lost");
    }
}
