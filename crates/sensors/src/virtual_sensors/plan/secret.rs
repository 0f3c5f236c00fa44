//! Passwords in a descriptor, and addresses that hold them.

use std::fmt;

/// A text that is not shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text, for the client that sends it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

/// An HTTP address as callers may see it: without its user, its query and its fragment, which may be secrets.
pub fn shown_url(url: &str) -> String {
    let shown = url.split_once(['?', '#']).map_or(url, |(shown, _)| shown);
    let (scheme, place) = match shown.find("://") {
        Some(at) => shown.split_at(at + "://".len()),
        None => ("", shown),
    };
    let (authority, path) = place.split_at(place.find('/').unwrap_or(place.len()));
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}{host}{path}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_secrets() {
        let shown = [
            ("http://h:8080/a/b", "http://h:8080/a/b"),
            ("https://user:secret@h/a?key=secret#secret", "https://h/a"),
            ("https://user@secret@h", "https://h"),
            ("https://h/@me/x", "https://h/@me/x"),
            ("https://h?to=http://user:secret@h", "https://h"),
            ("user:secret@h/a", "h/a"),
            ("file:///etc/passwd", "file:///etc/passwd"),
            ("", ""),
        ];
        for (url, expected) in shown {
            assert_eq!(shown_url(url), expected, "{url}");
        }
    }
}
