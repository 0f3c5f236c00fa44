//! The built files of the dashboard, as part of the binary.
//!
//! The crate holds nothing else and only the binary depends on it: when the page changes, no door is compiled again.
//! `make` builds the page and then touches this file, because the compiler notices a changed page, but not the first one.

use std::borrow::Cow;

use rust_embed::RustEmbed;

/// The output of `npm run build` in the dashboard's directory when the binary was built; empty if it was not run.
#[derive(RustEmbed)]
#[folder = "../../dashboard/dist"]
#[allow_missing = true]
struct Files;

/// Vite puts a hash of the content into the names below this directory, so these files never change.
const HASHED: &str = "assets/";

/// A file of the page.
#[derive(Debug)]
pub struct File {
    pub bytes: Cow<'static, [u8]>,
    /// The value of the header `content-type`.
    pub content_type: &'static str,
    /// The SHA-256 of the content.
    pub sha256: [u8; 32],
    /// Whether the name always has this content, so that browsers may keep it.
    pub immutable: bool,
}

/// The file of a name, relative to the root of the page (`index.html`); `None` if there is no such file.
pub fn file(name: &str) -> Option<File> {
    let found = Files::get(name)?;
    Some(File {
        bytes: found.data,
        content_type: content_type(name),
        sha256: found.metadata.sha256_hash(),
        immutable: name.starts_with(HASHED),
    })
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("json" | "map" | "webmanifest") => "application/json",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_built_file_has_a_type_and_only_hashed_names_are_immutable() {
        for name in Files::iter() {
            let file = file(&name).unwrap();
            assert_ne!(file.content_type, "application/octet-stream", "{name}");
            assert_eq!(file.immutable, name.starts_with(HASHED), "{name}");
            assert!(!file.bytes.is_empty(), "{name}");
        }
        assert!(file("index.htm").is_none());
    }

    #[test]
    fn types_follow_from_the_end_of_a_name() {
        assert_eq!(content_type("index.html"), "text/html; charset=utf-8");
        assert_eq!(content_type("assets/index-1a2b.js"), "text/javascript; charset=utf-8");
        assert_eq!(content_type("LICENSE"), "application/octet-stream");
    }
}
