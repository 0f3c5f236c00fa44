//! The engine begins and forgets followers.

use hub::ThreadEnd;
use kv::{Direction, KeyRange, KeyValueStore, KvError, WriteBatch};
use model::SeriesId;

use super::durable;
use super::reread::newest;
use crate::followers::{Begin, Cursor, FOLLOWERS, SensorOutput, key};
use crate::host::Host;

/// Begins the followers of a sensor that have not begun, and forgets those that it does not have any more. The engine calls it before
/// it appends rows, so each late row finds the cursors that must remember it.
pub(super) fn begin_followers(host: &Host, output: &SensorOutput, series: SeriesId) -> Result<(), ThreadEnd> {
    let followers = &host.sensors.followers;
    let requests: Vec<_> =
        [output.storage_follower(), output.export_follower()].into_iter().flatten().collect();
    for request in requests.iter().filter(|request| followers.delivered_us(request).is_none()) {
        let stored =
            host.kv.get(FOLLOWERS, &key(&request.sensor, &request.follower)).map_err(ThreadEnd::failed)?;
        let stored = stored.and_then(|bytes| Cursor::decode(&bytes));
        let cursor = match stored.filter(|cursor| cursor.target == request.target) {
            Some(cursor) => cursor,
            None if request.begin == Begin::Newest => {
                let newest = newest(&*host.store, series).map_err(ThreadEnd::failed)?;
                Cursor::new(&request.target, newest.unwrap_or(i64::MIN))
            }
            None => Cursor::new(&request.target, i64::MIN),
        };
        followers.begin(request, cursor);
    }
    let is_wanted = |name: &str| requests.iter().any(|request| request.follower == name);
    forget(host, &output.sensor, is_wanted)
}

/// Forgets the followers of a sensor that is gone.
pub(super) fn forget_followers(host: &Host, sensor: &str) -> Result<(), ThreadEnd> {
    forget(host, sensor, |_| false)
}

fn forget(host: &Host, sensor: &str, is_wanted: impl Fn(&str) -> bool) -> Result<(), ThreadEnd> {
    let mut batch = WriteBatch::new();
    for name in names(&*host.kv, sensor).map_err(ThreadEnd::failed)? {
        if !is_wanted(&name) {
            batch.delete(FOLLOWERS, key(sensor, &name));
        }
    }
    if !batch.is_empty() {
        durable::commit(host, &batch)?;
    }
    for name in host.sensors.followers.forget(sensor, is_wanted) {
        host.sensors.metrics.followers.forget(sensor, &name);
    }
    Ok(())
}

/// The names of the followers of a sensor with a stored cursor.
fn names(kv: &dyn KeyValueStore, sensor: &str) -> Result<Vec<String>, KvError> {
    let prefix = key(sensor, "");
    let mut names = Vec::new();
    for entry in kv.scan(FOLLOWERS, &KeyRange::prefix(prefix.clone()), Direction::Ascending)? {
        names.push(String::from_utf8_lossy(&entry?.0[prefix.len()..]).into_owned());
    }
    Ok(names)
}
