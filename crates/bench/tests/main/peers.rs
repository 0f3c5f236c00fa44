//! Programs that the tests need and cargo does not build. A test without its peer fails and states what to install,
//! because a test that returns early looks like one that passed.

use std::path::{Path, PathBuf};

/// The directory of servers on Debian, which is not on everybody's PATH.
const SYSTEM_PROGRAMS: &str = "/usr/sbin";
/// The directory of PostgreSQL on Debian, with one subdirectory per version.
const POSTGRES_VERSIONS: &str = "/usr/lib/postgresql";

/// A program of a Debian package. It panics without the program.
pub(crate) fn required(name: &str, package: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut places = std::env::split_paths(&path).chain([PathBuf::from(SYSTEM_PROGRAMS)]);
    let found = places.find_map(|place| Some(place.join(name)).filter(|file| file.is_file()));
    found.unwrap_or_else(|| missing(name, package))
}

/// The directory of `postgres` and `initdb` of the newest version. It panics without any.
pub(crate) fn postgres_programs() -> PathBuf {
    let entries = Path::new(POSTGRES_VERSIONS).read_dir().into_iter().flatten();
    let mut versions: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path().join("bin")).collect();
    versions.sort();
    let is_whole = |bin: &PathBuf| bin.join("postgres").is_file() && bin.join("initdb").is_file();
    versions.into_iter().rev().find(is_whole).unwrap_or_else(|| missing("postgres", "postgresql"))
}

fn missing(name: &str, package: &str) -> ! {
    panic!("this test needs {name}, which is not installed: sudo apt-get install {package}")
}

#[test]
fn a_missing_peer_fails_the_test_and_names_the_package() {
    let panic = std::panic::catch_unwind(|| required("no-such-program", "no-such-package")).unwrap_err();
    let text = panic.downcast_ref::<String>().unwrap();
    assert!(text.contains("no-such-program") && text.contains("apt-get install no-such-package"), "{text}");
}
