//! `tacho sensor run`: a virtual sensor over CSV files.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use csv::{Reader, StringRecord};
use model::calendar::Moment;
use sensors::virtual_sensors::descriptor::Descriptor;
use sensors::virtual_sensors::plan::SourceId;
use sensors::virtual_sensors::{Counters, Datum, OutputRow, Plan, Sensor};

use super::file;

/// Runs a virtual sensor over CSV files and prints its output as CSV
///
/// The first line of a file has the names of the fields. The column `timed` is the time of an element: milliseconds since 1970, or
/// RFC 3339. Lines are in the order of their times, and the clock is at the time of the line; with --lateness they may be
/// out of order by that much. Slides in time end with the last line. A cell that is a number is a number unless the descriptor
/// states that its field is text; an empty cell is not a value.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho sensor run street.xml --csv road.csv
  tacho sensor run gradient.xml --csv inside=in.csv --csv outside=out.csv --lateness 5000")]
pub(crate) struct RunArgs {
    /// XML of GSN, or TOML
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The elements of a source; with several sources, ALIAS=FILE for each, or STREAM.ALIAS=FILE
    #[arg(long, value_name = "[ALIAS=]FILE", required = true)]
    csv: Vec<String>,
    /// Uses event time: an element waits for earlier ones until another is MS milliseconds later [default: the lateness of the
    /// descriptor]
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(i64).range(0..))]
    lateness: Option<i64>,
}

pub(super) fn run(args: &RunArgs) -> anyhow::Result<()> {
    let descriptor = file::descriptor(&args.file)?;
    let mut files = files(args, &descriptor)?;
    let header = |source: &sensors::virtual_sensors::descriptor::Source| {
        let file = files.values().find(|file| file.alias_place == source.alias.place)?;
        Some(file.fields.clone())
    };
    let plan = Plan::with_fields(&descriptor, &header).with_context(|| args.file.display().to_string())?;
    let plan = Arc::new(plan);
    for (id, source) in plan.sources() {
        if let Some(file) = files.get_mut(&id) {
            file.is_text = file.fields.iter().map(|field| source.text_columns.contains(field)).collect();
        }
    }
    let mut out = csv::Writer::from_writer(io::stdout().lock());
    let names = plan.output.iter().map(|field| field.name.value.as_str());
    write(&mut out, std::iter::once("timed").chain(names).map(str::to_owned).collect())?;
    let lateness = args.lateness.or(plan.lateness);
    let mut sensor = Sensor::new(plan, lateness);
    let mut rows = Vec::new();
    let mut waiting: BTreeMap<SourceId, (i64, StringRecord)> = BTreeMap::new();
    for (id, file) in &mut files {
        waiting.extend(file.next()?.map(|line| (*id, line)));
    }
    while let Some((id, timed)) =
        waiting.iter().map(|(id, (timed, _))| (*id, *timed)).min_by_key(|(_, timed)| *timed)
    {
        let Some((_, record)) = waiting.remove(&id) else { break };
        let file = files.get_mut(&id).context("the file of a source")?;
        sensor.element(id, timed, timed, &mut |name| file.value(&record, name), &mut rows);
        print(&mut out, &mut rows)?;
        waiting.extend(file.next()?.map(|line| (id, line)));
    }
    sensor.finish(&mut rows);
    print(&mut out, &mut rows)?;
    out.flush().context("cannot write to standard output")?;
    report(&sensor.counters())
}

/// The file of each source.
fn files(args: &RunArgs, descriptor: &Descriptor) -> anyhow::Result<BTreeMap<SourceId, Lines>> {
    let mut sources = Vec::new();
    for (stream, said) in descriptor.streams.iter().enumerate() {
        for (source, said_source) in said.sources.iter().enumerate() {
            let id = SourceId { stream, source };
            sources.push((id, said.name.value.as_str(), &said_source.alias));
        }
    }
    let mut files = BTreeMap::new();
    for word in &args.csv {
        let named = word.split_once('=').map(|(name, path)| (name.to_lowercase(), path));
        let fits = |(_, stream, alias): &&(SourceId, &str, &_)| -> bool {
            let alias: &sensors::virtual_sensors::descriptor::Located<String> = alias;
            named
                .as_ref()
                .is_none_or(|(name, _)| *name == alias.value || *name == format!("{stream}.{}", alias.value))
        };
        let fitting: Vec<_> = sources.iter().filter(fits).collect();
        let aliases = || {
            let names = sources.iter().map(|(_, stream, alias)| format!("{stream}.{}", alias.value));
            names.collect::<Vec<_>>().join(", ")
        };
        let [(id, _, alias)] = fitting[..] else {
            bail!("--csv {word} fits {} sources; name one of {}", fitting.len(), aliases());
        };
        let path = named.map_or(word.as_str(), |(_, path)| path);
        if files.insert(*id, Lines::open(Path::new(path), alias.place)?).is_some() {
            bail!("--csv gives source {} twice", alias.value);
        }
    }
    Ok(files)
}

