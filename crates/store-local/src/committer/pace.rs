//! The interval between two commits.
//!
//! A sync costs as much CPU time as the messages of a hundred microseconds, so at medium rates fewer syncs are cheaper. But
//! clients that wait for each ack send nothing more until the sync, so waiting for them gains nothing. The committer tells
//! the two loads apart by the last commits: clients that wait for acks fill each commit with the same number of rows. So a
//! commit of many rows does not wait for the interval, if it has as many rows as each of the last commits.

/// Number of commits that are remembered.
const REMEMBERED: usize = 8;
/// Number of rows that are worth a sync of their own.
const ROWS_ENOUGH: u32 = 64;
/// Number of rows that are many times the cost of a sync. A commit with as many rows as each of the last ones, and at least this
/// number, begins before the interval is over.
const ROWS_MANY: u32 = 256;
/// While no commit has this many rows, a longer interval saves too little.
const ROWS_FEW: u32 = 16;
/// The longest interval, in intervals of the configuration.
const STRETCH: u64 = 2;
/// One commit in this many waits for more rows than the last ones had, to find out whether more arrive.
const PROBE: usize = 64;

/// The beginning of the last commit, and the rows of the last ones.
#[derive(Debug, Default)]
pub(super) struct Pace {
    began_us: Option<u64>,
    rows: [u32; REMEMBERED],
    commits: usize,
}

impl Pace {
    /// Notes that a commit of this many rows begins.
    pub(super) fn begin(&mut self, now_us: u64, rows: u32) {
        self.began_us = Some(now_us);
        self.rows[self.commits % REMEMBERED] = rows;
        self.commits = self.commits.wrapping_add(1);
    }

    /// When the last commit began.
    pub(super) fn began_us(&self) -> Option<u64> {
        self.began_us
    }

    /// What a commit of `pending` rows waits for, `passed_us` after the beginning of the last commit.
    pub(super) fn wait(&self, configured_us: u64, passed_us: u64, pending: u32) -> Wait {
        let most = self.rows.iter().copied().max().unwrap_or(0);
        let probes = self.commits.is_multiple_of(PROBE);
        if most >= ROWS_MANY && !probes {
            let interval_us = if pending >= most { 0 } else { configured_us };
            return Wait { interval_us, enough_rows: Some(most) };
        }
        let enough_rows = if probes { ROWS_ENOUGH } else { most.min(ROWS_ENOUGH) };
        match passed_us >= configured_us && most >= ROWS_FEW && pending < enough_rows {
            true => {
                Wait { interval_us: configured_us.saturating_mul(STRETCH), enough_rows: Some(enough_rows) }
            }
            false => Wait { interval_us: configured_us, enough_rows: None },
        }
    }
}

/// What a commit waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wait {
    /// It begins this long after the beginning of the last one,
    pub(super) interval_us: u64,
    /// or as soon as this many rows are pending.
    pub(super) enough_rows: Option<u32>,
}

#[cfg(test)]
mod tests {
    use super::*;

    const INTERVAL_US: u64 = 1_000;

    /// The mean interval when `arrived` gives the number of rows that arrive within a time after the beginning of a commit.
    fn mean_interval_us(arrived: impl Fn(u64) -> u32) -> u64 {
        let mut pace = Pace::default();
        let mut sum_us = 0;
        for round in 0..3 * PROBE as u64 {
            let ready = |passed_us: &u64| {
                let pending = arrived(*passed_us);
                let wait = pace.wait(INTERVAL_US, *passed_us, pending);
                *passed_us >= wait.interval_us || wait.enough_rows.is_some_and(|enough| pending >= enough)
            };
            let passed_us = (0..).step_by(10).find(ready).unwrap();
            pace.begin(0, arrived(passed_us));
            sum_us += if round < PROBE as u64 { 0 } else { passed_us };
        }
        sum_us / (2 * PROBE as u64)
    }

    #[test]
    fn a_steady_stream_of_some_rows_is_gathered_for_two_intervals() {
        assert!(mean_interval_us(|passed_us| (passed_us * 30 / 1_000) as u32) >= 1_900);
    }

    #[test]
    fn clients_that_wait_for_their_acks_are_not_kept_waiting_once_all_have_sent() {
        let after = |sent_us: u64| move |passed_us: u64| if passed_us >= sent_us { 32 } else { 20 };
        let nearly = |interval_us: u64| interval_us..interval_us + interval_us / 50;
        assert!(nearly(1_000).contains(&mean_interval_us(after(800))));
        assert!(nearly(1_200).contains(&mean_interval_us(after(1_200))));
        assert_eq!(mean_interval_us(|_| 1), 1_000);
    }

    #[test]
    fn few_rows_and_many_rows_keep_the_interval() {
        let steady = |per_ms: u64| move |passed_us: u64| (passed_us * per_ms / 1_000) as u32;
        assert_eq!(mean_interval_us(steady(7)), 1_000);
        assert_eq!(mean_interval_us(steady(64)), 1_000);
    }

    #[test]
    fn many_rows_of_clients_that_wait_are_committed_once_all_have_sent() {
        let mean_us = mean_interval_us(|passed_us| if passed_us >= 200 { 1_000 } else { 500 });
        assert!((200..230).contains(&mean_us), "{mean_us}");
    }

    #[test]
    fn a_stream_of_many_rows_keeps_the_interval() {
        assert!(mean_interval_us(|passed_us| passed_us as u32 / 2) >= 990);
    }

    #[test]
    fn a_commit_of_few_rows_never_begins_before_the_interval() {
        let mut pace = Pace::default();
        pace.begin(0, 60);
        let interval = Wait { interval_us: 1_000, enough_rows: None };
        assert_eq!(pace.wait(1_000, 0, 10), interval);
        assert_eq!(pace.wait(1_000, 999, 10), interval);
        assert_eq!(pace.wait(0, 0, 10).interval_us, 0);
    }
}
