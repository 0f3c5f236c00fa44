//! `/upload`: a form with the values of one row, which GSN gives to the `web-input` of a sensor. Here they become a row of the sensor's output, with the time
//! at which the form arrives.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use hub::caller::{Action, Caller};
use hub::clock::system_now;
use serde_json::{Map, Value as Json, json};
use wire::multipart::{Event, Multipart, boundary};

use super::limits::FORM_BYTES_MAX;
use super::refusal::Refusal;
use super::request_context::RequestCaller;
use super::sensor::{Field, Sensor};
use super::v3::store_rows;
use super::value::ValueKind;
use crate::http::tools::bodies::Sender;
use crate::http::tools::connection::Peer;
use crate::http::tools::request::read_body;
use crate::http::tools::state::HttpState;

/// The topic in dead letters of these requests.
const TOPIC: &str = "/upload";

/// A name and a text of a form.
type Pair = (String, String);

/// `POST /upload`
pub(super) async fn row(
    State(state): State<Arc<HttpState>>,
    RequestCaller(caller): RequestCaller,
    peer: Peer,
    request: Request,
) -> Result<Response, Refusal> {
    caller.check(Action::Write)?;
    let pairs = form(&state, &caller, request).await?;
    let form = Form::read(&pairs)?;
    let sensor = Sensor::named(&state.sensors, &caller, form.sensor)?;
    let row = json!([{ "ts": system_now().millis(), "values": values(&sensor, &form.values)? }]);
    store_rows(&state, &caller, &sensor, (TOPIC, row.to_string().as_bytes()), peer).await?;
    Ok(format!("The upload to the virtual sensor went successfully! ({})\n", sensor.name()).into_response())
}

/// Reads a form in either encoding.
async fn form(state: &HttpState, caller: &Caller, request: Request) -> Result<Vec<Pair>, Refusal> {
    let content_type = request.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let boundary = content_type.and_then(boundary).map(str::to_owned);
    let account = state.body_account(Sender::caller(caller));
    let body = read_body(request, FORM_BYTES_MAX, "", account).await?;
    match boundary {
        Some(boundary) => texts(&body.bytes, &boundary),
        None => Ok(form_urlencoded::parse(&body.bytes).into_owned().collect()),
    }
}

/// The names and texts of a form of `multipart/form-data`. A file is refused.
fn texts(body: &[u8], boundary: &str) -> Result<Vec<Pair>, Refusal> {
    let wrong =
        || Refusal::argument("the body is not a form of multipart/form-data (RFC 7578) with texts in UTF-8");
    let mut form = Multipart::new(boundary);
    form.push(body);
    let mut pairs = Vec::<(String, Vec<u8>)>::new();
    loop {
        match form.next_event().ok().flatten().ok_or_else(wrong)? {
            Event::Part(head) if head.file_name.is_some() => {
                let reason = "this server does not accept files; send the values as texts";
                return Err(Refusal::absent(format!("{}: {reason}", head.name)));
            }
            Event::Part(head) => pairs.push((head.name, Vec::new())),
            Event::Data(bytes) => pairs.last_mut().ok_or_else(wrong)?.1.extend(bytes),
            Event::End => break,
        }
    }
    let pairs =
        pairs.into_iter().map(|(name, text)| Ok((name, String::from_utf8(text).map_err(|_| wrong())?)));
    pairs.collect()
}

/// What a form names.
struct Form<'a> {
    sensor: &'a str,
    /// The fields with their texts.
    values: Vec<(&'a str, &'a str)>,
}

impl<'a> Form<'a> {
    /// Reads `vsname`, `cmd`, and the values: under `COMMAND;FIELD`, as GSN's page sends them.
    fn read(pairs: &'a [Pair]) -> Result<Self, Refusal> {
        let text = |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, text)| text.as_str());
        let sensor = text("vsname")
            .ok_or_else(|| Refusal::argument("the form has no vsname, the name of the sensor"))?;
        let command =
            text("cmd").ok_or_else(|| Refusal::argument("the form has no cmd, the name of its command"))?;
        let mut values = Vec::new();
        for (name, text) in pairs.iter().filter(|(name, _)| name != "vsname" && name != "cmd") {
            match name.split_once(';') {
                Some((of, field)) if of == command => values.push((field, text.as_str())),
                // GSN's page sends the values of all commands of the sensor.
                Some(_) => {}
                None => {
                    return Err(Refusal::argument(format!(
                        "{name:?} is not a name of a value; values are named COMMAND;FIELD, such as {command};temperature"
                    )));
                }
            }
        }
        match values.is_empty() {
            true => Err(Refusal::argument(format!("the form has no value of the command {command:?}"))),
            false => Ok(Self { sensor, values }),
        }
    }
}

