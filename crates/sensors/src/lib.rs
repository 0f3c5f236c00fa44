//! Alarm rules, which say what a device profile says about alarms, and virtual sensors, which compute streams from streams.
//!
//! This crate is pure: it does no I/O, starts no thread and reads no clock. The caller brings values, events and times, and
//! stores what comes out.

pub mod alarm_rules;
pub mod predicate;
pub mod virtual_sensors;
