//! What a sensor remembers besides the elements of its windows, so that it continues after a start as if it had not ended.

use serde::{Deserialize, Serialize};

use super::super::plan::Plan;
use super::super::script::StatePoint;
use super::super::sql::Datum;
use super::named_row::NamedRow;

/// What a sensor remembers besides the elements of its windows. As JSON it is what the server stores.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Checkpoint {
    /// In event time: elements of earlier times come too late.
    pub(super) passed: Option<i64>,
    pub(super) streams: Vec<StreamPoint>,
    pub(super) class: ClassPoint,
    /// The clock at the last row, for the rate of the output.
    pub(super) last_row: Option<i64>,
}

/// Which elements a window needs to be as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NeededElements {
    /// The newest ones, up to this number.
    Newest(usize),
    /// Those from a time on, in milliseconds since 1970.
    Since(i64),
    /// Those that are at most this number of milliseconds older than the newest one.
    LastMillis(i64),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct StreamPoint {
    pub(super) executions_with_rows: u64,
    pub(super) last_execution: Option<i64>,
    pub(super) windows: Vec<WindowPoint>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct WindowPoint {
    pub(super) deadline: Option<i64>,
    pub(super) until_slide: usize,
    pub(super) since_slide: usize,
    pub(super) slid_at: Option<i64>,
    pub(super) newest: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum ClassPoint {
    Bridge,
    Scheduled {
        next: Option<i64>,
        newest: Option<NamedPoint>,
    },
    Counter {
        count: i64,
    },
    /// The bits of the numbers: decimal digits could differ in the last place.
    MovingAverage {
        value_bits: Vec<u64>,
    },
    Clocked {
        next: Option<i64>,
        rows: Vec<NamedPoint>,
    },
    /// Times with the bits of their values.
    DataClean {
        values: Vec<(i64, u64)>,
    },
    Nmea,
    Scriptlet {
        next: Option<i64>,
        state: StatePoint,
        /// Runs that were stopped in succession.
        stops: u32,
        /// Runs that are still left out.
        pause: u32,
    },
    Chart {
        rows: Vec<NamedPoint>,
    },
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct NamedPoint {
    timed: i64,
    fields: Vec<(String, DatumPoint)>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
enum DatumPoint {
    Null,
    Bool(bool),
    Int(i64),
    FloatBits(u64),
    Text(Box<str>),
}

impl Checkpoint {
    /// Whether the checkpoint has the streams and windows of a plan.
    pub(super) fn has_windows_of(&self, plan: &Plan) -> bool {
        let windows = self.streams.iter().map(|stream| stream.windows.len());
        windows.eq(plan.streams.iter().map(|stream| stream.sources.len()))
    }
}

impl NamedPoint {
    pub(super) fn of(named: &NamedRow) -> Self {
        let fields = named.fields.iter().map(|(name, datum)| (name.clone(), DatumPoint::of(datum)));
        Self { timed: named.timed, fields: fields.collect() }
    }

    pub(super) fn named(&self) -> NamedRow {
        let fields = self.fields.iter().map(|(name, datum)| (name.clone(), datum.datum()));
        NamedRow { timed: self.timed, fields: fields.collect() }
    }
}

impl DatumPoint {
    fn of(datum: &Datum) -> Self {
        match datum {
            Datum::Null => Self::Null,
            Datum::Bool(flag) => Self::Bool(*flag),
            Datum::Int(number) => Self::Int(*number),
            Datum::Float(number) => Self::FloatBits(number.to_bits()),
            Datum::Text(text) => Self::Text((**text).into()),
        }
    }

    fn datum(&self) -> Datum {
        match self {
            Self::Null => Datum::Null,
            Self::Bool(flag) => Datum::Bool(*flag),
            Self::Int(number) => Datum::Int(*number),
            Self::FloatBits(bits) => Datum::Float(f64::from_bits(*bits)),
            Self::Text(text) => Datum::Text((**text).into()),
        }
    }
}
