//! What follows the ends of sessions of the broker. The first worker does a part of it in each pass.

use std::time::Instant;

use hub::clock::system_now;

use super::super::limits;
use super::event_loop::Worker;

impl Worker {
    /// Does the next steps.
    pub(super) fn follow_ended_sessions(&mut self) {
        if self.index != 0 {
            return;
        }
        self.confirm_dead_letters();
        while self.has_ended_sessions() && self.pass_began.elapsed() < limits::ENDED_SESSIONS_PACE {
            match self.state.hub.broker().redistribute(system_now().micros() / 1_000) {
                Ok(redistributed) => {
                    self.dropped.extend(redistributed.dropped);
                    self.ended.unconfirmed = redistributed.unconfirmed;
                }
                Err(error) => {
                    self.ended.paused_until = Some(self.pass_began + limits::ENDED_SESSIONS_PAUSE);
                    if !error.is_busy() {
                        tracing::error!(%error, "messages of ended sessions wait: they cannot be given to others");
                    }
                }
            }
        }
    }

    /// Whether a step can be done now.
    pub(super) fn has_ended_sessions(&self) -> bool {
        self.index == 0
            && !self.ended.await_store()
            && self.ended.paused_until.is_none_or(|until| until <= Instant::now())
            && self.state.hub.broker().has_ended_sessions()
    }

    /// Confirms dead letters that the store has made durable.
    pub(super) fn confirm_dead_letters(&mut self) {
        let in_store = self.dropped.is_empty() && self.dead_letters.is_empty();
        let last = self.ended.dead_letters.map_or(0, |dead_letters| dead_letters.last);
        if !self.ended.await_store() || !in_store || self.state.hub.progress().durable < last {
            return;
        }
        let lost = self.ended.dead_letters.and_then(|dead_letters| self.state.hub.late_failure(dead_letters));
        if let Some(error) = lost {
            tracing::error!(%error, "dead letters of an ended session are lost; the next start of the server stores them again");
            self.ended.unconfirmed = None;
        }
        if let Err(error) = self.state.hub.broker().confirm(&mut self.ended.unconfirmed)
            && !error.is_busy()
        {
            tracing::error!(%error, "stored dead letters cannot be deleted; the next start of the server stores them again");
            self.ended.unconfirmed = None;
        }
    }
}
