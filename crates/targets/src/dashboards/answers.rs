//! What a WebSocket of ThingsBoard's form says, as far as this driver reads it.

use serde::Deserialize;
use serde_json::error::Error;

/// A message of `ENTITY_DATA`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct EntityMessage<'a> {
    pub(super) cmd_id: Option<i64>,
    #[serde(default)]
    error_code: i64,
    error_msg: Option<String>,
    /// The first answer.
    #[serde(borrow)]
    pub(super) data: Option<Page<'a>>,
    /// New values.
    #[serde(borrow)]
    pub(super) update: Option<Vec<Row<'a>>>,
}

/// A page of entities.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Page<'a> {
    #[serde(borrow)]
    pub(super) data: Vec<Row<'a>>,
    pub(super) total_elements: u64,
}

/// An entity with values.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Row<'a> {
    #[serde(borrow)]
    entity_id: EntityId<'a>,
    #[serde(borrow, default)]
    latest: Latest<'a>,
}

#[derive(Debug, Deserialize)]
struct EntityId<'a> {
    id: &'a str,
}

#[derive(Debug, Default, Deserialize)]
struct Latest<'a> {
    #[serde(borrow, default, rename = "TIME_SERIES")]
    series: Values<'a>,
}

/// The latest values of the keys that devices send.
#[derive(Debug, Default, Clone, Copy, Deserialize)]
pub(super) struct Values<'a> {
    #[serde(borrow)]
    pub(super) bench: Option<Sample<'a>>,
    #[serde(borrow)]
    pub(super) speed: Option<Sample<'a>>,
    #[serde(borrow)]
    pub(super) rpm: Option<Sample<'a>>,
}

/// A value as text.
#[derive(Debug, Clone, Copy, Deserialize)]
pub(super) struct Sample<'a> {
    pub(super) value: &'a str,
}

/// A message of `TIMESERIES`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct SeriesMessage<'a> {
    pub(super) subscription_id: i64,
    #[serde(default)]
    error_code: i64,
    error_msg: Option<String>,
    #[serde(borrow)]
    data: Option<Series<'a>>,
}

#[derive(Debug, Deserialize)]
struct Series<'a> {
    #[serde(borrow)]
    bench: Option<Vec<(i64, Option<&'a str>)>>,
}

impl<'a> EntityMessage<'a> {
    /// Reads a message. The error is the server's, or states that the message does not fit.
    pub(super) fn read(text: &'a [u8]) -> Result<Self, String> {
        let message: Self = serde_json::from_slice(text).map_err(|error| unfit(text, &error))?;
        refusal(message.error_code, message.error_msg.as_deref()).map_or(Ok(message), Err)
    }
}

impl<'a> SeriesMessage<'a> {
    /// The same for this form.
    pub(super) fn read(text: &'a [u8]) -> Result<Self, String> {
        let message: Self = serde_json::from_slice(text).map_err(|error| unfit(text, &error))?;
        refusal(message.error_code, message.error_msg.as_deref()).map_or(Ok(message), Err)
    }

    /// The values of the key with stamps, in the order of the message.
    pub(super) fn stamps(&self) -> impl Iterator<Item = &'a str> + '_ {
        let values = self.data.iter().flat_map(|series| series.bench.iter().flatten());
        values.filter_map(|(_, value)| *value)
    }
}

impl<'a> Row<'a> {
    /// The id of the entity; `None` if it has not the form of a UUID.
    pub(super) fn id(&self) -> Option<u128> {
        parse_id(self.entity_id.id)
    }

    pub(super) fn values(&self) -> Values<'a> {
        self.latest.series
    }
}

/// The bits of a UUID.
pub(super) fn parse_id(text: &str) -> Option<u128> {
    let mut id = 0;
    let mut digits = 0;
    for byte in text.bytes().filter(|byte| *byte != b'-') {
        id = id << 4 | u128::from(char::from(byte).to_digit(16)?);
        digits += 1;
    }
    (digits == 32).then_some(id)
}

fn refusal(code: i64, message: Option<&str>) -> Option<String> {
    (code != 0).then(|| format!("the server refused: {} (errorCode {code})", message.unwrap_or("no reason")))
}

fn unfit(text: &[u8], error: &Error) -> String {
    let quote: String =
        String::from_utf8_lossy(text).chars().take(clients::limits::HTTP_QUOTE_CHARS).collect();
    format!("a message of another form: {error}: {quote}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_both_forms_are_read() {
        let text = r#"{"cmdId":1,"errorCode":0,"errorMsg":null,"cmdUpdateType":"ENTITY_DATA","data":null,
            "update":[{"entityId":{"entityType":"DEVICE","id":"784f394c-42b6-435a-983c-b7beff2784f9"},
            "latest":{"TIME_SERIES":{"bench":{"ts":1,"value":"x"}}},"timeseries":{},"aggLatest":{}}],"allowedEntities":10000}"#;
        let message = EntityMessage::read(text.as_bytes()).unwrap();
        let [row] = &message.update.unwrap()[..] else { panic!() };
        assert_eq!(row.id(), Some(0x784f_394c_42b6_435a_983c_b7be_ff27_84f9));
        assert_eq!(row.values().bench.map(|sample| sample.value), Some("x"));
        assert!(row.values().speed.is_none() && message.data.is_none());
        let text = r#"{"subscriptionId":7,"errorCode":0,"errorMsg":null,"data":{"bench":[[2,"x"],[3,null]]},"latestValues":{"bench":2}}"#;
        let message = SeriesMessage::read(text.as_bytes()).unwrap();
        assert_eq!((message.subscription_id, message.stamps().collect::<Vec<_>>()), (7, vec!["x"]));
    }

    #[test]
    fn refusals_have_their_reason() {
        let refused = br#"{"cmdId":1,"errorCode":2,"errorMsg":"no such device"}"#;
        let error = EntityMessage::read(refused).unwrap_err();
        assert!(error.contains("no such device (errorCode 2)"), "{error}");
        assert!(SeriesMessage::read(b"[]").unwrap_err().contains("another form"));
    }

    #[test]
    fn what_is_not_an_id_is_none() {
        assert_eq!(parse_id("784f394c"), None);
        assert_eq!(parse_id("x84f394c-42b6-435a-983c-b7beff2784f9"), None);
    }
}
