//! PostgreSQL's functions of times, dates and intervals, and templates of times and numbers.

use std::sync::Arc;

use datafusion::common::Result;
use datafusion::logical_expr::expr::ScalarFunction;
use datafusion::logical_expr::planner::{ExprPlanner, PlannerResult};
use datafusion::logical_expr::{Expr, ScalarUDF};

use super::by_value::{ArgumentKind, Form, Value, function, interval_out_of_range, time_out_of_range};
use super::calendar;
use super::template::{Moment, Number, moment_text, number_text, read_number, read_time};
use super::zones::Zone;
use crate::QueryError;
use model::interval::DAY_US;

/// The name of the function that `extract` is planned as.
const EXTRACT: &str = "date_part";

const fn form(
    takes: &'static [ArgumentKind],
    gives: ArgumentKind,
    compute: fn(&[Value<'_>]) -> Result<Value<'static>, QueryError>,
) -> Form {
    Form { takes, gives, compute }
}

use ArgumentKind::{Bool, Date, Decimal, Float, Int, Local, Text, Time, Zoned};

const INTERVAL: ArgumentKind = ArgumentKind::Interval;

const TO_CHAR: &[Form] = &[
    form(&[Zoned, Text], Text, moment),
    form(&[Local, Text], Text, moment),
    form(&[INTERVAL, Text], Text, moment),
    form(&[Int, Text], Text, |args| Ok(number_text(Number::Integer(args[0].int()), args[1].text())?.into())),
    form(
        &[Float, Text],
        Text,
        |args| Ok(number_text(Number::Float(args[0].float()), args[1].text())?.into()),
    ),
    form(&[Decimal, Text], Text, |args| {
        let Value::Decimal(number, scale) = args[0] else { return Ok(Value::Null) };
        Ok(number_text(Number::Decimal(number, scale), args[1].text())?.into())
    }),
];

const TO_TIMESTAMP: &[Form] = &[
    form(&[Text, Text], Zoned, |args| {
        let read = read_time(args[0].text(), args[1].text())?;
        Ok(Value::Zoned(read.micros_utc().ok_or_else(time_out_of_range)?))
    }),
    form(&[Float], Zoned, |args| {
        let micros = (args[0].float() * 1e6).round_ties_even();
        if micros.is_nan() || micros.abs() >= 9.2e18 {
            return Err(time_out_of_range());
        }
        Ok(Value::Zoned(micros as i64))
    }),
    form(&[Zoned], Zoned, |args| Ok(Value::Zoned(micros(&args[0])))),
];

const TO_DATE: &[Form] = &[form(&[Text, Text], Date, |args| {
    let read = read_time(args[0].text(), args[1].text())?;
    Ok(Value::Date(read.days.try_into().map_err(|_| time_out_of_range())?))
})];

const TO_NUMBER: &[Form] = &[form(&[Text, Text], Float, |args| match args[1].text() {
    "" => Ok(Value::Null),
    template => Ok(Value::Float(read_number(args[0].text(), template)?)),
})];

const PART: &[Form] = &[
    form(&[Text, Zoned], Float, part),
    form(&[Text, Local], Float, part),
    form(&[Text, Date], Float, part),
    form(&[Text, Time], Float, part),
    form(&[Text, INTERVAL], Float, part),
];

const AGE: &[Form] = &[form(&[Zoned, Zoned], INTERVAL, age), form(&[Local, Local], INTERVAL, age)];

/// `AT TIME ZONE`.
const TIMEZONE: &[Form] = &[
    form(&[Text, Zoned], Local, |args| in_zone(Zone::of_name(args[0].text())?, &args[1])),
    form(&[Text, Local], Zoned, |args| in_zone(Zone::of_name(args[0].text())?, &args[1])),
    form(&[INTERVAL, Zoned], Local, |args| in_zone(zone_of_interval(&args[0])?, &args[1])),
    form(&[INTERVAL, Local], Zoned, |args| in_zone(zone_of_interval(&args[0])?, &args[1])),
];

/// `date_trunc` with a time zone.
const TRUNCATED_IN_ZONE: &[Form] = &[form(&[Text, Zoned, Text], Zoned, |args| {
    let zone = Zone::of_name(args[2].text())?;
    let (time, name) = (micros(&args[1]), args[0].text());
    let local = zone.local(time)?;
    let truncated = calendar::truncated(name, local)?;
    if calendar::unit(name, "timestamp with time zone")? < calendar::Unit::Day {
        // The offset stays the same, so that hours are whole when clocks change.
        return Ok(Value::Zoned(truncated - (local - time)));
    }
    Ok(Value::Zoned(zone.utc(truncated)?))
})];

const TRUNCATED: &[Form] = &[
    form(&[Text, Zoned], Zoned, |args| {
        Ok(Value::Zoned(calendar::truncated(args[0].text(), micros(&args[1]))?))
    }),
    form(&[Text, Local], Local, |args| {
        Ok(Value::Local(calendar::truncated(args[0].text(), micros(&args[1]))?))
    }),
    form(&[Text, INTERVAL], INTERVAL, |args| {
        let Value::Interval(interval) = args[1] else { return Ok(Value::Null) };
        Ok(Value::Interval(calendar::truncated_interval(args[0].text(), interval)?))
    }),
];

const JUSTIFY_HOURS: &[Form] = &[form(&[INTERVAL], INTERVAL, |args| {
    let Value::Interval(interval) = args[0] else { return Ok(Value::Null) };
    Ok(Value::Interval(interval.justify_hours().ok_or_else(interval_out_of_range)?))
})];
const JUSTIFY_DAYS: &[Form] = &[form(&[INTERVAL], INTERVAL, |args| {
    let Value::Interval(interval) = args[0] else { return Ok(Value::Null) };
    Ok(Value::Interval(interval.justify_days().ok_or_else(interval_out_of_range)?))
})];
const JUSTIFY: &[Form] = &[form(&[INTERVAL], INTERVAL, |args| {
    let Value::Interval(interval) = args[0] else { return Ok(Value::Null) };
    Ok(Value::Interval(interval.justify().ok_or_else(interval_out_of_range)?))
})];

const MAKE_INTERVAL: &[Form] = &[
    form(&[Int], INTERVAL, made_interval),
    form(&[Int, Int], INTERVAL, made_interval),
    form(&[Int, Int, Int], INTERVAL, made_interval),
    form(&[Int, Int, Int, Int], INTERVAL, made_interval),
    form(&[Int, Int, Int, Int, Int], INTERVAL, made_interval),
    form(&[Int, Int, Int, Int, Int, Int], INTERVAL, made_interval),
    form(&[Int, Int, Int, Int, Int, Int, Float], INTERVAL, made_interval),
];

const MAKE_TIMESTAMP: &[Form] =
    &[form(&[Int, Int, Int, Int, Int, Float], Local, |args| Ok(Value::Local(made_timestamp(args)?)))];
const MAKE_TIMESTAMPTZ: &[Form] = &[
    form(&[Int, Int, Int, Int, Int, Float], Zoned, |args| Ok(Value::Zoned(made_timestamp(args)?))),
    form(&[Int, Int, Int, Int, Int, Float, Text], Zoned, |args| {
        Ok(Value::Zoned(Zone::of_name(args[6].text())?.utc(made_timestamp(args)?)?))
    }),
];
const MAKE_DATE: &[Form] = &[form(&[Int, Int, Int], Date, |args| {
    let micros = calendar::timestamp([args[0].int(), args[1].int(), args[2].int()], 0, 0, 0.0)?;
    Ok(Value::Date((micros / DAY_US) as i32))
})];
const MAKE_TIME: &[Form] = &[form(&[Int, Int, Float], Time, |args| {
    let made = calendar::time_of_day(args[0].int(), args[1].int(), args[2].float());
    Ok(Value::Time(made.ok_or_else(time_out_of_range)?))
})];
const IS_FINITE: &[Form] = &[
    form(&[Zoned], Bool, |_| Ok(Value::Bool(true))),
    form(&[Local], Bool, |_| Ok(Value::Bool(true))),
    form(&[Date], Bool, |_| Ok(Value::Bool(true))),
    form(&[INTERVAL], Bool, |_| Ok(Value::Bool(true))),
];

/// `(start, end) OVERLAPS (start, end)`, where an interval stands for an end.
const OVERLAP: &[Form] = &[
    form(&[Zoned, Zoned, Zoned, Zoned], Bool, overlap),
    form(&[Zoned, INTERVAL, Zoned, INTERVAL], Bool, overlap),
    form(&[Zoned, Zoned, Zoned, INTERVAL], Bool, overlap),
    form(&[Zoned, INTERVAL, Zoned, Zoned], Bool, overlap),
    form(&[Local, Local, Local, Local], Bool, overlap),
    form(&[Local, INTERVAL, Local, INTERVAL], Bool, overlap),
    form(&[Local, Local, Local, INTERVAL], Bool, overlap),
    form(&[Local, INTERVAL, Local, Local], Bool, overlap),
    form(&[Time, Time, Time, Time], Bool, overlap),
];

/// `timestamp(p)`: a time rounded to `p` digits of its seconds.
const ROUNDED: &[Form] = &[
    form(&[Zoned, Int], Zoned, |args| Ok(Value::Zoned(rounded(args)?))),
    form(&[Local, Int], Local, |args| Ok(Value::Local(rounded(args)?))),
];

const MULTIPLIED: &[Form] = &[form(&[INTERVAL, Float], INTERVAL, |args| {
    let Value::Interval(interval) = args[0] else { return Ok(Value::Null) };
    Ok(Value::Interval(calendar::multiplied(interval, args[1].float())?))
})];

const DIVIDED: &[Form] = &[form(&[INTERVAL, Float], INTERVAL, |args| {
    let Value::Interval(interval) = args[0] else { return Ok(Value::Null) };
    let divisor = args[1].float();
    if divisor == 0.0 {
        return Err(QueryError::value(crate::error::DIVISION_BY_ZERO, "division by zero"));
    }
    Ok(Value::Interval(calendar::divided(interval, divisor)?))
})];

/// The function that multiplies an interval and a number.
pub(crate) fn multiplied() -> Arc<ScalarUDF> {
    function("multiply_interval", MULTIPLIED)
}

/// The function that divides an interval by a number.
pub(crate) fn divided() -> Arc<ScalarUDF> {
    function("divide_interval", DIVIDED)
}

/// All functions of this file.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    [
        ("to_char", TO_CHAR),
        ("to_timestamp", TO_TIMESTAMP),
        ("to_date", TO_DATE),
        ("to_number", TO_NUMBER),
        (EXTRACT, PART),
        ("datepart", PART),
        ("age", AGE),
        ("timezone", TIMEZONE),
        ("date_trunc_in_zone", TRUNCATED_IN_ZONE),
        ("date_trunc_of_any", TRUNCATED),
        ("justify_hours", JUSTIFY_HOURS),
        ("justify_days", JUSTIFY_DAYS),
        ("justify_interval", JUSTIFY),
        ("make_interval", MAKE_INTERVAL),
        ("make_timestamp", MAKE_TIMESTAMP),
        ("make_timestamptz", MAKE_TIMESTAMPTZ),
        ("make_date", MAKE_DATE),
        ("make_time", MAKE_TIME),
        ("isfinite", IS_FINITE),
        ("round_time", ROUNDED),
        ("times_overlap", OVERLAP),
    ]
    .map(|(name, forms)| function(name, forms))
    .into()
}

