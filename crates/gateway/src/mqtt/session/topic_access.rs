//! The topics of the broker that a client may use.

use std::cell::OnceCell;

use hub::Hub;
use hub::broker::covers;
use hub::registry::{Credentials, Device, Names, TOPICS_MEMBER, fill};
use uuid::Uuid;

use super::super::options::MqttOptions;

/// Whether the topic belongs to ThingsBoard's device API. The server answers these topics itself; a subscription to one of
/// them gets only what the server sends to this device.
pub(super) fn is_of_device_api(topic: &str) -> bool {
    ["v1/", "v2/", "/provision/"].iter().any(|prefix| topic.starts_with(prefix))
}

/// Where the topics are listed that a device may use.
pub(super) fn lists(access: &str) -> String {
    format!("mqtt.{access}_topics, or {TOPICS_MEMBER}.{access} of its profile,")
}

/// The topics of the broker that a client may use: the patterns of the server's settings, or of the profile of its device, with
/// its names filled in.
#[derive(Debug, Default)]
pub(crate) struct TopicAccess {
    /// Filled in when it is first needed, and again after a change of the registry.
    pub(super) filters: OnceCell<Filters>,
    /// The subscriptions of the session must be compared with the filters.
    pub(super) is_unchecked: bool,
}

/// Filters of one client.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Filters {
    pub(super) publish: Box<[String]>,
    pub(super) subscribe: Box<[String]>,
}

impl TopicAccess {
    /// Those of a client that connects. It may continue a session that began when it might use other topics.
    pub(super) fn new() -> Self {
        Self { filters: OnceCell::new(), is_unchecked: true }
    }
}

/// Whether an absent session may keep its subscription to a filter.
pub(crate) fn is_open_to(device: Uuid, client: &str, filter: &str, hub: &Hub, options: &MqttOptions) -> bool {
    // The session of a deleted device ends as a whole.
    let Some(device) = hub.registry().device_by_id(device) else { return true };
    let credentials = hub.registry().credentials_of(device.id);
    let allowed = || filled(Access::Subscribe, &device, client, credentials.as_ref(), hub, options);
    is_of_device_api(filter) || is_covered(&allowed(), filter)
}

/// What a client does with a topic.
#[derive(Clone, Copy)]
pub(super) enum Access {
    Publish,
    Subscribe,
}

/// The filters of a device and its client: of the lists of its profile, or of the server's settings.
pub(super) fn filled(
    access: Access,
    device: &Device,
    client: &str,
    credentials: Option<&Credentials>,
    hub: &Hub,
    options: &MqttOptions,
) -> Box<[String]> {
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
    // What the credentials do not check, a client could choose.
    let username = credentials.and_then(Credentials::user_name);
    let names = Names { device: &device.name, tenant, client, username };
    patterns.iter().filter_map(|pattern| fill(pattern, names)).collect()
}

pub(super) fn is_covered(allowed: &[String], filter: &str) -> bool {
    allowed.iter().any(|allowed| covers(allowed, filter))
}
