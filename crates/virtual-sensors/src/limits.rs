//! Bounds of virtual sensors in the server.

use std::time::Duration;

/// Files of sensors that the server reads from its directory; the first ones by their names.
pub const SENSOR_FILES_MAX: usize = 20_000;
/// Devices that one sensor reads. Further ones are not read, and are counted.
pub const DEVICES_PER_SENSOR_MAX: usize = 10_000;
/// Different fields that all sensors read. A sensor that needs more is refused.
pub const FIELDS_READ_MAX: usize = 60_000;
/// Values that the classes SMACleaner and DataClean remember: they are stored with each checkpoint.
pub const CLASS_VALUES_MAX: usize = 10_000;
/// Rows of the output with one time in milliseconds. They are a microsecond apart.
pub const ROWS_OF_ONE_TIME_MAX: i64 = 1_000;
/// Characters of a fault that is shown.
pub const FAULT_CHARACTERS_MAX: usize = 500;

/// How long a sensor evaluates until it is the turn of the next one. An evaluation that has begun ends first.
pub const TURN_BUDGET: Duration = Duration::from_millis(50);
/// How long a turn of the light lane runs until the next one begins beside it.
pub(super) const TURN_OVERDUE: Duration = Duration::from_millis(100);
/// Turns of sensors with long evaluations that run at once.
pub const HEAVY_TURNS_AT_ONCE: usize = 2;
/// Threads for turns: the light lane has one, the heavy lane its own, and the rest is for turns that have turned out to be long.
pub const TURN_THREADS_MAX: usize = 8;
/// Turns within the budget until a sensor with long evaluations comes back to the light lane.
pub(super) const LIGHT_TURNS_MIN: u32 = 16;
/// How long the end of the server waits for turns that run. They look several times in a second whether it ends.
pub(super) const STOP_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of rows that wait for one sensor. The store keeps them, and gives those that find no room.
pub const INBOX_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of rows that wait for all sensors, beside those in the tap.
pub const INBOXES_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Time between two looks at the directory.
pub(super) const DIRECTORY_INTERVAL: Duration = Duration::from_secs(1);
/// Time between two checkpoints of a sensor that evaluates.
pub(super) const CHECKPOINT_INTERVAL: Duration = Duration::from_secs(5);
/// Bytes of records after which a checkpoint commits. One more record with its cursors fits the batch of the key-value store.
pub(super) const CHECKPOINT_BATCH_BYTES: usize = 4 * 1024 * 1024;
/// Time between two looks at slides in time that are due without an element.
pub(super) const TICK_INTERVAL: Duration = Duration::from_millis(200);
/// Time between two updates of what callers see of sensors.
pub(super) const PUBLISH_INTERVAL: Duration = Duration::from_millis(200);
/// Time between two attempts of an append or a commit that finds the store busy.
pub(super) const BUSY_PAUSE: Duration = Duration::from_millis(10);
/// Time between two looks at a store whose writes are not durable yet.
pub(super) const DURABLE_PAUSE: Duration = Duration::from_millis(1);
/// How long a slide in time waits for elements on their way, in milliseconds, without a lateness.
pub(super) const TICK_DELAY_MS: i64 = 2_000;
/// Slides in time that one pass makes for a sensor without an element.
pub(super) const SLIDES_PER_TURN_MAX: usize = 1_000;
/// Rows that are read again from the store at once: of all devices of a sensor together.
pub(super) const REREAD_ROWS_MAX: usize = 100_000;
/// Rows of one device that are read first. Each further read is of twice as many.
pub(super) const REREAD_ROWS_FIRST: usize = 1_000;
/// Least rows that are read again at once of one device.
pub(super) const REREAD_ROWS_PER_DEVICE_MIN: usize = 16;
/// Rows of the output beyond a `history-size` in rows before the oldest are deleted; a tenth of the count if that is more.
pub(super) const HISTORY_ROWS_OVER_MIN: usize = 100;
/// Ranges of time that a follower reads again. Further ones are merged with their neighbours.
pub(super) const FOLLOWER_RANGES_MAX: usize = 64;
/// Bytes of rows that a follower gets at once.
pub(super) const FOLLOWER_BYTES_AT_ONCE: usize = 4 * 1024 * 1024;
/// Rows that are counted when a follower begins. What is beyond is not shown as behind.
pub(super) const FOLLOWER_COUNT_MAX: usize = 1_000_000;
/// Rows of the output that are appended at once.
pub(super) const ROWS_PER_APPEND_MAX: usize = 10_000;
/// Elements that another server has pushed to a source and that wait to be stored. Each has at most the bytes of a form.
pub const PUSHED_WAITING_MAX: usize = 16;
/// How long a pushed element waits until it is durable. Then the other server must push it again.
pub const PUSH_TAKE_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);
