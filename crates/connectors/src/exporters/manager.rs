//! Keeps an exporter for each sensor with one, as sensors are loaded, changed and removed.

use std::sync::Arc;

use clients::outgoing::AllowedTargets;
use hub::caller::Caller;
use virtual_sensors::{Export, FollowRequest, SensorOutput, VirtualSensors};

use super::email::EmailExporter;
use super::mqtt::MqttExporter;
use super::webhook::WebhookExporter;
use crate::databases::{DatabaseExporter, Pools};
use crate::exporter::follow;
use crate::tasks;

/// Exports until the runtime ends.
pub(crate) async fn manage(sensors: Arc<VirtualSensors>, pools: Arc<Pools>, targets: Arc<AllowedTargets>) {
    let caller = Caller::local(sensors.tenant());
    let outputs = match sensors.outputs(&caller) {
        Ok(outputs) => outputs,
        Err(error) => return tracing::error!(%error, "no exporter of a virtual sensor runs"),
    };
    let begin = |output: Arc<SensorOutput>| {
        let (request, export) = (output.export_follower()?, output.export.clone()?);
        let clients = (Arc::clone(&pools), Arc::clone(&targets));
        Some(run(Arc::clone(&sensors), clients, request, export, output))
    };
    tasks::manage(outputs, |output| &output.sensor, begin).await;
}

async fn run(
    sensors: Arc<VirtualSensors>,
    (pools, targets): (Arc<Pools>, Arc<AllowedTargets>),
    request: FollowRequest,
    export: Export,
    output: Arc<SensorOutput>,
) {
    match export {
        Export::Mqtt(mqtt) => follow(sensors, request, MqttExporter::new(output, mqtt, targets)).await,
        Export::Webhook(webhook) => {
            follow(sensors, request, WebhookExporter::new(output, webhook, targets)).await
        }
        Export::Email(email) => follow(sensors, request, EmailExporter::new(output, email, targets)).await,
        Export::Database(database) => {
            let exporter = DatabaseExporter::new(&pools, &database.options, &database.table, &output, None);
            follow(sensors, request, exporter).await;
        }
    }
}
