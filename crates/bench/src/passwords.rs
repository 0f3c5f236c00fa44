//! Passwords that the environment has: of this process, or of the one that started it as a generator on another host.

use std::collections::BTreeMap;
use std::env;
use std::sync::OnceLock;

/// Password of the server under test, where its URL has none.
const TARGET: &str = "TACHO_TARGET_PASSWORD";
/// Password of the administrator of a running server.
const ADMINISTRATOR: &str = "TACHO_PASSWORD";

static TOLD: OnceLock<BTreeMap<String, String>> = OnceLock::new();

/// Password of the server under test.
pub(crate) fn target() -> Option<String> {
    named(TARGET)
}

/// Password of the administrator of a running server.
pub(crate) fn administrator() -> Option<String> {
    named(ADMINISTRATOR)
}

/// What a generator on another host is told, over the same connection as its part of the load.
pub(crate) fn to_tell() -> BTreeMap<String, String> {
    let known = [TARGET, ADMINISTRATOR].into_iter();
    known.filter_map(|name| Some((name.to_owned(), env::var(name).ok()?))).collect()
}

/// What this generator was told goes before its own environment.
pub(crate) fn told(passwords: BTreeMap<String, String>) {
    // A generator is told once; a second word would change nothing.
    let _ = TOLD.set(passwords);
}

fn named(name: &str) -> Option<String> {
    let told = TOLD.get().and_then(|passwords| passwords.get(name).cloned());
    told.or_else(|| env::var(name).ok())
}
