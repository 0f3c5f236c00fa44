//! The requests of a run: it creates devices, reads back what they sent, and sends as one of them. One client per thread.

use std::collections::BTreeMap;
use std::time::Duration;

use clients::http::{Body, HttpLimits, HttpRequest, RestClient, RestError, escaped};
use clients::limits::HTTP_QUOTE_CHARS;
use clients::tls::TlsConfig;
use load::Result;
use serde_json::{Value, json};

use crate::limits::{HTTP_BODY_BYTES_MAX, READ_BACK_ROWS};

const LIMITS: HttpLimits =
    HttpLimits { timeout: Duration::from_secs(60), body_bytes_max: HTTP_BODY_BYTES_MAX };
const PAGE_DEVICES: u32 = 1_000;
/// The pause before a request to a busy server is repeated.
const BUSY_PAUSE: Duration = Duration::from_millis(20);

/// A logged-in client of a REST interface like ThingsBoard's.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    rest: RestClient,
}

/// One point of one key, with the value that the server gives with `useStrictDataTypes`.
#[derive(Debug, Clone, PartialEq, serde::Deserialize)]
pub struct Point {
    /// Milliseconds since the epoch.
    pub ts: u64,
    pub value: Value,
}

/// A device of the registry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Device {
    /// The id for URLs.
    pub id: String,
    pub name: String,
}

/// The result of provisioning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(crate) struct Provisioned {
    /// The number of new devices.
    pub created: u64,
    /// The number of devices that existed before.
    pub existing: u64,
}

impl Client {
    /// Logs in. `base` is `http://host:port` without a path.
    pub(crate) fn login(base: &str, user: &str, password: &str) -> Result<Self> {
        Self::login_over(base, None, user, password)
    }

    /// Logs in, with TLS for a base that begins with `https`.
    pub(crate) fn login_over(base: &str, tls: Option<TlsConfig>, user: &str, password: &str) -> Result<Self> {
        let rest = RestClient::new(base, LIMITS).with_tls(tls);
        rest.log_in(user, password)?;
        Ok(Self { rest })
    }

    /// Creates the devices `<prefix>0` to `<prefix>count-1` with the tokens `<token_prefix>n`, unless they exist.
    pub(crate) fn provision(&self, count: u32, prefix: &str, token_prefix: &str) -> Result<Provisioned> {
        self.provision_some(&json!({
            "count": count, "prefix": prefix, "tokenPrefix": token_prefix, "existingOk": true,
        }))
    }

    /// Creates `count` devices from number `start` on in a profile, which must exist.
    pub(crate) fn provision_in(
        &self,
        profile: &str,
        (start, count): (u32, u32),
        prefix: &str,
        token_prefix: &str,
    ) -> Result<Provisioned> {
        self.provision_some(&json!({
            "count": count, "startIndex": start, "prefix": prefix, "tokenPrefix": token_prefix, "profile": profile,
            "existingOk": true,
        }))
    }

    /// Creates a gateway of ThingsBoard's gateway API, unless a device of this name exists.
    pub(crate) fn create_gateway(&self, name: &str, token: &str) -> Result<()> {
        match self.rest.get(&format!("/api/tenant/devices?deviceName={}", escaped(name))) {
            Ok(_) => return Ok(()),
            Err(RestError::Status { status: 404, .. }) => {}
            Err(error) => return Err(error.into()),
        }
        let body = json!({ "name": name, "type": "default", "additionalInfo": { "gateway": true } });
        self.rest.post(&format!("/api/device?accessToken={}", escaped(token)), &body)?;
        Ok(())
    }

    fn provision_some(&self, body: &Value) -> Result<Provisioned> {
        let path = "/api/tacho/devices";
        let answer = self.rest.post(path, body)?;
        let provisioned = serde_json::from_value(answer.clone());
        provisioned.map_err(|e| self.unlike("POST", path, &format!("{e}"), &answer).into())
    }

    /// The client of any other request of this login.
    pub(crate) fn rest(&self) -> &RestClient {
        &self.rest
    }

    /// The value of `X-Authorization` of this login.
    pub(crate) fn bearer(&self) -> String {
        self.rest.bearer().expect("BUG: the client is logged in")
    }

    /// The server's status, or null if it has no such resource.
    pub(crate) fn status(&self) -> Value {
        self.rest.get("/api/status").unwrap_or(Value::Null)
    }

    /// The ids of the devices `<prefix>0` to `<prefix>count-1`, by number.
    pub(crate) fn device_ids(&self, prefix: &str, count: u32) -> Result<Vec<String>> {
        let mut by_name = self.ids_by_name(prefix)?;
        let id = |index| by_name.remove(&format!("{prefix}{index}"));
        let ids: Option<Vec<String>> = (0..count).map(id).collect();
        ids.ok_or_else(|| {
            let what = format!("not all of the devices {prefix}0 to {prefix}{} are listed", count - 1);
            self.rest.unexpected("GET", "/api/tenant/devices", &what).into()
        })
    }

