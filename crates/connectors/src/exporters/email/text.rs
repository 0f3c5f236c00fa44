//! Text from outside in places that have one line.

/// The text with blanks in place of line ends and other control characters: words of a server cannot make lines of a log, and words
/// of a row cannot make headers of a mail.
pub(super) fn one_line(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}
