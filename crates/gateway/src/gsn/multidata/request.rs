//! The parameters of `/multidata`.

use std::collections::BTreeMap;

use super::super::aggregate::{Aggregation, Function};
use super::super::condition::{Condition, Join, Operand, Operator, check_count};
use super::super::limits::SENSORS_MAX;
use super::super::read::{Column, Sample, Selection};
use super::super::refusal::Refusal;
use super::super::sensor::Sensor;
use super::super::time::{TimeFormat, parse_day_first};
use crate::http::tools::request::Params;

#[derive(Debug)]
pub(super) struct MultiRequest {
    pub(super) selections: Vec<Selection>,
    pub(super) format: Format,
    pub(super) times: TimeFormat,
    /// Whether the answer is to be shown and not saved.
    pub(super) inline: bool,
    /// Whether sensors without rows are left out.
    pub(super) only_with_rows: bool,
}

/// The form of the answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Format {
    Csv { delimiter: String },
    Xml,
}

impl MultiRequest {
    /// Reads the parameters. `visible` are the sensors that the caller sees.
    pub(super) fn read(params: &Params, visible: &[Sensor]) -> Result<Self, Refusal> {
        if params.has("reportclass") {
            return Err(Refusal::absent(
                "reportclass names a template of GSN's PDF reports, which this server does not have; leave it out",
            ));
        }
        let mut selections = selections(params, visible)?;
        let (from, to) = (time(params, "from")?, time(params, "to")?);
        let (newest, aggregation) = (newest(params)?, aggregation(params)?);
        let sample = sample(params, selections.iter().map(|selection| selection.fields.len()).sum())?;
        for selection in &mut selections {
            let limit = |operator, millis: i64| Condition::new(Operand::Time, operator, millis as f64);
            // GSN's bounds: later than `from`, up to `to`.
            selection.conditions.extend(from.map(|from| limit(Operator::Above, from)));
            selection.conditions.extend(to.map(|to| limit(Operator::AtMost, to)));
            (selection.newest, selection.aggregation, selection.sample) = (newest, aggregation, sample);
        }
        add_conditions(params, &mut selections)?;
        selections.iter().try_for_each(|selection| check_count(&selection.conditions))?;
        Ok(Self {
            selections,
            format: format(params)?,
            times: times(params)?,
            inline: inline(params)?,
            only_with_rows: params.flag("ifexists")?,
        })
    }
}

/// The values of `name[x]` by their `x`; numbers in their order.
fn indexed<'a>(params: &'a Params, name: &str) -> BTreeMap<(u64, &'a str), &'a str> {
    let mut found = BTreeMap::new();
    for (key, value) in params.pairs() {
        let inner = key.get(..name.len()).filter(|start| start.eq_ignore_ascii_case(name));
        let inner = inner.and_then(|_| key[name.len()..].strip_prefix('[')?.strip_suffix(']'));
        if let Some(inner) = inner {
            let place = (inner.parse().unwrap_or(u64::MAX), inner);
            found.entry(place).or_insert(value);
        }
    }
    found
}

/// The sensors of `vs[x]` with the fields of `field[x]`.
fn selections(params: &Params, visible: &[Sensor]) -> Result<Vec<Selection>, Refusal> {
    let (names, fields) = (indexed(params, "vs"), indexed(params, "field"));
    if names.is_empty() {
        return Err(Refusal::argument(
            "the request names no virtual sensor; name them in vs[0], vs[1] and so on, with a field or All in field[0], \
             field[1] and so on",
        ));
    }
    let mut selections: Vec<Selection> = Vec::new();
    for (place, name) in &names {
        let field = fields.get(place).ok_or_else(|| {
            Refusal::argument(format!("vs[{0}] has no field[{0}]; name a field, or All", place.1))
        })?;
        if !is_all(name) {
            let sensor = find(visible, name)?;
            add_fields(&mut selections, sensor, field)?;
            continue;
        }
        let has_field = |sensor: &&Sensor| is_all(field) || sensor.field(field).is_ok();
        for sensor in visible.iter().filter(has_field) {
            add_fields(&mut selections, sensor, field)?;
        }
    }
    if selections.len() > SENSORS_MAX {
        return Err(Refusal::argument(format!(
            "the request reads {} sensors, the limit is {SENSORS_MAX}; ask for fewer",
            selections.len()
        )));
    }
    Ok(selections)
}

fn is_all(name: &str) -> bool {
    name.eq_ignore_ascii_case("all")
}

fn find<'a>(visible: &'a [Sensor], name: &str) -> Result<&'a Sensor, Refusal> {
    let found = visible.iter().find(|sensor| sensor.name().eq_ignore_ascii_case(name.trim()));
    found.ok_or_else(|| Refusal::no_sensor(name))
}

