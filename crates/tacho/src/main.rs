//! The `tacho` binary.
mod config;
fn main() {}
