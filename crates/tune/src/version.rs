//! Versions and ranges of versions.
//!
//! The versions of the products are not semantic versions (`5.5.62`, `10.11.6-MariaDB`, `6.1.0-18-amd64`, `0.98`), so the
//! crate `semver` refuses most of them. A version here is its leading numbers.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

/// A version: numbers that are compared from left to right. A missing number counts as 0.
#[derive(Debug, Clone)]
pub struct Version(Vec<u32>);

impl Version {
    /// Reads the leading numbers of a text. Returns `None` if the text does not begin with a number.
    pub fn parse(text: &str) -> Option<Self> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let numbers = text[..end].split('.').filter(|part| !part.is_empty());
        let numbers: Vec<u32> = numbers.map_while(|part| part.parse().ok()).collect();
        let begins = text.starts_with(|c: char| c.is_ascii_digit());
        (begins && !numbers.is_empty()).then_some(Self(numbers))
    }
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        let at = |version: &Self, index: usize| version.0.get(index).copied().unwrap_or(0);
        let length = self.0.len().max(other.0.len());
        (0..length)
            .map(|index| at(self, index).cmp(&at(other, index)))
            .find(|it| it.is_ne())
            .unwrap_or(Ordering::Equal)
    }
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Version {}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(u32::to_string).collect();
        f.write_str(&numbers.join("."))
    }
}

/// The versions from `lower` (included) to `upper` (excluded). A missing bound is open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct VersionRange {
    lower: Option<Version>,
    upper: Option<Version>,
}

/// A text that is not a range of versions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a range of versions: write `all`, `>=5.7`, `<8.0.3` or `>=5.7, <8.0.3`")]
pub struct RangeError(String);

impl VersionRange {
    /// Whether the range has no bounds.
    pub fn is_all(&self) -> bool {
        self.lower.is_none() && self.upper.is_none()
    }

    /// Whether the version is in the range.
    pub fn contains(&self, version: &Version) -> bool {
        self.lower.as_ref().is_none_or(|lower| version >= lower)
            && self.upper.as_ref().is_none_or(|upper| version < upper)
    }

    /// Whether all versions of `other` are in this range.
    pub fn covers(&self, other: &Self) -> bool {
        let from = match (&self.lower, &other.lower) {
            (Some(own), Some(other)) => own <= other,
            (own, _) => own.is_none(),
        };
        let to = match (&self.upper, &other.upper) {
            (Some(own), Some(other)) => own >= other,
            (own, _) => own.is_none(),
        };
        from && to
    }
}

impl FromStr for VersionRange {
    type Err = RangeError;

    fn from_str(text: &str) -> Result<Self, RangeError> {
        let error = || RangeError(text.to_owned());
        let mut range = Self::default();
        if text.trim() == "all" {
            return Ok(range);
        }
        for bound in text.split(',').map(str::trim) {
            let (slot, version) = match (bound.strip_prefix(">="), bound.strip_prefix('<')) {
                (Some(version), _) => (&mut range.lower, version),
                (None, Some(version)) => (&mut range.upper, version),
                (None, None) => return Err(error()),
            };
            let is_version = version.chars().all(|c| c.is_ascii_digit() || c == '.');
            let version = Version::parse(version).filter(|_| is_version && slot.is_none());
            *slot = Some(version.ok_or_else(error)?);
        }
        match (&range.lower, &range.upper) {
            (Some(lower), Some(upper)) if lower >= upper => Err(error()),
            _ => Ok(range),
        }
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.lower, &self.upper) {
            (None, None) => f.write_str("all"),
            (Some(lower), None) => write!(f, ">={lower}"),
            (None, Some(upper)) => write!(f, "<{upper}"),
            (Some(lower), Some(upper)) => write!(f, ">={lower}, <{upper}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(text: &str) -> VersionRange {
        text.parse().unwrap()
    }

    #[test]
    fn versions_are_read_as_products_print_them() {
        let read = |text: &str| Version::parse(text).map(|version| version.to_string());
        assert_eq!(read("10.11.6-MariaDB-0+deb12u1").as_deref(), Some("10.11.6"));
        assert_eq!(read("6.1.0-18-amd64").as_deref(), Some("6.1.0"));
        assert_eq!(read("0.98").as_deref(), Some("0.98"));
        assert_eq!(["", "v1", ".5", "latest"].map(read), [const { None }; 4]);
    }

    #[test]
    fn versions_are_compared_by_number() {
        let version = |text: &str| Version::parse(text).unwrap();
        assert!(version("5.10") > version("5.9.3"));
        assert_eq!(version("8"), version("8.0.0"));
    }

    #[test]
    fn a_range_contains_its_lower_bound_and_not_its_upper_one() {
        let removed = range(">=5.5, <8.0.3");
        let contains = |text: &str| removed.contains(&Version::parse(text).unwrap());
        assert_eq!(["5.4", "5.5", "8.0.2", "8.0.3"].map(contains), [false, true, true, false]);
        assert!(range("all").is_all() && range("all").contains(&Version::parse("1").unwrap()));
    }

    #[test]
    fn a_range_covers_what_lies_in_it() {
        assert!(range("all").covers(&range(">=5, <6")));
        assert!(range(">=5").covers(&range(">=5, <6")));
        assert!(!range(">=5").covers(&range("<6")));
        assert!(!range(">=5, <6").covers(&range("all")));
        assert!(!range(">=5, <6").covers(&range(">=5.5")));
    }

    #[test]
    fn ranges_that_mean_nothing_are_refused() {
        for text in ["", "8", ">8", ">=8, <8", ">=8, >=9", ">=x", "<8.0.3-rc", "=8"] {
            assert!(text.parse::<VersionRange>().is_err(), "{text}");
        }
        assert_eq!(range(">=5.7,<8.0.3").to_string(), ">=5.7, <8.0.3");
    }
}
