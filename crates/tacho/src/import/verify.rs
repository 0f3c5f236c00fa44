//! Reading back: does the server have what it acknowledged?

use anyhow::bail;
use serde_json::Value;

use super::upload::Sent;
use crate::client::{Api, escaped};

/// Asks the server how many values of each key it has in the time of the import and compares.
pub(super) fn verify(api: &Api, device_id: &str, sent: &Sent) -> anyhow::Result<String> {
    debug_assert!(api.is_logged_in());
    let (mut wanted, mut found, mut missing) = (0, 0, Vec::new());
    for (key, count) in &sent.by_key {
        let stored = count_of(api, device_id, key, sent)?;
        if stored < *count {
            missing.push(format!("{key}: {count} acknowledged, {stored} found"));
        }
        wanted += *count;
        found += stored;
    }
    if !missing.is_empty() {
        bail!("the server does not have all that it acknowledged:\n{}", missing.join("\n"));
    }
    let others = if found > wanted {
        format!("; {} other values of these keys lie in the same time", found - wanted)
    } else {
        String::new()
    };
    Ok(format!("read back: all {wanted} values of {} keys are there{others}", sent.by_key.len()))
}

fn count_of(api: &Api, device_id: &str, key: &str, sent: &Sent) -> anyhow::Result<u64> {
    let path = format!(
        "/api/plugins/telemetry/DEVICE/{device_id}/values/timeseries?key={}&startTs={}&endTs={}&agg=COUNT&interval={}\
         &useStrictDataTypes=true",
        escaped(key),
        sent.first_ms,
        sent.last_ms + 1,
        // One interval for the whole range.
        sent.last_ms + 1 - sent.first_ms,
    );
    let answer = api.get(&path)?;
    let mut total = 0;
    for point in answer[key].as_array().map(Vec::as_slice).unwrap_or_default() {
        let count = number(&point["value"]);
        total +=
            count.ok_or_else(|| api.unexpected("GET", &path, &format!("{} is no count", point["value"])))?;
    }
    Ok(total)
}

/// A number, or the text of one: without strict types every value is text.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}
