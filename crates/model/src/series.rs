//! Series: a table and a set of tags.

use std::fmt;

use crate::{NameError, TableName, limits, name};

/// The number of a series in a store. It has no meaning outside of that store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesId(pub u64);

/// A table and tags, sorted by name without duplicates. Equal keys are the same series.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SeriesKey {
    table: TableName,
    tags: Vec<(String, String)>,
}

impl SeriesKey {
    /// Builds a key. Sorts the tags; if a tag name is repeated, the last value wins. A table that is given as text is one of
    /// the default namespace.
    pub fn new(
        table: impl TryInto<TableName, Error: Into<NameError>>,
        tags: &[(&str, &str)],
    ) -> Result<Self, NameError> {
        let table = table.try_into().map_err(Into::into)?;
        if tags.len() > limits::TAGS_PER_SERIES_MAX {
            return Err(NameError::TooManyTags { tags: tags.len(), limit: limits::TAGS_PER_SERIES_MAX });
        }
        let mut sorted: Vec<(String, String)> = Vec::with_capacity(tags.len());
        for (tag, value) in tags {
            name::check_key(tag)?;
            name::check_tag_text(value)?;
            match sorted.binary_search_by(|(present, _)| present.as_str().cmp(tag)) {
                Ok(index) => sorted[index].1 = (*value).to_owned(),
                Err(index) => sorted.insert(index, ((*tag).to_owned(), (*value).to_owned())),
            }
        }
        Ok(Self { table, tags: sorted })
    }

    /// The series of one device in its profile's table.
    pub fn device(
        table: impl TryInto<TableName, Error: Into<NameError>>,
        device: &str,
    ) -> Result<Self, NameError> {
        Self::new(table, &[(DEVICE_TAG, device)])
    }

    /// The table.
    pub fn table(&self) -> &TableName {
        &self.table
    }

    /// Tag names and values, sorted by name.
    pub fn tags(&self) -> &[(String, String)] {
        &self.tags
    }
}

/// The tag that names a device in its profile's table.
pub const DEVICE_TAG: &str = "device";
/// The tag that names an asset in the table of assets.
pub const ASSET_TAG: &str = "asset";

impl fmt::Display for SeriesKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{{", self.table)?;
        for (index, (tag, value)) in self.tags.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            write!(f, "{comma}{tag}={value:?}")?;
        }
        f.write_str("}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_order_does_not_matter_and_the_last_value_wins() {
        let one = SeriesKey::new("t", &[("b", "2"), ("a", "0"), ("a", "1")]).unwrap();
        let other = SeriesKey::new("t", &[("a", "1"), ("b", "2")]).unwrap();
        assert_eq!(one, other);
        assert_eq!(one.to_string(), r#"t{a="1",b="2"}"#);
    }

    #[test]
    fn bad_parts_are_refused() {
        assert!(SeriesKey::new("", &[]).is_err());
        assert!(SeriesKey::device("telemetry", "").is_err());
        let names: Vec<String> = (0..65).map(|n| format!("tag{n}")).collect();
        let tags: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "v")).collect();
        assert_eq!(SeriesKey::new("t", &tags), Err(NameError::TooManyTags { tags: 65, limit: 64 }));
    }
}
