//! One vehicle: advances driver, engine, temperatures and position by a step.

use serde::Serialize;

use super::driver::{Activity, Driver, Situation};
use super::engine::Engine;
use super::faults::Faults;
use super::models::{BRAKING_MAX, MODELS, Model};
use super::position::Position;
use super::random::{Random, Wander};
use super::thermal::Thermal;

/// Longest step of the model. Longer steps are divided.
const STEP_MAX_S: f64 = 0.2;
/// The driver looks for a pump below this share of the tank.
const FUEL_LOW: f64 = 0.12;

/// The towns of the fleet with their mean temperatures. They are inland, with country around them.
const TOWNS: [(f64, f64, f64); 6] = [
    (52.520, 13.405, 10.0), // Berlin
    (48.137, 11.575, 9.0),  // Munich
    (40.417, -3.703, 15.0), // Madrid
    (50.075, 14.437, 9.5),  // Prague
    (52.230, 21.011, 9.0),  // Warsaw
    (48.857, 2.352, 12.0),  // Paris
];

/// A simulated vehicle.
#[derive(Debug, Clone)]
pub(crate) struct Vehicle {
    pub(super) model: &'static Model,
    pub(super) random: Random,
    pub(super) driver: Driver,
    pub(super) engine: Engine,
    pub(super) thermal: Thermal,
    pub(super) faults: Faults,
    pub(super) position: Position,
    pub(super) speed_mps: f64,
    /// Degrees from north over east, 0 to 360.
    pub(super) heading: f64,
    pub(super) odometer_m: f64,
    roughness: Wander,
}

/// The report of a vehicle, in km/h, degrees, degrees Celsius, percent and km.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Report {
    pub latitude: f64,
    pub longitude: f64,
    pub heading: f64,
    pub speed: f64,
    pub rpm: i64,
    pub gear: u8,
    pub fuel_level: f64,
    pub coolant_temperature: f64,
    pub oil_temperature: f64,
    pub ambient_temperature: f64,
    pub engine_load: f64,
    pub throttle: f64,
    pub odometer: f64,
    pub ignition: bool,
    pub fault_codes: Vec<&'static str>,
}

impl Vehicle {
    /// A vehicle after some minutes of driving.
    pub(super) fn new(mut random: Random) -> Self {
        let model = pick_model(&mut random);
        let &(latitude, longitude, climate_c) = random.pick(&TOWNS);
        let home = Position { latitude, longitude };
        let start = home.ahead(random.between(0.0, 360.0), random.between(500.0, 9_000.0));
        let warm_up_s = random.between(30.0, 240.0);
        let mut vehicle = Self {
            model,
            driver: Driver::new(home, &mut random),
            engine: Engine::new(model.tank_l * random.between(0.14, 1.0)),
            thermal: Thermal::new(climate_c, &mut random),
            faults: Faults::default(),
            position: start,
            speed_mps: 0.0,
            heading: random.between(0.0, 360.0),
            odometer_m: random.between(5e6, 250e6),
            roughness: Wander::default(),
            random,
        };
        vehicle.step(warm_up_s);
        vehicle
    }

    /// Advances the vehicle by some seconds.
    pub(crate) fn step(&mut self, seconds: f64) {
        let steps = (seconds / STEP_MAX_S).ceil().max(1.0);
        for _ in 0..steps as u64 {
            self.small_step(seconds / steps);
        }
    }

    fn small_step(&mut self, dt_s: f64) {
        let situation = self.situation();
        let control = self.driver.control(&situation, &mut self.random, dt_s);
        let most = self.engine.acceleration_available(self.model, self.speed_mps);
        let acceleration = if self.driver.is_ignition_on() {
            control.acceleration.clamp(-BRAKING_MAX, most.max(-BRAKING_MAX))
        } else {
            0.0
        };
        let before = self.speed_mps;
        self.speed_mps = (before + acceleration * dt_s).clamp(0.0, self.model.speed_max_mps);
        self.move_ahead((before + self.speed_mps) / 2.0 * dt_s, control.turn_rate * dt_s);
        self.run_engine((self.speed_mps - before) / dt_s, dt_s);
        if self.driver.activity == Activity::Refuelling {
            self.refuel(dt_s);
        }
    }

    fn move_ahead(&mut self, distance_m: f64, turn: f64) {
        self.heading = (self.heading + turn).rem_euclid(360.0);
        self.position = self.position.ahead(self.heading, distance_m);
        self.odometer_m += distance_m;
        let situation = self.situation();
        self.driver.moved(distance_m, &situation, &mut self.random);
    }

    fn run_engine(&mut self, acceleration: f64, dt_s: f64) {
        let ignition = self.driver.is_ignition_on();
        if ignition {
            let rough = self.roughness.step(&mut self.random, dt_s, 2.0, 6.0).clamp(-12.0, 12.0);
            let idle_rpm = self.model.idle_rpm * (1.0 + 0.4 * self.thermal.coldness()) + rough;
            self.engine.run(self.model, self.speed_mps, acceleration, idle_rpm, dt_s);
            self.faults.step(&mut self.random, dt_s);
        } else {
            self.engine.stop();
        }
        self.thermal.step(&mut self.random, ignition.then_some(self.engine.load), dt_s);
    }

    fn refuel(&mut self, dt_s: f64) {
        self.engine.fuel_l = (self.engine.fuel_l + self.model.refuel_l_per_s * dt_s).min(self.model.tank_l);
        if self.engine.fuel_l >= 0.98 * self.model.tank_l {
            self.driver.refuelled(&mut self.random);
        }
    }

    fn situation(&self) -> Situation<'static> {
        Situation {
            model: self.model,
            speed_mps: self.speed_mps,
            heading: self.heading,
            position: self.position,
            needs_fuel: self.engine.fuel_l < FUEL_LOW * self.model.tank_l,
        }
    }

    /// The present report.
    pub(crate) fn report(&self) -> Report {
        Report {
            latitude: rounded(self.position.latitude, 6),
            longitude: rounded(self.position.longitude, 6),
            heading: rounded(self.heading, 1).rem_euclid(360.0),
            speed: rounded(self.speed_mps * 3.6, 1),
            rpm: self.engine.rpm.round() as i64,
            gear: self.engine.gear,
            fuel_level: rounded(100.0 * self.engine.fuel_l / self.model.tank_l, 2),
            coolant_temperature: rounded(self.thermal.coolant_c, 1),
            oil_temperature: rounded(self.thermal.oil_c, 1),
            ambient_temperature: rounded(self.thermal.ambient_c, 1),
            engine_load: rounded(100.0 * self.engine.load, 1),
            throttle: rounded(100.0 * self.engine.throttle, 1),
            odometer: rounded(self.odometer_m / 1_000.0, 3),
            ignition: self.driver.is_ignition_on(),
            fault_codes: self.faults.codes().collect(),
        }
    }
}

fn pick_model(random: &mut Random) -> &'static Model {
    let all: f64 = MODELS.iter().map(|model| model.share).sum();
    let mut pick = random.between(0.0, all);
    let found = MODELS.iter().find(|model| {
        pick -= model.share;
        pick < 0.0
    });
    found.unwrap_or(&MODELS[0])
}

fn rounded(value: f64, decimals: i32) -> f64 {
    let scale = 10_f64.powi(decimals);
    (value * scale).round() / scale
}
