//! Where a message goes by its topic, and which topics a device may use.

use hub::Hub;
use payload_schema::PayloadForm;
use wire::thingsboard::attributes::Topic as AttributeTopic;
use wire::thingsboard::gateway::Topic as GatewayTopic;
use wire::thingsboard::packages;
use wire::thingsboard::rpc;

use super::super::options::MqttOptions;
use super::connected::Connected;
use super::context::Context;
use super::topic_access::{Access, Filters, filled, is_covered, is_of_device_api};

/// The topic of telemetry (ThingsBoard's device API).
pub(super) const TELEMETRY_TOPIC: &str = "v1/devices/me/telemetry";

/// The topics of telemetry, the long name and the short ones, and the form of what comes under each.
const TELEMETRY_TOPICS: [(&str, PayloadForm); 4] = [
    (TELEMETRY_TOPIC, PayloadForm::OfProfile),
    ("v2/t", PayloadForm::OfProfile),
    ("v2/t/j", PayloadForm::Json),
    ("v2/t/p", PayloadForm::Protobuf),
];

/// The topic and the form of telemetry under it; `None` for another topic.
pub(super) fn telemetry_topic(topic: &str) -> Option<(&'static str, PayloadForm)> {
    TELEMETRY_TOPICS.into_iter().find(|(of_telemetry, _)| *of_telemetry == topic)
}

/// Whether the server sends messages under topics that a filter of the device API selects.
pub(super) fn is_served_filter(filter: &str) -> bool {
    let attributes = matches!(AttributeTopic::parse(filter), Some(AttributeTopic::Attributes(_)));
    let for_gateways = matches!(
        GatewayTopic::parse(filter),
        Some(GatewayTopic::Attributes | GatewayTopic::AttributesResponse | GatewayTopic::Rpc)
    );
    let responses = ["v1/devices/me/attributes/response/+", "v2/a/res/+", "v2/a/res/j/+", "v2/a/res/p/+"];
    attributes
        || for_gateways
        || responses.contains(&filter)
        || rpc::filter(filter).is_some()
        || packages::PackageTopics::serves(filter)
}

impl Connected {
    /// Whether the device may publish to a topic of the broker.
    pub(super) fn may_publish(&self, topic: &str, context: &Context<'_>) -> bool {
        !is_of_device_api(topic)
            && !topic.starts_with('$')
            && is_covered(&self.filters(context.hub, context.options).publish, topic)
    }

    /// Whether the device may subscribe to a filter.
    pub(super) fn may_subscribe(&self, filter: &str, hub: &Hub, options: &MqttOptions) -> bool {
        if is_of_device_api(filter) {
            let is_allowed = self.behind.is_some() || GatewayTopic::parse(filter).is_none();
            return is_allowed && is_served_filter(filter);
        }
        is_covered(&self.filters(hub, options).subscribe, filter)
    }

    /// The registry has changed: fills the names in again, and compares the subscriptions with other filters.
    pub(super) fn follow_topics(&mut self, hub: &Hub, options: &MqttOptions) {
        if let Some(old) = self.topics.filters.take() {
            self.topics.is_unchecked |= *self.filters(hub, options) != old;
        }
    }

    /// Ends the subscriptions that the device may not have any more. An engine that is busy leaves them for the next call.
    pub(crate) fn end_forbidden_subscriptions(&mut self, hub: &Hub, options: &MqttOptions) {
        if !std::mem::take(&mut self.topics.is_unchecked) {
            return;
        }
        let Some(attached) = self.attached.get() else { return };
        let filters = hub.broker().filters(&attached.session, "");
        let forbidden = filters.iter().filter(|filter| !self.may_subscribe(filter, hub, options));
        let forbidden: Vec<&str> = forbidden.map(|filter| &**filter).collect();
        if forbidden.is_empty() {
            return;
        }
        match hub.broker().unsubscribe(&attached.session, forbidden.iter().copied(), &mut Vec::new()) {
            Ok(_) => {
                let (device, count) = (&self.device.name, forbidden.len());
                tracing::info!(%device, count, first = forbidden[0], "subscriptions ended: the device may not have them any more");
                forbidden.iter().for_each(|_| hub.metrics().refused(hub::Door::Mqtt, "subscription_ended"));
            }
            Err(error) if error.is_busy() => self.topics.is_unchecked = true,
            // The session has ended, or its connection ends for the same fault.
            Err(error) => tracing::debug!(%error, "subscriptions were not ended"),
        }
    }

    fn filters(&self, hub: &Hub, options: &MqttOptions) -> &Filters {
        self.topics.filters.get_or_init(|| {
            let (client, credentials) = (&*self.client.client_id, Some(&self.credentials));
            let fill = |access| filled(access, &self.device, client, credentials, hub, options);
            Filters { publish: fill(Access::Publish), subscribe: fill(Access::Subscribe) }
        })
    }
}
