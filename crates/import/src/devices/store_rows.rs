//! The second pass: stores rows of devices in their tables, through a running server or directly in a data directory. Both
//! ways keep the microseconds of a time.

use std::borrow::Cow;
use std::collections::BTreeMap;

use anyhow::{Context, bail, ensure};
use hub::bulk::{Columns, ImportCounts, ImportRules, Importer};
use indicatif::HumanCount;
use model::calendar::exact_of_micros;
use model::limits::EXPORT_BATCH_ROWS;
use model::series::DEVICE_TAG;
use model::{TableName, TimeRange, Timestamp};
use serde_json::{Value, json};
use wire::line::{Line, LineValue};

use super::destination::{Destination, KnownDevice};
use super::plan::{FilePlan, Plan};
use super::report;
use super::rows::{Row, Rows};
use crate::duplicate_rows::DuplicateRows;
use crate::outcome::{FileOutcome, SkipPolicy, hint, totals};
use crate::progress::{Counted, StartProgress};
use crate::sink::RowSink;
use crate::table_rows::TableRows;
use crate::time::TimeFormat;

/// The options of one import.
pub struct Settings<'a> {
    /// What happens when something cannot be imported.
    pub skip_policy: SkipPolicy,
    /// The limits on rows.
    pub rules: ImportRules,
    /// Whether any year is accepted.
    pub any_time: bool,
    /// Whether missing devices are added.
    pub create: bool,
    /// Shows the progress.
    pub progress: &'a StartProgress,
}

/// The result of an import.
#[derive(Debug)]
pub struct Imported {
    /// The outcome of each file.
    pub files: Vec<FileOutcome>,
    /// The devices by name.
    pub devices: BTreeMap<String, DeviceRows>,
    /// The result of reading the values back.
    pub verified: String,
}

/// The imported rows of one device.
#[derive(Debug)]
pub struct DeviceRows {
    /// The device in the destination.
    pub known: KnownDevice,
    /// The number of rows, and of values by key. A value that a later row of the same time replaces is counted once.
    pub rows: u64,
    pub(crate) by_key: BTreeMap<String, u64>,
    /// The times of the earliest and the latest row.
    pub(crate) first_us: i64,
    pub(crate) last_us: i64,
}

/// The outcome that an import of the plan would have.
pub fn examine(plan: &Plan, settings: &Settings<'_>) -> anyhow::Result<Vec<FileOutcome>> {
    let known = KnownDevice { table: any_table().to_owned(), id: None, is_new: false };
    let mut devices = devices_of(plan, |_| Ok(known.clone()))?;
    let mut make = |table: &str, columns: Columns| -> anyhow::Result<Box<dyn RowSink>> {
        Ok(Box::new(Importer::examine(&TableName::try_from(table)?, columns, settings.rules)))
    };
    all_files(plan, settings, &mut devices, &mut make)
}

/// Any table: examining rows does not depend on it.
fn any_table() -> &'static str {
    hub::registry::DEFAULT_TABLE
}

/// Imports the rows of a plan and reads the values back.
pub fn import(plan: &Plan, settings: &Settings<'_>, to: &Destination) -> anyhow::Result<Imported> {
    let mut devices = devices_of(plan, |name| to.device(name, settings.create))?;
    let files = {
        let mut make =
            |table: &str, columns: Columns| to.sink(table, columns, settings.rules, settings.any_time);
        all_files(plan, settings, &mut devices, &mut make)?
    };
    devices.retain(|_, device| device.rows > 0 || device.known.is_new);
    let verified = verify(to, &devices, &files)?;
    Ok(Imported { files, devices, verified })
}

fn devices_of(
    plan: &Plan,
    mut known: impl FnMut(&str) -> anyhow::Result<KnownDevice>,
) -> anyhow::Result<BTreeMap<String, DeviceRows>> {
    let of = |name: &String| {
        let (first_us, last_us) = (i64::MAX, i64::MIN);
        let known = known(name)?;
        Ok((name.clone(), DeviceRows { known, rows: 0, by_key: BTreeMap::new(), first_us, last_us }))
    };
    plan.devices.iter().map(of).collect()
}

type MakeSink<'a, 's> = dyn FnMut(&str, Columns) -> anyhow::Result<Box<dyn RowSink + 's>> + 'a;

