//! How long the turns of a sensor take, and the lane that follows from it.

use std::time::Duration;

use super::lanes::Lane;
use crate::limits::{LIGHT_TURNS_MIN, TURN_BUDGET};

/// How long the turns of a sensor take.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Pace {
    is_heavy: bool,
    /// Turns within the budget since the last one that was longer.
    short_turns: u32,
    /// Turns that took longer than twice the budget: one evaluation alone took longer than the budget.
    pub(super) turns_over_budget: u64,
}

impl Pace {
    /// The lane of the next turn.
    pub(super) fn lane(self) -> Lane {
        if self.is_heavy { Lane::Heavy } else { Lane::Light }
    }

    /// A turn has ended.
    pub(super) fn after_turn(&mut self, took: Duration) {
        if took > 2 * TURN_BUDGET {
            self.turns_over_budget += 1;
            (self.is_heavy, self.short_turns) = (true, 0);
            return;
        }
        self.short_turns = self.short_turns.saturating_add(1);
        self.is_heavy &= self.short_turns < LIGHT_TURNS_MIN;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_turn_makes_a_sensor_heavy_until_many_were_short() {
        let mut pace = Pace::default();
        pace.after_turn(TURN_BUDGET + TURN_BUDGET / 2);
        assert_eq!((pace.lane(), pace.turns_over_budget), (Lane::Light, 0));
        pace.after_turn(3 * TURN_BUDGET);
        assert_eq!((pace.lane(), pace.turns_over_budget), (Lane::Heavy, 1));
        for _ in 1..LIGHT_TURNS_MIN {
            pace.after_turn(Duration::ZERO);
            assert_eq!(pace.lane(), Lane::Heavy);
        }
        pace.after_turn(Duration::ZERO);
        assert_eq!((pace.lane(), pace.turns_over_budget), (Lane::Light, 1));
    }
}
