//! Access to a scenario for drivers: their keys of an operation, a phase or a mix, and the operations of a phase.

use serde::de::DeserializeOwned;
use toml::Table;

use super::phase::{Mix, PHASE_KEYS, Phase};
use super::typed::{no_keys, typed};
use super::{OPERATION_KEYS, Operation, Scenario};

impl Operation {
    /// The place of the operation, for errors.
    pub fn place(&self) -> String {
        format!("operation `{}`", self.name)
    }

    /// The driver's keys. The error names the operation.
    pub fn options<T: DeserializeOwned>(&self) -> Result<T, String> {
        typed(self.driver_keys.clone(), &self.place(), OPERATION_KEYS)
    }

    /// Refuses keys for the driver.
    pub fn no_options(&self) -> Result<(), String> {
        no_keys(&self.driver_keys, &self.place(), OPERATION_KEYS)
    }
}

impl Phase {
    /// The place of the phase, for errors.
    pub fn place(&self) -> String {
        format!("phase `{}`", self.name)
    }

    /// An error of this phase with its place, unless the error has it already.
    pub fn error(&self, what: String) -> String {
        let place = self.place();
        if what.starts_with(&place) { what } else { format!("{place}: {what}") }
    }
}

impl Mix {
    /// The driver's keys: those of the mix and of its phase, then those of `dataset`. `place` is for the error.
    pub fn options<T: DeserializeOwned>(&self, dataset: &Table, place: &str) -> Result<T, String> {
        let mut table = dataset.clone();
        table.extend(self.driver_keys.clone());
        typed(table, place, PHASE_KEYS)
    }

    /// Refuses keys for the driver.
    pub fn no_options(&self, place: &str) -> Result<(), String> {
        no_keys(&self.driver_keys, place, PHASE_KEYS)
    }
}

impl Scenario {
    /// The names of the operations, by class number.
    pub fn classes(&self) -> Vec<String> {
        self.operations.iter().map(|operation| operation.name.clone()).collect()
    }

    /// The classes of a mix's operations and their weights.
    pub fn weights(&self, mix: &Mix) -> Vec<(u16, u32)> {
        let weight = |name: &String| self.operation(name).map_or(0, |operation| operation.weight);
        mix.operations.iter().map(|name| (self.class_of(name), weight(name))).collect()
    }

    /// For each mix of a phase, the connections, and the weights of the operations.
    pub fn groups(&self, phase: &Phase) -> Vec<(u32, Vec<(u16, u32)>)> {
        phase.mixes.iter().map(|mix| (mix.connections, self.weights(mix))).collect()
    }

    /// Checks each phase. The error names the phase.
    pub fn check_phases<T, E: std::fmt::Display>(
        &self,
        check: impl Fn(&Phase) -> Result<T, E>,
    ) -> Result<(), String> {
        self.phases.iter().try_for_each(|phase| match check(phase) {
            Ok(_) => Ok(()),
            Err(what) => Err(format!("{}: {what}", phase.place())),
        })
    }
}
