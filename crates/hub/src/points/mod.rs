//! Rows of any series, sent by callers: the way in for the interfaces of InfluxDB, OpenTSDB and Prometheus.
//!
//! A door collects the rows of a request in [`Points`]: it adds each row with the bytes in which the request names its series.
//! A refused row makes no series. [`Hub::accept_points`](crate::Hub::accept_points) appends them, waits until they are durable, and names the items that it
//! refused. What is refused is kept in the table of dead letters.

mod accepted;
mod allowed;
mod collect;
mod dead_letters;
pub mod limits;
mod refusal;
mod series_cache;
mod series_finder;

pub use accepted::{AcceptError, Accepted, RefusedItem};
pub(crate) use allowed::without;
pub use collect::Points;
pub(crate) use collect::Rows;
pub use refusal::PointRefusal;
pub(crate) use series_cache::SeriesCache;
