//! Alarm rules: what a device profile says about alarms, and its evaluation on the values of one device.
//!
//! This crate is pure: it does no I/O, starts no thread and reads no clock. The caller brings values, events and times, and
//! stores what comes out.

pub mod alarm_rules;
