//! What a client is told (ThingsBoard's `TelemetrySubscriptionUpdate`).

use std::collections::BTreeMap;

use model::{Timestamp, Value};
use serde::Serialize;
use serde::ser::{SerializeTuple, Serializer};

use crate::http::error::{ApiError, ErrorCode};
use crate::http::json::{Object, Sequence, WireValue, to_bytes};

/// Keys and their values, oldest first.
pub(crate) type Data = BTreeMap<String, Vec<(Timestamp, Value)>>;

/// The subscription of an error that belongs to none (ThingsBoard's `UNKNOWN_SUBSCRIPTION_ID`).
pub(crate) const NO_SUBSCRIPTION: i64 = i32::MIN as i64;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a, D, L> {
    subscription_id: i64,
    error_code: u16,
    error_msg: Option<&'a str>,
    data: D,
    latest_values: L,
}

/// `[<ms>,"<value>"]`
struct Pair<'a>(&'a (Timestamp, Value));

impl Serialize for Pair<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self((ts, value)) = self;
        let mut pair = serializer.serialize_tuple(2)?;
        pair.serialize_element(&ts.millis())?;
        pair.serialize_element(&WireValue { value: value.as_ref(), strict: false })?;
        pair.end()
    }
}

/// The message that brings `data` to the subscription `id`.
pub(crate) fn data_message(id: i64, data: &Data) -> Result<String, ApiError> {
    let values = Object(|| {
        data.iter().map(|(key, samples)| {
            let samples = samples.iter();
            (key, Sequence(move || samples.clone().map(Pair)))
        })
    });
    let latest = Object(|| {
        data.iter().filter_map(|(key, samples)| Some((key, samples.iter().map(|(ts, _)| ts.millis()).max()?)))
    });
    text(&Message {
        subscription_id: id,
        error_code: 0,
        error_msg: None,
        data: values,
        latest_values: latest,
    })
}

/// The message that says why the subscription or command `id` gets no data.
pub(crate) fn error_message(id: i64, error: &ApiError) -> String {
    let empty = || Object(std::iter::empty::<((), ())>);
    let message = Message {
        subscription_id: id,
        error_code: error_code(error),
        error_msg: Some(&error.message),
        data: empty(),
        latest_values: empty(),
    };
    text(&message).expect("BUG: a reason fits into an answer")
}

/// ThingsBoard's `SubscriptionErrorCode`: 1 internal, 2 bad request. Its 3 (unauthorized) makes clients log in
/// again, which here is told by closing the session.
fn error_code(error: &ApiError) -> u16 {
    match error.code {
        ErrorCode::General | ErrorCode::TooManyRequests => 1,
        _ => 2,
    }
}

fn text(message: &impl Serialize) -> Result<String, ApiError> {
    Ok(String::from_utf8(to_bytes(message)?).expect("BUG: JSON is UTF-8"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn updates_have_thingsboards_shape() {
        let at = |ms: i64| Timestamp::from_millis(ms).unwrap();
        let data = Data::from([
            ("b".to_owned(), vec![(at(1), Value::I64(5)), (at(3), Value::Bool(true))]),
            ("a".to_owned(), vec![(at(2), Value::String("x".into()))]),
        ]);
        assert_eq!(
            data_message(7, &data).unwrap(),
            r#"{"subscriptionId":7,"errorCode":0,"errorMsg":null,"data":{"a":[[2,"x"]],"b":[[1,"5"],[3,"true"]]},"latestValues":{"a":2,"b":3}}"#
        );
        let empty = r#"{"subscriptionId":1,"errorCode":0,"errorMsg":null,"data":{},"latestValues":{}}"#;
        assert_eq!(data_message(1, &Data::new()).unwrap(), empty);
    }

    #[test]
    fn errors_carry_their_reason() {
        let message = error_message(9, &ApiError::argument("no"));
        let expected = r#"{"subscriptionId":9,"errorCode":2,"errorMsg":"no","data":{},"latestValues":{}}"#;
        assert_eq!(message, expected);
        assert!(
            error_message(NO_SUBSCRIPTION, &ApiError::busy("later")).contains("-2147483648,\"errorCode\":1")
        );
    }
}
