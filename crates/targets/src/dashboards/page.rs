//! A dashboard that asks for a page of many devices with their latest values, and compares every value.

use std::collections::HashMap;

use load::protocol::{Answer, AnswerStatus, Completion, Received};
use serde_json::json;

use super::answers::{EntityMessage, Values};
use super::link::{Heard, Link, say};
use super::message::{RPM_KEY, SPEED_KEY, STAMP_KEY, Stamp};

const PATH: &str = "/api/ws";

/// The common parts of all dashboards.
#[derive(Debug, Clone)]
pub(super) struct PageConfig {
    pub(super) host: String,
    pub(super) token: String,
    /// The beginning of the names of the devices.
    pub(super) device_prefix: String,
    /// The number of devices of a page.
    pub(super) page_size: u32,
    /// The numbers of the devices, by the bits of their ids.
    pub(super) by_id: HashMap<u128, u32>,
    /// The newest acknowledged message of each device, by number.
    pub(super) written: Vec<Option<Stamp>>,
    /// The class of a page.
    pub(super) class: u16,
}

/// One dashboard.
#[derive(Debug, Default)]
pub(super) struct Page {
    link: Link,
    /// The number of the latest command; the first is 1.
    command: i64,
    waiting: bool,
    /// Values that were compared, and those of them that differ.
    pub(super) compared: u64,
    pub(super) wrong: u64,
}

impl PageConfig {
    /// The message that asks for a page, and ends the subscription of the page before.
    fn command(&self, number: i64) -> String {
        let keys = [STAMP_KEY, SPEED_KEY, RPM_KEY].map(|key| json!({ "type": "TIME_SERIES", "key": key }));
        let name = json!({ "type": "ENTITY_FIELD", "key": "name" });
        let query = json!({
            "entityFilter": { "type": "entityName", "entityType": "DEVICE", "entityNameFilter": self.device_prefix },
            "pageLink": {
                "page": 0, "pageSize": self.page_size, "textSearch": null, "dynamic": false,
                "sortOrder": { "key": name, "direction": "ASC" },
            },
            "entityFields": [name],
            "latestValues": keys,
        });
        json!({ "cmds": [
            { "type": "ENTITY_DATA_UNSUBSCRIBE", "cmdId": number - 1 },
            { "type": "ENTITY_DATA", "cmdId": number, "query": query },
        ]})
        .to_string()
    }

    /// The number of devices that a page must have.
    fn expected(&self) -> usize {
        self.written.len().min(self.page_size as usize)
    }
}

impl Page {
    pub(super) fn open(&mut self, config: &PageConfig, out: &mut Vec<u8>) {
        self.link.open(&config.host, PATH, out);
    }

    /// Asks for a page.
    pub(super) fn start(&mut self, config: &PageConfig, out: &mut Vec<u8>) {
        self.command += 1;
        self.waiting = true;
        say(&config.command(self.command), out);
    }

