//! The trucks, and what they report: values that walk at random within bounds. The values of a seed never change.

use std::f64::consts::TAU;

use load::dataset::Random;

pub(super) const FLEETS: [&str; 4] = ["East", "West", "North", "South"];
const DRIVERS: [&str; 6] = ["Derek", "Rodney", "Albert", "Andy", "Seth", "Trish"];
const VERSIONS: [&str; 4] = ["v1.0", "v1.5", "v2.0", "v2.3"];
pub(super) const MODELS: [Model; 3] = [
    Model { name: "F-150", load_capacity: 2000, fuel_capacity: 200, nominal_fuel_consumption: 15 },
    Model { name: "G-2000", load_capacity: 5000, fuel_capacity: 300, nominal_fuel_consumption: 19 },
    Model { name: "H-2", load_capacity: 1500, fuel_capacity: 150, nominal_fuel_consumption: 12 },
];

/// Separates the random numbers of trucks from others of the same seed.
const TRUCKS: u64 = 1;
/// The chance that a truck gets another load from one step to the next.
const LOAD_CHANGE: f64 = 0.05;
const LOAD_MAX: f64 = 5_000.0;

/// A model of trucks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Model {
    pub(super) name: &'static str,
    pub(super) load_capacity: u32,
    pub(super) fuel_capacity: u32,
    pub(super) nominal_fuel_consumption: u32,
}

/// A measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Table {
    /// Place and movement.
    Readings,
    /// Fuel, load and status.
    Diagnostics,
}

impl Table {
    /// Both, in the order in which a truck reports them.
    pub(super) const ALL: [Self; 2] = [Self::Readings, Self::Diagnostics];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Readings => "readings",
            Self::Diagnostics => "diagnostics",
        }
    }

    /// The names of its fields.
    pub(super) fn fields(self) -> &'static [&'static str] {
        match self {
            Self::Readings => {
                &["latitude", "longitude", "elevation", "velocity", "heading", "grade", "fuel_consumption"]
            }
            Self::Diagnostics => &["fuel_state", "current_load", "status"],
        }
    }
}

/// What does not change of a truck.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Tags {
    pub(super) fleet: usize,
    pub(super) driver: &'static str,
    pub(super) model: usize,
    pub(super) version: &'static str,
}

/// A report of a truck: the values of one measurement at one time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Entry {
    pub(super) table: Table,
    pub(super) truck: usize,
    /// The number of intervals since the first report.
    pub(super) step: u64,
    /// The values of [`Table::fields`].
    pub(super) values: [f64; 7],
    /// The number of a field that is missing.
    pub(super) no_field: Option<usize>,
    /// The number of a tag that is missing.
    pub(super) no_tag: Option<usize>,
}

/// All trucks. Each reports at each step: first the readings of all, then the diagnostics of all.
#[derive(Debug)]
pub(super) struct Trucks {
    trucks: Vec<Truck>,
    steps: u64,
    step: u64,
    table: Table,
    next: usize,
}

#[derive(Debug)]
struct Truck {
    tags: Tags,
    random: Random,
    readings: [Walk; 7],
    fuel: Walk,
    load: f64,
    status: f64,
}

/// A value that walks at random between two bounds.
#[derive(Debug, Clone, Copy)]
struct Walk {
    /// The longest step.
    reach: f64,
    low: f64,
    high: f64,
    /// Ten to the number of decimals that are reported.
    scale: f64,
    state: f64,
}

impl Trucks {
    /// The trucks of a seed, which report `steps` times.
    pub(super) fn new(count: usize, steps: u64, seed: u64) -> Self {
        let trucks = (0..count).map(|number| Truck::new(Random::keyed(seed, TRUCKS, number as u64)));
        Self { trucks: trucks.collect(), steps, step: 0, table: Table::Readings, next: 0 }
    }

    /// Whether all have reported for the last time.
    pub(super) fn is_over(&self) -> bool {
        self.step >= self.steps
    }

    /// The tags of a truck.
    pub(super) fn tags(&self, truck: usize) -> &Tags {
        &self.trucks[truck].tags
    }

    fn advance(&mut self) {
        self.next += 1;
        if self.next < self.trucks.len() {
            return;
        }
        self.next = 0;
        self.table = match self.table {
            Table::Readings => Table::Diagnostics,
            Table::Diagnostics => {
                self.step += 1;
                self.trucks.iter_mut().for_each(Truck::tick);
                Table::Readings
            }
        };
    }
}

impl Iterator for Trucks {
    type Item = Entry;

    fn next(&mut self) -> Option<Entry> {
        if self.is_over() {
            return None;
        }
        let (table, truck, step) = (self.table, self.next, self.step);
        let values = self.trucks[truck].values(table);
        self.advance();
        Some(Entry { table, truck, step, values, no_field: None, no_tag: None })
    }
}

