//! What the operator's tools ask of a running server: a check of its files, a backup. One of them at a time.
//!
//! The server writes nothing anywhere for them: a backup is the answer, a tar stream that the tool (or curl) keeps.

use std::io::Write;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hub::caller::Action;
use hub::maintenance::MaintenanceError;
use hub::{BackupList, CheckReport, Finding, Severity};
use serde_json::{Value as JsonValue, json};
use tokio::sync::OwnedSemaphorePermit;

use super::Door;
use super::auth::Session;
use super::error::ApiError;
use super::limits::MAINTENANCE_BODY_BYTES_MAX;
use super::request::read_body;
use super::stream::{StreamWriter, streamed};

/// Bytes of files that a backup's stream brings.
const BYTES_HEADER: &str = "x-tacho-bytes";
/// Pause between two lines of progress.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);

impl Door {
    /// The right to read all files; they are read by one at a time.
    pub(crate) fn maintenance_permit(&self) -> Result<OwnedSemaphorePermit, ApiError> {
        let turn = Arc::clone(&self.maintenance).try_acquire_owned();
        turn.map_err(|_| {
            ApiError::busy("a check, a backup or an export is under way; try again when it is done")
        })
    }
}

/// `POST /api/tacho/check`: lines of JSON, `{"done":..,"total":..}` in bytes and at last `{"report":..}`.
pub(crate) async fn check(State(door): State<Arc<Door>>, session: Session) -> Result<Response, ApiError> {
    session.check(Action::Maintenance)?;
    let turn = door.maintenance_permit()?;
    let (writer, body) = streamed();
    let hub = Arc::clone(&door.hub);
    tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let mut lines = Lines { writer, told: Instant::now(), gone: false };
        match hub.check(&mut |done, total| lines.progress(done, total)) {
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

/// What a check found, as this door and `tacho check --json` tell it.
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

/// `POST /api/tacho/backup`: a tar stream of everything acknowledged before; the body may be the list of an earlier
/// backup, whose parts are then left out.
pub(crate) async fn backup(
    State(door): State<Arc<Door>>,
    session: Session,
    request: Request,
) -> Result<Response, ApiError> {
    session.check(Action::Maintenance)?;
    let body = read_body(request, MAINTENANCE_BODY_BYTES_MAX, "", session.body_account(&door)).await?;
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
    let turn = door.maintenance_permit()?;
    let hub = Arc::clone(&door.hub);
    let begun = tokio::task::spawn_blocking(move || hub.backup(have)).await;
    let stream = begun
        .map_err(|_| ApiError::internal("the server failed at this request; its log says why"))?
        .map_err(|error| match error {
            MaintenanceError::Store(error) => ApiError::from(error),
            MaintenanceError::Registry(error) => ApiError::from(error),
        })?;
    let bytes = stream.bytes();
    let (mut writer, body) = streamed();
    tokio::task::spawn_blocking(move || {
        let _turn = turn;
        if let Err(error) = stream.write(&mut writer) {
            tracing::warn!(%error, "a backup was broken off");
            writer.abort(error);
        }
    });
    let headers = [(header::CONTENT_TYPE, "application/x-tar".to_owned()), (BYTES, bytes.to_string())];
    Ok((headers, body).into_response())
}

const BYTES: header::HeaderName = header::HeaderName::from_static(BYTES_HEADER);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_tells_everything() {
        let finding =
            Finding::damage("/x/parts/1", Some(32_768), "bad").with("lost", "restore").of(Some("t"), Some(7));
        let told = finding_json(&finding);
        assert_eq!((told["severity"].as_str(), told["offset"].as_u64()), (Some("damage"), Some(32_768)));
        assert_eq!((told["table"].as_str(), told["rows"].as_u64()), (Some("t"), Some(7)));
        assert_eq!(told["means"], "lost");
    }
}
