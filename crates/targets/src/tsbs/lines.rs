//! Requests in line protocol, and what must be stored after them.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::faults::Faulty;
use super::trucks::{Entry, FLEETS, MODELS, Table, Tags};

/// The numbers among the tags. InfluxDB's tags are texts, so TSBS writes these as fields.
const NUMBERS: [&str; 3] = ["load_capacity", "fuel_capacity", "nominal_fuel_consumption"];
/// The number of the tag with the truck.
const NAME: usize = 0;
/// The number of the tag with the fleet.
const FLEET: usize = 1;
/// The number of the first of [`NUMBERS`] among the tags.
const FIRST_NUMBER: usize = 5;

/// When trucks report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Times {
    /// The time of the first reports, milliseconds since the epoch.
    pub(super) start_ms: i64,
    pub(super) interval_ms: i64,
    pub(super) steps: u64,
}

impl Times {
    pub(super) fn of(self, step: u64) -> i64 {
        self.start_ms + step as i64 * self.interval_ms
    }

    /// The time after the last reports.
    pub(super) fn end_ms(self) -> i64 {
        self.of(self.steps)
    }
}

/// Makes the requests of a load.
#[derive(Debug)]
pub(super) struct Feed {
    entries: Faulty,
    times: Times,
    lines_per_request: u64,
    pub(super) expected: Expected,
}

/// The body of a request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Body {
    pub(super) text: String,
    pub(super) lines: u64,
}

/// A mean in the making.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Mean {
    sum: f64,
    count: u64,
}

impl Mean {
    fn add(&mut self, value: f64) {
        self.sum += value;
        self.count += 1;
    }

    pub(super) fn value(self) -> f64 {
        self.sum / self.count as f64
    }
}

/// The rows that must be stored.
#[derive(Debug, Default)]
pub(super) struct Expected {
    /// Values by measurement and field.
    pub(super) values: BTreeMap<(Table, &'static str), u64>,
    /// The mean fuel consumption of trucks that move, by fleet; an empty name for reports without one.
    pub(super) fuel: BTreeMap<&'static str, Mean>,
    pub(super) lines: u64,
    /// Values of reports that do not name their truck: two of them may be the same point.
    nameless: HashSet<u64>,
}

impl Feed {
    pub(super) fn new(entries: Faulty, times: Times, lines_per_request: u64) -> Self {
        Self { entries, times, lines_per_request, expected: Expected::default() }
    }

    fn append(&mut self, entry: &Entry, body: &mut Body) {
        let start = body.text.len();
        let tags = *self.entries.tags(entry.truck);
        append_series(entry, &tags, &mut body.text);
        let series = body.text.len();
        let fields = fields(entry, &tags);
        for (at, (name, value)) in fields.iter().enumerate() {
            let comma = if at == 0 { ' ' } else { ',' };
            let end = if *name == "status" { "i" } else { "" };
            // Writing to a string does not fail.
            let _ = write!(body.text, "{comma}{name}={value}{end}");
        }
        let time = self.times.of(entry.step);
        let _ = writeln!(body.text, " {time}");
        body.lines += 1;
        self.expected.add(entry, &tags, &body.text[start..series], time, &fields);
    }
}

impl Iterator for Feed {
    type Item = Body;

