//! The engine and gearbox: computes gear, revolutions, load and fuel from the motion.

use super::models::Model;

/// Share of the engine's power that reaches the wheels.
const DRIVE_EFFICIENCY: f64 = 0.9;
/// Lights, pumps, air conditioning.
const ACCESSORIES_W: f64 = 700.0;
/// Fuel per energy at the shaft, in litres per kWh: 260 g/kWh at 0.78 kg/l.
const FUEL_L_PER_KWH: f64 = 0.33;
/// Shortest time between two gear changes.
const SHIFT_S: f64 = 0.4;
/// Above this load the gearbox changes down rather than up.
const KICK_DOWN_LOAD: f64 = 0.92;

/// Engine and gearbox.
#[derive(Debug, Clone)]
pub(super) struct Engine {
    /// 0 when stopped or off.
    pub gear: u8,
    pub rpm: f64,
    /// 0 to 1: power given, of the power available at these revolutions.
    pub load: f64,
    /// 0 to 1: how far the pedal is pressed.
    pub throttle: f64,
    /// 0 to `tank_l`.
    pub fuel_l: f64,
    since_shift_s: f64,
}

impl Engine {
    pub(super) fn new(fuel_l: f64) -> Self {
        Self { gear: 0, rpm: 0.0, load: 0.0, throttle: 0.0, fuel_l, since_shift_s: 0.0 }
    }

    /// The strongest acceleration that the engine gives at this speed in this gear.
    pub(super) fn acceleration_available(&self, model: &Model, speed_mps: f64) -> f64 {
        let power = model.power_available_w(self.rpm.max(model.idle_rpm)) - ACCESSORIES_W;
        let force = DRIVE_EFFICIENCY * power / speed_mps.max(1.0) - model.resistance_n(speed_mps);
        (force / model.moved_mass_kg()).min(model.acceleration_max)
    }

    /// Takes one step at a speed and acceleration; `idle_rpm` is higher while the engine is cold.
    pub(super) fn run(&mut self, model: &Model, speed_mps: f64, acceleration: f64, idle_rpm: f64, dt_s: f64) {
        self.shift(model, speed_mps, dt_s);
        let closed_rpm = if self.gear > 0 { model.rpm_at(speed_mps, self.gear) } else { 0.0 };
        // Below idle the clutch slips and the engine holds its idle speed.
        self.rpm = closed_rpm.max(idle_rpm);
        let force = model.moved_mass_kg() * acceleration + model.resistance_n(speed_mps);
        let wheel_w = force * speed_mps;
        let shaft_w = wheel_w.max(0.0) / DRIVE_EFFICIENCY + ACCESSORIES_W;
        self.load = (shaft_w / model.power_available_w(self.rpm)).clamp(0.0, 1.0);
        let overrun = wheel_w < 0.0 && closed_rpm > 1.3 * model.idle_rpm;
        self.throttle = if wheel_w <= 0.0 { 0.0 } else { 0.08 + 0.92 * self.load };
        if !overrun {
            let fuel_l_per_h = shaft_w / 1_000.0 * FUEL_L_PER_KWH + model.idle_fuel_l_per_h * 0.7;
            self.fuel_l = (self.fuel_l - fuel_l_per_h / 3_600.0 * dt_s).max(0.0);
        }
    }

    /// Stands with the engine off.
    pub(super) fn stop(&mut self) {
        (self.gear, self.rpm, self.load, self.throttle) = (0, 0.0, 0.0, 0.0);
    }

    fn shift(&mut self, model: &Model, speed_mps: f64, dt_s: f64) {
        self.since_shift_s += dt_s;
        let wanted = self.wanted_gear(model, speed_mps);
        // Changes into neutral and out of it need no pause.
        if wanted != self.gear && (self.since_shift_s >= SHIFT_S || wanted == 0 || self.gear == 0) {
            (self.gear, self.since_shift_s) = (wanted, 0.0);
        }
    }

    fn wanted_gear(&self, model: &Model, speed_mps: f64) -> u8 {
        if speed_mps <= 0.0 {
            return 0;
        }
        let gear = self.gear.max(1);
        let rpm = model.rpm_at(speed_mps, gear);
        // With hard acceleration the gearbox changes up later.
        let shift_up =
            model.shift_up_rpm + (0.85 * model.rpm_max - model.shift_up_rpm).max(0.0) * self.load.powi(2);
        if gear < model.top_gear()
            && rpm > shift_up
            && self.can_pull(model, rpm, model.rpm_at(speed_mps, gear + 1))
        {
            return gear + 1;
        }
        let strained =
            self.load > KICK_DOWN_LOAD && model.rpm_at(speed_mps, gear.max(2) - 1) < 0.8 * model.rpm_max;
        if gear > 1 && (rpm < model.shift_down_rpm || strained) {
            return gear - 1;
        }
        gear
    }

    /// Whether the next gear makes sense: its revolutions are high enough, and its load needs no change down at once.
    fn can_pull(&self, model: &Model, rpm: f64, next_rpm: f64) -> bool {
        let next_load = self.load * model.power_available_w(rpm) / model.power_available_w(next_rpm);
        next_rpm > model.shift_down_rpm && (next_load < 0.9 * KICK_DOWN_LOAD || rpm > 0.8 * model.rpm_max)
    }
}
