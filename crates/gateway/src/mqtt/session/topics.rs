//! Where a message goes by its topic, and which topics a device may use.

use hub::broker::{Names, permits};
use wire::thingsboard::attributes::Topic as AttributeTopic;
use wire::thingsboard::gateway::Topic as GatewayTopic;
use wire::thingsboard::rpc;

use super::connected::Connected;
use super::context::Context;

/// The topic of telemetry (ThingsBoard's device API).
pub(crate) const TELEMETRY_TOPIC: &str = "v1/devices/me/telemetry";

/// Whether devices publish telemetry under a topic: the long name, or one of the short ones.
pub(super) fn is_telemetry(topic: &str) -> bool {
    [TELEMETRY_TOPIC, "v2/t", "v2/t/j"].contains(&topic)
}

/// Whether the topic belongs to ThingsBoard's device API. The server answers these topics itself; a subscription to one of
/// them gets only what the server sends to this device.
pub(super) fn is_of_device_api(topic: &str) -> bool {
    ["v1/", "v2/", "/provision/"].iter().any(|prefix| topic.starts_with(prefix))
}

/// Whether the server sends messages under topics that a filter of the device API selects.
pub(super) fn is_served_filter(filter: &str) -> bool {
    let attributes = matches!(AttributeTopic::parse(filter), Some(AttributeTopic::Attributes(_)));
    let for_gateways = matches!(
        GatewayTopic::parse(filter),
        Some(GatewayTopic::Attributes | GatewayTopic::AttributesResponse | GatewayTopic::Rpc)
    );
    let responses = ["v1/devices/me/attributes/response/+", "v2/a/res/+", "v2/a/res/j/+"];
    attributes || for_gateways || responses.contains(&filter) || rpc::filter(filter).is_some()
}

impl Connected {
    /// Whether the device may publish to a topic of the broker.
    pub(super) fn may_publish(&self, topic: &str, context: &Context<'_>) -> bool {
        !is_of_device_api(topic)
            && !topic.starts_with('$')
            && self.is_permitted(&context.options.publish_topics, topic, context)
    }

    /// Whether the device may subscribe to a filter.
    pub(super) fn may_subscribe(&self, filter: &str, context: &Context<'_>) -> bool {
        if is_of_device_api(filter) {
            let is_allowed = self.behind.is_some() || GatewayTopic::parse(filter).is_none();
            return is_allowed && is_served_filter(filter);
        }
        self.is_permitted(&context.options.subscribe_topics, filter, context)
    }

    fn is_permitted(&self, patterns: &[String], topic: &str, context: &Context<'_>) -> bool {
        let needs_tenant = patterns.iter().any(|pattern| pattern.contains("${tenant}"));
        let tenant = needs_tenant.then(|| context.hub.registry().tenant_name(self.device.tenant)).flatten();
        let names = Names {
            device: &self.device.name,
            // No topic has an empty name of a tenant, so the pattern permits nothing.
            tenant: tenant.as_deref().unwrap_or("/"),
            client: &self.client.client_id,
        };
        patterns.iter().any(|pattern| permits(pattern, topic, names))
    }
}
