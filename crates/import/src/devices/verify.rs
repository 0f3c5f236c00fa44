//! Reads the numbers of imported values back from a server.

use std::collections::BTreeMap;

use clients::http::{RestClient, escaped};
use model::TimeRange;
use serde_json::Value;

/// Keys of one request.
const KEYS_AT_ONCE: usize = 50;

/// The number of values of each key of a device in a time range, which is widened to whole milliseconds.
pub(super) fn counts_of(
    api: &RestClient,
    device_id: &str,
    keys: &[&str],
    range: TimeRange,
) -> anyhow::Result<BTreeMap<String, u64>> {
    debug_assert!(api.bearer().is_some());
    let (first_ms, end_ms) = (range.start.millis(), range.end.millis() + 1);
    let mut counts = BTreeMap::new();
    for keys in keys.chunks(KEYS_AT_ONCE) {
        let path = format!(
            "/api/plugins/telemetry/DEVICE/{device_id}/values/timeseries?{}&startTs={first_ms}&endTs={end_ms}\
             &agg=COUNT&interval={}&useStrictDataTypes=true",
            keys.iter().map(|key| format!("key={}", escaped(key))).collect::<Vec<_>>().join("&"),
            // One interval for the whole range.
            end_ms - first_ms,
        );
        let answer = api.get(&path)?;
        for key in keys {
            let mut total = 0;
            for point in answer[*key].as_array().map(Vec::as_slice).unwrap_or_default() {
                let count = number(&point["value"]);
                total += count.ok_or_else(|| {
                    api.unexpected("GET", &path, &format!("{} is not a count", point["value"]))
                })?;
            }
            counts.insert((*key).to_owned(), total);
        }
    }
    Ok(counts)
}

/// Reads a number, or the text of one.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}
