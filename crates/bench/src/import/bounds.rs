//! The limits of imported figures. Beyond them a file is damaged, and sums would overflow.

use std::time::Duration;

use base64::Engine as _;
use serde_json::Value;

use super::{Format, ImportError};

/// The largest number of operations of one class in one run.
pub(super) const COUNT_MAX: u64 = 1_000_000_000_000_000;
/// The largest other number: times in microseconds, bytes, rates.
pub(super) const NUMBER_MAX: f64 = 1e18;
/// The longest run, seconds: a year.
const RUN_S_MAX: f64 = 366.0 * 86_400.0;

/// Checks the length of a run: above zero and at most a year.
pub(super) fn run_length(seconds: f64) -> Result<Duration, String> {
    if !(seconds > 0.0 && seconds <= RUN_S_MAX) {
        return Err(format!("a run of {seconds} s: it must be above zero and at most a year"));
    }
    Duration::try_from_secs_f64(seconds).map_err(|error| error.to_string())
}

/// A member of a JSON file with its path, for messages.
#[derive(Debug, Clone)]
pub(super) struct Field<'a> {
    pub(super) value: &'a Value,
    path: String,
    format: Format,
}

impl<'a> Field<'a> {
    pub(super) fn root(value: &'a Value, format: Format) -> Self {
        Self { value, path: String::new(), format }
    }

    /// A member; null if it is absent.
    pub(super) fn get(&self, name: &str) -> Self {
        let path = if self.path.is_empty() { name.to_owned() } else { format!("{}.{name}", self.path) };
        Self { value: self.value.get(name).unwrap_or(&Value::Null), path, format: self.format }
    }

    /// The same for an element of an array.
    pub(super) fn at(&self, index: usize) -> Self {
        let path = format!("{}[{index}]", self.path);
        Self { value: self.value.get(index).unwrap_or(&Value::Null), path, format: self.format }
    }

    /// The members of an object; none if it is absent.
    pub(super) fn members(&self) -> Result<Vec<(&'a str, Self)>, ImportError> {
        match self.value {
            Value::Null => Ok(Vec::new()),
            Value::Object(members) => {
                Ok(members.keys().map(|name| (name.as_str(), self.get(name))).collect())
            }
            _ => Err(self.wrong("is not an object")),
        }
    }

    /// A count; 0 if it is absent.
    pub(super) fn count(&self) -> Result<u64, ImportError> {
        match self.value {
            Value::Null => Ok(0),
            value => {
                value.as_u64().filter(|count| *count <= COUNT_MAX).ok_or_else(|| self.wrong("is not a count"))
            }
        }
    }

    /// A number of zero or more; `None` if it is absent.
    pub(super) fn number(&self) -> Result<Option<f64>, ImportError> {
        match self.value {
            Value::Null => Ok(None),
            value => {
                let number = value.as_f64().filter(|number| (0.0..=NUMBER_MAX).contains(number));
                number.map(Some).ok_or_else(|| self.wrong("is not a number of this place"))
            }
        }
    }

    /// Bytes in base64; `None` if they are absent.
    pub(super) fn base64(&self) -> Result<Option<Vec<u8>>, ImportError> {
        let Value::String(text) = self.value else { return Ok(None) };
        let bytes = base64::engine::general_purpose::STANDARD.decode(text);
        bytes.map(Some).map_err(|error| self.wrong(format!("is not base64: {error}")))
    }

    /// An error about this member.
    pub(super) fn wrong(&self, what: impl AsRef<str>) -> ImportError {
        /// The longest value that a message quotes.
        const QUOTED_CHARS: usize = 40;
        let value = self.value.to_string();
        let short: String = value.chars().take(QUOTED_CHARS).collect();
        let more = if short.len() < value.len() { "..." } else { "" };
        ImportError::Field {
            format: self.format,
            path: self.path.clone(),
            what: format!("`{short}{more}` {}", what.as_ref()),
        }
    }
}

/// Adds up counts; `None` if the sum exceeds the limit.
pub(super) fn sum(counts: impl Iterator<Item = u64>) -> Option<u64> {
    let mut sum = 0_u64;
    for count in counts {
        sum = sum.checked_add(count).filter(|sum| *sum <= COUNT_MAX)?;
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_have_a_length() {
        assert_eq!(run_length(2.5), Ok(Duration::from_millis(2_500)));
        for seconds in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e30] {
            assert!(run_length(seconds).unwrap_err().contains("at most a year"), "{seconds}");
        }
    }

    #[test]
    fn members_have_paths() {
        let file = serde_json::json!({"jobs": [{"read": {"iops": -1, "n": 1.5, "big": 1e30}}]});
        let read = Field::root(&file, Format::Fio).get("jobs").at(0).get("read");
        let error = read.get("iops").number().unwrap_err().to_string();
        assert_eq!(error, "fio's output, jobs[0].read.iops: `-1` is not a number of this place");
        assert!(
            read.get("n").count().is_err()
                && read.get("big").number().is_err()
                && read.get("n").members().is_err()
        );
        assert_eq!((read.get("none").count(), read.get("none").number()), (Ok(0), Ok(None)));
        assert_eq!((sum([1, 2].into_iter()), sum([u64::MAX, 2].into_iter())), (Some(3), None));
    }
}
