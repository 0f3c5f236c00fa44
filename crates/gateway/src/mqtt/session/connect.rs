//! CONNECT: authenticates the device, registers the client and negotiates the terms of the session.

use std::cell::OnceCell;

use hub::broker::Attach;
use wire::mqtt::{
    ConnAck, Connect, ConnectReturnCode, Packet, PropertiesBuilder, Property, PropertyId, ProtocolVersion,
    ReasonCode,
};

use super::super::provisioner::Joined;
use super::super::{clients, limits};
use super::chunk_lengths::ChunkLengths;
use super::connect_terms::{assigned_client_id, check_terms, granted_keep_alive_s, silence_max_s};
use super::connected::{Connected, StoredWill};
use super::context::Context;
use super::gateway_devices::GatewayDevices;
use super::login::authenticate;
use super::new_certificate;
use super::outgoing::forwarded;
use super::peer::Peer;
use super::refused_connect::RefusedConnect;
use super::topic_access::TopicAccess;

impl Connected {
    /// The request for the session of this client at the broker.
    pub(super) fn attach_request<'a>(
        &'a self,
        expiry_s: u32,
        clean_start: bool,
        context: &Context<'_>,
    ) -> Attach<'a> {
        Attach {
            tenant: self.device.tenant,
            device: self.device.id,
            client_id: &self.client.client_id,
            clean_start,
            expiry_s,
            inflight_max: self.inflight_max,
            wake: (context.wake)(),
            now_ms: context.now_ms(),
        }
    }
}

/// Admits a client, and writes the CONNACK. `joined` is the device that its certificate names, if the hub was to find or add it.
///
/// # Errors
/// The client is refused. Nothing is written yet.
pub(super) fn admit(
    connect: &Connect<'_>,
    joined: Option<Joined>,
    context: &mut Context<'_>,
) -> Result<Connected, RefusedConnect> {
    check_terms(connect)?;
    let (device, credentials) = match joined {
        Some(joined) => joined.map_err(new_certificate::refused)?,
        None => authenticate(connect, context)?,
    };
    let load = context.hub.tenant_load(device.tenant);
    let tenant_connection = load.connect().map_err(RefusedConnect::above_limit_of_tenant)?;
    let assigned = assigned_client_id(connect);
    let client_id = assigned.as_deref().unwrap_or(connect.client_id);
    let client = clients::ClientKey { device: device.id.as_u128(), client_id: client_id.into() };
    let registered =
        context.clients.register(client.clone(), context.connection, lifetime(connect), context.now_s);
    *context.taken_over = registered.taken_over;
    let keep_alive_s = granted_keep_alive_s(connect, context);
    let mut connected = Connected {
        peer: Peer::of(connect),
        presence: None,
        load,
        tenant_connection: Some(tenant_connection),
        device,
        credentials,
        client,
        connection: context.connection,
        silence_max_s: silence_max_s(keep_alive_s),
        series: None,
        in_flight: 0,
        qos2: registered.qos2,
        expiry_s: session_expiry_s(connect).min(hub::broker::limits::SESSION_EXPIRY_MAX_S),
        inflight_max: connect.properties.receive_maximum().min(hub::broker::limits::INFLIGHT_MAX),
        attached: OnceCell::new(),
        outbox: None,
        behind: None,
        topics: TopicAccess::new(),
        aliases: Vec::new(),
        will: connect.will.map(|will| Box::new(stored_will(&will))),
        chunk_lengths: ChunkLengths::default(),
    };
    connected.behind = connected.device.gateway.then(|| Box::new(GatewayDevices::new((context.wake)())));
    let request = connected.attach_request(connected.expiry_s, connect.clean_start, context);
    let (attached, is_present) = context.hub.broker().attach(&request).map_err(|error| RefusedConnect {
        code: ReasonCode::QUOTA_EXCEEDED,
        return_code: ConnectReturnCode::SERVER_UNAVAILABLE,
        label: "sessions",
        cause: error.to_string(),
    })?;
    *context.deliver = attached.is_some();
    connected.attached = attached.map(OnceCell::from).unwrap_or_default();
    connected.follow_subscriptions(context);
    connected.presence = Some(context.hub.device_connected(&connected.device));
    let session_present = is_present || registered.session_present;
    write_acceptance(connect, session_present, keep_alive_s, assigned.as_deref(), context);
    Ok(connected)
}

fn stored_will(will: &wire::mqtt::Will<'_>) -> StoredWill {
    StoredWill {
        topic: will.topic.into(),
        payload: will.payload.into(),
        qos: will.qos,
        retain: will.retain,
        properties: forwarded(will.properties).as_properties().as_bytes().into(),
        expiry_s: will.properties.message_expiry_interval(),
        delay_s: will.properties.will_delay_interval(),
    }
}

/// Whether the session is a new one, and whether it outlives the connection.
fn lifetime(connect: &Connect<'_>) -> (bool, bool) {
    (connect.clean_start, session_expiry_s(connect) > 0)
}

fn session_expiry_s(connect: &Connect<'_>) -> u32 {
    match connect.version {
        ProtocolVersion::V31 | ProtocolVersion::V311 if connect.clean_start => 0,
        ProtocolVersion::V31 | ProtocolVersion::V311 => hub::broker::limits::SESSION_EXPIRY_MAX_S,
        ProtocolVersion::V5 => connect.properties.number(PropertyId::SessionExpiryInterval).unwrap_or(0),
    }
}

fn write_acceptance(
    connect: &Connect<'_>,
    session_present: bool,
    keep_alive_s: u16,
    assigned: Option<&str>,
    context: &mut Context<'_>,
) {
    let mut properties = PropertiesBuilder::new();
    if connect.version == ProtocolVersion::V5 {
        terms(connect, keep_alive_s, assigned, context, &mut properties)
            .expect("BUG: the terms of a session are short");
    }
    // MQTT 3.1 has no such flag.
    let session_present = session_present && connect.version != ProtocolVersion::V31;
    let packet = |properties| Packet::ConnAck(ConnAck { session_present, code: 0, properties });
    // A client with a very small Maximum Packet Size does without the terms.
    let forms = [packet(properties.as_properties()), packet(wire::mqtt::Properties::NONE)];
    Peer::of(connect).write(&forms, context.out);
}

fn terms(
    connect: &Connect<'_>,
    keep_alive_s: u16,
    assigned: Option<&str>,
    context: &Context<'_>,
    properties: &mut PropertiesBuilder,
) -> Result<(), wire::mqtt::EncodeError> {
    let options = context.options;
    properties.push(Property::TwoBytes(PropertyId::ReceiveMaximum, options.receive_maximum))?;
    let packet_bytes_max = u32::try_from(options.packet_bytes_max).unwrap_or(u32::MAX);
    properties.push(Property::FourBytes(PropertyId::MaximumPacketSize, packet_bytes_max))?;
    properties.push(Property::TwoBytes(PropertyId::TopicAliasMaximum, limits::TOPIC_ALIAS_MAX))?;
    let expiry_max_s = hub::broker::limits::SESSION_EXPIRY_MAX_S;
    if session_expiry_s(connect) > expiry_max_s {
        properties.push(Property::FourBytes(PropertyId::SessionExpiryInterval, expiry_max_s))?;
    }
    if keep_alive_s != connect.keep_alive_s {
        properties.push(Property::TwoBytes(PropertyId::ServerKeepAlive, keep_alive_s))?;
    }
    if let Some(assigned) = assigned {
        properties.push(Property::Text(PropertyId::AssignedClientIdentifier, assigned))?;
    }
    Ok(())
}
