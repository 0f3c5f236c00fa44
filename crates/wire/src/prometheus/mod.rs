//! Prometheus remote write 1.0: a `WriteRequest` of protocol buffers in the block format of snappy, both directions.
//!
//! Sources of the format: "Prometheus Remote-Write 1.0 specification" and the messages `WriteRequest`, `TimeSeries`, `Label` and
//! `Sample` of `prompb` in Prometheus:
//!
//! ```text
//! WriteRequest  1: repeated TimeSeries    3: repeated MetricMetadata
//! TimeSeries    1: repeated Label         2: repeated Sample    3: repeated Exemplar    4: repeated Histogram
//! Label         1: string name            2: string value
//! Sample        1: double value           2: int64 milliseconds
//! ```
//!
//! The reader borrows from the unpacked bytes. It skips metadata, exemplars and fields that it does not know, and counts native
//! histograms, which hold no single value.

mod encode;
mod error;
mod limits;
mod proto;
mod read;
mod snappy;

#[cfg(test)]
mod tests;

pub use encode::{end_series, push_label, push_sample, start_series};
pub use error::PrometheusError;
pub use limits::REQUEST_BYTES_MAX;
pub use read::{Labels, Sample, TimeSeries, WriteRequest, is_stale_marker};
pub use snappy::{pack, unpack};

/// The label with the name of the metric.
pub const NAME_LABEL: &str = "__name__";