/// `extract(unit FROM time)`
#[derive(Debug)]
pub(super) struct Extract(pub(super) Arc<ScalarUDF>);

impl Extract {
    pub(super) fn new() -> Self {
        Self(function(EXTRACT, PART))
    }
}

impl ExprPlanner for Extract {
    fn plan_extract(&self, args: Vec<Expr>) -> Result<PlannerResult<Vec<Expr>>> {
        Ok(PlannerResult::Planned(Expr::ScalarFunction(ScalarFunction { func: Arc::clone(&self.0), args })))
    }
}

/// Returns the microseconds of a time.
fn micros(time: &Value<'_>) -> i64 {
    match time {
        Value::Zoned(micros) | Value::Local(micros) | Value::Time(micros) => *micros,
        Value::Date(days) => i64::from(*days) * DAY_US,
        _ => 0,
    }
}

fn moment(args: &[Value<'_>]) -> Result<Value<'static>, QueryError> {
    let moment = match &args[0] {
        Value::Zoned(micros) => Moment::WithZone(*micros),
        Value::Local(micros) => Moment::Local(*micros),
        Value::Interval(interval) => Moment::Interval(*interval),
        Value::Time(micros) => Moment::Interval(model::Interval { micros: *micros, ..Default::default() }),
        _ => return Ok(Value::Null),
    };
    let template = args[1].text();
    if template.is_empty() {
        return Ok(Value::Null);
    }
    Ok(moment_text(moment, template)?.into())
}

fn part(args: &[Value<'_>]) -> Result<Value<'static>, QueryError> {
    let name = args[0].text();
    Ok(Value::Float(match &args[1] {
        Value::Time(micros) => calendar::part_of_time_of_day(name, *micros)?,
        Value::Interval(interval) => calendar::part_of_interval(name, *interval)?,
        time => calendar::part_of_time(name, micros(time), matches!(time, Value::Zoned(_)))?,
    }))
}

fn age(args: &[Value<'_>]) -> Result<Value<'static>, QueryError> {
    Ok(Value::Interval(calendar::age(micros(&args[0]), micros(&args[1]))?))
}

fn zone_of_interval(interval: &Value<'_>) -> Result<Zone, QueryError> {
    match interval {
        Value::Interval(interval) => Zone::of_interval(*interval),
        _ => Ok(Zone::Fixed(0)),
    }
}

fn in_zone(zone: Zone, time: &Value<'_>) -> Result<Value<'static>, QueryError> {
    Ok(match time {
        Value::Zoned(micros) => Value::Local(zone.local(*micros)?),
        time => Value::Zoned(zone.utc(micros(time))?),
    })
}

fn made_interval(args: &[Value<'_>]) -> Result<Value<'static>, QueryError> {
    let mut parts = [0; 6];
    for (part, arg) in parts.iter_mut().zip(args) {
        *part = arg.int();
    }
    let seconds = args.get(6).map_or(0.0, Value::float);
    Ok(Value::Interval(calendar::interval(&parts, seconds)?))
}

/// Rounds halves of the last digit up to the later time.
fn rounded(args: &[Value<'_>]) -> Result<i64, QueryError> {
    let places = args[1].int().clamp(0, 6) as u32;
    let step = 10_i64.pow(6 - places);
    let time = micros(&args[0]);
    let up = time.checked_add(step / 2).ok_or_else(time_out_of_range)?;
    Ok(up.div_euclid(step) * step)
}

fn overlap(args: &[Value<'_>]) -> Result<Value<'static>, QueryError> {
    let range = |start: &Value<'_>, end: &Value<'_>| {
        let start = micros(start);
        let end = match end {
            Value::Interval(interval) => calendar::later(start, *interval)?,
            end => micros(end),
        };
        Ok::<_, QueryError>((start.min(end), start.max(end)))
    };
    let (first, second) = (range(&args[0], &args[1])?, range(&args[2], &args[3])?);
    // A range has no end, unless it is one point.
    let is_overlap = first.0 == second.0 || (first.0 < second.1 && second.0 < first.1);
    Ok(Value::Bool(is_overlap))
}

fn made_timestamp(args: &[Value<'_>]) -> Result<i64, QueryError> {
    let date = [args[0].int(), args[1].int(), args[2].int()];
    calendar::timestamp(date, args[3].int(), args[4].int(), args[5].float())
}
