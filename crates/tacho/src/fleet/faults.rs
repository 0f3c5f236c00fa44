//! Diagnostic trouble codes that come and go.

use super::random::Random;

/// Codes of SAE J2012 that drivers meet: misfire, lean mixture, catalyst, thermostat, evaporation leak, low voltage,
/// oil pressure sensor, lost communication.
const CODES: [&str; 8] = ["P0300", "P0171", "P0420", "P0128", "P0442", "P0562", "P0520", "U0100"];
/// Seconds of running engine between two faults of one vehicle, on average.
const BETWEEN_S: f64 = 2_400.0;
/// Seconds that a fault stays.
const SHORTEST_S: f64 = 60.0;
const LONGEST_S: f64 = 600.0;
/// Most codes at the same time.
const ACTIVE_MAX: usize = 3;

/// The codes that are set.
#[derive(Debug, Clone, Default)]
pub(super) struct Faults {
    active: Vec<(&'static str, f64)>,
}

impl Faults {
    /// One step of a running engine.
    pub(super) fn step(&mut self, random: &mut Random, dt_s: f64) {
        for (_, left_s) in &mut self.active {
            *left_s -= dt_s;
        }
        self.active.retain(|(_, left_s)| *left_s > 0.0);
        if self.active.len() < ACTIVE_MAX && random.chance(dt_s / BETWEEN_S) {
            let code = *random.pick(&CODES);
            if self.codes().all(|active| active != code) {
                self.active.push((code, random.between(SHORTEST_S, LONGEST_S)));
            }
        }
    }

    /// The codes, oldest first.
    pub(super) fn codes(&self) -> impl Iterator<Item = &'static str> {
        self.active.iter().map(|(code, _)| *code)
    }
}