    pub(super) fn receive(
        &mut self,
        config: &PageConfig,
        bytes: &[u8],
        out: &mut Vec<u8>,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<Received, String> {
        let mut received = Received::default();
        while let Some((heard, used)) = self.link.next(&bytes[received.used..], out)? {
            received.used += used;
            match heard {
                Heard::Open => {
                    say(&json!({ "authCmd": { "cmdId": 0, "token": config.token } }).to_string(), out);
                    received.ready = true;
                }
                Heard::Text(text) => self.answered(&text, config, done)?,
                Heard::Nothing => {}
            }
        }
        Ok(received)
    }

    pub(super) fn close(&self, out: &mut Vec<u8>) {
        self.link.close(out);
    }

    fn answered(
        &mut self,
        text: &[u8],
        config: &PageConfig,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<(), String> {
        let message = match EntityMessage::read(text) {
            Ok(message) => message,
            Err(refusal) if self.waiting => {
                self.waiting = false;
                let (status, bytes) = (AnswerStatus::Failed(&refusal), text.len() as u32);
                done(Completion { answer: Answer::InOrder, status, bytes });
                return Ok(());
            }
            Err(refusal) => return Err(refusal),
        };
        let Some(page) = message.data else { return Ok(()) };
        if !std::mem::take(&mut self.waiting) || message.cmd_id != Some(self.command) {
            return Err("a page that was not asked".to_owned());
        }
        let wrong = self.first_difference(&page, config);
        let status = wrong.as_deref().map_or(AnswerStatus::Good, AnswerStatus::Failed);
        done(Completion { answer: Answer::InOrder, status, bytes: text.len() as u32 });
        Ok(())
    }

    /// Compares all values. Returns the first difference in words.
    fn first_difference(&mut self, page: &super::answers::Page<'_>, config: &PageConfig) -> Option<String> {
        let (expected, total) = (config.expected(), config.written.len() as u64);
        let mut first = (page.data.len() != expected || page.total_elements != total).then(|| {
            format!(
                "the page has {} devices of {}, it must have {expected} of {total}",
                page.data.len(),
                page.total_elements
            )
        });
        let mut seen = vec![false; config.written.len()];
        for row in &page.data {
            let device = row.id().and_then(|id| config.by_id.get(&id)).copied();
            let difference = match device {
                None => Some("the page has a device that was not created".to_owned()),
                Some(device) if std::mem::replace(&mut seen[device as usize], true) => {
                    Some(format!("the page has device {device} twice"))
                }
                Some(device) => self.compare(device, &row.values(), config),
            };
            self.wrong += u64::from(difference.is_some());
            first = first.or(difference);
        }
        first
    }

    fn compare(&mut self, device: u32, values: &Values<'_>, config: &PageConfig) -> Option<String> {
        self.compared += 3;
        let Some(stamp) = config.written[device as usize] else {
            return Some(format!("device {device} has written nothing"));
        };
        let (speed, rpm) = stamp.numbers();
        let text =
            |sample: Option<super::answers::Sample<'_>>| sample.map_or("", |sample| sample.value).to_owned();
        let (found_speed, found_rpm) = (text(values.speed), text(values.rpm));
        let is_number = |found: &str, written: f64| {
            found.parse::<f64>().is_ok_and(|found| (found - written).abs() < 0.001)
        };
        let is_right = text(values.bench) == stamp.text()
            && is_number(&found_speed, speed)
            && is_number(&found_rpm, rpm);
        (!is_right).then(|| {
            format!(
                "device {device} has {:?}, {found_speed:?} and {found_rpm:?}, written were {:?}, {speed} and {rpm}",
                text(values.bench),
                stamp.text()
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAMP: Stamp = Stamp { run: 1, device: 0, number: 4, due_us: 5, sent_us: 6 };

    fn config() -> PageConfig {
        PageConfig {
            host: "h".to_owned(),
            token: "t".to_owned(),
            device_prefix: "dev-".to_owned(),
            page_size: 10,
            by_id: HashMap::from([(10, 0), (11, 1)]),
            written: vec![Some(STAMP), Some(Stamp { device: 1, ..STAMP })],
            class: 0,
        }
    }

    fn row(id: u128, stamp: &Stamp, speed: f64) -> String {
        let (_, rpm) = stamp.numbers();
        let id = format!("00000000-0000-0000-0000-{id:012x}");
        let sample = |value: String| json!({ "ts": 1, "value": value });
        json!({
            "entityId": { "entityType": "DEVICE", "id": id },
            "latest": { "TIME_SERIES": {
                "bench": sample(stamp.text()), "speed": sample(speed.to_string()), "rpm": sample(rpm.to_string()),
            }},
        })
        .to_string()
    }

    fn judged(rows: &[String]) -> String {
        let (config, mut page) = (config(), Page::default());
        page.start(&config, &mut Vec::new());
        let rows = rows.join(",");
        let text = format!(r#"{{"cmdId":1,"errorCode":0,"data":{{"data":[{rows}],"totalElements":2}}}}"#);
        let mut result = String::new();
        let mut done = |completion: Completion<'_>| result = format!("{:?}", completion.status);
        page.answered(text.as_bytes(), &config, &mut done).unwrap();
        assert!(page.answered(text.as_bytes(), &config, &mut |_| ()).is_err(), "it was not asked twice");
        result
    }

    #[test]
    fn a_page_is_right_only_with_every_device_once_and_every_value() {
        let other = Stamp { device: 1, ..STAMP };
        let (first, second) = (row(10, &STAMP, STAMP.numbers().0), row(11, &other, other.numbers().0));
        assert_eq!(judged(&[second.clone(), first.clone()]), "Good");
        for (rows, expected) in [
            (vec![first.clone()], "1 devices of 2, it must have 2 of 2"),
            (vec![first.clone(), first.clone()], "device 0 twice"),
            (vec![first.clone(), row(12, &other, 1.0)], "not created"),
            (vec![first.clone(), row(11, &other, 1.5)], "device 1 has"),
            (vec![first, row(11, &Stamp { number: 3, ..other }, other.numbers().0)], "device 1 has"),
        ] {
            let result = judged(&rows);
            assert!(result.contains(expected), "{result}");
        }
    }

    #[test]
    fn a_refusal_is_a_failure_of_the_page_that_was_asked() {
        let (config, mut page) = (config(), Page::default());
        page.start(&config, &mut Vec::new());
        let mut results = Vec::new();
        let mut done = |completion: Completion<'_>| results.push(format!("{:?}", completion.status));
        page.answered(br#"{"cmdId":1,"errorCode":2,"errorMsg":"too many"}"#, &config, &mut done).unwrap();
        assert_eq!(results, ["Failed(\"the server refused: too many (errorCode 2)\")"]);
    }
}