fn values(sensor: &Sensor, texts: &[(&str, &str)]) -> Result<Map<String, Json>, Refusal> {
    let of = |(name, text): &(&str, &str)| {
        let field = sensor.field(name).map_err(|_| no_command(sensor, name))?;
        Ok((field.name.clone(), value(field, text)?))
    };
    texts.iter().map(of).collect()
}

/// The refusal of a field that the output does not have: GSN gives it to the sensor's code.
fn no_command(sensor: &Sensor, name: &str) -> Refusal {
    let names: Vec<&str> = sensor.fields().iter().map(|field| field.name.as_str()).collect();
    Refusal::absent(format!(
        "{} has no field {name:?} in its output ({}); this server appends the values of a form as a row, and has no commands of web-input",
        sensor.name(),
        names.join(", ")
    ))
}

fn value(field: &Field, text: &str) -> Result<Json, Refusal> {
    let wrong =
        || Refusal::argument(format!("{}: {text:?} is not of the type {}", field.name, field.type_name));
    match field.kind {
        ValueKind::Text => Ok(Json::from(text)),
        ValueKind::Integer => text.trim().parse::<i64>().map(Json::from).map_err(|_| wrong()),
        ValueKind::Double | ValueKind::Float => {
            let number = text.trim().parse::<f64>().ok().filter(|number| number.is_finite());
            number.map(Json::from).ok_or_else(wrong)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sensor::tests::meadow;
    use super::*;

    fn pairs(pairs: &[(&str, &str)]) -> Vec<Pair> {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    #[test]
    fn texts_of_a_form_are_read_and_files_refused() {
        let part = |disposition: &str, text: &str| {
            format!("--xy\r\nContent-Disposition: form-data; {disposition}\r\n\r\n{text}\r\n")
        };
        let body =
            [part("name=\"cmd\"", "c"), part("name=\"c;state\"", "a\r\nb"), "--xy--\r\n".to_owned()].concat();
        assert_eq!(texts(body.as_bytes(), "xy").unwrap(), pairs(&[("cmd", "c"), ("c;state", "a\r\nb")]));
        let file = part("name=\"c;a\"; filename=\"x.png\"", "x") + "--xy--\r\n";
        assert_eq!(texts(file.as_bytes(), "xy").unwrap_err().0.status, 501);
        let not_utf8 = [
            part("name=cmd", "c").as_bytes(),
            b"--xy\r\nContent-Disposition: form-data; name=a\r\n\r\n\xff\r\n--xy--",
        ]
        .concat();
        for body in
            [&b""[..], b"--xy\r\n", b"--xy\r\nno: head\r\n\r\n", b"--xy\r\n\r\n\r\nx\r\n--xy--", &not_utf8]
        {
            assert_eq!(texts(body, "xy").unwrap_err().0.status, 400, "{}", body.escape_ascii());
        }
    }

    #[test]
    fn values_of_the_command_become_a_row() {
        let pairs = pairs(&[
            ("vsname", "meadow"),
            ("cmd", "report"),
            ("report;Temperature", " 21.5 "),
            ("report;readings", "3"),
            ("report;state", "a;b"),
            ("other;state", "x"),
        ]);
        let form = Form::read(&pairs).unwrap();
        assert_eq!(form.sensor, "meadow");
        let values = values(&meadow(), &form.values).unwrap();
        assert_eq!(Json::Object(values), json!({ "temperature": 21.5, "readings": 3, "state": "a;b" }));
    }

    #[test]
    fn what_is_not_a_row_is_refused() {
        for (form, part) in [
            (&[("cmd", "c"), ("c;state", "x")][..], "no vsname"),
            (&[("vsname", "meadow"), ("c;state", "x")], "no cmd"),
            (&[("vsname", "meadow"), ("cmd", "c"), ("d;state", "x")], "no value of the command"),
            (&[("vsname", "meadow"), ("cmd", "c"), ("state", "x")], "COMMAND;FIELD"),
        ] {
            let message = Form::read(&pairs(form)).err().unwrap().0.message;
            assert!(message.contains(part), "{form:?}: {message}");
        }
        let of = |name, text| values(&meadow(), &[(name, text)]).unwrap_err().0;
        assert_eq!(of("valve", "1").status, 501);
        assert!(of("readings", "3.5").message.contains("is not of the type integer"));
        assert!(of("temperature", "inf").message.contains("is not of the type double"));
    }
}
