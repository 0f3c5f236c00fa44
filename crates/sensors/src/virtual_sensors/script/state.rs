//! What a script keeps from run to run.

use rhai::{Array, Dynamic, ImmutableString, Map};
use serde::{Deserialize, Serialize};

use super::values;
use crate::virtual_sensors::limits::{SCRIPT_STATE_BYTES_MAX, SCRIPT_STATE_DEPTH_MAX};
use crate::virtual_sensors::sql::Datum;

/// What an item of the state takes besides its text, in bytes.
const ITEM_BYTES: usize = 16;

/// The map that the script finds in the variable `state`.
#[derive(Debug, Clone, Default)]
pub(in crate::virtual_sensors) struct State(Map);

/// The state as a checkpoint keeps it. Each value comes back with the type that it had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(in crate::virtual_sensors) enum StatePoint {
    Null,
    Bool(bool),
    Int(i64),
    /// The bits of the number: decimal digits could differ in the last place.
    FloatBits(u64),
    Char(char),
    Text(String),
    Array(Vec<StatePoint>),
    Map(Vec<(String, StatePoint)>),
}

impl State {
    /// Takes the variable after a run.
    ///
    /// # Errors
    /// It is not a map, too large, or holds what cannot be stored.
    pub(super) fn of(value: &Dynamic) -> Result<Self, String> {
        let Some(map) = value.read_lock::<Map>() else {
            return Err(format!("state is of the type {}; it is a map", value.type_name()));
        };
        point(value, 0, &mut 0)?;
        Ok(Self(map.clone()))
    }

    pub(super) fn dynamic(&self) -> Dynamic {
        Dynamic::from_map(self.0.clone())
    }

    /// The state for a checkpoint.
    pub(in crate::virtual_sensors) fn point(&self) -> StatePoint {
        // What cannot be stored was refused after the run that made it.
        point(&self.dynamic(), 0, &mut 0).unwrap_or(StatePoint::Map(Vec::new()))
    }

    /// The state of a checkpoint.
    pub(in crate::virtual_sensors) fn from_point(point: &StatePoint) -> Self {
        point.dynamic().try_cast::<Map>().map(Self).unwrap_or_default()
    }
}

/// A value for a checkpoint; `bytes` counts what it takes.
fn point(value: &Dynamic, depth: usize, bytes: &mut usize) -> Result<StatePoint, String> {
    *bytes += ITEM_BYTES;
    if depth > SCRIPT_STATE_DEPTH_MAX {
        return Err(format!(
            "state has more than {SCRIPT_STATE_DEPTH_MAX} arrays and maps in each other (SCRIPT_STATE_DEPTH_MAX)"
        ));
    }
    let point = if let Some(array) = value.read_lock::<Array>() {
        let items = array.iter().map(|item| self::point(item, depth + 1, bytes));
        StatePoint::Array(items.collect::<Result<_, _>>()?)
    } else if let Some(map) = value.read_lock::<Map>() {
        let mut entries = Vec::with_capacity(map.len());
        for (key, item) in map.iter() {
            *bytes += key.len();
            entries.push((key.to_string(), self::point(item, depth + 1, bytes)?));
        }
        StatePoint::Map(entries)
    } else {
        single(value, bytes)?
    };
    if *bytes > SCRIPT_STATE_BYTES_MAX {
        return Err(format!(
            "state has more than {SCRIPT_STATE_BYTES_MAX} bytes (SCRIPT_STATE_BYTES_MAX); it stays as before the run"
        ));
    }
    Ok(point)
}

/// A value that holds no others.
fn single(value: &Dynamic, bytes: &mut usize) -> Result<StatePoint, String> {
    if let Ok(c) = value.as_char() {
        return Ok(StatePoint::Char(c));
    }
    match values::datum(value).map_err(|reason| format!("state: {reason}"))? {
        Datum::Null => Ok(StatePoint::Null),
        Datum::Bool(flag) => Ok(StatePoint::Bool(flag)),
        Datum::Int(number) => Ok(StatePoint::Int(number)),
        Datum::Float(number) => Ok(StatePoint::FloatBits(number.to_bits())),
        Datum::Text(text) => {
            *bytes += text.len();
            Ok(StatePoint::Text(text.to_string()))
        }
    }
}

impl StatePoint {
    fn dynamic(&self) -> Dynamic {
        match self {
            Self::Null => Dynamic::UNIT,
            Self::Bool(flag) => (*flag).into(),
            Self::Int(number) => (*number).into(),
            Self::FloatBits(bits) => f64::from_bits(*bits).into(),
            Self::Char(c) => (*c).into(),
            Self::Text(text) => ImmutableString::from(text.as_str()).into(),
            Self::Array(items) => Dynamic::from_array(items.iter().map(Self::dynamic).collect()),
            Self::Map(entries) => {
                let entries = entries.iter().map(|(key, item)| (key.as_str().into(), item.dynamic()));
                Dynamic::from_map(entries.collect())
            }
        }
    }
}
