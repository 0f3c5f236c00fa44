//! Every limit of the load engine, with the reason for its value.

/// The bytes read from one connection per readiness event. 64 MQTT acknowledgements 3.1.1 are 256 bytes, so one read
/// empties a socket in every workload. The poller reports a longer backlog again.
pub const READ_BYTES: usize = 32 * 1024;
/// The largest number of unacknowledged messages of one connection; packet identifiers end at 65,535. Further messages
/// wait in the connection's queue, and their wait counts as latency.
pub const IN_FLIGHT_MAX: usize = 32_768;
/// The readiness events taken per poll.
pub(crate) const EVENTS_PER_POLL: usize = 1_024;
/// The largest number of messages of a load that are sent before answers are read again, and of all loads between the
/// answers of one poll. With more, a generator that is late would only send.
pub(crate) const SENDS_PER_POLL: usize = 512;
/// The longest time for which answers of an open loop wait in the kernel, which stamps them. At 10,000 messages per
/// second some five share a poll, and a lost connection is still noticed within a millisecond.
pub(crate) const ANSWERS_DEFERRED_MAX_US: u64 = 500;
/// The same for operations at ticks of a timer: answers are read at each tick, but a lost connection is still noticed
/// within this time.
pub(crate) const ANSWERS_DEFERRED_TICK_MAX_US: u64 = 10_000;
/// The longest period of a timer for operations. Longer periods are better written as steps.
pub(crate) const TIMER_US_MAX: u32 = 1_000_000;
/// The longest time before an operation during which a generator thread may poll instead of sleeping. A longer one
/// wastes a processor.
pub(crate) const BUSY_POLL_US_MAX: u32 = 10_000;
/// The largest rate, operations per second: a schedule counts nanoseconds.
pub const RATE_MAX: f64 = 1e9;
/// The largest size of data as a share of the original, so that counts of keys and rows fit into 64 bits.
pub(crate) const SCALE_MAX: f64 = 1e6;
/// The largest number of steps of a phase. Each has its own result, and a staircase has nearly twice as many.
pub(crate) const STEPS_MAX: u32 = 1_000;
/// The largest share of answers that may wait together with another one of their connection, because answers that are
/// read together get the time of the last.
pub(crate) const ANSWERS_SHARING_MAX: f64 = 0.01;
/// The largest number of concurrent handshakes. It is below the accept backlog of 100 that mosquitto and others use, so
/// that no SYN is dropped and sent again a second later.
pub const HANDSHAKES_MAX: usize = 64;
/// The pause of a connection in a closed loop after a failure, so that the generator does not flood a server that
/// refuses.
pub(crate) const REOPEN_PAUSE_MS: u64 = 100;
/// The longest handshake, from TCP connect to CONNACK.
pub const HANDSHAKE_TIMEOUT_S: u64 = 10;
/// The longest wait for outstanding acknowledgements after the last scheduled message.
pub(crate) const DRAIN_TIMEOUT_S: u64 = 10;
/// The time after the last delivery of a load in which the generator looks for messages that come twice.
pub(crate) const DUPLICATES_AWAITED_MS: u64 = 100;
/// The longest sleep of the generator loop. It limits the delay of a timeout or a stop.
pub const LOOP_SLEEP_MAX_MS: u64 = 100;
/// The open files of this process besides its connections: standard streams, epoll, HTTP, result files.
pub(crate) const OTHER_FILES: u64 = 64;
/// The largest latency of a histogram, one hour in microseconds. Longer ones count as one hour.
pub(crate) const LATENCY_US_MAX: u64 = 3_600_000_000;
/// The number of distinct error texts to keep. A server that puts a new detail into each could fill the memory.
pub const ERROR_TEXTS_MAX: usize = 100;
/// The largest number of threads of the thread engine, one per connection, each with its stack.
pub(crate) const THREADS_MAX: u32 = 8_192;
/// The stack of such a thread; a blocking client needs little.
pub(crate) const THREAD_STACK_BYTES: usize = 256 * 1024;
/// The number of recorders that the threads share. A handful avoids contention; more would only take memory.
pub(crate) const RECORDERS_MAX: usize = 8;
/// The sends whose times a recorder keeps, 64 KiB: enough for the test of arrivals, whose result hardly changes with
/// more.
pub(crate) const SENDS_KEPT_MAX: usize = 4_096;
/// The largest number of sampled series. More metrics would make results too large to keep.
pub(crate) const TELEMETRY_SERIES_MAX: usize = 2_000;
/// The largest number of threads of a process whose context switches are summed each second.
pub(crate) const THREADS_READ_MAX: usize = 1_024;