impl Truck {
    fn new(mut random: Random) -> Self {
        let mut one_of = |count: usize| random.below(count as u64) as usize;
        let tags = Tags {
            model: one_of(MODELS.len()),
            fleet: one_of(FLEETS.len()),
            driver: DRIVERS[one_of(DRIVERS.len())],
            version: VERSIONS[one_of(VERSIONS.len())],
        };
        let mut unit = || random.unit();
        let readings = [
            Walk { reach: 0.005, low: -90.0, high: 90.0, scale: 1e5, state: unit() * 90.0 },
            Walk { reach: 0.005, low: -180.0, high: 180.0, scale: 1e5, state: unit() * 180.0 },
            Walk { reach: 10.0, low: 0.0, high: 5_000.0, scale: 1.0, state: unit() * 500.0 },
            Walk { reach: 10.0, low: 0.0, high: 100.0, scale: 1.0, state: 0.0 },
            Walk { reach: 5.0, low: 0.0, high: 360.0, scale: 1.0, state: unit() * 360.0 },
            Walk { reach: 5.0, low: 0.0, high: 100.0, scale: 1.0, state: 0.0 },
            Walk { reach: 5.0, low: 0.0, high: 50.0, scale: 10.0, state: 25.0 },
        ];
        // Fuel only goes down: half the way of the walk, from its middle.
        let fuel = Walk { reach: 0.000_5, low: 0.0, high: 1.0, scale: 10.0, state: 1.0 };
        let load = unit() * LOAD_MAX;
        Self { tags, random, readings, fuel, load, status: 0.0 }
    }

    fn tick(&mut self) {
        let Self { random, readings, fuel, .. } = self;
        readings.iter_mut().for_each(|walk| walk.step(random, 0.0));
        fuel.step(random, -0.000_5);
        if fuel.state <= fuel.low {
            fuel.state = fuel.high;
        }
        if self.random.unit() < LOAD_CHANGE {
            self.load = self.random.unit() * LOAD_MAX;
        }
        self.status = (self.status + normal(&mut self.random)).clamp(0.0, 5.0);
    }

    fn values(&self, table: Table) -> [f64; 7] {
        match table {
            Table::Readings => self.readings.map(|walk| walk.reported()),
            Table::Diagnostics => {
                let (load, status) = (self.load.trunc(), self.status.trunc());
                [self.fuel.reported(), load, status, 0.0, 0.0, 0.0, 0.0]
            }
        }
    }
}

impl Walk {
    fn step(&mut self, random: &mut Random, drift: f64) {
        let step = drift + (2.0 * random.unit() - 1.0) * self.reach;
        self.state = (self.state + step).clamp(self.low, self.high);
    }

    fn reported(&self) -> f64 {
        (self.state * self.scale).trunc() / self.scale
    }
}

/// A draw of the standard normal distribution (Box and Muller 1958).
fn normal(random: &mut Random) -> f64 {
    let (radius, angle) = (1.0 - random.unit(), random.unit());
    (-2.0 * radius.ln()).sqrt() * (TAU * angle).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_truck_reports_each_measurement_at_each_step() {
        let all: Vec<Entry> = Trucks::new(3, 2, 7).collect();
        let order: Vec<_> = all.iter().map(|entry| (entry.step, entry.table, entry.truck)).collect();
        let expected: Vec<_> = (0..2)
            .flat_map(|step| Table::ALL.map(|table| (step, table)))
            .flat_map(|(step, table)| (0..3).map(move |truck| (step, table, truck)))
            .collect();
        assert_eq!(order, expected);
        assert_eq!(Trucks::new(3, 2, 7).collect::<Vec<_>>(), all, "a seed gives the same values");
        assert_ne!(Trucks::new(3, 2, 8).collect::<Vec<_>>(), all);
    }

    #[test]
    fn values_stay_within_their_bounds_and_reach_them() {
        let (mut highest, mut lowest) = ([[f64::MIN; 7]; 2], [[f64::MAX; 7]; 2]);
        for entry in Trucks::new(20, 5_000, 1) {
            let table = usize::from(entry.table == Table::Diagnostics);
            for (field, value) in entry.values.into_iter().enumerate() {
                highest[table][field] = highest[table][field].max(value);
                lowest[table][field] = lowest[table][field].min(value);
            }
        }
        let [readings, diagnostics] = highest;
        assert_eq!((readings[3], readings[5], readings[6]), (100.0, 100.0, 50.0));
        assert!(readings[0] <= 90.0 && readings[4] <= 360.0);
        assert_eq!((diagnostics[0], diagnostics[2]), (1.0, 5.0));
        assert!((4_900.0..=5_000.0).contains(&diagnostics[1]), "{diagnostics:?}");
        assert_eq!((lowest[0][3], lowest[1][0], lowest[1][2]), (0.0, 0.0, 0.0));
    }
}
