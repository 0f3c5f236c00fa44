//! Keeps an exporter for each sensor with one, as sensors are loaded, changed and removed.

use std::collections::HashMap;
use std::sync::Arc;

use hub::Hub;
use hub::caller::Caller;
use hub::virtual_sensors::{Begin, Export, FollowRequest, SensorOutput};
use tokio::task::JoinHandle;

use super::mqtt::MqttSink;
use super::webhook::WebhookSink;
use crate::databases::{Pools, Writer};
use crate::follower::follow;

/// The name of the follower of a sensor that exports.
const FOLLOWER: &str = "export";

/// Exports until the hub is gone.
pub(crate) async fn manage(hub: Arc<Hub>, pools: Arc<Pools>) {
    let caller = Caller::local(hub.registry().default_tenant());
    let mut outputs = match hub.sensor_outputs(&caller) {
        Ok(outputs) => outputs,
        Err(error) => return tracing::error!(%error, "no exporter of a virtual sensor runs"),
    };
    let mut exporters: HashMap<String, (Arc<SensorOutput>, JoinHandle<()>)> = HashMap::new();
    loop {
        let wanted = Arc::clone(&outputs.borrow_and_update());
        let is_wanted = |output: &Arc<SensorOutput>| wanted.iter().any(|wanted| wanted == output);
        let ended: Vec<_> = exporters.extract_if(|_, (output, _)| !is_wanted(output)).collect();
        for (_, (_, exporter)) in ended {
            exporter.abort();
            // Two exporters of one sensor would move one cursor. An aborted task ends with an error.
            drop(exporter.await);
        }
        for output in wanted.iter().filter(|output| output.export.is_some()) {
            if !exporters.contains_key(&output.sensor) {
                let exporter = export(Arc::clone(&hub), Arc::clone(&pools), Arc::clone(output));
                exporters.insert(output.sensor.clone(), (Arc::clone(output), tokio::spawn(exporter)));
            }
        }
        if outputs.changed().await.is_err() {
            return;
        }
    }
}

async fn export(hub: Arc<Hub>, pools: Arc<Pools>, output: Arc<SensorOutput>) {
    let Some(export) = output.export.clone() else { return };
    let begin = match export {
        // A table has all that the sensor has; a broker, an address or a person wants what is new.
        Export::Database(_) => Begin::Oldest,
        Export::Mqtt(_) | Export::Webhook(_) => Begin::Newest,
    };
    let request = FollowRequest {
        sensor: output.sensor.clone(),
        follower: FOLLOWER.to_owned(),
        target: export.target(),
        begin,
    };
    match export {
        Export::Mqtt(mqtt) => follow(hub, request, MqttSink::new(output, mqtt)).await,
        Export::Webhook(webhook) => follow(hub, request, WebhookSink::new(output, webhook)).await,
        Export::Database(database) => {
            let writer = Writer::new(&pools, &database.options, &database.table, &output, None);
            follow(hub, request, writer).await;
        }
    }
}
