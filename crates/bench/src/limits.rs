//! Every limit of the load runner, with the reason for its value.

/// Bytes read from one connection per readiness event. 64 acknowledgements of MQTT 3.1.1 are 256 bytes, so one read
/// empties a socket in every workload; a longer backlog is reported ready again.
pub(crate) const READ_BYTES: usize = 32 * 1024;
/// Longest packet a server may send us. CONNACK, PUBACK, PINGRESP and DISCONNECT are small; v5 reason strings are the
/// only text in them.
pub(crate) const PACKET_BYTES_MAX: usize = 64 * 1024;
/// Messages one connection may have sent and not seen acknowledged; packet identifiers end at 65,535. What is due
/// above it waits in the connection's queue, and its waiting counts as latency.
pub(crate) const IN_FLIGHT_MAX: usize = 32_768;
/// Readiness events taken per turn of the loop.
pub(crate) const EVENTS_PER_TURN: usize = 1_024;
/// Scheduled messages of a load sent before answers are looked at again, and of all loads sent between the answers of one turn:
/// with more, a generator that is behind would only send.
pub(crate) const SENDS_PER_POLL: usize = 512;
/// Longest time answers of an open loop wait in the kernel, whose stamps say when they came, before they are read: some five
/// share a turn at 10,000 messages a second, and a lost connection is still noticed within a millisecond.
pub(crate) const ANSWERS_HELD_MAX_US: u64 = 500;
/// The same where operations come due at ticks of a timer: answers are read at each, but a lost connection is still noticed
/// within so long.
pub(crate) const ANSWERS_HELD_TICK_MAX_US: u64 = 10_000;
/// Longest period of a timer whose ticks operations follow: above it they are better written as steps.
pub(crate) const TIMER_US_MAX: u32 = 1_000_000;
/// Longest time before an operation for which a generator thread may look at its sockets instead of sleeping: beyond it a processor
/// is taken for nothing.
pub(crate) const BUSY_POLL_US_MAX: u32 = 10_000;
/// Operations per second that can be asked for: a schedule counts nanoseconds.
pub(crate) const RATE_MAX: f64 = 1e9;
/// Size of data as a share of the original: counts of keys and rows keep room in 64 bits.
pub(crate) const SCALE_MAX: f64 = 1e6;
/// Steps of a phase: each has a result of its own, and a staircase has nearly twice as many.
pub(crate) const STEPS_MAX: u32 = 1_000;
/// Share of the answers that may meet another of their connection while they wait: those read together count from the last.
pub(crate) const ANSWERS_SHARING_MAX: f64 = 0.01;
/// Connections in their handshake at one time, below the accept backlog of 100 that mosquitto and others use, so
/// that no SYN is dropped and repeated by the kernel only a second later.
pub(crate) const HANDSHAKES_MAX: usize = 64;
/// Pause of a connection in a closed loop after a failure, before it is opened again: a server that refuses is not to be
/// asked as fast as the generator can.
pub(crate) const REOPEN_PAUSE_MS: u64 = 100;
/// Longest time of one handshake, TCP connect to CONNACK.
pub(crate) const HANDSHAKE_TIMEOUT_S: u64 = 10;
/// Longest wait for outstanding acknowledgements after the last scheduled message.
pub(crate) const DRAIN_TIMEOUT_S: u64 = 10;
/// Longest sleep of the generator loop; bounds how late a timeout or a stop is noticed.
pub(crate) const LOOP_SLEEP_MAX_MS: u64 = 100;
/// Longest time a freshly started server may take to print `ready`.
pub(crate) const SERVER_READY_TIMEOUT_S: u64 = 60;
/// Longest time a server may take to end after SIGTERM.
pub(crate) const SERVER_STOP_TIMEOUT_S: u64 = 60;
/// Lines of a started server's output kept for an error message.
pub(crate) const SERVER_OUTPUT_LINES: usize = 40;
/// Open files this process needs besides its connections: standard streams, epoll, HTTP, result files.
pub(crate) const OTHER_FILES: u64 = 64;
/// Longest latency a histogram holds, one hour in microseconds; longer ones count as one hour.
pub(crate) const LATENCY_US_MAX: u64 = 3_600_000_000;
/// Rows asked for per page when history is read back.
pub(crate) const READ_BACK_ROWS: usize = 100_000;
/// HTTP connections used to read back and verify.
pub(crate) const VERIFY_THREADS: usize = 4;
/// Longest body of an HTTP answer: 100,000 rows of some 50 bytes, four keys, and room.
pub(crate) const HTTP_BODY_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Data of a key of the HTTP driver: it is made for each request that has it.
pub(crate) const HTTP_DATA_BYTES_MAX: usize = 1024 * 1024;
/// Bodies of all requests that a group of connections may have in flight: they lie in memory until the server takes them.
pub(crate) const HTTP_BODIES_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// Different error texts a run keeps; a server that puts something new into each would fill the memory.
pub(crate) const ERROR_TEXTS_MAX: usize = 100;
/// Longest silence of a server with operations outstanding before a run gives it up: longer than any pause of a store that
/// goes on living, such as a full garbage collection or a failover.
pub(crate) const SILENCE_TIMEOUT_S: u64 = 30;
/// A slice of a comparison: shorter, and beginning and end are most of it; longer, and what disturbs a machine meanwhile is no
/// longer the same for both sides.
pub(crate) const SLICE_MS: std::ops::RangeInclusive<u32> = 5..=10_000;
/// Threads of the thread engine, one per connection: each costs a stack and the kernel's attention.
pub(crate) const THREADS_MAX: u32 = 8_192;
/// Stack of such a thread; a blocking client needs little.
pub(crate) const THREAD_STACK_BYTES: usize = 256 * 1024;
/// Recorders the threads share: a handful keeps them from waiting for each other, more would only take memory.
pub(crate) const RECORDERS_MAX: usize = 8;
/// Sends whose times a recorder keeps, 64 KiB: enough for the test of arrivals, whose answer hardly changes with more.
pub(crate) const SENDS_KEPT_MAX: usize = 4_096;
/// Devices of a ledger: each has a thread, and all their points are read back after each kill.
pub(crate) const LEDGER_DEVICES_MAX: u32 = 1_000;
/// Series of telemetry that are kept: a server with more metrics than that would make results too large to keep.
pub(crate) const TELEMETRY_SERIES_MAX: usize = 2_000;
/// Threads of a process whose context switches are added up each second.
pub(crate) const THREADS_READ_MAX: usize = 1_024;
/// Addresses to connect from: with the ports of Linux by default they carry a hundred million connections.
pub(crate) const SOURCES_MAX: u32 = 4_096;
/// Attempts to connect after which failures can be called sustained, and how many of them must have failed.
pub(crate) const SUSTAINED_LAST: u32 = 100;
/// See [`SUSTAINED_LAST`].
pub(crate) const SUSTAINED_FAILURES: u32 = 50;
/// Requests per second with which a sample of idle connections is asked: it is not to be a load of its own.
pub(crate) const PROBES_PER_S_MAX: f64 = 1_000.0;
