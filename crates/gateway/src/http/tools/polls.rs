//! Bounds the devices that wait for a message.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use uuid::Uuid;

use crate::error::ApiError;

/// The requests that wait for messages to devices.
#[derive(Debug)]
pub(crate) struct Polls {
    max: usize,
    per_device_max: usize,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    total: usize,
    devices: HashMap<Uuid, usize>,
}

/// A waiting request, until this is dropped.
#[derive(Debug)]
pub(crate) struct Poll {
    polls: Arc<Polls>,
    device: Uuid,
}

impl Polls {
    pub(crate) fn new(max: usize, per_device_max: usize) -> Arc<Self> {
        Arc::new(Self { max, per_device_max, waiting: Mutex::default() })
    }

    /// Begins a request of a device.
    ///
    /// # Errors
    /// 429 if as many wait as may.
    pub(crate) fn begin(self: &Arc<Self>, device: Uuid) -> Result<Poll, ApiError> {
        let mut waiting = self.waiting.lock();
        if waiting.total >= self.max {
            let (total, limit) = (waiting.total, self.max);
            return Err(ApiError::busy(format!(
                "{total} requests of devices wait for a message, the limit is {limit} (POLLS_MAX); try again, or use MQTT"
            )));
        }
        let own = waiting.devices.entry(device).or_default();
        if *own >= self.per_device_max {
            let (own, limit) = (*own, self.per_device_max);
            return Err(ApiError::busy(format!(
                "{own} requests of this device wait for a message, the limit is {limit} (POLLS_PER_DEVICE_MAX); end one first"
            )));
        }
        *own += 1;
        waiting.total += 1;
        Ok(Poll { polls: Arc::clone(self), device })
    }
}

impl Drop for Poll {
    fn drop(&mut self) {
        let mut waiting = self.polls.waiting.lock();
        waiting.total -= 1;
        if let Some(own) = waiting.devices.get_mut(&self.device) {
            *own -= 1;
            if *own == 0 {
                waiting.devices.remove(&self.device);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn polls_are_bounded_for_each_device_and_in_all() {
        let polls = Polls::new(3, 2);
        let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let first = polls.begin(one).unwrap();
        let _second = polls.begin(one).unwrap();
        let refused = polls.begin(one).unwrap_err();
        assert_eq!(refused.status.as_u16(), 429);
        assert!(refused.message.contains("POLLS_PER_DEVICE_MAX"), "{}", refused.message);
        let third = polls.begin(other).unwrap();
        assert!(polls.begin(other).unwrap_err().message.contains("(POLLS_MAX)"));
        drop((first, third));
        let again = [polls.begin(one).unwrap(), polls.begin(other).unwrap()];
        drop((again, _second));
        let waiting = polls.waiting.lock();
        assert_eq!((waiting.total, waiting.devices.len()), (0, 0));
    }
}