    /// The ids of those of the devices `<prefix>0` to `<prefix>count-1` that exist.
    pub(crate) fn known_device_ids(&self, prefix: &str, count: u32) -> Result<Vec<String>> {
        let mut by_name = self.ids_by_name(prefix)?;
        Ok((0..count).filter_map(|index| by_name.remove(&format!("{prefix}{index}"))).collect())
    }

    /// The ids of all devices whose names have this text.
    fn ids_by_name(&self, prefix: &str) -> Result<BTreeMap<String, String>> {
        let mut by_name = BTreeMap::new();
        for page in 0.. {
            let path = format!(
                "/api/tenant/devices?pageSize={PAGE_DEVICES}&page={page}&textSearch={}",
                escaped(prefix)
            );
            let answer = self.rest.get(&path)?;
            let devices = devices_of(&answer);
            for device in devices.ok_or_else(|| self.unlike("GET", &path, "no page of devices", &answer))? {
                by_name.insert(device.name, device.id);
            }
            if answer["hasNext"] != Value::Bool(true) {
                break;
            }
        }
        Ok(by_name)
    }

    /// The number of devices whose names begin with a text.
    pub(crate) fn device_count(&self, prefix: &str) -> Result<u64> {
        let path = format!("/api/tenant/devices?pageSize=1&page=0&textSearch={}", escaped(prefix));
        let answer = self.rest.get(&path)?;
        answer["totalElements"]
            .as_u64()
            .ok_or_else(|| self.unlike("GET", &path, "no number of devices", &answer).into())
    }

    /// The newest timestamp of a key of a device; 0 without any.
    pub(crate) fn newest_ts_ms(&self, device_id: &str, key: &str) -> Result<u64> {
        let path = format!("/api/plugins/telemetry/DEVICE/{device_id}/values/timeseries?keys={key}");
        let points = self.points(&path, key)?;
        // Without data ThingsBoard answers with the current time and a null value.
        Ok(points.iter().filter(|point| !point.value.is_null()).map(|point| point.ts).max().unwrap_or(0))
    }

    /// The number of points of a key with `start_ms <= ts < end_ms`, as counted by the server.
    pub(crate) fn count(&self, device_id: &str, key: &str, start_ms: u64, end_ms: u64) -> Result<u64> {
        let path = format!(
            "/api/plugins/telemetry/DEVICE/{device_id}/values/timeseries?keys={key}\
             &startTs={start_ms}&endTs={end_ms}&agg=COUNT&interval={}",
            // One interval covers the whole range, because ThingsBoard does not aggregate without one.
            end_ms.saturating_sub(start_ms).max(1)
        );
        let mut total = 0;
        for point in self.points(&path, key)? {
            total += number(&point.value)
                .ok_or_else(|| self.unlike("GET", &path, "no count", &point.value))?
                as u64;
        }
        Ok(total)
    }

    /// All points of some keys with `start_ms <= ts < end_ms`, oldest first, read page by page.
    pub(crate) fn history(
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
        let mut answer = self.rest.get(path)?;
        match answer.get_mut(key).map(Value::take) {
            None => Ok(Vec::new()),
            Some(points) => serde_json::from_value(points).map_err(|e| {
                self.rest.unexpected("GET", path, &format!("`{key}` is not a list of points: {e}")).into()
            }),
        }
    }

    /// Sends rows as a device and returns their number. It repeats the request while the server is busy.
    pub(crate) fn report(&self, token: &str, rows: &str) -> Result<u64> {
        let path = format!("/api/v1/{token}/telemetry");
        loop {
            match self.rest.post_text(&path, rows) {
                Ok(_) => return Ok(rows.matches("\"ts\":").count() as u64),
                Err(RestError::Status { status: 429 | 503, .. }) => std::thread::sleep(BUSY_PAUSE),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// The body of an answer: to a POST with a JSON body, or to a GET.
    pub(crate) fn text(&self, path: &str, body: Option<&Value>) -> Result<String> {
        let body = body.map(Value::to_string);
        let request = match &body {
            Some(body) => HttpRequest::new("POST", path, Body::Json(body)),
            None => HttpRequest::get(path),
        };
        Ok(self.rest.text(&request)?)
    }

    fn unlike(&self, method: &'static str, path: &str, what: &str, answer: &Value) -> RestError {
        let quote: String = answer.to_string().chars().take(HTTP_QUOTE_CHARS).collect();
        self.rest.unexpected(method, path, &format!("{what} in the answer {quote}"))
    }
}

fn devices_of(answer: &Value) -> Option<Vec<Device>> {
    let text = |value: &Value| value.as_str().map(str::to_owned);
    let device = |entry: &Value| Some(Device { id: text(&entry["id"]["id"])?, name: text(&entry["name"])? });
    answer["data"].as_array()?.iter().map(device).collect()
}

/// A number, or a text with one: ThingsBoard returns values as text unless strict types are requested.
pub(crate) fn number(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}

#[cfg(test)]
mod tests;
