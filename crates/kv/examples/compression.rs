//! Bytes on disk and time of a processor for records as the server has them, without compression and with LZ4 (decision 30 in
//! `docs/adr`).
//!
//! ```text
//! cargo run --package kv --example compression -- /tmp/compression
//! for block in 4 16; do for level in 1 3; do zstd -b$level -B${block}K /tmp/compression/attributes.records; done; done
//! ```
//!
//! The records of each kind are also written to a file, in the order of their keys, so that other programs can compress the same
//! bytes in blocks of the same size.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a program to be run by hand")]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use fjall::config::{BlockSizePolicy, CompressionPolicy};
use fjall::{CompressionType, Database, KeyspaceCreateOptions};

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

const DEVICES: u64 = 20_000;
const MESSAGES: u64 = 200_000;
const MEMTABLE_BYTES: usize = 8 << 20;

fn main() {
    let directory = std::env::args().nth(1).expect("usage: compression DIRECTORY");
    let directory = Path::new(&directory);
    fs::create_dir_all(directory).unwrap();
    println!("kind        records  bytes       block  compression  table bytes  ratio  write s  scan s");
    for (kind, records) in [("attributes", attributes()), ("queue", queue())] {
        let plain: Vec<u8> =
            records.iter().flat_map(|(key, value)| key.iter().chain(value)).copied().collect();
        fs::write(directory.join(format!("{kind}.records")), &plain).unwrap();
        for block_kib in [4, 16] {
            for (name, compression) in [("none", CompressionType::None), ("lz4", CompressionType::Lz4)] {
                let place = directory.join("database");
                drop(fs::remove_dir_all(&place));
                let (bytes, write_s, scan_s) = measure(&place, &records, block_kib << 10, compression);
                println!(
                    "{kind:10} {:8}  {:10}  {block_kib:2} KiB  {name:11}  {bytes:11}  {:.3}  {write_s:7.2} {scan_s:7.2}",
                    records.len(),
                    plain.len(),
                    bytes as f64 / plain.len() as f64,
                );
            }
        }
    }
}

/// Bytes of the tables after a full merge, seconds of a processor to write and merge, and to read all.
fn measure(
    place: &Path,
    records: &Records,
    block_bytes: u32,
    compression: CompressionType,
) -> (u64, f64, f64) {
    let database = Database::builder(place).manual_journal_persist(true).worker_threads(1).open().unwrap();
    let options = || {
        KeyspaceCreateOptions::default()
            // A full memtable queues a message for each write, and a full queue stops fjall's thread for ever.
            .max_memtable_size(u64::MAX)
            .data_block_size_policy(BlockSizePolicy::all(block_bytes))
            .data_block_compression_policy(CompressionPolicy::all(compression))
    };
    let keyspace = database.keyspace("records", options).unwrap();
    let began = cpu_s();
    // Not in the order of the keys, as records come from many devices.
    let all: Vec<_> = records.iter().collect();
    let mut memory_bytes = 0;
    for number in 0..all.len() {
        let (key, value) = all[number * 7_919 % all.len()];
        keyspace.insert(key.as_slice(), value.as_slice()).unwrap();
        memory_bytes += key.len() + value.len();
        if memory_bytes >= MEMTABLE_BYTES {
            keyspace.rotate_memtable_and_wait().unwrap();
            memory_bytes = 0;
        }
    }
    keyspace.rotate_memtable_and_wait().unwrap();
    keyspace.major_compact().unwrap();
    let write_s = cpu_s() - began;
    let bytes = keyspace.disk_space();
    drop((keyspace, database));
    let database = Database::builder(place).cache_size(1 << 20).open().unwrap();
    let keyspace = database.keyspace("records", options).unwrap();
    let began = cpu_s();
    assert_eq!(keyspace.iter().filter_map(|record| record.into_inner().ok()).count(), records.len());
    (bytes, write_s, cpu_s() - began)
}

/// Seconds that this process has had a processor.
fn cpu_s() -> f64 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    // The fields 14 and 15, in ticks of 10 ms; the first one here is field 3.
    (fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap()) / 100.0
}

/// Attributes of devices: documents of 200 to 2,000 bytes.
fn attributes() -> Records {
    let mut random = numbers(1);
    let models = ["TX-200", "TX-210", "GW-7", "Meter 3P", "Pump PX4"];
    let states = ["idle", "running", "charging", "fault", "maintenance"];
    let mut records = Records::new();
    for device in 0..DEVICES {
        let mut text = format!(
            "{{\"lastUpdateTs\":{},\"serialNumber\":\"SN-{:010}\",\"model\":\"{}\",\"firmwareVersion\":\"{}.{}.{}\",\"state\":\"{}\",\"latitude\":{:.6},\"longitude\":{:.6}",
            1_795_000_000_000 + random() % 9_000_000_000,
            random() % 10_000_000_000,
            models[random() as usize % models.len()],
            random() % 4,
            random() % 20,
            random() % 100,
            states[random() as usize % states.len()],
            45.0 + (random() % 10_000_000) as f64 / 1e6,
            5.0 + (random() % 10_000_000) as f64 / 1e6,
        );
        // Documents are small or large: 0 to 40 settings.
        for setting in 0..random() % 41 {
            write!(
                text,
                ",\"setting{setting:02}\":{{\"value\":{:.2},\"ok\":{}}}",
                (random() % 100_000) as f64 / 100.0,
                random() % 8 != 0
            )
            .unwrap();
        }
        text.push('}');
        let key = [&id(random(), device)[..], b"\0shared\0attributes"].concat();
        records.insert(key, text.into_bytes());
    }
    records
}

/// Queued messages of sessions: a head of 24 bytes, a topic, and a payload of about 100 bytes.
fn queue() -> Records {
    let mut random = numbers(2);
    let mut records = Records::new();
    for message in 0..MESSAGES {
        let session = format!("client-{:05}", message % 500);
        let key = [session.as_bytes(), b"\0", &(message / 500).to_be_bytes()].concat();
        let mut value = [
            message.to_be_bytes(),
            (1_795_000_000_000 + message * 3).to_be_bytes(),
            [1, 0, 0, 0, 0, 0, 0, 0],
        ]
        .concat();
        value.extend(format!("plant/line{}/machine{:04}/telemetry", random() % 8, random() % 2_000).bytes());
        value.extend(
            format!(
                "{{\"ts\":{},\"temperature\":{:.2},\"pressure\":{:.3},\"rpm\":{},\"vibration\":{:.4},\"status\":\"ok\"}}",
                1_795_000_000_000 + message * 3 + random() % 1_000,
                15.0 + (random() % 6_000) as f64 / 100.0,
                0.9 + (random() % 300) as f64 / 1e3,
                random() % 4_000,
                (random() % 10_000) as f64 / 1e4,
            )
            .bytes(),
        );
        records.insert(key, value);
    }
    records
}

/// An identifier of 16 bytes.
fn id(random: u64, number: u64) -> [u8; 16] {
    let mut id = [0; 16];
    id[..8].copy_from_slice(&random.to_be_bytes());
    id[8..].copy_from_slice(&(random ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_be_bytes());
    id
}

/// The numbers of xorshift.
fn numbers(seed: u64) -> impl FnMut() -> u64 {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    }
}
