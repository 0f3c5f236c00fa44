//! The data that queries read: random walks with two decimals.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use load::Result;
use rand::rngs::SmallRng;
use rand::{RngExt as _, SeedableRng as _};

use crate::devices::Client;

/// The time between two values of a device.
pub(super) const STEP_MS: i64 = 10_000;
/// The keys of the wide device, which has a value of each every second.
pub(super) const WIDE_KEYS: usize = 20;
/// The rows of one write request.
pub(crate) const ROWS: i64 = 1_000;
/// The name of the write operation.
pub(crate) const WRITE: &str = "write";
const HOUR_MS: i64 = 3_600_000;
const PREFIX: &str = "walk-";
pub(super) const WIDE_PREFIX: &str = "wide-";
const TOKEN: &str = "reads-";
const WIDE_TOKEN: &str = "reads-wide-";

/// The size of the data.
#[derive(Debug, Clone, Copy)]
pub(crate) struct DataSize {
    /// Devices with one value every ten seconds.
    pub(crate) devices: u32,
    /// The hours of history, up to now.
    pub(crate) hours: u32,
}

impl DataSize {
    /// The smallest size that allows all queries.
    pub(crate) const LEAST: Self = Self { devices: 100, hours: 12 };
}

pub(super) struct StoredData {
    /// The ids of the devices.
    pub(super) ids: Vec<String>,
    /// The id of the device with many keys.
    pub(super) wide: String,
    /// The time after the newest row, a whole number of hours.
    pub(super) end_ms: i64,
    pub(super) rows: u64,
}

/// Creates the devices and writes their history.
pub(super) fn fill(size: DataSize, client: &Client) -> Result<StoredData> {
    client.provision(size.devices, PREFIX, TOKEN)?;
    client.provision(1, WIDE_PREFIX, WIDE_TOKEN)?;
    let ids = client.device_ids(PREFIX, size.devices)?;
    let wide = client.device_ids(WIDE_PREFIX, 1)?.remove(0);
    let now_ms = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as i64);
    let end_ms = now_ms / HOUR_MS * HOUR_MS;
    let begin_ms = end_ms - i64::from(size.hours) * HOUR_MS;
    let mut rows = 0;
    let mut walks: Vec<Walk> = (0..size.devices).map(|device| Walk::new(u64::from(device))).collect();
    for piece_ms in (begin_ms..end_ms).step_by((ROWS * STEP_MS) as usize) {
        let piece_end_ms = end_ms.min(piece_ms + ROWS * STEP_MS);
        for (device, walk) in walks.iter_mut().enumerate() {
            let times = (piece_ms..piece_end_ms).step_by(STEP_MS as usize);
            rows +=
                client.report(&format!("{TOKEN}{device}"), &body(times, &["x".to_owned()], &mut [walk]))?;
        }
    }
    let mut walks: Vec<Walk> = (0..WIDE_KEYS as u64).map(|key| Walk::new(1_000_000 + key)).collect();
    let mut walks: Vec<&mut Walk> = walks.iter_mut().collect();
    for piece_ms in (end_ms - 2 * HOUR_MS..end_ms).step_by(ROWS as usize * 1_000) {
        let times = (piece_ms..end_ms.min(piece_ms + ROWS * 1_000)).step_by(1_000);
        rows += client.report(&format!("{WIDE_TOKEN}0"), &body(times, &wide_keys(), &mut walks))?;
    }
    Ok(StoredData { ids, wide, end_ms, rows })
}

/// The names of the keys of the wide device.
pub(super) fn wide_keys() -> Vec<String> {
    (0..WIDE_KEYS).map(|key| format!("k{key}")).collect()
}

/// Rows of one device that follow the stored ones.
pub(super) struct WriteBatch {
    token: String,
    rows: String,
}

impl WriteBatch {
    /// The rows of request number `round`.
    pub(super) fn new(size: DataSize, stored: &StoredData, round: u64) -> Self {
        let device = round % u64::from(size.devices);
        // The rows have their own key, so that the results of the queries do not change.
        let begin_ms = stored.end_ms + (round / u64::from(size.devices)) as i64 * ROWS;
        let mut walk = Walk::new(round);
        let rows = body(begin_ms..begin_ms + ROWS, &["y".to_owned()], &mut [&mut walk]);
        Self { token: format!("{TOKEN}{device}"), rows }
    }

    /// Writes the rows and returns their size in bytes.
    pub(super) fn write(&self, client: &Client) -> Result<u64> {
        client.report(&self.token, &self.rows)?;
        Ok(self.rows.len() as u64)
    }
}

fn body(times: impl Iterator<Item = i64>, keys: &[String], walks: &mut [&mut Walk]) -> String {
    let mut text = String::from("[");
    for ts in times {
        let _ = write!(text, "{}{{\"ts\":{ts},\"values\":{{", if text.len() > 1 { "," } else { "" });
        for (index, (key, walk)) in keys.iter().zip(walks.iter_mut()).enumerate() {
            let _ = write!(text, "{}\"{key}\":{:.2}", if index > 0 { "," } else { "" }, walk.next());
        }
        text.push_str("}}");
    }
    text.push(']');
    text
}

/// A random walk in hundredths.
struct Walk {
    rng: SmallRng,
    hundredths: i64,
}

impl Walk {
    fn new(seed: u64) -> Self {
        Self { rng: SmallRng::seed_from_u64(seed), hundredths: 5_000 }
    }

    fn next(&mut self) -> f64 {
        self.hundredths += self.rng.random_range(-100..=100);
        self.hundredths as f64 / 100.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_what_the_device_door_takes() {
        let (mut a, mut b) = (Walk::new(1), Walk::new(2));
        let text = body([5, 6].into_iter(), &["x".to_owned(), "y".to_owned()], &mut [&mut a, &mut b]);
        let rows: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!((rows[0]["ts"].as_i64(), rows[1]["ts"].as_i64()), (Some(5), Some(6)));
        assert!(rows[1]["values"]["y"].is_number());
    }
}