fn all_files<'s>(
    plan: &Plan,
    settings: &Settings<'_>,
    devices: &mut BTreeMap<String, DeviceRows>,
    make: &mut MakeSink<'_, 's>,
) -> anyhow::Result<Vec<FileOutcome>> {
    let mut index = 0;
    let mut outcomes = Vec::new();
    for file in &plan.files {
        let done: u64 = outcomes.iter().map(|file: &FileOutcome| file.counts.rows).sum();
        let outcome = one_file(plan, file, settings, devices, &mut index, make);
        outcomes.push(outcome.with_context(|| {
            format!(
                "{}: stopped after {done} rows of earlier files; importing again is safe with the same --start: a row is known by its time",
                file.path.display()
            )
        })?);
    }
    Ok(outcomes)
}

fn one_file<'s>(
    plan: &Plan,
    file: &FilePlan,
    settings: &Settings<'_>,
    devices: &mut BTreeMap<String, DeviceRows>,
    index: &mut u64,
    make: &mut MakeSink<'_, 's>,
) -> anyhow::Result<FileOutcome> {
    let mut rows = Rows::open_again(&file.path, &plan.roles, &file.seen)?;
    let mut progress = (settings.progress)(Counted::Rows);
    let mut repeated = DuplicateRows::new(false);
    let mut counts = ImportCounts::default();
    let mut tables: BTreeMap<String, TableRows> = BTreeMap::new();
    let mut waiting = 0;
    while let Some(row) = rows.next()? {
        let ts = row.time.map_or_else(|| plan.clock.at(*index), |time| time.micros);
        *index += 1;
        if row.values.is_empty() {
            continue;
        }
        let name = row.device.as_deref().or(file.device.as_deref());
        let device = name.and_then(|name| Some((name, devices.get_mut(name)?)));
        let Some((name, device)) = device else {
            bail!("{} changed while it was imported; import it again", file.path.display());
        };
        if settings.rules.plausible.contains(Timestamp::from_micros(ts)) {
            let is_new = repeated.row(&device.known.table, name, ts);
            device.count(&row, file, ts, is_new);
        }
        let rows_of_table = match tables.get_mut(&device.known.table) {
            Some(rows) => rows,
            None => tables.entry(device.known.table.clone()).or_default(),
        };
        rows_of_table.push(line_of(&row, file, name), Some(ts));
        waiting += 1;
        if waiting >= EXPORT_BATCH_ROWS {
            waiting = 0;
            counts.add(&flush(&mut tables, make)?);
            progress(rows.cells.rows, file.cells.rows);
        }
    }
    counts.add(&flush(&mut tables, make)?);
    drop(progress);
    ensure!(
        rows.cells.rows == file.cells.rows,
        "{} changed while it was imported; import it again",
        file.path.display()
    );
    let first = counts.first_implausible_us;
    let hint = match &plan.roles.times.format {
        TimeFormat::Epoch(unit) => hint(first, *unit, &settings.rules, "--ts-format"),
        _ => None,
    };
    let mut outcome = report::outcome(file, &rows);
    counts.add(&outcome.counts);
    outcome.counts = counts;
    Ok(FileOutcome { repeated: repeated.rows, repeated_is_least: repeated.is_least, hint, ..outcome })
}

fn flush<'s>(
    tables: &mut BTreeMap<String, TableRows>,
    make: &mut MakeSink<'_, 's>,
) -> anyhow::Result<ImportCounts> {
    let mut counts = ImportCounts::default();
    for (table, rows) in std::mem::take(tables) {
        let rows = rows.finish()?;
        let mut sink = make(&table, Columns::of(rows.schema_ref(), &[], None)?)?;
        sink.rows(&rows)?;
        counts.add(&sink.sync()?);
    }
    Ok(counts)
}

fn line_of<'a>(row: &'a Row, file: &'a FilePlan, device: &'a str) -> Line<'a> {
    let value = |value: &'a Value| match value {
        Value::Number(number) => match number.as_i64() {
            Some(whole) => LineValue::I64(whole),
            None => LineValue::F64(number.as_f64().expect("BUG: a cell's number is finite")),
        },
        Value::String(text) => LineValue::Text(Cow::Borrowed(text)),
        other => unreachable!("BUG: a cell is not a {other}"),
    };
    let fields = row.values.iter();
    let fields = fields.map(|(at, cell)| (Cow::Borrowed(file.columns[*at].key.as_str()), value(cell)));
    Line {
        measurement: Cow::Borrowed(""),
        tags: vec![(Cow::Borrowed(DEVICE_TAG), Cow::Borrowed(device))],
        fields: fields.collect(),
        time: None,
    }
}

