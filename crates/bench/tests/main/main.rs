//! The generator against a server that does as little as possible.

mod acker;
mod generator;
