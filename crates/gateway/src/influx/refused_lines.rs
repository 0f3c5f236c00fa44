//! The refused lines of a write, in the words of InfluxDB.

use std::fmt::Write as _;

use wire::line::line_number;

use super::limits::{FAULT_LINE_BYTES_MAX, FAULTS_NAMED_MAX};

/// The refused lines of a body: the first ones by name, and the number of all.
#[derive(Debug, Default)]
pub(super) struct RefusedLines {
    named: Vec<String>,
    count: usize,
}

impl RefusedLines {
    /// Adds a line at an offset of the body. Returns the reason with the place, for its dead letter.
    pub(super) fn add(&mut self, body: &[u8], at: usize, line: &[u8], reason: &str) -> String {
        self.count += 1;
        if self.named.len() >= FAULTS_NAMED_MAX {
            return reason.to_owned();
        }
        let number = line_number(body, at);
        let shown = String::from_utf8_lossy(&line[..line.len().min(FAULT_LINE_BYTES_MAX)]).into_owned();
        let more = if line.len() > FAULT_LINE_BYTES_MAX { "..." } else { "" };
        self.named.push(format!("unable to parse '{shown}{more}': {reason} (line {number})"));
        format!("{reason} (line {number})")
    }

    /// Adds the refused lines of a later piece of the body.
    pub(super) fn extend(&mut self, later: Self) {
        let room = FAULTS_NAMED_MAX.saturating_sub(self.named.len());
        self.named.extend(later.named.into_iter().take(room));
        self.count += later.count;
    }

    /// Whether no line was refused.
    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The error text; `stored` indicates whether other lines are stored.
    pub(super) fn message(&self, stored: bool) -> String {
        let mut text = self.named.join("\n");
        if self.count > self.named.len() {
            let _ = write!(text, "\nand {} lines more", self.count - self.named.len());
        }
        match stored {
            true => format!("partial write: {text} dropped={}", self.count),
            false => text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_faults_are_named_and_the_others_counted() {
        let mut faults = RefusedLines::default();
        assert!(faults.is_empty());
        faults.add(b"m f=1\nm f=x", 6, b"m f=x", "invalid boolean at byte 4");
        assert_eq!(faults.message(false), "unable to parse 'm f=x': invalid boolean at byte 4 (line 2)");
        for _ in 0..20 {
            faults.add(b"m", 0, &[b'm'; 1_000], "missing fields");
        }
        let message = faults.message(true);
        assert!(message.starts_with("partial write: unable to parse 'm f=x'"), "{message}");
        assert!(message.ends_with("\nand 11 lines more dropped=21"), "{message}");
        assert!(message.len() < 10 * 400);
        let mut all = RefusedLines::default();
        all.add(b"m", 0, b"m", "missing fields");
        all.extend(faults);
        let message = all.message(true);
        assert!(message.ends_with("\nand 12 lines more dropped=22"), "{message}");
    }
}
