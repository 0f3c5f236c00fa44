//! A dashboard that follows devices: it subscribes to their latest values and notes each new one.

use load::protocol::{Answer, AnswerStatus, Completion, Received};
use load::recorder::Operation;
use serde_json::{Value, json};

use super::answers::{EntityMessage, Row, SeriesMessage, parse_id};
use super::link::{Heard, Link, say};
use super::message::{STAMP_KEY, Stamp};
use super::newest_messages::{Arrived, NewestMessages};
use super::options::Subscription;

const ENTITY_PATH: &str = "/api/ws";
const SERIES_PATH: &str = "/api/ws/plugins/telemetry?token=";
/// The id of the subscription to a page of entities.
const COMMAND: i64 = 1;

/// The common parts of all dashboards.
#[derive(Debug, Clone)]
pub(super) struct LiveConfig {
    pub(super) subscription: Subscription,
    pub(super) run: u32,
    /// The server, for the header `Host`.
    pub(super) host: String,
    /// The session token.
    pub(super) token: String,
    /// The ids of the devices, by number.
    pub(super) ids: Vec<String>,
    /// The class of deliveries.
    pub(super) deliver: u16,
}

/// What a dashboard has received.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct LiveCounts {
    /// New values.
    pub(super) received: u64,
    /// Values that a newer one has replaced before they were sent.
    pub(super) skipped: u64,
    /// Values that came again.
    pub(super) again: u64,
    /// Values that are older than one that came before.
    pub(super) back: u64,
    /// Values that no device of this run has sent, or of a device that the dashboard does not follow.
    pub(super) foreign: u64,
    /// Devices whose first value was not their last acknowledged one.
    pub(super) stale: u64,
    /// Bytes of texts.
    pub(super) bytes: u64,
}

/// One dashboard.
#[derive(Debug)]
pub(super) struct Live {
    number: u32,
    link: Link,
    /// The bits of the ids of its devices, by place.
    ids: Vec<u128>,
    /// The places whose first answer has come.
    begun: Vec<bool>,
    waiting: u32,
    pub(super) counts: LiveCounts,
}

impl LiveConfig {
    /// The devices of a socket: their ids by place.
    fn ids_of<'a>(&'a self, socket: u32, followed: &'a NewestMessages) -> impl Iterator<Item = &'a str> + 'a {
        (0..followed.each()).map(move |place| self.ids[followed.device_at(socket, place) as usize].as_str())
    }

    /// The path of the handshake.
    pub(super) fn path(&self) -> String {
        match self.subscription {
            Subscription::EntityData => ENTITY_PATH.to_owned(),
            Subscription::Timeseries => format!("{SERIES_PATH}{}", self.token),
        }
    }

    /// The message that subscribes a socket to its devices.
    pub(super) fn subscribe(&self, socket: u32, followed: &NewestMessages) -> Value {
        let ids: Vec<&str> = self.ids_of(socket, followed).collect();
        match self.subscription {
            Subscription::EntityData => {
                let key = json!([{ "type": "TIME_SERIES", "key": STAMP_KEY }]);
                let query = json!({
                    "entityFilter": { "type": "entityList", "entityType": "DEVICE", "entityList": ids },
                    "pageLink": { "page": 0, "pageSize": ids.len(), "textSearch": null, "dynamic": false },
                    "entityFields": [{ "type": "ENTITY_FIELD", "key": "name" }],
                    "latestValues": key,
                });
                let command = json!({
                    "type": "ENTITY_DATA", "cmdId": COMMAND, "query": query, "latestCmd": { "keys": key },
                });
                json!({ "authCmd": { "cmdId": 0, "token": self.token }, "cmds": [command] })
            }
            Subscription::Timeseries => {
                let commands: Vec<Value> = ids
                    .iter()
                    .enumerate()
                    .map(|(place, id)| {
                        json!({
                            "entityType": "DEVICE", "entityId": id, "scope": "LATEST_TELEMETRY",
                            "cmdId": place, "keys": STAMP_KEY,
                        })
                    })
                    .collect();
                json!({ "tsSubCmds": commands, "historyCmds": [], "attrSubCmds": [] })
            }
        }
    }
}