/// Adds a field, or all of them, to the selection of a sensor.
fn add_fields(selections: &mut Vec<Selection>, sensor: &Sensor, field: &str) -> Result<(), Refusal> {
    let at = selections.iter().position(|one| one.sensor.name() == sensor.name()).unwrap_or_else(|| {
        selections.push(Selection { fields: Vec::new(), ..Selection::all(sensor.clone()) });
        selections.len() - 1
    });
    let fields = &mut selections[at].fields;
    let mut add = |column: Column| {
        if !fields.contains(&column) {
            fields.push(column);
        }
    };
    match field {
        all if is_all(all) => sensor.fields().iter().map(Column::of).for_each(add),
        // Every answer has the time, and no answer shows the number of a row.
        own if own.eq_ignore_ascii_case("timed") || own.eq_ignore_ascii_case("pk") => {}
        name => add(Column::of(sensor.field(name)?)),
    }
    Ok(())
}

fn time(params: &Params, name: &str) -> Result<Option<i64>, Refusal> {
    let parse = |text| {
        parse_day_first(text).ok_or_else(|| {
            Refusal::argument(format!(
                "{name} is {text:?}; it must be a time in UTC such as 27/11/2026 20:15:30 (dd/MM/yyyy HH:mm:ss)"
            ))
        })
    };
    params.text(name).map(parse).transpose()
}

/// `nb=SPECIFIED` with `nb_value`. Other values of `nb` are those of GSN's page for all rows; a negative number means all, too.
fn newest(params: &Params) -> Result<Option<u64>, Refusal> {
    if !params.text("nb").is_some_and(|nb| nb.eq_ignore_ascii_case("specified")) {
        return Ok(None);
    }
    let Some(text) = params.text("nb_value") else {
        return Err(Refusal::argument("nb is SPECIFIED, but there is no nb_value; give the number of rows"));
    };
    let number: i64 = text
        .trim()
        .parse()
        .map_err(|_| Refusal::argument(format!("nb_value is {text:?}; it must be a whole number of rows")))?;
    Ok(u64::try_from(number).ok())
}

/// `agg_function` over intervals of `agg_period` times `agg_unit` milliseconds; `-1` means none.
fn aggregation(params: &Params) -> Result<Option<Aggregation>, Refusal> {
    let Some(function) = params.text("agg_function").filter(|function| function.trim() != "-1") else {
        return Ok(None);
    };
    let function = Function::parse(function)?;
    let number = |name: &str| {
        let number = params.text(name).and_then(|text| text.trim().parse::<i64>().ok());
        number.filter(|number| *number > 0).ok_or_else(|| {
            Refusal::argument(format!(
                "{name} must be a whole number above 0 when there is an agg_function; an interval has agg_period times \
                 agg_unit milliseconds"
            ))
        })
    };
    let interval_ms = number("agg_period")?.checked_mul(number("agg_unit")?);
    let interval_ms =
        interval_ms.ok_or_else(|| Refusal::argument("agg_period times agg_unit is too long an interval"))?;
    Ok(Some(Aggregation { function, interval_ms }))
}

fn sample(params: &Params, fields: usize) -> Result<Option<Sample>, Refusal> {
    if !params.flag("sample")? {
        return Ok(None);
    }
    let percentage = params.number::<u64>("sampling_percentage")?;
    if percentage.is_some_and(|percentage| !(1..=100).contains(&percentage)) {
        return Err(Refusal::argument("sampling_percentage must be a whole number from 1 to 100"));
    }
    Ok(Some(Sample { fields, percentage }))
}

/// The conditions of `c_vs[x]`, `c_field[x]`, `c_min[x]`, `c_max[x]`. `c_join[x]` joins them with the next ones, as in GSN.
fn add_conditions(params: &Params, selections: &mut [Selection]) -> Result<(), Refusal> {
    let [sensors, fields, joins, mins, maxs] =
        ["c_vs", "c_field", "c_join", "c_min", "c_max"].map(|name| indexed(params, name));
    let all = sensors.keys().chain(fields.keys()).chain(joins.keys()).chain(mins.keys()).chain(maxs.keys());
    let places: std::collections::BTreeSet<_> = all.copied().collect();
    for place in places {
        let number = place.1;
        let (sensor, field) = (sensors.get(&place).copied(), fields.get(&place).copied());
        let (Some(sensor), Some(field)) = (sensor, field) else {
            return Err(Refusal::argument(format!(
                "condition {number} is incomplete; it needs c_vs[{number}] and c_field[{number}], All or a name each"
            )));
        };
        let join = joins.get(&place).copied().unwrap_or("and");
        let join = Join::parse(join).ok_or_else(|| {
            Refusal::argument(format!("c_join[{number}] is {join:?}; it must be and or or"))
        })?;
        let min = bound(mins.get(&place).copied(), "-inf", "c_min", number)?;
        let max = bound(maxs.get(&place).copied(), "+inf", "c_max", number)?;
        add_condition(selections, sensor, field, &|operand: &Operand| {
            let min = min.map(|min| (Operator::Above, min));
            let bounds = min.into_iter().chain(max.map(|max| (Operator::AtMost, max)));
            bounds
                .map(|(operator, number)| Condition {
                    next: join,
                    ..Condition::new(operand.clone(), operator, number)
                })
                .collect()
        })?;
    }
    Ok(())
}

