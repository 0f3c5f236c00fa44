//! The order of entities.

use std::cmp::Ordering;

use model::ValueRef;

use super::query::Direction;

/// A value in an order: absent ones first, then booleans, numbers and text.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum SortValue {
    Absent,
    Bool(bool),
    Number(f64),
    Text(String),
}

impl SortValue {
    pub(crate) fn of(value: Option<ValueRef<'_>>) -> Self {
        match value {
            None => Self::Absent,
            Some(ValueRef::Bool(value)) => Self::Bool(value),
            Some(ValueRef::I64(value)) => Self::Number(value as f64),
            Some(ValueRef::F64(value)) => Self::Number(value),
            Some(ValueRef::String(text) | ValueRef::Json(text)) => Self::Text(text.to_owned()),
        }
    }

    const fn rank(&self) -> u8 {
        match self {
            Self::Absent => 0,
            Self::Bool(_) => 1,
            Self::Number(_) => 2,
            Self::Text(_) => 3,
        }
    }

    pub(crate) fn compare(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bool(one), Self::Bool(other)) => one.cmp(other),
            (Self::Number(one), Self::Number(other)) => one.total_cmp(other),
            (Self::Text(one), Self::Text(other)) => one.cmp(other),
            _ => self.rank().cmp(&other.rank()),
        }
    }
}

/// An ordering in a direction.
pub(crate) fn directed(ordering: Ordering, direction: Direction) -> Ordering {
    match direction {
        Direction::Asc => ordering,
        Direction::Desc => ordering.reverse(),
    }
}
