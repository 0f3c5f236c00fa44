//! The HTTP client of a run: it logs in, provisions devices and reads back. Blocking, with keep-alive; one client per
//! thread.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};

use crate::error::{Error, Result};
use crate::limits::{HTTP_BODY_BYTES_MAX, READ_BACK_ROWS};

const TIMEOUT: Duration = Duration::from_secs(60);
const PAGE_DEVICES: u32 = 1_000;
/// The pause before a request to a busy server is repeated.
const BUSY_PAUSE: Duration = Duration::from_millis(20);
/// The longest part of an error body to quote.
const QUOTE_CHARS: usize = 300;

/// A logged-in client of a REST interface like ThingsBoard's.
#[derive(Debug, Clone)]
pub struct Client {
    agent: ureq::Agent,
    base: String,
    bearer: String,
}

/// One point of one key, with the value that the server gives with `useStrictDataTypes`.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
pub struct Point {
    /// Milliseconds since the epoch.
    pub ts: u64,
    /// The value.
    pub value: Value,
}

/// A device of the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// The id for URLs.
    pub id: String,
    /// The name.
    pub name: String,
}

/// The result of provisioning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub struct Provisioned {
    /// The number of new devices.
    pub created: u64,
    /// The number of devices that existed before.
    pub existing: u64,
}

impl Client {
    /// Logs in. `base` is `http://host:port` without a path.
    pub fn login(base: &str, user: &str, password: &str) -> Result<Self> {
        let agent = ureq::Agent::config_builder()
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            .build()
            .new_agent();
        let mut client = Self { agent, base: base.trim_end_matches('/').to_owned(), bearer: String::new() };
        let answer = client.post("/api/auth/login", &json!({ "username": user, "password": password }))?;
        let token = answer["token"].as_str().ok_or_else(|| {
            client.failed("POST", "/api/auth/login", format!("no `token` in the answer {answer}"))
        })?;
        client.bearer = format!("Bearer {token}");
        Ok(client)
    }

    /// Creates the devices `<prefix>0` to `<prefix>count-1` with the tokens `<token_prefix>n`, unless they exist.
    pub fn provision(&self, count: u32, prefix: &str, token_prefix: &str) -> Result<Provisioned> {
        let path = "/api/tacho/devices";
        let body =
            json!({ "count": count, "prefix": prefix, "tokenPrefix": token_prefix, "existingOk": true });
        let answer = self.post(path, &body)?;
        serde_json::from_value(answer.clone())
            .map_err(|e| self.failed("POST", path, format!("{e} in the answer {answer}")))
    }

    /// The server's status, or null if it has no such resource.
    pub fn status(&self) -> Value {
        self.get("/api/status").unwrap_or(Value::Null)
    }

    /// The ids of the devices `<prefix>0` to `<prefix>count-1`, by number.
    pub fn device_ids(&self, prefix: &str, count: u32) -> Result<Vec<String>> {
        let mut by_name = BTreeMap::new();
        for page in 0.. {
            let path = format!("/api/tenant/devices?pageSize={PAGE_DEVICES}&page={page}&textSearch={prefix}");
            let answer = self.get(&path)?;
            for device in devices_of(&answer).ok_or_else(|| self.failed("GET", &path, unlike(&answer)))? {
                by_name.insert(device.name, device.id);
            }
            if answer["hasNext"] != Value::Bool(true) {
                break;
            }
        }
        let id = |index| by_name.remove(&format!("{prefix}{index}"));
        let ids: Option<Vec<String>> = (0..count).map(id).collect();
        ids.ok_or_else(|| {
            let what = format!("not all of the devices {prefix}0 to {prefix}{} are listed", count - 1);
            self.failed("GET", "/api/tenant/devices", what)
        })
    }

    /// The newest timestamp of a key of a device; 0 without any.
    pub fn newest_ts_ms(&self, device_id: &str, key: &str) -> Result<u64> {
        let path = format!("/api/plugins/telemetry/DEVICE/{device_id}/values/timeseries?keys={key}");
        let points = self.points(&path, key)?;
        // Without data ThingsBoard answers with the current time and a null value.
        Ok(points.iter().filter(|point| !point.value.is_null()).map(|point| point.ts).max().unwrap_or(0))
    }

    /// The number of points of a key with `start_ms <= ts < end_ms`, as counted by the server.
    pub fn count(&self, device_id: &str, key: &str, start_ms: u64, end_ms: u64) -> Result<u64> {
        let path = format!(
            "/api/plugins/telemetry/DEVICE/{device_id}/values/timeseries?keys={key}\
             &startTs={start_ms}&endTs={end_ms}&agg=COUNT&interval={}",
            // One interval covers the whole range, because ThingsBoard does not aggregate without one.
            end_ms.saturating_sub(start_ms).max(1)
        );
        let mut total = 0;
        for point in self.points(&path, key)? {
            total += number(&point.value)
                .ok_or_else(|| self.failed("GET", &path, format!("`{}` is no count", point.value)))?
                as u64;
        }
        Ok(total)
    }

    /// All points of some keys with `start_ms <= ts < end_ms`, oldest first, read page by page.
    pub fn history(
        &self,
        device_id: &str,
        keys: &[&str],
        start_ms: u64,
        end_ms: u64,
    ) -> Result<BTreeMap<String, Vec<Point>>> {
        let mut all = BTreeMap::new();
        for key in keys {
            all.insert((*key).to_owned(), self.history_of(device_id, key, start_ms, end_ms)?);
        }
        Ok(all)
    }

