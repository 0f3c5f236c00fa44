//! The predicates of an address, each of which its wrapper must take.

use crate::virtual_sensors::descriptor::{Address, Pair};
use crate::virtual_sensors::fault::{Fault, Note, TextPosition};
use crate::virtual_sensors::plan::secret::shown_url;

/// The predicates of an address. [`finish`](Self::finish) refuses those that nobody took.
pub(super) struct Predicates<'a> {
    address: &'a Address,
    taken: Vec<&'static str>,
}

impl<'a> Predicates<'a> {
    pub(super) fn of(address: &'a Address) -> Self {
        Self { address, taken: Vec::new() }
    }

    /// Where the address names its wrapper.
    pub(super) fn place(&self) -> TextPosition {
        self.address.wrapper.place
    }

    /// A predicate with its places, also if it is empty.
    pub(super) fn take(&mut self, key: &'static str) -> Option<&'a Pair> {
        if !self.taken.contains(&key) {
            self.taken.push(key);
        }
        self.address.predicates.iter().find(|pair| pair.key.value == key)
    }

    /// The text of a predicate; `None` if it is empty.
    pub(super) fn optional(&mut self, key: &'static str) -> Option<String> {
        self.take(key).map(|pair| pair.value.value.clone()).filter(|text| !text.is_empty())
    }

    pub(super) fn needed(&mut self, key: &'static str) -> Result<String, Fault> {
        let wrapper = &self.address.wrapper;
        let keys: Vec<_> = self.address.predicates.iter().map(|pair| pair.key.value.as_str()).collect();
        let given = if keys.is_empty() { "none".to_owned() } else { keys.join(", ") };
        let reason = format!("wrapper {} needs the predicate {key:?}; given: {given}", wrapper.value);
        self.optional(key).ok_or_else(|| Fault::invalid(wrapper.place, reason))
    }

    /// A whole number in a range.
    pub(super) fn integer(&mut self, key: &'static str, least: i64, most: i64) -> Result<Option<i64>, Fault> {
        let Some(pair) = self.take(key).filter(|pair| !pair.value.value.is_empty()) else { return Ok(None) };
        match pair.value.value.trim().parse() {
            Ok(number) if (least..=most).contains(&number) => Ok(Some(number)),
            _ => {
                let reason =
                    format!("{key} is {:?}; it is a whole number from {least} to {most}", pair.value.value);
                Err(Fault::invalid(pair.value.place, reason))
            }
        }
    }

    /// Milliseconds between two readings.
    pub(super) fn period(&mut self, key: &'static str, default_ms: u64, least_ms: u64) -> Result<u64, Fault> {
        let day_ms = 86_400_000;
        let least = i64::try_from(least_ms).unwrap_or(i64::MAX);
        Ok(self.integer(key, least, day_ms)?.map_or(default_ms, i64::unsigned_abs))
    }

    /// A time in milliseconds since 1970, which the predicate says as such a number or in ISO 8601.
    pub(super) fn time(&mut self, key: &'static str) -> Result<Option<i64>, Fault> {
        let Some(text) = self.optional(key) else { return Ok(None) };
        let iso =
            || chrono::DateTime::parse_from_rfc3339(text.trim()).ok().map(|time| time.timestamp_millis());
        match text.trim().parse().ok().or_else(iso) {
            Some(millis) => Ok(Some(millis)),
            None => {
                let reason = format!(
                    "{key} is {text:?}; it is a time such as 2026-11-27T20:15:30Z, or milliseconds since 1970"
                );
                Err(self.invalid(key, reason))
            }
        }
    }

    pub(super) fn character(&mut self, key: &'static str, default: char) -> Result<char, Fault> {
        let Some(text) = self.optional(key) else { return Ok(default) };
        let mut characters = match text.as_str() {
            "\\t" | "tab" => "\t".chars(),
            text => text.chars(),
        };
        match (characters.next(), characters.next()) {
            (Some(one), None) => Ok(one),
            _ => Err(self.invalid(key, format!("{key} is {text:?}; it is one character, or tab"))),
        }
    }

    /// `true` or `false`.
    pub(super) fn flag(&mut self, key: &'static str) -> Result<bool, Fault> {
        match self.optional(key).as_deref().map(str::to_lowercase).as_deref() {
            None | Some("false") => Ok(false),
            Some("true") => Ok(true),
            Some(text) => Err(self.invalid(key, format!("{key} is {text:?}; it is true or false"))),
        }
    }

    /// Refuses an address that no HTTP client can read.
    pub(super) fn check_url(&mut self, url: &str, key: &'static str) -> Result<(), Fault> {
        let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
        match rest {
            Some(rest)
                if !rest.is_empty() && !rest.starts_with('/') && !url.contains(char::is_whitespace) =>
            {
                Ok(())
            }
            _ => {
                let reason =
                    format!("{key} is {:?}; it begins with http:// or https:// and a host", shown_url(url));
                Err(self.invalid(key, reason))
            }
        }
    }

    /// The file of authorities for an address that [`check_url`](Self::check_url) accepts.
    pub(super) fn cafile(&mut self, url: &str) -> Result<Option<String>, Fault> {
        match self.optional("cafile") {
            Some(_) if !url.starts_with("https://") => {
                let reason = "cafile needs an encrypted address, https://HOST".to_owned();
                Err(self.invalid("cafile", reason))
            }
            cafile => Ok(cafile),
        }
    }

    /// Refuses a predicate that says the same as another one, which is given.
    pub(super) fn refuse_beside(&mut self, key: &'static str, other: &str) -> Result<(), Fault> {
        match self.optional(key) {
            Some(_) => Err(self.invalid(key, format!("{key} and {other} say the same; use one of them"))),
            None => Ok(()),
        }
    }

    /// Refuses a predicate that has a meaning only with another one, which is not given.
    pub(super) fn check_needs(&mut self, key: &'static str, other: &'static str) -> Result<(), Fault> {
        let (given, needed) = (self.optional(key), self.optional(other));
        match given.filter(|_| needed.is_none()) {
            Some(_) => Err(self.invalid(key, format!("{key} needs the predicate {other:?}"))),
            None => Ok(()),
        }
    }

    /// Notes a predicate that has no effect.
    pub(super) fn note(&mut self, key: &'static str, why: &str, notes: &mut Vec<Note>) {
        if let Some(pair) = self.take(key) {
            notes.push(Note { place: pair.key.place, text: format!("{key} has no effect: {why}") });
        }
    }

    /// A fault at the value of a predicate.
    pub(super) fn invalid(&mut self, key: &'static str, reason: String) -> Fault {
        let place = self.take(key).map_or(self.place(), |pair| pair.value.place);
        Fault::invalid(place, reason)
    }

    pub(super) fn finish(self) -> Result<(), Fault> {
        let unknown =
            self.address.predicates.iter().find(|pair| !self.taken.contains(&pair.key.value.as_str()));
        let Some(pair) = unknown else { return Ok(()) };
        let wrapper = &self.address.wrapper.value;
        let has = match &self.taken[..] {
            [] => "it has none".to_owned(),
            taken => format!("it has {}", taken.join(", ")),
        };
        let reason = format!("wrapper {wrapper} has no predicate {:?}; {has}", pair.key.value);
        Err(Fault::invalid(pair.key.place, reason))
    }
}
