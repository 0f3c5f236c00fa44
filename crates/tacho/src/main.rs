//! The `tacho` binary.
mod config;
mod fleet;
mod simulator;
fn main() {}
