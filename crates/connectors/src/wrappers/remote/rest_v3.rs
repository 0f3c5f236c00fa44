//! REST v3 of GSN 2.0.

use model::Value;
use serde_json::Value as Json;
use virtual_sensors::{Remote, shown_url};

use super::rows::{Row, Rows};
use crate::time::iso;
use crate::wrappers::failure::Failure;
use crate::wrappers::http::{Client, Request};

const UNAUTHORIZED: u16 = 401;

/// The rows from a time on. A token that has expired is asked for again.
pub(super) async fn rows(
    remote: &Remote,
    begin_ms: i64,
    client: &Client,
    token: &mut Option<String>,
) -> Result<Rows, Failure> {
    // The server gives rows after this time.
    let from = iso(begin_ms.saturating_sub(1));
    let url = format!(
        "{}/api/sensors/{}/data?format=json&timeFormat=unixTime&from={from}",
        remote.url, remote.sensor
    );
    for is_last in [false, true] {
        let bearer = match token {
            Some(token) => token.clone(),
            None => token.insert(ask_token(remote, client).await?).clone(),
        };
        let request = Request::Get { url: url.clone(), authorization: Some(format!("Bearer {bearer}")) };
        let answer = client.send(request).await?;
        if answer.status == UNAUTHORIZED && !is_last {
            *token = None;
            continue;
        }
        let body = answer.success(&url)?;
        let fail =
            |reason: String| Failure::new(format!("the answer of {}: {reason}", shown_url(&remote.url)));
        return read(&body).map_err(fail);
    }
    Err(Failure::new(format!("{} refuses its own token", shown_url(&remote.url))))
}

async fn ask_token(remote: &Remote, client: &Client) -> Result<String, Failure> {
    let url = format!("{}/oauth2/token", remote.url);
    let (id, secret) = remote.login.clone().unwrap_or_default();
    let form =
        vec![("grant_type", "client_credentials".to_owned()), ("client_id", id), ("client_secret", secret)];
    let request = Request::PostForm { url: url.clone(), form, authorization: None };
    let answer = client.send(request).await?;
    let body = answer.success(&url)?;
    let json: Json = serde_json::from_slice(&body).unwrap_or_default();
    let token = json["access_token"].as_str();
    token
        .map(str::to_owned)
        .ok_or_else(|| Failure::new(format!("{} returned no access_token", shown_url(&url))))
}

/// Reads a feature of GeoJSON, or a collection with one. A row that cannot be read does not hide the others.
fn read(body: &[u8]) -> Result<Rows, String> {
    let json: Json = serde_json::from_slice(body).map_err(|error| format!("no JSON: {error}"))?;
    let feature = json.get("features").and_then(|features| features.get(0)).unwrap_or(&json);
    let properties = &feature["properties"];
    let (Some(fields), Some(values)) = (properties["fields"].as_array(), properties["values"].as_array())
    else {
        return Err("properties.fields or properties.values is absent".to_owned());
    };
    let names = fields.iter().map(|field| field["name"].as_str().unwrap_or_default().to_lowercase());
    let names: Vec<String> = names.collect();
    let is_time = |name: &String| matches!(name.as_str(), "timestamp" | "time" | "timed");
    let time = names.iter().position(is_time).ok_or("no field is the time")?;
    let mut rows = Rows::default();
    for json in values {
        rows.add(row(json, time, names.len()), || json.to_string());
    }
    rows.rows.sort_by_key(|(ms, _)| *ms);
    let names = names.into_iter().enumerate().filter(|(at, _)| *at != time).map(|(_, name)| name).collect();
    Ok(Rows { names, ..rows })
}

/// A row of this many fields, one of which is the time.
fn row(json: &Json, time: usize, fields: usize) -> Result<Row, String> {
    let row = json.as_array().ok_or("it is not an array")?;
    let ms = row.get(time).and_then(Json::as_i64).ok_or("its time is not a number of milliseconds")?;
    let value = |at: usize| row.get(at).and_then(value);
    Ok((ms, (0..fields).filter(|at| *at != time).map(value).collect()))
}

fn value(json: &Json) -> Option<Value> {
    match json {
        Json::Null => None,
        Json::Bool(flag) => Some(Value::Bool(*flag)),
        Json::Number(number) => {
            let whole = number.as_i64().map(Value::I64);
            whole.or_else(|| number.as_f64().filter(|number| number.is_finite()).map(Value::F64))
        }
        Json::String(text) => Some(Value::String(text.as_str().into())),
        Json::Array(_) | Json::Object(_) => Some(Value::Json(json.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_feature_has_rows_in_the_order_of_their_times() {
        let body =
            br#"{"type":"Feature","properties":{"vs_name":"street","values":[[2,21.5,null],[1,20,"x"]],
            "fields":[{"name":"timestamp","type":"time"},{"name":"Temperature"},{"name":"state"}]}}"#;
        let rows = read(body).unwrap();
        assert_eq!(rows.names, ["temperature", "state"]);
        assert_eq!(rows.rows[0], (1, vec![Some(Value::I64(20)), Some(Value::String("x".into()))]));
        assert_eq!(rows.rows[1], (2, vec![Some(Value::F64(21.5)), None]));
    }

    #[test]
    fn what_is_not_a_feature_is_refused() {
        assert!(read(b"<html>").unwrap_err().contains("no JSON"));
        assert!(read(b"{}").unwrap_err().contains("properties.fields"));
    }

    #[test]
    fn a_row_that_cannot_be_read_does_not_hide_the_others() {
        let body =
            br#"{"properties":{"values":[["now",1],[7,2],8],"fields":[{"name":"timestamp"},{"name":"a"}]}}"#;
        let rows = read(body).unwrap();
        assert_eq!(rows.rows, [(7, vec![Some(Value::I64(2))])]);
        let refused: Vec<_> = rows.refused.iter().map(|one| one.text.as_str()).collect();
        assert_eq!(refused, [r#"["now",1]"#, "8"]);
        assert!(rows.refused[0].reason.contains("milliseconds"), "{}", rows.refused[0].reason);
    }
}
