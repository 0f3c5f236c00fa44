//! The followers of all sensors: their cursors, what they have reported, and the outputs that there are.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use kv::{KeyValueStore, KvError, WriteBatch};
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};

use super::cursor::{Cursor, FOLLOWERS};
use super::output::{FollowRequest, OutputRows, SensorOutput, SensorOutputs};
use crate::info::{FollowerInfo, FollowerReport, SensorInfo};

/// The followers of all sensors.
#[derive(Debug)]
pub(crate) struct Followers {
    pub(crate) outputs: watch::Sender<SensorOutputs>,
    /// By sensor and follower.
    all: Mutex<BTreeMap<(String, String), Follower>>,
}

#[derive(Debug)]
struct Follower {
    cursor: Cursor,
    info: FollowerInfo,
    appended: Arc<Notify>,
}

impl Default for Followers {
    fn default() -> Self {
        Self { outputs: watch::Sender::new(Arc::new([])), all: Mutex::default() }
    }
}

impl Followers {
    /// Shows followers the outputs of the sensors that run now.
    pub(crate) fn publish(&self, mut outputs: Vec<Arc<SensorOutput>>) {
        outputs.sort_by(|a, b| a.sensor.cmp(&b.sensor));
        self.outputs.send_if_modified(|known| {
            let is_new = known[..] != outputs[..];
            if is_new {
                *known = outputs.into();
            }
            is_new
        });
    }

    /// Rows of a sensor were appended.
    pub(crate) fn appended(&self, sensor: &str, (first_us, last_us): (i64, i64), rows: u64) {
        for follower in of_sensor(&mut self.all.lock(), sensor) {
            follower.cursor.appended(first_us, last_us);
            follower.info.rows_behind += rows;
            follower.appended.notify_one();
        }
    }

    /// Adds the cursors of a sensor that have new ranges to a batch.
    pub(crate) fn put_changed(&self, sensor: &str, batch: &mut WriteBatch) {
        let mut all = self.all.lock();
        let of_sensor = all.range_mut(range_of(sensor));
        for ((_, name), follower) in of_sensor {
            if std::mem::replace(&mut follower.cursor.is_changed, false) {
                batch.put(FOLLOWERS, key(sensor, name), follower.cursor.encode());
            }
        }
    }

    /// Forgets the followers of a sensor that are not wanted, and returns their names.
    pub(crate) fn forget(&self, sensor: &str, is_wanted: impl Fn(&str) -> bool) -> Vec<String> {
        let mut all = self.all.lock();
        all.extract_if(range_of(sensor), |(_, name), _| !is_wanted(name)).map(|((_, name), _)| name).collect()
    }

    /// Adds to a sensor what its followers have reported.
    pub(crate) fn show(&self, info: &mut Arc<SensorInfo>) {
        let mut all = self.all.lock();
        let infos: Vec<_> = of_sensor(&mut all, &info.name).map(|follower| follower.info.clone()).collect();
        if !infos.is_empty() {
            Arc::make_mut(info).followers = infos;
        }
    }

    /// Begins to follow, from a stored cursor or a new one.
    pub(crate) fn begin(&self, request: &FollowRequest, cursor: Cursor) {
        let info = FollowerInfo {
            name: request.follower.clone(),
            target: request.target.clone(),
            ..FollowerInfo::default()
        };
        let follower = Follower { cursor, info, appended: Arc::default() };
        self.all.lock().insert((request.sensor.clone(), request.follower.clone()), follower);
    }

    /// The time in microseconds up to which a follower has delivered; `None` if there is no such follower.
    pub(crate) fn delivered_us(&self, request: &FollowRequest) -> Option<i64> {
        find(&mut self.all.lock(), request).map(|follower| follower.cursor.us)
    }

    /// A follower has about this number of rows to deliver.
    pub(crate) fn set_rows_behind(&self, request: &FollowRequest, rows: u64) {
        if let Some(follower) = find(&mut self.all.lock(), request) {
            follower.info.rows_behind = rows;
        }
    }

    /// The wake of a follower for appended rows.
    pub(crate) fn wake(&self, request: &FollowRequest) -> Option<Arc<Notify>> {
        find(&mut self.all.lock(), request).map(|follower| Arc::clone(&follower.appended))
    }

    /// The range to read next; `None` if the sensor is gone.
    pub(crate) fn begin_read(&self, request: &FollowRequest) -> Option<(i64, i64)> {
        let mut all = self.all.lock();
        find(&mut all, request).map(|follower| follower.cursor.begin_read())
    }

    /// Rows were delivered: stores the cursor.
    pub(crate) fn delivered(
        &self,
        kv: &dyn KeyValueStore,
        request: &FollowRequest,
        delivered: &OutputRows,
    ) -> Result<(), KvError> {
        let mut all = self.all.lock();
        let Some(follower) = find(&mut all, request) else { return Ok(()) };
        let mut cursor = follower.cursor.clone();
        cursor.delivered(delivered.from_us, delivered.to_us);
        let mut batch = WriteBatch::new();
        batch.put(FOLLOWERS, key(&request.sensor, &request.follower), cursor.encode());
        kv.commit(&batch)?;
        let rows = delivered.rows.len() as u64;
        follower.cursor = cursor;
        follower.info.rows += rows;
        follower.info.rows_behind = follower.info.rows_behind.saturating_sub(rows);
        Ok(())
    }

    /// A read has found nothing more.
    pub(crate) fn reached_end(&self, request: &FollowRequest) {
        if let Some(follower) = find(&mut self.all.lock(), request) {
            follower.info.rows_behind = 0;
        }
    }

    /// Keeps what a follower reports. Returns what is shown before and after it.
    pub(crate) fn report(&self, request: &FollowRequest, report: FollowerReport) -> Option<FollowerInfo> {
        let mut all = self.all.lock();
        let follower = find(&mut all, request)?;
        follower.info.report = report;
        Some(follower.info.clone())
    }
}

type All = BTreeMap<(String, String), Follower>;

fn of_sensor<'a>(all: &'a mut All, sensor: &str) -> impl Iterator<Item = &'a mut Follower> + use<'a> {
    all.range_mut(range_of(sensor)).map(|(_, follower)| follower)
}

/// The keys of the followers of a sensor: those before the next longer name.
fn range_of(sensor: &str) -> Range<(String, String)> {
    (sensor.to_owned(), String::new())..(format!("{sensor}\0"), String::new())
}

/// A follower, if its rows go where the request says.
fn find<'a>(all: &'a mut All, request: &FollowRequest) -> Option<&'a mut Follower> {
    let follower = all.get_mut(&(request.sensor.clone(), request.follower.clone()))?;
    (follower.info.target == request.target).then_some(follower)
}

/// The key of a cursor. No name has a zero byte.
pub(crate) fn key(sensor: &str, follower: &str) -> Vec<u8> {
    [sensor.as_bytes(), b"\0", follower.as_bytes()].concat()
}
