//! Exporters: classes whose output also goes to something outside. The class itself computes like Bridge.

mod database;
mod email;
mod mqtt;
mod webhook;

pub use database::DatabaseExport;
pub use email::{EmailExport, Encryption};
pub use mqtt::MqttExport;
pub use webhook::{Method, WebhookExport};

use super::params::Params;
use crate::virtual_sensors::descriptor::Descriptor;
use crate::virtual_sensors::fault::{Fault, Note};

/// Where the rows of the output go besides the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Export {
    /// A broker of MQTT.
    Mqtt(MqttExport),
    /// An HTTP address.
    Webhook(WebhookExport),
    /// Mail.
    Email(EmailExport),
    /// A table of MySQL, MariaDB or PostgreSQL.
    Database(DatabaseExport),
}

impl Export {
    /// Where rows go, without secrets. Another text is another target.
    pub fn target(&self) -> String {
        match self {
            Self::Mqtt(mqtt) => mqtt.target(),
            Self::Webhook(webhook) => webhook.target(),
            Self::Email(email) => email.target(),
            Self::Database(database) => database.target(),
        }
    }
}

/// The exporter that a class names; `None` for other classes.
pub(super) fn export(
    short: &str,
    params: &mut Params<'_>,
    descriptor: &Descriptor,
    notes: &mut Vec<Note>,
) -> Result<Option<Export>, Fault> {
    let sensor = descriptor.name.value.as_str();
    Ok(Some(match short {
        "MQTTExporter" => Export::Mqtt(mqtt::read(params, sensor)?),
        "Webhook" => Export::Webhook(webhook::read(params)?),
        "Email" => Export::Email(email::read(params, &descriptor.processing.output)?),
        "StreamExporter" | "ScheduledStreamExporter" => {
            Export::Database(database::read(params, sensor, notes)?)
        }
        _ => return Ok(None),
    }))
}