    fn next(&mut self) -> Option<Body> {
        let mut body = Body::default();
        while body.lines < self.lines_per_request
            && let Some(entry) = self.entries.next()
        {
            self.append(&entry, &mut body);
        }
        Some(body).filter(|body| body.lines > 0)
    }
}

impl Expected {
    fn add(&mut self, entry: &Entry, tags: &Tags, series: &str, time: i64, fields: &[(&'static str, f64)]) {
        self.lines += 1;
        for (name, _) in fields {
            if entry.no_tag == Some(NAME) {
                let mut hasher = DefaultHasher::new();
                (series, time, name).hash(&mut hasher);
                if !self.nameless.insert(hasher.finish()) {
                    continue;
                }
            }
            *self.values.entry((entry.table, *name)).or_default() += 1;
        }
        let value = |wanted: &str| fields.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
        if value("velocity").is_some_and(|velocity| velocity > 1.0)
            && let Some(consumption) = value("fuel_consumption")
        {
            let fleet = if entry.no_tag == Some(FLEET) { "" } else { FLEETS[tags.fleet] };
            self.fuel.entry(fleet).or_default().add(consumption);
        }
    }
}

/// Measurement and tags.
fn append_series(entry: &Entry, tags: &Tags, text: &mut String) {
    text.push_str(entry.table.name());
    let name = format!("truck_{}", entry.truck);
    let values = [&name, FLEETS[tags.fleet], tags.driver, MODELS[tags.model].name, tags.version];
    let named = ["name", "fleet", "driver", "model", "device_version"].into_iter().zip(values);
    for (_, (key, value)) in named.enumerate().filter(|(at, _)| entry.no_tag != Some(*at)) {
        let _ = write!(text, ",{key}={value}");
    }
}

fn fields(entry: &Entry, tags: &Tags) -> Vec<(&'static str, f64)> {
    let model = MODELS[tags.model];
    let numbers = [model.load_capacity, model.fuel_capacity, model.nominal_fuel_consumption].map(f64::from);
    let numbers = NUMBERS.into_iter().zip(numbers).enumerate();
    let numbers = numbers.filter(|(at, _)| entry.no_tag != Some(FIRST_NUMBER + at));
    let own = entry.table.fields().iter().copied().zip(entry.values).enumerate();
    let own = own.filter(|(at, _)| entry.no_field != Some(*at));
    numbers.chain(own).map(|(_, field)| field).collect()
}

#[cfg(test)]
mod tests {
    use super::super::trucks::Trucks;
    use super::*;

    const TIMES: Times = Times { start_ms: 1_451_606_400_000, interval_ms: 10_000, steps: 60 };

    fn feed() -> Feed {
        Feed::new(Faulty::new(Trucks::new(20, TIMES.steps, 9), 9), TIMES, 100)
    }

    #[test]
    fn every_line_is_line_protocol_and_every_value_is_expected() {
        let mut feed = feed();
        let bodies: Vec<Body> = feed.by_ref().collect();
        let (mut lines, mut values) = (0, 0);
        for (number, body) in bodies.iter().enumerate() {
            assert!(body.lines == 100 || number + 1 == bodies.len());
            for line in wire::line::lines(&body.text) {
                let line = line.unwrap();
                lines += 1;
                values += line.fields.len() as u64;
                let time = line.time.unwrap();
                assert!((TIMES.start_ms..TIMES.end_ms()).contains(&time) && time % 10_000 == 0);
            }
        }
        assert_eq!(feed.expected.lines, lines);
        let expected: u64 = feed.expected.values.values().sum();
        // Only reports that do not name their truck can be the same point.
        assert!(expected <= values && expected >= values - values / 100, "{expected} of {values}");
        assert_eq!(feed.expected.values.len(), 7 + 3 + 2 * NUMBERS.len());
    }

    #[test]
    fn a_missing_tag_or_field_is_not_written() {
        let mut feed = feed();
        let tags = Tags { fleet: 3, driver: "Andy", model: 2, version: "v2.3" };
        let entry = Entry {
            table: Table::Diagnostics,
            truck: 4,
            step: 1,
            values: [0.5, 1_200.0, 3.0, 0.0, 0.0, 0.0, 0.0],
            no_field: Some(0),
            no_tag: Some(NAME),
        };
        let mut text = String::new();
        append_series(&entry, &tags, &mut text);
        assert_eq!(text, "diagnostics,fleet=South,driver=Andy,model=H-2,device_version=v2.3");
        let names: Vec<&str> = fields(&entry, &tags).into_iter().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            ["load_capacity", "fuel_capacity", "nominal_fuel_consumption", "current_load", "status"]
        );
        let without = Entry { no_tag: Some(FIRST_NUMBER), ..entry };
        assert_eq!(fields(&without, &tags)[0], ("fuel_capacity", 150.0));
        for _ in 0..2 {
            feed.expected.add(&entry, &tags, &text, 7, &fields(&entry, &tags));
        }
        assert_eq!(feed.expected.values[&(Table::Diagnostics, "status")], 1, "the same point");
        let mut body = Body::default();
        feed.append(&Entry { no_tag: None, ..entry }, &mut body);
        assert!(body.text.ends_with(",current_load=1200,status=3i 1451606410000\n"), "{}", body.text);
    }
}
