//! Tells the program from which commit it is built, so that results can name it.

use std::process::Command;

/// What of the checkout ends up in the program.
const SOURCES: [&str; 3] = ["crates", "dashboard/src", "Cargo.lock"];

fn main() {
    for path in SOURCES.iter().chain(&[".git/HEAD", ".git/logs/HEAD"]) {
        println!("cargo:rerun-if-changed=../../{path}");
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).map(|commit| {
        let mut status = vec!["status", "--porcelain", "--"];
        status.extend(SOURCES);
        let changed = git(&status).is_none_or(|changes| !changes.is_empty());
        if changed { format!("{commit}-changed") } else { commit }
    });
    // A source archive without a repository has no commit.
    println!("cargo:rustc-env=TACHO_COMMIT={}", commit.unwrap_or_default());
    shrink();
}

/// Makes a release a tenth smaller: functions with the same code are kept once, relocations are packed. Rust's own linker can do both, and
/// is the default only on this platform.
fn shrink() {
    let is = |variable, value| std::env::var(variable).is_ok_and(|found| found == value);
    if is("PROFILE", "release") && is("TARGET", "x86_64-unknown-linux-gnu") {
        println!("cargo:rustc-link-arg-bins=-Wl,--icf=all");
        println!("cargo:rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

fn git(arguments: &[&str]) -> Option<String> {
    let done = Command::new("git").arg("-C").arg("../..").args(arguments).output().ok()?;
    done.status.success().then(|| String::from_utf8_lossy(&done.stdout).trim().to_owned())
}
