//! Alarms.

mod changes;
mod comments;
mod rules;
mod searches;
