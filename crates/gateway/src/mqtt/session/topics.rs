//! Where a message goes by its topic, and which topics a device may use.

use std::cell::OnceCell;

use hub::Hub;
use hub::broker::{Names, TOPICS_MEMBER, covers, fill};
use hub::registry::Device;
use uuid::Uuid;
use wire::mqtt::Connect;
use wire::thingsboard::attributes::Topic as AttributeTopic;
use wire::thingsboard::gateway::Topic as GatewayTopic;
use wire::thingsboard::rpc;

use super::super::options::MqttOptions;
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

/// Where the topics stand that a device may use.
pub(super) fn lists(access: &str) -> String {
    format!("mqtt.{access}_topics, or {TOPICS_MEMBER}.{access} of its profile,")
}

/// The topics of the broker that a client may use: the patterns of the server's settings, or of the profile of its device, with
/// its names filled in.
#[derive(Debug, Default)]
pub(crate) struct TopicAccess {
    /// The user name of CONNECT.
    username: Option<Box<str>>,
    /// Filled in when it is first needed, and again after a change of the registry.
    filters: OnceCell<Filters>,
    /// The subscriptions of the session have to be compared with the filters.
    is_unchecked: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Filters {
    publish: Vec<String>,
    subscribe: Vec<String>,
}

impl TopicAccess {
    /// Those of a client that connects. It may continue a session that began when it might use other topics.
    pub(super) fn of(connect: &Connect<'_>) -> Self {
        Self { username: connect.username.map(Into::into), filters: OnceCell::new(), is_unchecked: true }
    }
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
            let username = UserName::Known(self.topics.username.as_deref());
            let (publish, subscribe) = (Access::Publish, Access::Subscribe);
            let fill = |access| filled(access, &self.device, &self.client.client_id, username, hub, options);
            Filters { publish: fill(publish), subscribe: fill(subscribe) }
        })
    }
}

/// Whether an absent session may keep its subscription to a filter. Its user name is not known: a filter that would need it is
/// checked when the client comes back.
pub(crate) fn is_open_to(device: Uuid, client: &str, filter: &str, hub: &Hub, options: &MqttOptions) -> bool {
    // The session of a deleted device ends as a whole.
    let Some(device) = hub.registry().device_by_id(device) else { return true };
    is_of_device_api(filter)
        || is_covered(&filled(Access::Subscribe, &device, client, UserName::Unknown, hub, options), filter)
}

/// The user name of a client.
#[derive(Clone, Copy)]
enum UserName<'a> {
    Known(Option<&'a str>),
    /// It may be any.
    Unknown,
}

/// What a client does with a topic.
#[derive(Clone, Copy)]
enum Access {
    Publish,
    Subscribe,
}

/// The filters of a device and its client: of the lists of its profile, or of the server's settings.
fn filled(
    access: Access,
    device: &Device,
    client: &str,
    username: UserName<'_>,
    hub: &Hub,
    options: &MqttOptions,
) -> Vec<String> {
    let rights = &device.profile.topics;
    let (of_profile, of_server) = match access {
        Access::Publish => (&rights.publish, &options.publish_topics),
        Access::Subscribe => (&rights.subscribe, &options.subscribe_topics),
    };
    let patterns: Vec<&str> = match of_profile {
        Some(patterns) => patterns.iter().map(|pattern| &**pattern).collect(),
        None => of_server.iter().map(String::as_str).collect(),
    };
    let needs_tenant = patterns.iter().any(|pattern| pattern.contains("${tenant}"));
    let tenant = needs_tenant.then(|| hub.registry().tenant_name(device.tenant)).flatten();
    let tenant = tenant.as_deref().unwrap_or("");
    let names = |username| Names { device: &device.name, tenant, client, username };
    let fill = |pattern: &&str| match username {
        UserName::Known(username) => fill(pattern, names(username)),
        UserName::Unknown => fill(&pattern.replace("${username}", "+"), names(None)),
    };
    patterns.iter().filter_map(fill).collect()
}

fn is_covered(allowed: &[String], filter: &str) -> bool {
    allowed.iter().any(|allowed| covers(allowed, filter))
}
