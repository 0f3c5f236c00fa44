//! Bytes of parts and their cost: `cargo bench -p store-local --bench part_bytes [-- CASE]`.
//!
//! First each kind of column in each encoding: bytes, nanoseconds to encode and compress, and nanoseconds to decompress and
//! decode with the decoders of the `parquet` crate. Then whole workloads, each flushed into one part: bytes per column and
//! point, nanoseconds of the flush per row, and microseconds to read one series. docs/adr/0007-encodings-by-measurement.md
//! has the results.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark prints and may panic")]
#![allow(dead_code, unused_imports, unreachable_pub, reason = "the encoders are compiled into the benchmark")]

#[path = "../src/codec.rs"]
mod codec;
#[path = "part_bytes/columns.rs"]
mod columns;
#[path = "../src/part/encode/mod.rs"]
mod encode;
#[path = "part_bytes/workloads.rs"]
mod workloads;

fn main() {
    let case = std::env::args().skip(1).find(|argument| !argument.starts_with("--")).unwrap_or_default();
    if case.is_empty() || case == "columns" {
        columns::run();
    }
    workloads::run(&case);
}