impl DeviceRows {
    fn count(&mut self, row: &Row, file: &FilePlan, ts: i64, is_new: bool) {
        self.rows += 1;
        self.first_us = self.first_us.min(ts);
        self.last_us = self.last_us.max(ts);
        for (at, _) in row.values.iter().filter(|_| is_new) {
            let key = file.columns[*at].key.as_str();
            match self.by_key.get_mut(key) {
                Some(count) => *count += 1,
                None => drop(self.by_key.insert(key.to_owned(), 1)),
            }
        }
    }

    /// The time range of its rows.
    pub(super) fn range(&self) -> TimeRange {
        TimeRange::new(
            Timestamp::from_micros(self.first_us),
            Timestamp::from_micros(self.last_us.saturating_add(1)),
        )
    }

    /// The report of this device as JSON.
    pub fn json(&self, name: &str) -> Value {
        let time = |us: i64| (self.rows > 0).then(|| exact_of_micros(us));
        json!({
            "device": name,
            "table": self.known.table,
            "created": self.known.is_new,
            "rows": self.rows,
            "first": time(self.first_us),
            "last": time(self.last_us),
        })
    }
}

/// Compares the number of values in the destination with the number that was imported.
fn verify(
    to: &Destination,
    devices: &BTreeMap<String, DeviceRows>,
    files: &[FileOutcome],
) -> anyhow::Result<String> {
    // The values of refused rows are not counted by key, so the expected numbers are unknown.
    let exact = files.iter().all(|file| {
        let counts = &file.counts;
        counts.too_old + counts.bad_tags + counts.too_long == 0 && !file.repeated_is_least
    });
    if !exact {
        return Ok(
            "not read back: some rows were refused, so the rows that must be there are not known".to_owned()
        );
    }
    let (mut wanted, mut found, mut keys, mut missing) = (0, 0, 0, Vec::new());
    for (name, device) in devices.iter().filter(|(_, device)| device.rows > 0) {
        let asked: Vec<&str> = device.by_key.keys().map(String::as_str).collect();
        let counts = to.count(name, &device.known, &asked, device.range())?;
        for (key, acknowledged) in &device.by_key {
            let stored = counts.get(key).copied().unwrap_or(0);
            if stored < *acknowledged {
                missing.push(format!("{name}, {key}: {acknowledged} acknowledged, {stored} found"));
            }
            wanted += acknowledged;
            found += stored;
        }
        keys += asked.len();
    }
    if !missing.is_empty() {
        bail!("not everything that was acknowledged is there:\n{}", missing.join("\n"));
    }
    let others = if found > wanted {
        format!("; {} other values of these keys lie in the same time", found - wanted)
    } else {
        String::new()
    };
    Ok(format!("read back: all {wanted} values of {keys} keys are there{others}"))
}

/// The last lines of a report.
pub fn summary(imported: &Imported) -> String {
    let [rows, values, skipped, lost] = totals(&imported.files);
    let mut lines = Vec::new();
    const SHOWN: usize = 10;
    for (name, device) in imported.devices.iter().take(SHOWN) {
        let new = if device.known.is_new { ", a new device" } else { "" };
        let what = match device.rows {
            0 => "nothing".to_owned(),
            rows => format!(
                "{} rows from {} to {}",
                HumanCount(rows),
                exact_of_micros(device.first_us),
                exact_of_micros(device.last_us)
            ),
        };
        lines.push(format!("stored as \"{name}\" in {}{new}: {what}", device.known.table));
    }
    if imported.devices.len() > SHOWN {
        lines.push(format!("and {} devices more", imported.devices.len() - SHOWN));
    }
    let lost = match lost {
        0 => String::new(),
        lost => format!(", {} cells skipped", HumanCount(lost)),
    };
    lines.push(format!(
        "imported  {} rows with {} values of {} devices, {} rows skipped{lost}",
        HumanCount(rows),
        HumanCount(values),
        HumanCount(imported.devices.len() as u64),
        HumanCount(skipped)
    ));
    lines.push(imported.verified.clone());
    lines.join("\n")
}
