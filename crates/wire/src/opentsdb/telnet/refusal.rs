//! Why a line is refused, in OpenTSDB's words.

use std::borrow::Cow;

use super::super::put::{Refusal, RefusalKind};

/// A refused line. Its text is what OpenTSDB answers after `put: `.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", kind.words())]
pub struct LineRefusal {
    /// OpenTSDB's class of the fault.
    pub kind: LineRefusalKind,
    /// The fault.
    pub message: Cow<'static, str>,
}

/// OpenTSDB's classes of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineRefusalKind {
    /// A text is not a number.
    Value,
    /// Any other fault.
    Argument,
}

impl LineRefusalKind {
    fn words(self) -> &'static str {
        match self {
            Self::Value => "invalid value",
            Self::Argument => "illegal argument",
        }
    }
}

impl LineRefusal {
    /// Another fault than that of a number.
    #[must_use]
    pub fn argument(message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: LineRefusalKind::Argument, message: message.into() }
    }

    pub(super) fn value(message: impl Into<Cow<'static, str>>) -> Self {
        Self { kind: LineRefusalKind::Value, message: message.into() }
    }

    /// The refusal of a number, whose text is `text`.
    pub(super) fn of_number(refusal: Refusal, text: &str) -> Self {
        match refusal.kind {
            RefusalKind::Value => Self::value(number_fault(text)),
            _ => refusal.into(),
        }
    }
}

impl From<Refusal> for LineRefusal {
    fn from(refusal: Refusal) -> Self {
        Self::argument(refusal.message)
    }
}

/// What OpenTSDB says of a text that is not a number.
pub(super) fn number_fault(text: &str) -> String {
    let shown = super::super::put::quoted(text);
    if text.bytes().any(|byte| matches!(byte, b'.' | b'e' | b'E')) {
        return format!("For input string: \"{shown}\"");
    }
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    let digits_max = if digits.len() < text.len() { 20 } else { 19 };
    match digits.chars().find(|c| !c.is_ascii_digit()) {
        _ if text.is_empty() => "Empty string".to_owned(),
        _ if digits.is_empty() => format!("Just a sign, no value: {shown}"),
        _ if text.len() > digits_max => format!("Value too long: {shown}"),
        Some(c) => format!("Invalid character '{c}' in {shown}"),
        None => format!("Overflow in {shown}"),
    }
}
