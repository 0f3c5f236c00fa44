//! Which sensors read a series, and which may read a device: by their places, so that a series does not cost a look at each sensor.

use std::collections::HashMap;

use model::SeriesId;

use super::running::Running;
use crate::shared::SourceSelector;

/// The places of sensors by what they read.
#[derive(Debug, Default)]
pub(super) struct Readers {
    by_series: HashMap<SeriesId, Vec<usize>>,
    by_device: HashMap<String, Vec<usize>>,
    /// Those with a pattern for the names of devices.
    patterns: Vec<usize>,
}

impl Readers {
    /// The readers among the sensors that run.
    pub(super) fn of<'r>(running: impl Iterator<Item = &'r Running>) -> Self {
        let mut readers = Self::default();
        for (at, running) in running.enumerate() {
            running.cursors.keys().for_each(|series| readers.add(*series, at));
            running.sources.iter().for_each(|source| readers.add_selector(&source.selector, at));
        }
        readers
    }

    /// The places of the sensors that read a series, in ascending order.
    pub(super) fn of_series(&self, series: SeriesId) -> &[usize] {
        self.by_series.get(&series).map(Vec::as_slice).unwrap_or_default()
    }

    /// Whether a sensor reads a series.
    pub(super) fn has(&self, series: SeriesId) -> bool {
        self.by_series.contains_key(&series)
    }

    /// The sensor at a place reads a series from now on.
    pub(super) fn add(&mut self, series: SeriesId, at: usize) {
        let places = self.by_series.entry(series).or_default();
        if !places.contains(&at) {
            places.push(at);
        }
    }

    /// The places of the sensors with a source that may be for a device of this name, in ascending order.
    pub(super) fn of_device(&self, name: &str) -> Vec<usize> {
        let mut places = self.patterns.clone();
        places.extend(self.by_device.get(name).into_iter().flatten());
        places.sort_unstable();
        places.dedup();
        places
    }

    fn add_selector(&mut self, selector: &SourceSelector, at: usize) {
        match selector.is_of_one() {
            Some(device) => self.by_device.entry(device.to_owned()).or_default().push(at),
            None => self.patterns.push(at),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_is_looked_up_by_its_name_and_patterns_are_always_asked() {
        let mut readers = Readers::default();
        for at in 0..10_000 {
            readers.add_selector(&SourceSelector::of_device(&format!("d{at}")), at);
        }
        // A sensor with two sources of one device is there once.
        readers.add_selector(&SourceSelector::of_device("d7"), 7);
        assert_eq!(readers.of_device("d7"), [7]);
        assert!(readers.of_device("other").is_empty());
        readers.add_selector(&SourceSelector::of_device("d*"), 3);
        assert_eq!(readers.of_device("d7"), [3, 7]);
        assert_eq!(readers.of_device("other"), [3]);
    }
}
