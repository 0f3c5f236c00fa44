//! Bounds of the evaluation of alarm rules.

use std::time::Duration;

/// Time between two checkpoints of the evaluation.
pub(super) const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(5);
/// Time between two checkpoints of an evaluation that has nothing to do, in microseconds.
pub(super) const IDLE_CHECKPOINT_US: i64 = 600_000_000;
/// How far before the last checkpoint rows are read again after a start, in microseconds. It covers the time that a row takes to
/// become durable, and devices whose clocks are late or that send late points.
pub(super) const REREAD_SLACK_US: i64 = 60_000_000;
/// Rows that are evaluated before their transitions are committed.
pub(super) const ROWS_PER_COMMIT_MAX: usize = 10_000;
/// Bytes of rows that are read again before they are evaluated.
pub(super) const REREAD_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Transitions of one commit.
pub(super) const TRANSITIONS_PER_COMMIT_MAX: usize = 1_000;
/// States of one commit of a checkpoint.
pub(super) const STATES_PER_COMMIT_MAX: usize = 1_000;
/// Notices of alarms that users have ended, and that wait for the engine. Above it the engine compares all its states.
pub(super) const ENDED_WAITING_MAX: usize = 10_000;
/// Time between two attempts of a commit that finds the store busy.
pub(super) const BUSY_PAUSE: Duration = Duration::from_millis(20);
/// Time between two looks at a store whose writes are not durable yet.
pub(super) const DURABLE_PAUSE: Duration = Duration::from_millis(1);
