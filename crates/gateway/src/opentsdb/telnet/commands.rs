//! The answers to commands that write nothing.

use std::fmt::Write;

use hub::clock::system_now;

use super::super::version::VERSION;
use crate::http::tools::state::HttpState;

/// The answer to `help`.
pub(super) const HELP: &str = "available commands: auth exit help put stats version\n";
/// The answer to a right login, as OpenTSDB gives it.
pub(super) const AUTH_SUCCESS: &str = "AUTH_SUCCESS\r\n";
/// The answer to a wrong login.
pub(super) const AUTH_FAIL: &str = "AUTH_FAIL\r\n";

/// The answer to `version`.
pub(super) fn version(state: &HttpState) -> String {
    format!("net.opentsdb {VERSION} is the interface of this server\nTachograph {}\n", state.options.version)
}

/// The answer to a command that this server does not do.
pub(super) fn absent(name: &str) -> String {
    let why = match name {
        "rollup" => "there are no rollups here; write raw points with put",
        "histogram" => "there are no histograms here; write numbers with put",
        "diediedie" => "a client cannot stop this server",
        _ => "there are no caches of names here",
    };
    format!("{name}: illegal argument: {why}\n")
}

/// The answer to `stats`: counters of this door in OpenTSDB's form.
pub(super) fn stats(state: &HttpState) -> String {
    let counters = state.hub.metrics().door(state.options.door);
    let now = system_now().millis() / 1_000;
    let lines = [
        ("connectionmgr.connections", "type=open", counters.connections.get().cast_unsigned()),
        ("connectionmgr.connections", "type=total", counters.connections_opened.get()),
        ("rpc.received", "type=put", counters.messages.get()),
        ("rpc.received", "type=requests", counters.requests.get()),
        ("rpc.received.bytes", "type=put", counters.bytes.get()),
        ("uptime.seconds", "type=door", state.started.elapsed().as_secs()),
    ];
    let mut text = String::new();
    let door = state.options.door.name();
    for (name, tag, value) in lines {
        // Writing to a string does not fail.
        let _ = writeln!(text, "tsd.{name} {now} {value} {tag} door={door}");
    }
    text
}
