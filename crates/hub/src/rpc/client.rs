//! RPC from devices to the server. ThingsBoard gives such a request to its rule engine, whose default chain only logs it; the
//! device gets `{"error":"timeout"}` after a minute. This server has no rule engine and says so at once.

use serde::Serialize;

use super::limits::RPC_METHOD_BYTES_MAX;

/// The procedure that clients of ThingsBoard call after they have connected.
const SESSION_LIMITS: &str = "getSessionLimits";

/// The bounds of a session of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SessionLimits {
    /// Longest payload of a message in bytes.
    pub payload_bytes_max: usize,
    /// Messages without an ack that the device may have sent.
    pub inflight_max: usize,
    /// Whether the device is a gateway.
    pub gateway: bool,
}

/// ThingsBoard's `SessionLimits` and `GatewaySessionLimits`.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct LimitsJson {
    max_payload_size: usize,
    max_inflight_messages: usize,
    rate_limits: Rates,
    #[serde(skip_serializing_if = "Option::is_none")]
    gateway_rate_limits: Option<Rates>,
}

/// `0:0,` means no limit. Without these members ThingsBoard's clients slow themselves down.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Rates {
    messages: &'static str,
    telemetry_messages: &'static str,
    telemetry_data_points: &'static str,
}

const NO_RATES: Rates = Rates { messages: "0:0,", telemetry_messages: "0:0,", telemetry_data_points: "0:0," };

/// The answer, as JSON text, to a call of a procedure of the server by a device.
pub fn answer_to_device(method: &str, limits: SessionLimits) -> String {
    let answer = match method {
        SESSION_LIMITS => serde_json::to_string(&LimitsJson {
            max_payload_size: limits.payload_bytes_max,
            max_inflight_messages: limits.inflight_max,
            rate_limits: NO_RATES,
            gateway_rate_limits: limits.gateway.then_some(NO_RATES),
        }),
        _ => {
            let end = method.floor_char_boundary(RPC_METHOD_BYTES_MAX);
            let error = format!("the server has no procedure {:?}", &method[..end]);
            serde_json::to_string(&serde_json::json!({ "error": error }))
        }
    };
    answer.expect("BUG: numbers and text are always JSON")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: SessionLimits =
        SessionLimits { payload_bytes_max: 65_536, inflight_max: 100, gateway: false };

    #[test]
    fn a_device_learns_its_limits() {
        assert_eq!(
            answer_to_device("getSessionLimits", LIMITS),
            r#"{"maxPayloadSize":65536,"maxInflightMessages":100,"rateLimits":{"messages":"0:0,","telemetryMessages":"0:0,","telemetryDataPoints":"0:0,"}}"#
        );
        let gateway = answer_to_device("getSessionLimits", SessionLimits { gateway: true, ..LIMITS });
        assert!(gateway.ends_with(
            r#","gatewayRateLimits":{"messages":"0:0,","telemetryMessages":"0:0,","telemetryDataPoints":"0:0,"}}"#
        ));
    }

    #[test]
    fn other_procedures_are_unknown() {
        let answer = answer_to_device("get\"Time", LIMITS);
        assert_eq!(answer, r#"{"error":"the server has no procedure \"get\\\"Time\""}"#);
        assert!(answer_to_device(&"ä".repeat(1_000), LIMITS).len() < 400);
    }
}
