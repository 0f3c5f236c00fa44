//! Sources of samples that several drivers have: counters of servers over HTTP.

mod elasticsearch;
mod nginx;
mod prometheus;

pub(crate) use elasticsearch::Elasticsearch;
pub(crate) use nginx::{Nginx, PollCount, StubStatus};
pub(crate) use prometheus::Prometheus;
