//! A server of known slowness. It speaks enough of RESP for the driver `redis`, and does a number of rounds of
//! arithmetic for each request. `scenarios/aa` starts two of them, one slower by a known share, and asks `tacho bench
//! ab` which one it is.
//!
//! The work is counted in rounds, not in microseconds, so that other processes slow it down like any server.

use std::hint::black_box;
use std::io::{Read as _, Write as _, stdout};
use std::net::{TcpListener, TcpStream};
use std::process::ExitCode;
use std::thread;

use clap::Parser;
use wire::resp::{Token, reply, token};

/// A server that answers after a known amount of work
#[derive(Debug, Clone, Copy, Parser)]
struct Line {
    /// Port on loopback; 0 for a free one. The port is printed.
    #[arg(long, default_value_t = 0)]
    port: u16,
    /// Rounds of arithmetic for each request but INFO, CONFIG and DBSIZE; one is about a nanosecond
    #[arg(long, default_value_t = 0)]
    work: u64,
}

fn main() -> ExitCode {
    let line = Line::parse();
    let listener = match TcpListener::bind(("127.0.0.1", line.port)) {
        Ok(listener) => listener,
        Err(error) => {
            eprintln!("error: port {}: {error}", line.port);
            return ExitCode::FAILURE;
        }
    };
    let told = listener.local_addr().and_then(|address| writeln!(stdout(), "{}", address.port()));
    if let Err(error) = told {
        eprintln!("error: the port cannot be told: {error}");
        return ExitCode::FAILURE;
    }
    for stream in listener.incoming().flatten() {
        thread::spawn(move || serve(stream, line.work));
    }
    ExitCode::SUCCESS
}

/// Answers until the client disconnects or violates RESP.
fn serve(mut stream: TcpStream, work: u64) {
    let _ = stream.set_nodelay(true);
    let (mut inbound, mut outbound) = (Vec::new(), Vec::new());
    let mut buffer = [0; 16 * 1024];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        inbound.extend_from_slice(&buffer[..count]);
        // A request is an array of strings, and so is an answer, so one parser reads both.
        loop {
            match reply(&inbound) {
                Ok(Some(found)) => {
                    answer(&inbound[..found.consumed], work, &mut outbound);
                    inbound.drain(..found.consumed);
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
        if stream.write_all(&outbound).is_err() {
            return;
        }
        outbound.clear();
    }
}

fn answer(request: &[u8], work: u64, out: &mut Vec<u8>) {
    let name = match token(request, 0).ok().flatten().and_then(|(_, length)| token(request, length).ok()?) {
        Some((Token::Bulk(name), _)) => name.to_ascii_uppercase(),
        _ => Vec::new(),
    };
    match name.as_slice() {
        // INFO contains the process id, so that CPU time per request is known.
        b"INFO" => {
            let text = format!("redis_version:answerer\r\nprocess_id:{}\r\n", std::process::id());
            out.extend_from_slice(format!("${}\r\n{text}\r\n", text.len()).as_bytes());
        }
        b"CONFIG" => out.extend_from_slice(b"*0\r\n"),
        b"DBSIZE" => out.extend_from_slice(b":0\r\n"),
        _ => {
            black_box(rounds(work));
            out.extend_from_slice(b"+OK\r\n");
        }
    }
}

/// Marsaglia's xorshift ("Xorshift RNGs", 2003): each round depends on the previous one.
fn rounds(count: u64) -> u64 {
    let mut state = black_box(0x9E37_79B9_7F4A_7C15_u64);
    for _ in 0..count {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
    }
    state
}