/// The lines of a CSV file.
struct Lines {
    path: PathBuf,
    reader: Reader<File>,
    /// The names of the columns, in lower case.
    fields: Vec<String>,
    is_text: Vec<bool>,
    timed: usize,
    /// Where the descriptor says the alias of the source.
    alias_place: sensors::virtual_sensors::TextPosition,
}

impl Lines {
    fn open(path: &Path, alias_place: sensors::virtual_sensors::TextPosition) -> anyhow::Result<Self> {
        let context = || format!("cannot read {}", path.display());
        let mut reader = csv::ReaderBuilder::new().from_path(path).with_context(context)?;
        let header = reader.headers().with_context(context)?;
        let fields: Vec<String> = header.iter().map(|name| name.trim().to_lowercase()).collect();
        let timed = fields.iter().position(|name| name == "timed");
        let timed = timed.ok_or_else(|| anyhow!("{} has no column timed", path.display()))?;
        let is_text = vec![false; fields.len()];
        Ok(Self { path: path.to_owned(), reader, fields, is_text, timed, alias_place })
    }

    fn next(&mut self) -> anyhow::Result<Option<(i64, StringRecord)>> {
        let mut record = StringRecord::new();
        let path = &self.path;
        let read = self.reader.read_record(&mut record);
        if !read.with_context(|| format!("cannot read {}", path.display()))? {
            return Ok(None);
        }
        let text = record.get(self.timed).unwrap_or_default().trim();
        let timed = match text.parse::<i64>() {
            Ok(millis) => millis,
            Err(_) => text.parse::<Moment>().map(Moment::millis).map_err(|_| {
                let line = record.position().map_or(0, csv::Position::line);
                anyhow!(
                    "{}, line {line}: {text:?} is not a time; timed is milliseconds since 1970, or RFC 3339",
                    path.display()
                )
            })?,
        };
        Ok(Some((timed, record)))
    }

    fn value(&self, record: &StringRecord, name: &str) -> Datum {
        let Some(column) = self.fields.iter().position(|field| field == name) else { return Datum::Null };
        let text = record.get(column).unwrap_or_default();
        if text.is_empty() {
            return Datum::Null;
        }
        if self.is_text[column] {
            return Datum::Text(text.into());
        }
        let trimmed = text.trim();
        if let Ok(number) = trimmed.parse::<i64>() {
            return Datum::Int(number);
        }
        match (trimmed.parse::<f64>(), trimmed) {
            (Ok(number), _) if number.is_finite() => Datum::Float(number),
            (_, "true") => Datum::Bool(true),
            (_, "false") => Datum::Bool(false),
            _ => Datum::Text(text.into()),
        }
    }
}

fn print(out: &mut csv::Writer<io::StdoutLock<'_>>, rows: &mut Vec<OutputRow>) -> anyhow::Result<()> {
    for row in rows.drain(..) {
        let timed =
            Moment::from_millis(row.timed).map_or_else(|| row.timed.to_string(), |time| time.to_string());
        write(out, std::iter::once(timed).chain(row.values.iter().map(Datum::to_string)).collect())?;
    }
    Ok(())
}

fn write(out: &mut csv::Writer<io::StdoutLock<'_>>, cells: Vec<String>) -> anyhow::Result<()> {
    let written = out.write_record(cells).map_err(|error| match error.into_kind() {
        // A reader that has closed the pipe is recognised by this error.
        csv::ErrorKind::Io(error) => anyhow::Error::new(error),
        other => anyhow::anyhow!("{other:?}"),
    });
    written.context("cannot write to standard output")
}

/// What was left out, for people. Rows are on standard output alone.
fn report(counters: &Counters) -> anyhow::Result<()> {
    let counts = [
        (counters.late, "elements came too late"),
        (counters.released_early, "elements did not wait for late ones, because too many waited"),
        (counters.overflowed, "elements left a full window early"),
        (counters.slides_skipped, "slides in time were left out, because the clock jumped"),
        (counters.executions_refused, "executions were refused by the rate or the count of a stream"),
        (counters.rows_over_rate, "rows were over the rate of the output"),
        (counters.rows_of_known_time, "rows had a time that the output has already (unique-timestamps)"),
        (counters.rows_with_nulls, "rows lacked a value"),
        (counters.sentences_refused, "sentences of NMEA 0183 could not be read"),
        (counters.rows_without_position, "rows said no position"),
        (counters.scripts_stopped, "runs of a script were stopped at a limit"),
        (
            counters.script_runs_left_out,
            "runs of a script were left out, because earlier ones were stopped at a limit",
        ),
    ];
    let mut lines = String::new();
    for (count, text) in counts.into_iter().filter(|(count, _)| *count > 0) {
        lines.push_str(&format!("{count} {text}\n"));
    }
    // A closed standard error cannot be reported anywhere.
    drop(io::stderr().write_all(lines.as_bytes()));
    match &counters.last_fault {
        Some(fault) => {
            bail!("{} elements or executions could not be computed; the last: {fault}", counters.faults)
        }
        None => Ok(()),
    }
}
