//! Bounds of GSN's interfaces. A request also has the limits of a statement: `[query]` of the configuration.

/// Bytes of a form. GSN's own page sends some hundred for each sensor.
pub(super) const FORM_BYTES_MAX: usize = 64 * 1024;
/// Sensors that one request may read.
pub(super) const SENSORS_MAX: usize = 1_000;
/// Conditions of one request.
pub(super) const CONDITIONS_MAX: usize = 100;
/// Bytes of text after which a piece of an answer is sent.
pub(super) const PIECE_BYTES: usize = 256 * 1024;
/// Values of one sensor above which `sample=true` takes some of them, divided by the number of fields. GSN's own bound.
pub(super) const SAMPLED_VALUES_MIN: u64 = 20_000;
/// Rows that a stream reads at once.
pub(super) const STREAM_PAGE_ROWS: usize = 1_000;
/// A stream without rows sends an element after this time, so that its client knows that it lives. GSN's own time.
pub(super) const STREAM_KEEP_ALIVE: std::time::Duration = std::time::Duration::from_secs(15);
/// Subscriptions to which a door sends elements (push).
pub(super) const PUSHES_MAX: usize = 1_000;
/// Those of one client's address.
pub(super) const PUSHES_PER_PEER_MAX: usize = 100;
/// Ports at which a client takes elements without an entry in the list of targets: HTTP, Tachograph, and containers of GSN.
pub(super) const PUSH_PORTS: [std::ops::RangeInclusive<u16>; 3] = [80..=80, 8_080..=8_080, 22_001..=22_100];
/// The longest time from the connection to the answer to an element.
pub(super) const PUSH_ANSWER_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);
/// The longest answer to an element. GSN's has a page of HTML at most.
pub(super) const PUSH_ANSWER_BYTES_MAX: usize = 64 * 1024;
/// The first pause before an element is sent again to a client that did not answer. It doubles up to the longest one.
pub(super) const PUSH_RETRY_PAUSE: std::time::Duration = std::time::Duration::from_millis(100);
/// The longest pause.
pub(super) const PUSH_RETRY_PAUSE_MAX: std::time::Duration = std::time::Duration::from_secs(5);
/// A client that has not answered for this time is sent nothing any more.
pub(super) const PUSH_RETRY_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(60);
