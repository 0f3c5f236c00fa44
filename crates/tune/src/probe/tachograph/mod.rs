//! The probe of our own server: `/api/status` and `/metrics`.

mod metrics;
mod probe;

pub(super) use probe::connect;
