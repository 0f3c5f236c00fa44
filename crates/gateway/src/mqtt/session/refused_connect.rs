//! A refused CONNECT and its answer.

use hub::tenant_loads::TenantLimitExceeded;
use wire::mqtt::{ConnAck, Connect, ConnectReturnCode, Packet, Properties, ProtocolVersion, ReasonCode};

use super::context::Context;
use super::peer::{Peer, reason_string};
use crate::door::{DoorLimit, LimitExceeded};

pub(super) struct RefusedConnect {
    pub(super) code: ReasonCode,
    /// The return code before MQTT 5 [MQTT-3.2.2-4].
    pub(super) return_code: u8,
    pub(super) label: &'static str,
    pub(super) cause: String,
}

impl RefusedConnect {
    /// The refusal of a connection above a limit of the door.
    pub(super) fn above_limit(exceeded: LimitExceeded) -> Self {
        let code = match exceeded.limit {
            DoorLimit::ConnectionsPerSecond => ReasonCode::CONNECTION_RATE_EXCEEDED,
            _ => ReasonCode::QUOTA_EXCEEDED,
        };
        Self {
            code,
            return_code: ConnectReturnCode::SERVER_UNAVAILABLE,
            label: exceeded.limit.name(),
            cause: exceeded.to_string(),
        }
    }

    /// The refusal of a connection above a limit of its tenant.
    pub(super) fn above_limit_of_tenant(exceeded: TenantLimitExceeded) -> Self {
        Self {
            code: ReasonCode::QUOTA_EXCEEDED,
            return_code: ConnectReturnCode::SERVER_UNAVAILABLE,
            label: "tenant_connections",
            cause: exceeded.to_string(),
        }
    }

    /// Whether it is about what the client logs in with. Its label says so.
    pub(super) fn is_about_credentials(&self) -> bool {
        let labels = ["token_", "password_", "certificate_", "login_"];
        labels.iter().any(|prefix| self.label.starts_with(prefix))
    }

    /// Writes the CONNACK.
    pub(super) fn write(&self, connect: &Connect<'_>, context: &mut Context<'_>) {
        // Unlike acks, CONNACK may always have a reason, also without Request Problem Information [MQTT-3.1.2-29].
        let properties = reason_string(&self.cause);
        let code = match connect.version {
            ProtocolVersion::V5 => self.code.0,
            ProtocolVersion::V31 | ProtocolVersion::V311 => self.return_code,
        };
        let packet = |properties| Packet::ConnAck(ConnAck { session_present: false, code, properties });
        let forms = [packet(properties.as_properties()), packet(Properties::NONE)];
        Peer::of(connect).write(&forms, context.out);
    }
}
