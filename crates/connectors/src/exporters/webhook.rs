//! The class Webhook: rows go to an address of HTTP as JSON.

use std::sync::Arc;

use hub::virtual_sensors::{Method, OutputRow, SensorOutput, WebhookExport};
use serde_json::json;
use tokio::task::spawn_blocking;
use ureq::Agent;

use super::limits::{WEBHOOK_ROWS_MAX, WEBHOOK_TIMEOUT};
use super::row;
use crate::follower::Sink;

/// Statuses below 500 after which the same request may succeed later: request timeout, too early, too many requests.
const RETRIED: [u16; 3] = [408, 425, 429];

/// An address that rows are sent to.
pub(super) struct WebhookSink {
    output: Arc<SensorOutput>,
    export: WebhookExport,
    agent: Agent,
    refused: u64,
}

impl WebhookSink {
    pub(super) fn new(output: Arc<SensorOutput>, export: WebhookExport) -> Self {
        let config = Agent::config_builder()
            .timeout_global(Some(WEBHOOK_TIMEOUT))
            .http_status_as_error(false)
            .max_redirects(0)
            .user_agent(concat!("tachograph/", env!("CARGO_PKG_VERSION")))
            .build();
        Self { output, export, agent: config.new_agent(), refused: 0 }
    }

    /// The status of the answer to a body.
    async fn send(&self, body: String) -> Result<u16, String> {
        let (agent, export) = (self.agent.clone(), self.export.clone());
        let sent = spawn_blocking(move || {
            let url = export.url.reveal();
            let mut request = match export.method {
                Method::Post => agent.post(url),
                Method::Put => agent.put(url),
                Method::Patch => agent.patch(url),
            };
            request = request.header("Content-Type", "application/json");
            for (name, value) in &export.headers {
                request = request.header(name, value.reveal());
            }
            request.send(body).map(|answer| answer.status().as_u16())
        });
        let answer = sent.await.map_err(|error| format!("the request was given up: {error}"))?;
        answer.map_err(|error| format!("no answer: {error}"))
    }
}

impl Sink for WebhookSink {
    async fn prepare(&mut self) -> Result<(), String> {
        Ok(())
    }

    async fn write(&mut self, rows: &[OutputRow]) -> Result<(), String> {
        for rows in rows.chunks(WEBHOOK_ROWS_MAX) {
            let of_body: Vec<_> = rows.iter().map(|one| row::row(&self.output, one)).collect();
            let body = json!({ "sensor": self.output.sensor, "rows": of_body }).to_string();
            match self.send(body).await? {
                200..=299 => {}
                status if status >= 500 || RETRIED.contains(&status) => {
                    return Err(format!("the address answers {status}"));
                }
                status => {
                    // It would answer so again.
                    self.refused += rows.len() as u64;
                    let (sensor, rows) = (&self.output.sensor, rows.len());
                    tracing::warn!(sensor, status, rows, "an address refuses rows of a virtual sensor");
                }
            }
        }
        Ok(())
    }

    fn refused(&self) -> u64 {
        self.refused
    }
}
