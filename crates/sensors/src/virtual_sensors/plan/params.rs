//! The parameters of a class.

use crate::virtual_sensors::descriptor::{Located, Pair};
use crate::virtual_sensors::fault::{Fault, Note};

/// The longest time between turns of a clock, in milliseconds, as GSN's.
pub(super) const RATE_MAX: i64 = i32::MAX as i64;

/// The parameters of a class, each of which somebody must ask for.
pub(super) struct Params<'a> {
    pub(super) params: &'a [Pair],
    pub(super) class: &'a str,
    pub(super) place: &'a Located<String>,
    pub(super) asked: Vec<&'static str>,
}

impl<'a> Params<'a> {
    pub(super) fn take(&mut self, key: &'static str) -> Option<&'a Pair> {
        self.asked.push(key);
        self.params.iter().find(|pair| pair.key.value == key)
    }

    pub(super) fn needed(&mut self, key: &'static str) -> Result<&'a Pair, Fault> {
        let reason = format!("class {} needs the parameter {key:?}", self.class);
        self.take(key).ok_or_else(|| Fault::invalid(self.place.place, reason))
    }

    pub(super) fn flag(&mut self, key: &'static str, default: bool) -> Result<bool, Fault> {
        let Some(pair) = self.take(key) else { return Ok(default) };
        match pair.value.value.to_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            text => Err(Fault::invalid(pair.value.place, format!("{key} is {text:?}; it is true or false"))),
        }
    }

    pub(super) fn number(&mut self, key: &'static str, least: i64, most: i64) -> Result<i64, Fault> {
        let pair = self.needed(key)?;
        let number = pair.value.value.parse().ok().filter(|number| (least..=most).contains(number));
        let reason = format!("{key} is {:?}; it is a whole number from {least} to {most}", pair.value.value);
        number.ok_or_else(|| Fault::invalid(pair.value.place, reason))
    }

    /// As [`Self::number`], with a number for a parameter that is not given.
    pub(super) fn number_or(
        &mut self,
        key: &'static str,
        default: i64,
        least: i64,
        most: i64,
    ) -> Result<i64, Fault> {
        match self.take(key) {
            Some(_) => self.number(key, least, most),
            None => Ok(default),
        }
    }

    /// The text of a parameter; none if it is empty.
    pub(super) fn text(&mut self, key: &'static str) -> Option<String> {
        self.take(key).map(|pair| pair.value.value.clone()).filter(|text| !text.is_empty())
    }

    /// A parameter that has no effect.
    pub(super) fn note(&mut self, notes: &mut Vec<Note>, key: &'static str, reason: &str) {
        if let Some(pair) = self.take(key) {
            notes.push(Note { place: pair.key.place, text: format!("{key} has no effect: {reason}") });
        }
    }

    pub(super) fn share(&mut self, key: &'static str) -> Result<f64, Fault> {
        let pair = self.needed(key)?;
        let number: Option<f64> = pair.value.value.parse().ok();
        let reason = format!("{key} is {:?}; it is a number from 0 on", pair.value.value);
        number
            .filter(|number| number.is_finite() && *number >= 0.0)
            .ok_or_else(|| Fault::invalid(pair.value.place, reason))
    }

    pub(super) fn finish(self) -> Result<(), Fault> {
        let unknown = self.params.iter().find(|pair| !self.asked.contains(&pair.key.value.as_str()));
        let Some(pair) = unknown else { return Ok(()) };
        let known = if self.asked.is_empty() { "no parameters".to_owned() } else { self.asked.join(", ") };
        let reason = format!("class {} has no parameter {:?}; it has {known}", self.class, pair.key.value);
        Err(Fault::invalid(pair.key.place, reason))
    }
}
