//! Telemetry of several devices in one message of a gateway, and the parts of a message that are refused.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Instant;

use hub::Blame;
use hub::registry::Profile;
use model::Batch;
use model::limits::{IngestLimits, TAG_VALUE_BYTES_MAX};
use wire::telemetry::Receipt;
use wire::thingsboard::gateway::{Part, Topic as GatewayTopic, payload_of, read_parts};

use super::super::acks::Refusal;
use super::super::ingest_batch::Source;
use super::super::limits::{FAULTS_NAMED_MAX, GATEWAY_ROWS_MAX};
use super::connected::Connected;
use super::context::Context;
use super::end::PacketError;
use super::gateway_devices::GatewayDevice;
use super::publish::{Incoming, store_error};
use super::refused_message::RefusedMessage;

/// The refused parts of a message. The others are stored.
pub(super) struct Faults<'a> {
    parts: &'a [Part],
    refused: Vec<(&'a Part, RefusedMessage)>,
}

impl<'a> Faults<'a> {
    pub(super) fn of(parts: &'a [Part]) -> Self {
        Self { parts, refused: Vec::new() }
    }

    pub(super) fn add(&mut self, part: &'a Part, why: RefusedMessage) {
        self.refused.push((part, why));
    }

    /// The refusal of the refused parts, if there are any. Its payload has only them.
    pub(super) fn unfit(self) -> Option<RefusedMessage> {
        let first = &self.refused.first()?.1;
        let named = self.refused.iter().take(FAULTS_NAMED_MAX);
        let named: Vec<String> =
            named.map(|(part, why)| format!("{}: {}", quoted(&part.device), why.refusal.text)).collect();
        let text = format!(
            "refused for {} of {} devices, stored for the others: {}",
            self.refused.len(),
            self.parts.len(),
            named.join("; ")
        );
        let payload = payload_of(self.refused.iter().map(|(part, _)| *part)).into_bytes();
        let refusal = Refusal { reason: first.refusal.reason, text };
        Some(RefusedMessage { refusal, label: first.label, payload: Some(payload) })
    }
}

/// The name of a device in a reason: no more of it than a device may have.
pub(super) fn quoted(name: &str) -> String {
    format!("{:?}", &name[..name.floor_char_boundary(TAG_VALUE_BYTES_MAX)])
}

/// The rows of a message before they enter the batch of the worker.
struct Draft {
    rows: Batch,
    /// The part of each device, and where its rows end.
    ends: Vec<(usize, usize)>,
}

impl Connected {
    /// Adds telemetry of several devices to the batch: the rows of each device as a message of its own, before the message that has
    /// the ack. So the ack leaves when all are durable, and a device whose rows the store refuses does not take the others
    /// with it. Refused parts become one dead letter. On an error the batch is unchanged.
    pub(super) fn add_parts(
        &mut self,
        incoming: Incoming<'_>,
        context: &mut Context<'_>,
    ) -> Result<Option<Refusal>, PacketError> {
        let Incoming { topic, payload, .. } = incoming;
        let parts = match read_parts(payload, context.hub.limits().json_depth_max) {
            Ok(parts) => parts,
            Err(error) => {
                return self
                    .add_dead_letter(topic, payload, RefusedMessage::payload(&error), context)
                    .map(Some);
            }
        };
        let names = parts.iter().map(|part| part.device.as_str());
        if let Err(refused) = self.know(names, None, context)? {
            return self.add_dead_letter(topic, payload, refused, context).map(Some);
        }
        let mut faults = Faults::of(&parts);
        let draft = self.decode_parts(&parts, &mut faults, context)?;
        if draft.rows.len() > GATEWAY_ROWS_MAX {
            let text = format!(
                "the message has more than {GATEWAY_ROWS_MAX} rows (GATEWAY_ROWS_MAX); send them in several messages"
            );
            return self
                .add_dead_letter(topic, payload, RefusedMessage::limit("gateway_rows", &text), context)
                .map(Some);
        }
        self.load.add_points(draft.rows.points(), Instant::now());
        let connection = context.connection.key;
        let mut refusal = None;
        if let Some(unfit) = faults.unfit() {
            // This can fail, so it comes first.
            refusal = Some(self.add_dead_letter(topic, payload, unfit, context)?);
            let device = Arc::clone(&self.device);
            self.batch(context).push_part(&device, connection, Source::DeadLetters);
        }
        let mut begin = 0;
        for (part, end) in draft.ends {
            let part = &parts[part];
            let Ok(behind) = self.device_of(part) else { continue };
            let device = Arc::clone(&behind.device);
            let batch = self.batch(context);
            batch.batch.extend_from(&draft.rows, begin..end);
            let topic = GatewayTopic::Telemetry.name();
            let source = Source::Telemetry { topic, payload: batch.copied(part.json.as_bytes()) };
            batch.push_part(&device, connection, source);
            begin = end;
        }
        Ok(refusal)
    }

    fn decode_parts<'a>(
        &mut self,
        parts: &'a [Part],
        faults: &mut Faults<'a>,
        context: &Context<'_>,
    ) -> Result<Draft, PacketError> {
        let hub = context.hub;
        let assigned = Cell::new(context.received);
        let next = || assigned.take().unwrap_or_else(|| hub.receipt_time());
        let receipt = Receipt { now: context.now, next: &next };
        let mut draft = Draft { rows: Batch::new(), ends: Vec::new() };
        let mut limits: Option<(Arc<Profile>, IngestLimits)> = None;
        for (index, part) in parts.iter().enumerate() {
            if draft.rows.len() > GATEWAY_ROWS_MAX {
                break;
            }
            let behind = match self.device_of(part) {
                Ok(behind) => behind,
                Err(refused) => {
                    faults.add(part, refused);
                    continue;
                }
            };
            let device = &behind.device;
            let series = match behind.series {
                Some(series) => series,
                None => match hub.series_of(device) {
                    Ok(series) => *behind.series.insert(series),
                    Err(error) if error.blame() == Blame::Caller => {
                        faults.add(part, RefusedMessage::limit("store_limit", &error));
                        continue;
                    }
                    Err(error) => return Err(store_error(&error)),
                },
            };
            // Most devices of a gateway have the same profile.
            limits.take_if(|(profile, _)| !Arc::ptr_eq(profile, &device.profile));
            let (_, limits) =
                limits.get_or_insert_with(|| (Arc::clone(&device.profile), hub.limits_of(device)));
            match wire::telemetry::decode(part.json.as_bytes(), series, receipt, limits, &mut draft.rows) {
                Ok(()) => draft.ends.push((index, draft.rows.len())),
                Err(error) => {
                    faults.add(
                        part,
                        RefusedMessage { label: error.label(), ..RefusedMessage::payload(&error) },
                    );
                }
            }
        }
        Ok(draft)
    }

    /// The device of a part, after `know`.
    pub(super) fn device_of(&mut self, part: &Part) -> Result<&mut GatewayDevice, RefusedMessage> {
        let behind = self.behind.as_mut().expect("BUG: only gateways get here");
        let fault = behind.fault_of(&part.device);
        let gone = || {
            RefusedMessage::limit(
                "gateway_device",
                &fault.unwrap_or_else(|| "the device was deleted at this moment".into()),
            )
        };
        behind.find(&part.device).ok_or_else(gone)
    }
}
