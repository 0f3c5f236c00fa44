//! The class Email: each row is a mail.

mod connection;
mod message;
mod rate;
mod text;

use std::sync::Arc;
use std::time::Instant;

use clients::outgoing::AllowedTargets;
use lettre::Message;
use tokio::time::sleep;
use virtual_sensors::{EmailExport, OutputRow, SensorOutput};

use crate::exporter::Exporter;
use connection::{Connection, Outcome};
use rate::Rate;

/// A mail server that takes the rows of a sensor.
pub(super) struct EmailExporter {
    output: Arc<SensorOutput>,
    export: EmailExport,
    targets: Arc<AllowedTargets>,
    rate: Rate,
    refused: u64,
    refusal: Option<String>,
}

impl EmailExporter {
    pub(super) fn new(output: Arc<SensorOutput>, export: EmailExport, targets: Arc<AllowedTargets>) -> Self {
        Self { output, export, targets, rate: Rate::default(), refused: 0, refusal: None }
    }

    async fn send(&mut self, mail: &Message) -> Result<(), String> {
        sleep(self.rate.pause(Instant::now())).await;
        self.rate.sent(Instant::now());
        let mut connection = Connection::open(&self.export, &self.targets).await?;
        let outcome = connection.send(mail).await;
        connection.close().await;
        match outcome? {
            Outcome::Taken => {}
            Outcome::Refused(reason) => self.refuse(format!("the mail server refuses a mail: {reason}")),
        }
        Ok(())
    }

    /// The mail of this row would be refused again. A reason that repeats is named once.
    fn refuse(&mut self, reason: String) {
        if self.refusal.as_ref() != Some(&reason) {
            tracing::warn!(
                sensor = self.output.sensor,
                reason,
                "a row of a virtual sensor is not sent as a mail"
            );
        }
        self.refused += 1;
        self.refusal = Some(reason);
    }
}

impl Exporter for EmailExporter {
    /// Shows early that the server does not answer, or refuses the login.
    async fn prepare(&mut self) -> Result<(), String> {
        message::check(&self.export)?;
        Connection::open(&self.export, &self.targets).await?.close().await;
        Ok(())
    }

    async fn write(&mut self, rows: &[OutputRow]) -> Result<(), String> {
        for one in rows {
            match message::of(&self.export, &self.output, one) {
                Ok(Some(mail)) => self.send(&mail).await?,
                Ok(None) => {}
                Err(reason) => self.refuse(reason),
            }
        }
        Ok(())
    }

    /// A mail that was sent does not come again because of a failure of the next one.
    fn rows_at_once(&self) -> usize {
        1
    }

    fn refused(&self) -> u64 {
        self.refused
    }

    fn refusal(&self) -> Option<&str> {
        self.refusal.as_deref()
    }
}
