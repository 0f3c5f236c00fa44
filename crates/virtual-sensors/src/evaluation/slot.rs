//! The place of a sensor in the engine: the sensor, unless it has a turn, and what waits for it.

use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::time::Duration;

use super::inbox::Inbox;
use super::running::Running;

/// The place of a sensor.
pub(super) struct Slot {
    /// The sensor; absent while it has a turn.
    running: Option<Box<Running>>,
    pub(super) inbox: Inbox,
    /// Whether its clock is to be looked at.
    pub(super) is_tick_due: bool,
    /// Whether it is among the sensors that are ready for a turn.
    pub(super) is_listed: bool,
    /// Whether its last turn left something.
    pub(super) is_behind: bool,
    /// Whether a checkpoint passed while it had a turn.
    pub(super) owes_checkpoint: bool,
}

impl Slot {
    /// The place of a sensor that begins.
    pub(super) fn new(running: Running, total: &Arc<AtomicUsize>) -> Self {
        Self {
            running: Some(Box::new(running)),
            inbox: Inbox::of_start(total),
            is_tick_due: false,
            is_listed: false,
            is_behind: false,
            owes_checkpoint: false,
        }
    }

    /// The sensor, unless it has a turn.
    pub(super) fn home(&self) -> Option<&Running> {
        self.running.as_deref()
    }

    /// The sensor, unless it has a turn.
    pub(super) fn home_mut(&mut self) -> Option<&mut Running> {
        self.running.as_deref_mut()
    }

    /// Takes the sensor for a turn.
    pub(super) fn take(&mut self) -> Option<Box<Running>> {
        self.running.take()
    }

    /// The sensor comes back without its turn.
    pub(super) fn give_back(&mut self, running: Box<Running>, inbox: Inbox) {
        self.is_tick_due |= inbox.is_empty();
        self.inbox.put_back(inbox);
        self.running = Some(running);
    }

    /// The sensor comes back from a turn, with what it has left.
    pub(super) fn put_back(&mut self, mut running: Box<Running>, rest: Inbox, took: Duration) {
        self.is_behind = !rest.is_empty();
        self.inbox.put_back(rest);
        running.pace.after_turn(took);
        self.running = Some(running);
    }

    /// Whether it has something to do.
    pub(super) fn has_work(&self) -> bool {
        self.is_tick_due || !self.inbox.is_empty()
    }
}
