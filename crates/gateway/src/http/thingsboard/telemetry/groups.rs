//! The devices of a request for values: one by one, or in groups whose values are aggregated together.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use hub::registry::Device;
use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, SeqAccess, Visitor, value};

use crate::error::ApiError;
use crate::http::limits::DEVICES_PER_READ_MAX;
use crate::http::tools::request::parse_id;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// The body of a request for values of many devices: `["<id>", ...]` or `{"<name>": ["<id>", ...], ...}`.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    Devices(Vec<String>),
    /// Names, each once, in their order.
    Groups(Vec<(String, Vec<String>)>),
}

/// Devices under a name.
#[derive(Debug)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) devices: Vec<Arc<Device>>,
}

impl Selection {
    fn count(&self) -> usize {
        match self {
            Self::Devices(ids) => ids.len(),
            Self::Groups(groups) => groups.iter().map(|(_, ids)| ids.len()).sum(),
        }
    }

    /// Refuses more devices than one request may read.
    pub(crate) fn check(&self) -> Result<(), ApiError> {
        let count = self.count();
        if count <= DEVICES_PER_READ_MAX {
            return Ok(());
        }
        let message =
            format!("{count} devices are named, the limit is {DEVICES_PER_READ_MAX}; ask in pieces");
        Err(ApiError::argument(message))
    }
}

/// The devices with these ids.
pub(crate) fn devices_of(
    state: &HttpState,
    session: &Session,
    ids: &[String],
) -> Result<Vec<Arc<Device>>, ApiError> {
    ids.iter().map(|id| session.device(&state.hub, parse_id(id)?)).collect()
}

impl<'de> Deserialize<'de> for Selection {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SelectionVisitor)
    }
}

struct SelectionVisitor;

impl<'de> Visitor<'de> for SelectionVisitor {
    type Value = Selection;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .write_str("a sequence with the ids of devices, or a map with one such sequence for each group")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, ids: A) -> Result<Selection, A::Error> {
        Deserialize::deserialize(value::SeqAccessDeserializer::new(ids)).map(Selection::Devices)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Selection, A::Error> {
        let (mut groups, mut names) = (Vec::new(), HashSet::new());
        while let Some((name, ids)) = entries.next_entry::<String, Vec<String>>()? {
            if !names.insert(name.clone()) {
                return Err(A::Error::custom(format_args!("there are two groups {name:?}")));
            }
            groups.push((name, ids));
        }
        Ok(Selection::Groups(groups))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Selection, String> {
        serde_json::from_str(text).map_err(|error| error.to_string())
    }

    #[test]
    fn devices_or_groups_are_named() {
        let ids = || vec!["a".to_owned(), "b".to_owned()];
        assert_eq!(parsed(r#"["a","b"]"#), Ok(Selection::Devices(ids())));
        let groups = vec![("south".to_owned(), ids()), ("north".to_owned(), vec![])];
        assert_eq!(parsed(r#"{"south":["a","b"],"north":[]}"#), Ok(Selection::Groups(groups)));
        assert_eq!(parsed("{}").unwrap().count(), 0);
        assert!(parsed(r#"{"x":[],"x":[]}"#).unwrap_err().contains("two groups \"x\""));
        assert!(parsed("7").unwrap_err().contains("a sequence with the ids of devices, or a map"));
        assert!(parsed(r#"{"x":"a"}"#).unwrap_err().contains("expected a sequence"));
    }

    #[test]
    fn devices_of_all_groups_count() {
        let ids = |count| vec![String::new(); count];
        let groups = |counts: [usize; 2]| {
            Selection::Groups(counts.map(|count| (count.to_string(), ids(count))).into())
        };
        assert!(groups([1, DEVICES_PER_READ_MAX - 1]).check().is_ok());
        let refused = groups([1, DEVICES_PER_READ_MAX]).check().unwrap_err();
        assert!(refused.message.contains("10001 devices are named"), "{}", refused.message);
        assert!(Selection::Devices(ids(DEVICES_PER_READ_MAX + 1)).check().is_err());
    }
}
