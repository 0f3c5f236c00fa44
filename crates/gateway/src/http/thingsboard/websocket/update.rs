//! Messages to clients (ThingsBoard's `TelemetrySubscriptionUpdate`).

use std::collections::BTreeMap;

use hub::live::Update;
use model::{Timestamp, Value, ValueRef};
use serde::Serialize;
use serde::ser::{SerializeTuple, Serializer};

use crate::error::{ApiError, ErrorCode};
use crate::http::tools::json::{Object, Sequence, WireValue, to_bytes};

/// A value with its time.
pub(crate) trait Timed {
    fn ts(&self) -> Timestamp;
    fn value(&self) -> ValueRef<'_>;
}

impl Timed for (Timestamp, Value) {
    fn ts(&self) -> Timestamp {
        self.0
    }

    fn value(&self) -> ValueRef<'_> {
        self.1.as_ref()
    }
}

impl Timed for &Update {
    fn ts(&self) -> Timestamp {
        self.ts
    }

    fn value(&self) -> ValueRef<'_> {
        self.value.as_ref()
    }
}

/// Keys and their new values, oldest first. All receivers share the values.
pub(crate) type News<'a> = BTreeMap<&'a str, Vec<&'a Update>>;

/// Keys and their values, oldest first.
pub(crate) type Data = BTreeMap<String, Vec<(Timestamp, Value)>>;

/// About the length of values as text.
pub(crate) fn bytes_of_data(data: &Data) -> usize {
    let of_key =
        |timed_values: &Vec<_>| timed_values.iter().map(|(_, value)| bytes_of_value(value)).sum::<usize>();
    data.iter().map(|(key, timed_values)| key.len() + of_key(timed_values)).sum()
}

/// About the length of a value with its time as text.
pub(crate) fn bytes_of_value(value: &Value) -> usize {
    const NUMBER_AND_BRACKETS: usize = 40;
    let text = match value {
        Value::String(text) | Value::Json(text) => text.len(),
        Value::Bool(_) | Value::I64(_) | Value::F64(_) => 0,
    };
    text + NUMBER_AND_BRACKETS
}

/// The subscription id of an error without a subscription (ThingsBoard's `UNKNOWN_SUBSCRIPTION_ID`).
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
struct Pair<'a, T>(&'a T);

impl<T: Timed> Serialize for Pair<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut pair = serializer.serialize_tuple(2)?;
        pair.serialize_element(&self.0.ts().millis())?;
        pair.serialize_element(&WireValue { value: self.0.value(), strict: false })?;
        pair.end()
    }
}

/// The message with `data` for the subscription `id`.
pub(crate) fn data_message<K: Serialize, T: Timed>(
    id: i64,
    data: &BTreeMap<K, Vec<T>>,
) -> Result<String, ApiError> {
    let values = Object(|| {
        data.iter().map(|(key, timed_values)| {
            let timed_values = timed_values.iter();
            (key, Sequence(move || timed_values.clone().map(Pair)))
        })
    });
    let latest = Object(|| {
        data.iter().filter_map(|(key, timed_values)| {
            Some((key, timed_values.iter().map(|timed_value| timed_value.ts().millis()).max()?))
        })
    });
    text(&Message {
        subscription_id: id,
        error_code: 0,
        error_msg: None,
        data: values,
        latest_values: latest,
    })
}

/// The message with an error for the subscription or command `id`.
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

/// ThingsBoard's `SubscriptionErrorCode`: 1 internal, 2 bad request. Its 3 (unauthorized) makes clients log in again; this
/// server closes the session instead.
pub(super) fn error_code(error: &ApiError) -> u16 {
    match error.code {
        ErrorCode::General | ErrorCode::TooManyRequests => 1,
        _ => 2,
    }
}

pub(super) fn text(message: &impl Serialize) -> Result<String, ApiError> {
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
