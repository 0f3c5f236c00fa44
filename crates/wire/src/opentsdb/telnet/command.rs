//! The commands of the line protocol.

use std::borrow::Cow;

use super::super::put::quoted;
use super::lines::without_end;

/// A command. Its name is the first word of a line, in lower case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command<'a> {
    /// `put metric timestamp value tag=value ...`
    Put,
    /// `auth basic user password`
    Auth(Result<Auth<'a>, AuthError>),
    /// `version`
    Version,
    /// `stats`
    Stats,
    /// `help`
    Help,
    /// `exit`
    Exit,
    /// A command of OpenTSDB that this server does not do: its name.
    Absent(&'static str),
    /// Another first word: its beginning.
    Unknown(Cow<'a, str>),
}

/// A login.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Auth<'a> {
    /// The name.
    pub user: &'a str,
    /// The password.
    pub password: &'a str,
}

/// A command `auth` that is not a login.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AuthError {
    /// A signature instead of a password.
    #[error("signatures (hmacsha256) are not supported; send `auth basic <user> <password>`")]
    Signature,
    /// Another form.
    #[error("send `auth basic <user> <password>`")]
    Form,
}

/// Commands of OpenTSDB that this server does not do.
const ABSENT: [&str; 4] = ["rollup", "histogram", "dropcaches", "diediedie"];

impl<'a> Command<'a> {
    /// The command of a line.
    #[must_use]
    pub fn of(line: &'a [u8]) -> Self {
        let line = without_end(line);
        let end = memchr::memchr(b' ', line).unwrap_or(line.len());
        let (name, rest) = line.split_at(end);
        match name {
            b"put" => Self::Put,
            b"auth" => Self::Auth(Auth::of(rest)),
            b"version" => Self::Version,
            b"stats" => Self::Stats,
            b"help" => Self::Help,
            b"exit" => Self::Exit,
            _ => match ABSENT.into_iter().find(|absent| absent.as_bytes() == name) {
                Some(absent) => Self::Absent(absent),
                None => Self::Unknown(shown(name)),
            },
        }
    }
}

impl<'a> Auth<'a> {
    fn of(words: &'a [u8]) -> Result<Self, AuthError> {
        let words = std::str::from_utf8(words).map_err(|_| AuthError::Form)?;
        let mut words = words.split(' ').filter(|word| !word.is_empty());
        match (words.next(), words.next(), words.next(), words.next()) {
            (Some("basic"), Some(user), Some(password), None) => Ok(Self { user, password }),
            (Some("hmacsha256"), ..) => Err(AuthError::Signature),
            _ => Err(AuthError::Form),
        }
    }
}

/// The beginning of a text for a message of one line.
fn shown(bytes: &[u8]) -> Cow<'_, str> {
    match String::from_utf8_lossy(bytes) {
        Cow::Borrowed(text) => Cow::Borrowed(quoted(text)),
        Cow::Owned(text) => Cow::Owned(quoted(&text).to_owned()),
    }
}
