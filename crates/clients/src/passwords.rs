//! Passwords from the environment: of this process, or of the one that started it as a worker on another host.

use std::collections::BTreeMap;
use std::env;
use std::sync::OnceLock;

/// The password of the server under test, if its URL has none.
const TARGET: &str = "TACHO_TARGET_PASSWORD";
/// The password of the administrator of a running server.
const ADMINISTRATOR: &str = "TACHO_PASSWORD";

static RECEIVED: OnceLock<BTreeMap<String, String>> = OnceLock::new();

/// The password of the server under test.
pub fn target() -> Option<String> {
    named(TARGET)
}

/// The password of the administrator of a running server.
pub fn administrator() -> Option<String> {
    named(ADMINISTRATOR)
}

/// The passwords for a worker on another host, sent over the same connection as its task.
pub fn for_workers() -> BTreeMap<String, String> {
    let known = [TARGET, ADMINISTRATOR].into_iter();
    known.filter_map(|name| Some((name.to_owned(), env::var(name).ok()?))).collect()
}

/// Sets the passwords that this worker received. They take precedence over its own environment.
pub fn receive(passwords: BTreeMap<String, String>) {
    // A worker receives its task once.
    let _ = RECEIVED.set(passwords);
}

fn named(name: &str) -> Option<String> {
    let receive = RECEIVED.get().and_then(|passwords| passwords.get(name).cloned());
    receive.or_else(|| env::var(name).ok())
}