impl Live {
    pub(super) fn new(number: u32, config: &LiveConfig, followed: &NewestMessages) -> Self {
        let ids = config.ids_of(number, followed).map(|id| parse_id(id).unwrap_or_default()).collect();
        let each = followed.each();
        let begun = vec![false; each as usize];
        Self { number, link: Link::default(), ids, begun, waiting: each, counts: LiveCounts::default() }
    }

    pub(super) fn open(&mut self, config: &LiveConfig, out: &mut Vec<u8>) {
        self.begun.fill(false);
        self.waiting = self.begun.len() as u32;
        self.link.open(&config.host, &config.path(), out);
    }

    pub(super) fn receive(
        &mut self,
        config: &LiveConfig,
        followed: &NewestMessages,
        bytes: &[u8],
        out: &mut Vec<u8>,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<Received, String> {
        let mut received = Received::default();
        while let Some((heard, used)) = self.link.next(&bytes[received.used..], out)? {
            received.used += used;
            match heard {
                Heard::Open => say(&config.subscribe(self.number, followed).to_string(), out),
                Heard::Text(text) => {
                    let was_waiting = self.waiting > 0;
                    self.counts.bytes += text.len() as u64;
                    match config.subscription {
                        Subscription::EntityData => self.entities(&text, config, followed, done)?,
                        Subscription::Timeseries => self.series(&text, config, followed, done)?,
                    }
                    received.ready |= was_waiting && self.waiting == 0;
                }
                Heard::Nothing => {}
            }
        }
        Ok(received)
    }

    pub(super) fn close(&self, out: &mut Vec<u8>) {
        self.link.close(out);
    }

    /// A page, or new values of its entities.
    fn entities(
        &mut self,
        text: &[u8],
        config: &LiveConfig,
        followed: &NewestMessages,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<(), String> {
        let message = EntityMessage::read(text)?;
        if message.cmd_id != Some(COMMAND) {
            return Err(format!("an answer to command {:?}, which was not asked", message.cmd_id));
        }
        for row in message.data.iter().flat_map(|page| &page.data) {
            let place = row.id().and_then(|id| self.place_of(id));
            match place.filter(|place| !self.begun[*place as usize]) {
                Some(place) => {
                    let stamp = row.values().bench.map(|sample| sample.value);
                    self.begin(place, stamp, config, followed);
                }
                None => self.counts.foreign += 1,
            }
        }
        if self.waiting > 0 {
            return Err(format!("the first answer lacks {} of {} devices", self.waiting, self.begun.len()));
        }
        let bytes = text.len() as u32;
        for row in message.update.iter().flatten() {
            let Some(sample) = row.values().bench else { continue };
            let at = self.place_in_update(row, sample.value, config, followed);
            self.arrived(at, bytes, config, followed, done);
        }
        Ok(())
    }

    fn place_of(&self, id: u128) -> Option<u32> {
        self.ids.iter().position(|known| *known == id).map(|place| place as u32)
    }

    /// The place of a new value, found by its stamp, and its stamp; `None` if it is not a value of this entity.
    fn place_in_update(
        &self,
        row: &Row<'_>,
        text: &str,
        config: &LiveConfig,
        followed: &NewestMessages,
    ) -> Option<(u32, Stamp)> {
        let stamp = Stamp::read(text).filter(|stamp| stamp.run == config.run)?;
        let place = followed.place_of(self.number, stamp.device)?;
        (self.ids[place as usize] == row.id()?).then_some((place, stamp))
    }

    /// The first or a later message of a subscription of one device.
    fn series(
        &mut self,
        text: &[u8],
        config: &LiveConfig,
        followed: &NewestMessages,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<(), String> {
        let message = SeriesMessage::read(text)?;
        let place = u32::try_from(message.subscription_id).ok().filter(|place| *place < followed.each());
        let place = place.ok_or_else(|| {
            format!("an answer to subscription {}, which was not asked", message.subscription_id)
        })?;
        if !self.begun[place as usize] {
            self.begin(place, message.stamps().next(), config, followed);
            return Ok(());
        }
        let bytes = text.len() as u32;
        let mut stamps: Vec<&str> = message.stamps().collect();
        // The oldest first: the number is before the times.
        stamps.sort_unstable();
        for text in stamps {
            let at = self.stamp(place, text, config, followed).map(|stamp| (place, stamp));
            self.arrived(at, bytes, config, followed, done);
        }
        Ok(())
    }

    /// Notes the first value of a device.
    fn begin(&mut self, place: u32, stamp: Option<&str>, config: &LiveConfig, followed: &NewestMessages) {
        self.begun[place as usize] = true;
        self.waiting -= 1;
        let number =
            stamp.and_then(|text| self.stamp(place, text, config, followed)).map(|stamp| stamp.number);
        // A device that another run has used has a value of that run.
        self.counts.stale += u64::from(!followed.begin(self.number, place, number));
    }

    /// Reads the stamp of the device at a place; `None` for another one.
    fn stamp(&self, place: u32, text: &str, config: &LiveConfig, followed: &NewestMessages) -> Option<Stamp> {
        let device = followed.device_at(self.number, place);
        Stamp::read(text).filter(|stamp| stamp.run == config.run && stamp.device == device)
    }

    /// Notes a new value; `None` is one that does not belong there.
    fn arrived(
        &mut self,
        at: Option<(u32, Stamp)>,
        bytes: u32,
        config: &LiveConfig,
        followed: &NewestMessages,
        done: &mut impl FnMut(Completion<'_>),
    ) {
        let Some((place, stamp)) = at else {
            self.counts.foreign += 1;
            return;
        };
        match followed.note(self.number, place, stamp.number) {
            Arrived::Again => self.counts.again += 1,
            Arrived::Back => self.counts.back += 1,
            Arrived::New { skipped } => {
                self.counts.received += 1;
                self.counts.skipped += skipped;
                let operation = Operation {
                    class: config.deliver,
                    intended_ns: stamp.due_us * 1_000,
                    sent_ns: stamp.sent_us * 1_000,
                };
                done(Completion { answer: Answer::Delivery(operation), status: AnswerStatus::Good, bytes });
            }
        }
    }
}

impl std::iter::Sum for LiveCounts {
    fn sum<I: Iterator<Item = Self>>(counts: I) -> Self {
        counts.fold(Self::default(), |sum, of| Self {
            received: sum.received + of.received,
            skipped: sum.skipped + of.skipped,
            again: sum.again + of.again,
            back: sum.back + of.back,
            foreign: sum.foreign + of.foreign,
            stale: sum.stale + of.stale,
            bytes: sum.bytes + of.bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use wire::websocket::client::ACCEPT;

    use super::*;

    const FIRST: &str = "00000000-0000-0000-0000-00000000000a";
    const SECOND: &str = "00000000-0000-0000-0000-00000000000b";

    fn config(subscription: Subscription) -> LiveConfig {
        let (host, token) = ("h:1".to_owned(), "secret".to_owned());
        let ids = [FIRST, SECOND].map(str::to_owned).to_vec();
        LiveConfig { subscription, run: 5, host, token, ids, deliver: 1 }
    }

    fn stamp(device: u32, number: u64) -> String {
        Stamp { run: 5, device, number, due_us: 7, sent_us: 8 }.text()
    }

    fn framed(text: &str) -> Vec<u8> {
        let mut out = vec![0x81, 126];
        out.extend_from_slice(&u16::try_from(text.len()).unwrap().to_be_bytes());
        out.extend_from_slice(text.as_bytes());
        out
    }

    struct Talk {
        config: LiveConfig,
        followed: NewestMessages,
        live: Live,
    }

    impl Talk {
        fn begin(subscription: Subscription) -> Self {
            let (config, followed) = (config(subscription), NewestMessages::new(&[(1, 1), (0, 0)], 1, 2));
            let mut live = Live::new(0, &config, &followed);
            live.open(&config, &mut Vec::new());
            let mut talk = Self { config, followed, live };
            let answer =
                format!("HTTP/1.1 101 Switching Protocols\r\nSec-WebSocket-Accept: {ACCEPT}\r\n\r\n");
            let mut out = Vec::new();
            let Talk { config, followed, live } = &mut talk;
            live.receive(config, followed, answer.as_bytes(), &mut out, &mut |_| ()).unwrap();
            assert!(out.len() > 100, "it subscribes");
            talk
        }

        /// The deliveries that a text makes, and whether it ends the opening.
        fn hear(&mut self, text: &str) -> Result<(Vec<Answer>, bool), String> {
            let mut seen = Vec::new();
            let mut done = |completion: Completion<'_>| seen.push(completion.answer);
            let Self { config, followed, live } = self;
            let received = live.receive(config, followed, &framed(text), &mut Vec::new(), &mut done)?;
            Ok((seen, received.ready))
        }
    }

    fn rows(values: &[(&str, String)]) -> String {
        let row = |(id, stamp): &(&str, String)| {
            format!(
                r#"{{"entityId":{{"entityType":"DEVICE","id":"{id}"}},"latest":{{"TIME_SERIES":{{"bench":{{"ts":1,"value":"{stamp}"}}}}}}}}"#
            )
        };
        values.iter().map(row).collect::<Vec<_>>().join(",")
    }

    fn page(values: &[(&str, String)]) -> String {
        format!(
            r#"{{"cmdId":1,"errorCode":0,"data":{{"data":[{}],"totalElements":2}},"update":null}}"#,
            rows(values)
        )
    }

    fn update(values: &[(&str, String)]) -> String {
        format!(r#"{{"cmdId":1,"errorCode":0,"data":null,"update":[{}]}}"#, rows(values))
    }

    const DELIVERED: Answer = Answer::Delivery(Operation { class: 1, intended_ns: 7_000, sent_ns: 8_000 });

    #[test]
    fn new_values_of_entities_are_deliveries_and_others_are_counted() {
        let mut talk = Talk::begin(Subscription::EntityData);
        let first = page(&[(FIRST, stamp(0, 0)), (SECOND, String::new())]);
        assert_eq!(talk.hear(&first).unwrap(), (vec![], true));
        let both = update(&[(FIRST, stamp(0, 1)), (SECOND, stamp(1, 2))]);
        assert_eq!(talk.hear(&both).unwrap(), (vec![DELIVERED; 2], false));
        for odd in [stamp(0, 1), stamp(0, 0), stamp(1, 5), "x".to_owned()] {
            assert_eq!(talk.hear(&update(&[(FIRST, odd)])).unwrap(), (vec![], false));
        }
        let counts = LiveCounts { bytes: 0, ..talk.live.counts };
        let expected =
            LiveCounts { received: 2, skipped: 2, again: 1, back: 1, foreign: 2, stale: 0, bytes: 0 };
        assert_eq!(counts, expected);
    }

    #[test]
    fn a_first_answer_must_have_every_device_and_its_last_value() {
        let mut talk = Talk::begin(Subscription::EntityData);
        let error = talk.hear(&page(&[(FIRST, stamp(0, 0))])).unwrap_err();
        assert!(error.contains("lacks 1 of 2 devices"), "{error}");
        let mut talk = Talk::begin(Subscription::EntityData);
        talk.hear(&page(&[(FIRST, String::new()), (SECOND, String::new())])).unwrap();
        assert_eq!(talk.live.counts.stale, 1);
    }

    #[test]
    fn subscriptions_of_single_devices_begin_with_an_answer_each() {
        let mut talk = Talk::begin(Subscription::Timeseries);
        let message = |place: u32, stamps: &[String]| {
            let pairs: Vec<String> = stamps.iter().map(|stamp| format!(r#"[1,"{stamp}"]"#)).collect();
            format!(
                r#"{{"subscriptionId":{place},"errorCode":0,"errorMsg":null,"data":{{"bench":[{}]}},"latestValues":{{"bench":1}}}}"#,
                pairs.join(",")
            )
        };
        assert_eq!(talk.hear(&message(1, &[])).unwrap(), (vec![], false));
        assert_eq!(talk.hear(&message(0, &[stamp(0, 0)])).unwrap(), (vec![], true));
        let two = message(0, &[stamp(0, 2), stamp(0, 1)]);
        assert_eq!(talk.hear(&two).unwrap().0, [DELIVERED; 2], "in their order");
        assert!(talk.hear(&message(2, &[])).unwrap_err().contains("was not asked"));
        let refused = r#"{"subscriptionId":0,"errorCode":2,"errorMsg":"too many"}"#;
        let padded = format!("{refused}{}", " ".repeat(126));
        assert!(talk.hear(&padded).unwrap_err().contains("too many"));
    }
}
