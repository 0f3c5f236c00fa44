//! Keys of entities (ThingsBoard's `EntityKey`).

use serde::{Deserialize, Deserializer};

use crate::attributes::Scope;

/// The place of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum KeyKind {
    /// A property of the entity itself.
    EntityField,
    /// An attribute of any scope; of several the one that was set last.
    Attribute,
    ClientAttribute,
    SharedAttribute,
    ServerAttribute,
    /// The latest value of a time series.
    TimeSeries,
    /// A property of an alarm.
    AlarmField,
    /// The key itself is the value.
    Constant,
}

impl KeyKind {
    /// ThingsBoard's name (`EntityKeyType`).
    pub const fn name(self) -> &'static str {
        match self {
            Self::EntityField => "ENTITY_FIELD",
            Self::Attribute => "ATTRIBUTE",
            Self::ClientAttribute => "CLIENT_ATTRIBUTE",
            Self::SharedAttribute => "SHARED_ATTRIBUTE",
            Self::ServerAttribute => "SERVER_ATTRIBUTE",
            Self::TimeSeries => "TIME_SERIES",
            Self::AlarmField => "ALARM_FIELD",
            Self::Constant => "CONSTANT",
        }
    }

    /// The kind of the attributes of one scope.
    pub const fn of_scope(scope: Scope) -> Self {
        match scope {
            Scope::Client => Self::ClientAttribute,
            Scope::Shared => Self::SharedAttribute,
            Scope::Server => Self::ServerAttribute,
        }
    }

    /// The scopes in which an attribute of this kind is looked up; none for other keys.
    pub const fn scopes(self) -> &'static [Scope] {
        match self {
            Self::Attribute => &Scope::ALL,
            Self::ClientAttribute => &[Scope::Client],
            Self::SharedAttribute => &[Scope::Shared],
            Self::ServerAttribute => &[Scope::Server],
            Self::EntityField | Self::TimeSeries | Self::AlarmField | Self::Constant => &[],
        }
    }
}

/// A key and the place of its value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Deserialize)]
pub struct EntityKey {
    /// The place.
    #[serde(rename = "type")]
    pub kind: KeyKind,
    pub key: String,
}

impl EntityKey {
    /// Whether its value is read from the store or from the store of keys.
    pub(crate) fn is_stored(&self) -> bool {
        self.kind == KeyKind::TimeSeries || !self.kind.scopes().is_empty()
    }
}

/// `null` in the place of a list is an empty list, as in ThingsBoard.
pub(super) fn null_is_empty<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}
