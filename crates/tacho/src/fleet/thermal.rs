//! The temperatures of coolant, oil and the air outside.

use super::random::{Random, Wander};

/// The temperature at which the thermostat opens.
const THERMOSTAT_C: f64 = 88.0;
const DAY_S: f64 = 86_400.0;

/// Temperatures in degrees Celsius.
#[derive(Debug, Clone)]
pub(super) struct Thermal {
    pub ambient_c: f64,
    pub coolant_c: f64,
    pub oil_c: f64,
    climate_c: f64,
    time_of_day_s: f64,
    weather: Wander,
}

impl Thermal {
    /// Cold, or warm from a former drive, in a place with this mean temperature.
    pub(super) fn new(climate_c: f64, random: &mut Random) -> Self {
        let warmth = if random.chance(0.7) { 1.0 } else { random.between(0.0, 0.6) };
        let coolant_c = climate_c + warmth * (THERMOSTAT_C - climate_c);
        let time_of_day_s = random.between(0.0, DAY_S);
        let oil_c = climate_c + (coolant_c - climate_c) * 0.95;
        Self { ambient_c: climate_c, coolant_c, oil_c, climate_c, time_of_day_s, weather: Wander::default() }
    }

    /// One step with the engine running at a load from 0 to 1, or off.
    pub(super) fn step(&mut self, random: &mut Random, engine_load: Option<f64>, dt_s: f64) {
        self.time_of_day_s = (self.time_of_day_s + dt_s) % DAY_S;
        let daily = 4.0 * (self.time_of_day_s / DAY_S * std::f64::consts::TAU).sin();
        self.ambient_c = self.climate_c + daily + self.weather.step(random, dt_s, 3_600.0, 1.0);
        match engine_load {
            Some(load) => {
                let target = THERMOSTAT_C + 7.0 * load;
                // Cold coolant keeps all heat; near the target the thermostat opens.
                let heating = (0.06 + 0.35 * load).min((target - self.coolant_c) / 40.0);
                self.coolant_c += heating * dt_s;
                self.oil_c += (self.coolant_c + 14.0 * load - self.oil_c) * (dt_s / 240.0).min(1.0);
            }
            None => {
                self.coolant_c += (self.ambient_c - self.coolant_c) * (dt_s / 2_400.0).min(1.0);
                self.oil_c += (self.ambient_c - self.oil_c) * (dt_s / 3_000.0).min(1.0);
            }
        }
    }

    /// 1 for an engine at the temperature of the air around freezing, 0 for a warm one.
    pub(super) fn coldness(&self) -> f64 {
        ((60.0 - self.coolant_c) / 60.0).clamp(0.0, 1.0)
    }
}
