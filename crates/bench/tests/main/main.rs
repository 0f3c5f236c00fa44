//! The load runner against servers that do as little as possible.

mod acker;
mod generator;
mod scenarios;
