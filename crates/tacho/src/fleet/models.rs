//! Kinds of vehicles, with round numbers of real ones.

/// The constants of a vehicle, in SI units unless the name has a unit.
#[derive(Debug)]
pub(super) struct Model {
    /// Share of the fleet, relative to the others.
    pub share: f64,
    pub mass_kg: f64,
    pub power_max_w: f64,
    /// Drag coefficient times frontal area.
    pub drag_area_m2: f64,
    pub rolling_resistance: f64,
    pub wheel_radius_m: f64,
    pub final_ratio: f64,
    /// The ratios, from first gear on.
    pub gear_ratios: &'static [f64],
    pub idle_rpm: f64,
    pub rpm_max: f64,
    /// Revolutions at which a calm driver changes up and down.
    pub shift_up_rpm: f64,
    pub shift_down_rpm: f64,
    pub speed_max_mps: f64,
    pub acceleration_max: f64,
    pub tank_l: f64,
    pub idle_fuel_l_per_h: f64,
    /// The rate at which a pump fills the tank.
    pub refuel_l_per_s: f64,
}

/// Hardest braking of a driver who sees the stop coming.
pub(super) const BRAKING_MAX: f64 = 4.0;

const KMH: f64 = 1.0 / 3.6;

pub(super) static MODELS: [Model; 3] = [
    // A compact car.
    Model {
        share: 6.0,
        mass_kg: 1_250.0,
        power_max_w: 75_000.0,
        drag_area_m2: 0.62,
        rolling_resistance: 0.011,
        wheel_radius_m: 0.31,
        final_ratio: 4.06,
        gear_ratios: &[3.55, 1.96, 1.30, 0.98, 0.78, 0.65],
        idle_rpm: 780.0,
        rpm_max: 6_000.0,
        shift_up_rpm: 2_600.0,
        shift_down_rpm: 1_250.0,
        speed_max_mps: 165.0 * KMH,
        acceleration_max: 2.4,
        tank_l: 45.0,
        idle_fuel_l_per_h: 0.7,
        refuel_l_per_s: 0.6,
    },
    // A loaded delivery van.
    Model {
        share: 3.0,
        mass_kg: 2_600.0,
        power_max_w: 105_000.0,
        drag_area_m2: 1.5,
        rolling_resistance: 0.010,
        wheel_radius_m: 0.34,
        final_ratio: 3.9,
        gear_ratios: &[4.30, 2.35, 1.45, 1.0, 0.78, 0.64],
        idle_rpm: 750.0,
        rpm_max: 4_300.0,
        shift_up_rpm: 2_400.0,
        shift_down_rpm: 1_200.0,
        speed_max_mps: 140.0 * KMH,
        acceleration_max: 1.8,
        tank_l: 70.0,
        idle_fuel_l_per_h: 0.9,
        refuel_l_per_s: 0.7,
    },
    // A 12-tonne truck.
    Model {
        share: 1.0,
        mass_kg: 12_000.0,
        power_max_w: 180_000.0,
        drag_area_m2: 5.0,
        rolling_resistance: 0.007,
        wheel_radius_m: 0.48,
        final_ratio: 4.1,
        gear_ratios: &[7.0, 4.1, 2.6, 1.7, 1.3, 1.0, 0.78],
        idle_rpm: 600.0,
        rpm_max: 2_500.0,
        shift_up_rpm: 1_800.0,
        shift_down_rpm: 1_000.0,
        speed_max_mps: 90.0 * KMH,
        acceleration_max: 1.1,
        tank_l: 200.0,
        idle_fuel_l_per_h: 2.0,
        refuel_l_per_s: 1.3,
    },
];

impl Model {
    /// The engine's revolutions per minute when gear `gear` (1 is the first) is closed at a speed.
    pub(super) fn rpm_at(&self, speed_mps: f64, gear: u8) -> f64 {
        let wheel_turns_per_s = speed_mps / (std::f64::consts::TAU * self.wheel_radius_m);
        wheel_turns_per_s * self.gear_ratios[usize::from(gear) - 1] * self.final_ratio * 60.0
    }

    /// The highest gear.
    pub(super) fn top_gear(&self) -> u8 {
        self.gear_ratios.len() as u8
    }

    /// Force of air and road against the motion.
    pub(super) fn resistance_n(&self, speed_mps: f64) -> f64 {
        const GRAVITY: f64 = 9.81;
        const AIR_KG_PER_M3: f64 = 1.2;
        let rolling = if speed_mps > 0.0 { self.mass_kg * GRAVITY * self.rolling_resistance } else { 0.0 };
        rolling + 0.5 * AIR_KG_PER_M3 * self.drag_area_m2 * speed_mps * speed_mps
    }

    /// Mass that acceleration must move: turning wheels and shafts count too.
    pub(super) fn moved_mass_kg(&self) -> f64 {
        self.mass_kg * 1.05
    }

    /// What the engine can give at a number of revolutions; full power from nine tenths of the highest on.
    pub(super) fn power_available_w(&self, rpm: f64) -> f64 {
        self.power_max_w * (rpm / (0.9 * self.rpm_max)).clamp(0.0, 1.0)
    }
}
