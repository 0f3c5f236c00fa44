//! The class Webhook: rows go to an HTTP address as JSON.

use std::path::PathBuf;
use std::sync::Arc;

use clients::http::{Body, HttpClient, HttpError, HttpLimits, HttpRequest};
use clients::outgoing::AllowedTargets;
use serde_json::json;
use tokio::task::spawn_blocking;
use virtual_sensors::{Method, OutputRow, SensorOutput, WebhookExport};

use super::limits::{WEBHOOK_ROWS_MAX, WEBHOOK_TIMEOUT};
use super::row;
use crate::exporter::Exporter;

/// Statuses that refuse what the body says: bad request, content too large, unsupported media type, unprocessable content. After
/// each other status the same request may succeed later, for example when a key or a path is right again.
const OF_BODY: [u16; 4] = [400, 413, 415, 422];

/// An address that rows are sent to.
pub(super) struct WebhookExporter {
    output: Arc<SensorOutput>,
    export: WebhookExport,
    targets: Arc<AllowedTargets>,
    /// The client, after [`prepare`](Exporter::prepare). A new one reads the file of authorities again.
    client: Option<HttpClient>,
    refused: u64,
}

impl WebhookExporter {
    pub(super) fn new(
        output: Arc<SensorOutput>,
        export: WebhookExport,
        targets: Arc<AllowedTargets>,
    ) -> Self {
        Self { output, export, targets, client: None, refused: 0 }
    }

    fn body(&self, rows: &[OutputRow]) -> String {
        let rows: Vec<_> = rows.iter().map(|one| row::row(&self.output, one)).collect();
        json!({ "sensor": self.output.sensor, "rows": rows }).to_string()
    }

    /// The status of the answer to a body.
    async fn send(&self, body: String) -> Result<u16, String> {
        let client = self.client.clone().expect("BUG: a target is prepared before it gets rows");
        let export = self.export.clone();
        let sent = spawn_blocking(move || send(&client, &export, &body)).await;
        let answer = sent.map_err(|error| format!("the request was given up: {error}"))?;
        answer.map_err(|error| format!("no answer: {}", error.reason()))
    }
}

impl Exporter for WebhookExporter {
    async fn prepare(&mut self) -> Result<(), String> {
        let cafile = self.export.cafile.as_ref().map(PathBuf::from);
        // The answers are not read.
        let limits = HttpLimits { timeout: WEBHOOK_TIMEOUT, body_bytes_max: 0 };
        let targets = Arc::clone(&self.targets);
        let client = move || {
            let client = HttpClient::new("", limits).without_redirects().with_targets(targets);
            client.with_authorities(cafile.as_deref())
        };
        let made = spawn_blocking(client).await;
        let made = made.map_err(|error| format!("the certificates were not read: {error}"))?;
        self.client = Some(made.map_err(|error| error.to_string())?);
        Ok(())
    }

    async fn write(&mut self, rows: &[OutputRow]) -> Result<(), String> {
        let mut refused = Vec::new();
        // The requests to send, the next one last.
        let mut waiting: Vec<&[OutputRow]> = rows.rchunks(WEBHOOK_ROWS_MAX).collect();
        while let Some(rows) = waiting.pop() {
            let status = self.send(self.body(rows)).await?;
            match outcome(status, rows.len()) {
                Outcome::Taken => {}
                Outcome::Halved => {
                    let (first, second) = rows.split_at(rows.len() / 2);
                    waiting.extend([second, first]);
                }
                Outcome::Refused => refused.push(status),
                Outcome::Failed => return Err(format!("the address answers {status}")),
            }
        }
        if let Some(status) = refused.first() {
            let (sensor, rows) = (&self.output.sensor, refused.len());
            tracing::warn!(sensor, status, rows, "an address refuses rows of a virtual sensor");
        }
        self.refused += refused.len() as u64;
        Ok(())
    }

    fn refused(&self) -> u64 {
        self.refused
    }
}

/// The status of the answer to a body.
fn send(client: &HttpClient, export: &WebhookExport, body: &str) -> Result<u16, HttpError> {
    let method = match export.method {
        Method::Post => "POST",
        Method::Put => "PUT",
        Method::Patch => "PATCH",
    };
    let headers: Vec<_> =
        export.headers.iter().map(|(name, value)| (name.as_str(), value.reveal())).collect();
    let request = HttpRequest::new(method, export.url.reveal(), Body::Json(body));
    client.status(&HttpRequest { headers: &headers, ..request })
}

/// What the status of an answer means for the rows of the request.
#[derive(Debug, PartialEq, Eq)]
enum Outcome {
    /// The address has them.
    Taken,
    /// Some row, or their number, is refused: each half is sent by itself.
    Halved,
    /// This one row is refused, and would be refused again.
    Refused,
    /// The request must be sent again later.
    Failed,
}

fn outcome(status: u16, rows: usize) -> Outcome {
    match status {
        200..=299 => Outcome::Taken,
        status if !OF_BODY.contains(&status) => Outcome::Failed,
        _ if rows > 1 => Outcome::Halved,
        _ => Outcome::Refused,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_single_row_is_given_up_and_only_for_what_it_says() {
        for status in [200, 202, 204] {
            assert_eq!(outcome(status, 500), Outcome::Taken, "{status}");
        }
        for status in [301, 401, 403, 404, 408, 425, 429, 500, 503] {
            assert_eq!(outcome(status, 1), Outcome::Failed, "{status}");
        }
        for status in OF_BODY {
            assert_eq!(outcome(status, 2), Outcome::Halved, "{status}");
            assert_eq!(outcome(status, 1), Outcome::Refused, "{status}");
        }
    }
}