fn add_condition(
    selections: &mut [Selection],
    sensor: &str,
    field: &str,
    of: &dyn Fn(&Operand) -> Vec<Condition>,
) -> Result<(), Refusal> {
    let mut is_used = false;
    for selection in selections {
        let is_meant = is_all(sensor) || selection.sensor.name().eq_ignore_ascii_case(sensor.trim());
        if !is_meant {
            continue;
        }
        let operands: Vec<Operand> = match field {
            all if is_all(all) => {
                selection.fields.iter().map(|field| Operand::Field(field.name.clone())).collect()
            }
            name => match (Operand::of(name), selection.sensor.field(name)) {
                (Operand::Time, _) => vec![Operand::Time],
                (_, Ok(field)) => vec![Operand::Field(field.name.clone())],
                // A field that only some of all sensors have is a condition on these.
                (_, Err(_)) if is_all(sensor) => continue,
                (_, Err(refusal)) => return Err(refusal),
            },
        };
        is_used = true;
        selection.conditions.extend(operands.iter().flat_map(of));
    }
    match is_used {
        true => Ok(()),
        false => Err(Refusal::argument(format!(
            "the condition on the field {field:?} of {sensor:?} applies to no sensor of the request; remove it or correct its names"
        ))),
    }
}

/// A bound of a condition. `infinite` is the text of GSN's page for none.
fn bound(text: Option<&str>, infinite: &str, name: &str, number: &str) -> Result<Option<f64>, Refusal> {
    let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else { return Ok(None) };
    if text.eq_ignore_ascii_case(infinite) {
        return Ok(None);
    }
    let wrong = || {
        Refusal::argument(format!(
            "{name}[{number}] is {text:?}; it must be a number, or {infinite} for none"
        ))
    };
    text.parse().ok().filter(|bound: &f64| bound.is_finite()).map(Some).ok_or_else(wrong)
}

fn format(params: &Params) -> Result<Format, Refusal> {
    match params.text("download_format").unwrap_or("csv") {
        "csv" => Ok(Format::Csv { delimiter: delimiter(params)? }),
        "xml" => Ok(Format::Xml),
        "pdf" => Err(Refusal::absent(
            "this server does not make PDF reports; ask for download_format=csv or xml, or export the table with tacho export",
        )),
        other => Err(Refusal::argument(format!("Unknown download_format >{other}<; it must be csv or xml"))),
    }
}

fn delimiter(params: &Params) -> Result<String, Refusal> {
    let delimiter = match params.text("delimiter").unwrap_or_default() {
        "" | "comma" => ",",
        "tab" => "\t",
        "space" => " ",
        "semicolon" => ";",
        "other" => params.text("otherdelimiter").unwrap_or(","),
        other => {
            return Err(Refusal::argument(format!(
                "delimiter is {other:?}; it must be tab, space, semicolon, or other with otherdelimiter"
            )));
        }
    };
    Ok(delimiter.to_owned())
}

fn times(params: &Params) -> Result<TimeFormat, Refusal> {
    match params.text("time_format") {
        None => Ok(TimeFormat::Container),
        Some("iso") => Ok(TimeFormat::Iso),
        Some("unix") => Ok(TimeFormat::Unix),
        Some(other) => Err(Refusal::argument(format!(
            "time_format is {other:?}; it must be iso or unix, or absent for dd/MM/yyyy HH:mm:ss Z"
        ))),
    }
}

fn inline(params: &Params) -> Result<bool, Refusal> {
    match params.text("download_mode").unwrap_or("attachement") {
        "inline" => Ok(true),
        // GSN's own word has a letter more.
        "attachement" | "attachment" => Ok(false),
        other => {
            Err(Refusal::argument(format!("download_mode is {other:?}; it must be inline or attachement")))
        }
    }
}