    fn history_of(&self, device_id: &str, key: &str, start_ms: u64, end_ms: u64) -> Result<Vec<Point>> {
        let mut all = Vec::new();
        let mut from_ms = start_ms;
        loop {
            let path = format!(
                "/api/plugins/telemetry/DEVICE/{device_id}/values/timeseries?keys={key}&startTs={from_ms}\
                 &endTs={end_ms}&limit={READ_BACK_ROWS}&orderBy=ASC&useStrictDataTypes=true"
            );
            let page = self.points(&path, key)?;
            let (rows, last) = (page.len(), page.last().map(|point| point.ts));
            all.extend(page);
            match last {
                // A server that goes back in time would cause an endless loop.
                Some(last) if rows >= READ_BACK_ROWS && last >= from_ms => from_ms = last + 1,
                _ => return Ok(all),
            }
        }
    }

    fn points(&self, path: &str, key: &str) -> Result<Vec<Point>> {
        let mut answer = self.get(path)?;
        match answer.get_mut(key).map(Value::take) {
            None => Ok(Vec::new()),
            Some(points) => serde_json::from_value(points)
                .map_err(|e| self.failed("GET", path, format!("`{key}` is no list of points: {e}"))),
        }
    }

    /// Sends rows as a device and returns their number. It repeats the request while the server is busy.
    pub(crate) fn report(&self, token: &str, rows: &str) -> Result<u64> {
        let path = format!("/api/v1/{token}/telemetry");
        loop {
            let request =
                self.agent.post(format!("{}{path}", self.base)).header("Content-Type", "application/json");
            let sent = request.send(rows).map_err(|e| self.failed("POST", &path, e.to_string()))?;
            match sent.status().as_u16() {
                200 => return Ok(rows.matches("\"ts\":").count() as u64),
                429 | 503 => std::thread::sleep(BUSY_PAUSE),
                status => return Err(self.failed("POST", &path, format!("status {status}"))),
            }
        }
    }

    /// The body of an answer: to a POST with a JSON body, or to a GET.
    pub(crate) fn text(&self, path: &str, body: Option<&Value>) -> Result<String> {
        let url = format!("{}{path}", self.base);
        let (method, answer) = match body {
            Some(body) => {
                ("POST", self.agent.post(url).header("X-Authorization", &self.bearer).send_json(body))
            }
            None => ("GET", self.agent.get(url).header("X-Authorization", &self.bearer).call()),
        };
        self.body(method, path, answer)
    }

    fn get(&self, path: &str) -> Result<Value> {
        let request = self.agent.get(format!("{}{path}", self.base)).header("X-Authorization", &self.bearer);
        self.answer("GET", path, request.call())
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value> {
        let request = self.agent.post(format!("{}{path}", self.base)).header("X-Authorization", &self.bearer);
        self.answer("POST", path, request.send_json(body))
    }

    fn answer(
        &self,
        method: &'static str,
        path: &str,
        answer: std::result::Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<Value> {
        let body = self.body(method, path, answer)?;
        serde_json::from_str(&body).map_err(|e| self.failed(method, path, format!("no JSON: {e}")))
    }

    fn body(
        &self,
        method: &'static str,
        path: &str,
        answer: std::result::Result<ureq::http::Response<ureq::Body>, ureq::Error>,
    ) -> Result<String> {
        let mut answer = answer.map_err(|e| self.failed(method, path, e.to_string()))?;
        let status = answer.status();
        let body = answer
            .body_mut()
            .with_config()
            .limit(HTTP_BODY_BYTES_MAX)
            .read_to_string()
            .map_err(|e| self.failed(method, path, format!("{status}, then {e}")))?;
        if !status.is_success() {
            let quote: String = body.chars().take(QUOTE_CHARS).collect();
            return Err(self.failed(method, path, format!("{status}: {quote}")));
        }
        Ok(body)
    }

    fn failed(&self, method: &'static str, path: &str, what: String) -> Error {
        Error::Http { method, url: format!("{}{path}", self.base), what }
    }
}

fn devices_of(answer: &Value) -> Option<Vec<Device>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let device = |entry: &Value| Some(Device { id: text(&entry["id"]["id"])?, name: text(&entry["name"])? });
    answer["data"].as_array()?.iter().map(device).collect()
}

fn unlike(answer: &Value) -> String {
    let quote: String = answer.to_string().chars().take(QUOTE_CHARS).collect();
    format!("the answer is no page of devices: {quote}")
}

/// A number, or a text with one: ThingsBoard returns values as text unless strict types are requested.
pub(crate) fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_read_from_a_page() {
        let page = json!({"data": [{"id": {"entityType": "DEVICE", "id": "u-1"}, "name": "dev-0"}], "hasNext": false});
        let expected = Device { id: "u-1".to_owned(), name: "dev-0".to_owned() };
        assert_eq!(devices_of(&page), Some(vec![expected]));
        assert_eq!(devices_of(&json!({"data": [{"name": "dev-0"}]})), None);
    }

    #[test]
    fn numbers_come_as_numbers_or_as_text() {
        assert_eq!(number(&json!(12)), Some(12.0));
        assert_eq!(number(&json!("12.5")), Some(12.5));
        assert_eq!(number(&json!("red")), None);
    }
}
