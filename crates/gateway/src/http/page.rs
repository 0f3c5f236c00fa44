//! The files of the dashboard, which the binary hands over.

use std::borrow::Cow;

/// A file of the page at `/`.
#[derive(Debug, Clone)]
pub struct PageFile {
    pub bytes: Cow<'static, [u8]>,
    /// The value of the header `content-type`.
    pub content_type: &'static str,
    /// The SHA-256 of the content.
    pub sha256: [u8; 32],
    /// Whether the name always has this content, so that browsers may keep it.
    pub immutable: bool,
}

/// Finds a file of the page by its name relative to the root (`index.html`).
pub type Page = fn(&str) -> Option<PageFile>;
