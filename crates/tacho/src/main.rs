//! The `tacho` binary.
fn main() {}
