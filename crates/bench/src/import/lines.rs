//! Lines and numbers of text output. An impossible number, and a line that occurs twice, is an error with the line's
//! number.

use super::bounds::{COUNT_MAX, NUMBER_MAX};
use super::{Format, ImportError};

/// A line of a file.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'a> {
    /// The number of the line, from 1.
    pub(super) number: usize,
    /// The text without surrounding blanks.
    pub(super) text: &'a str,
    format: Format,
}

/// The lines of a file or of a part of it.
#[derive(Debug, Clone)]
pub(super) struct Lines<'a> {
    lines: Vec<Line<'a>>,
    format: Format,
}

impl<'a> Lines<'a> {
    pub(super) fn new(text: &'a str, format: Format) -> Self {
        let line = |(index, text): (usize, &'a str)| Line { number: index + 1, text: text.trim(), format };
        Self { lines: text.lines().enumerate().map(line).collect(), format }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Line<'a>> {
        self.lines.iter().copied()
    }

    /// Refuses a file with several runs, in which `is_mark` holds for two lines.
    pub(super) fn one_run(&self, is_mark: impl Fn(&str) -> bool) -> Result<(), ImportError> {
        match self.iter().filter(|line| is_mark(line.text)).nth(1) {
            Some(second) => {
                Err(second.wrong("here begins a second run; import each run from a file of its own"))
            }
            None => Ok(()),
        }
    }

    /// The lines after the one for which `is_begin` holds, up to the first for which `is_end` holds. `None` without the
    /// former.
    pub(super) fn between(
        &self,
        is_begin: impl Fn(&str) -> bool,
        is_end: impl Fn(&str) -> bool,
    ) -> Option<Self> {
        let begin = self.lines.iter().position(|line| is_begin(line.text))? + 1;
        let lines = self.lines[begin..].iter().take_while(|line| !is_end(line.text)).copied().collect();
        Some(Self { lines, format: self.format })
    }

    /// The rest of the only line that starts with `label`.
    pub(super) fn labelled(&self, label: &str) -> Result<Option<Line<'a>>, ImportError> {
        let mut found = self.iter().filter_map(|line| Some(line.with(line.text.strip_prefix(label)?.trim())));
        let first = found.next();
        match found.next() {
            Some(second) => Err(second.wrong(format!("`{label}` is there a second time"))),
            None => Ok(first),
        }
    }

    /// The same for a required line.
    pub(super) fn need(&self, label: &str) -> Result<Line<'a>, ImportError> {
        self.labelled(label)?.ok_or_else(|| ImportError::incomplete(self.format, format!("no `{label}`")))
    }
}

impl<'a> Line<'a> {
    /// The same line with a part of its text.
    pub(super) fn with(&self, text: &'a str) -> Self {
        Self { text, ..*self }
    }

    /// An error about this line.
    pub(super) fn wrong(&self, what: impl Into<String>) -> ImportError {
        ImportError::Wrong { format: self.format, line: self.number, what: what.into() }
    }

    /// The first word as a number with one of the units, which have factors.
    pub(super) fn number(&self, units: &[(&str, f64)]) -> Result<f64, ImportError> {
        let word = self.text.split_whitespace().next().unwrap_or_default().trim_end_matches(',');
        let digits = word.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(word.len());
        let factor = units.iter().find(|(unit, _)| *unit == &word[digits..]).map(|(_, factor)| factor);
        let number = word[..digits].parse::<f64>().ok().zip(factor).map(|(number, factor)| number * factor);
        // 4.02 ms are exactly 4,020 us.
        let number = number.map(|number| (number * 1e6).round() / 1e6);
        number.filter(|number| (0.0..=NUMBER_MAX).contains(number)).ok_or_else(|| match units {
            [("", _)] => self.wrong(format!("`{word}` is not a number of this place")),
            _ => {
                let names: Vec<&str> =
                    units.iter().map(|(unit, _)| *unit).filter(|unit| !unit.is_empty()).collect();
                self.wrong(format!(
                    "`{word}` is not a number with a unit of this place ({})",
                    names.join(", ")
                ))
            }
        })
    }

    /// The first word as an integer.
    pub(super) fn count(&self) -> Result<u64, ImportError> {
        let word = self.text.split_whitespace().next().unwrap_or_default();
        let count = word.parse::<u64>().ok().filter(|count| *count <= COUNT_MAX);
        count.ok_or_else(|| self.wrong(format!("`{word}` is not a count")))
    }

    /// A percentile, 0 to 100, as a quantile.
    pub(super) fn percentile(&self) -> Result<f64, ImportError> {
        let percent = self.text.parse::<f64>().ok().filter(|percent| (0.0..=100.0).contains(percent));
        // 99.9 / 100 is not exactly 0.999.
        let quantile = percent.map(|percent| (percent * 1e6).round() / 1e8);
        quantile.ok_or_else(|| self.wrong(format!("`{}` is not a percentile", self.text)))
    }
}

/// Numbers without a unit.
pub(super) const PLAIN: &[(&str, f64)] = &[("", 1.0)];
/// Times, in microseconds.
pub(super) const MICROS: &[(&str, f64)] =
    &[("us", 1.0), ("ms", 1e3), ("s", 1e6), ("m", 60e6), ("h", 3_600e6)];
/// Bytes with binary prefixes.
pub(super) const BYTES: &[(&str, f64)] = &[
    ("B", 1.0),
    ("KB", 1_024.0),
    ("MB", 1_048_576.0),
    ("GB", 1_073_741_824.0),
    ("TB", 1_099_511_627_776.0),
    ("PB", 1_125_899_906_842_624.0),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line<'_> {
        Lines::new(text, Format::Wrk).iter().next().unwrap()
    }

    #[test]
    fn numbers_units_and_labels() {
        let lines = Lines::new("a\r\n  total time:     5.0061s\r\n", Format::Sysbench);
        assert_eq!(lines.need("total time:").unwrap().number(&[("s", 1.0)]), Ok(5.0061));
        for (text, us) in [("718.97us", 718.97), ("8.03ms", 8_030.0), ("2.5s", 2.5e6), ("1.00m", 6e7)] {
            assert_eq!(line(text).number(MICROS), Ok(us), "{text}");
        }
        assert_eq!(line("1.00KB read").number(BYTES), Ok(1_024.0));
        assert_eq!((line("99.9").percentile(), line("12 x").count()), (Ok(0.999), Ok(12)));
    }

    #[test]
    fn what_is_not_a_number_is_refused_with_its_line() {
        for text in ["", "5", "nan", "-nan", "inf", "-5s", "1.2.3s", "1e9s", "999999999999999999999s", ".s"] {
            let error = Lines::new(&format!("x\n{text} "), Format::Wrk).iter().nth(1).unwrap().number(MICROS);
            assert!(error.unwrap_err().to_string().starts_with("line 2 of wrk's output: `"), "{text}");
        }
        for text in [" ", "-1", "1.5", "99999999999999999999", "9999999999999999999"] {
            assert!(line(text).count().is_err(), "{text}");
        }
        for text in [" ", "nan", "-1", "100.1"] {
            assert!(line(text).percentile().is_err(), "{text}");
        }
        let twice = Lines::new("a: 1\na: 2", Format::Wrk);
        assert!(
            twice
                .need("a:")
                .unwrap_err()
                .to_string()
                .contains("line 2 of wrk's output: `a:` is there a second")
        );
    }
}
