//! Exporters: each sends the durable rows of a sensor to something outside, at least once.
//!
//! An exporter follows the output of its sensor (`crate::follower`). The sensor computes without it: a target that is gone or slow holds
//! up nothing but the exporter itself.

mod limits;
mod manager;
mod mqtt;
mod row;
mod webhook;

pub(crate) use manager::manage;
