//! Keys of a scenario for gateways.

use load::payload::Template;

use super::gateway::{Gateway, GatewaySends};
use crate::limits::{GATEWAY_DEVICES_MAX, GATEWAY_MESSAGE_BYTES_MAX};

/// The default of `devices_per_message`.
const DEVICES_PER_MESSAGE: u32 = 100;

/// The keys as they are written.
pub(super) struct GatewayOptions<'a> {
    pub(super) gateway_devices: Option<u32>,
    pub(super) devices_per_message: Option<u32>,
    pub(super) gateway_prefix: Option<&'a str>,
    pub(super) gateway_sends: Option<GatewaySends>,
    pub(super) devices: Option<u32>,
    pub(super) device_prefix: &'a str,
}

impl GatewayOptions<'_> {
    /// The devices behind each of `gateways` gateways that have this payload for each device; `None` if connections are devices.
    pub(super) fn gateway(&self, payload: &Template, gateways: u32) -> Result<Option<Gateway>, String> {
        let Some(devices) = self.gateway_devices else {
            return self.refuse_without_devices().map(|()| None);
        };
        if self.devices.is_some() {
            return Err("`devices` is not for gateways: gateway_devices says how many there are behind each"
                .to_owned());
        }
        let all = u64::from(devices) * u64::from(gateways);
        if devices == 0 || all > GATEWAY_DEVICES_MAX.into() {
            return Err(format!(
                "gateway_devices = {devices} with {gateways} connections; use at least 1, and at most {GATEWAY_DEVICES_MAX} over all"
            ));
        }
        let devices_per_message = self.devices_per_message.unwrap_or(DEVICES_PER_MESSAGE.min(devices));
        if !(1..=devices).contains(&devices_per_message) {
            return Err(format!("devices_per_message = {devices_per_message}; use 1 to {devices}"));
        }
        if payload.sequence_key().is_none() {
            return Err(
                "gateways send rows with a time of their own: use payload = \"telemetry\" or \"vehicle\""
                    .to_owned(),
            );
        }
        let gateway = Gateway {
            devices,
            devices_per_message,
            device_prefix: self.device_prefix.to_owned(),
            sends: self.gateway_sends.unwrap_or(GatewaySends::Telemetry),
        };
        match gateway.message_bytes(payload, gateways) {
            bytes if bytes > GATEWAY_MESSAGE_BYTES_MAX => Err(format!(
                "a message of {devices_per_message} devices has {bytes} bytes; use fewer devices_per_message or payload_bytes, for at \
                 most {GATEWAY_MESSAGE_BYTES_MAX} bytes"
            )),
            _ => Ok(Some(gateway)),
        }
    }

    fn refuse_without_devices(&self) -> Result<(), String> {
        let keys = [
            ("devices_per_message", self.devices_per_message.is_some()),
            ("gateway_prefix", self.gateway_prefix.is_some()),
            ("gateway_sends", self.gateway_sends.is_some()),
        ];
        match keys.into_iter().find(|(_, is_given)| *is_given) {
            Some((key, _)) => Err(format!("`{key}` belongs to gateways: give gateway_devices too")),
            None => Ok(()),
        }
    }
}
