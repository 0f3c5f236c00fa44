//! Integers and floats of one key as one column.
//!
//! Clients write 20 and then 20.5. A store keeps both as they arrived, each in a column of its type. Readers find both
//! in one column, whose type is f64 as soon as one float has arrived. An f64 cannot represent every i64, so a second
//! column shows the exact integers.

use std::collections::HashSet;
use std::sync::Arc;

use model::FieldType;

use crate::{Column, FieldColumn, TableColumns};

impl TableColumns {
    /// The columns as readers see them, made from columns that each have the values of one key and type.
    ///
    /// If a key has integers and floats, its first column shows all numbers. The name of this column is the key, or the
    /// name of the column of floats if another column is called like the key. The next column shows the exact integers; it
    /// has the same name with `:i64`. All other columns keep their names and their positions.
    pub fn joined(&self) -> Self {
        let mut joined = self.clone();
        let mut names = None;
        let mut start = 0;
        while start < self.fields.len() {
            let key = &self.fields[start].key;
            let end = start + self.fields[start..].iter().take_while(|field| field.key == *key).count();
            let of_type = |of: FieldType| {
                self.fields[start..end].iter().position(|field| field.field_type == of).map(|at| start + at)
            };
            if let (Some(integers), Some(floats)) = (of_type(FieldType::I64), of_type(FieldType::F64)) {
                let names = names.get_or_insert_with(|| self.names());
                let (all, exact) = joined_columns(&self.fields[integers], &self.fields[floats], names);
                // Columns are in the order of the codes of their types, so the floats follow the integers.
                joined.fields.splice(integers..=floats, [all, exact]);
            }
            start = end;
        }
        joined
    }

    /// The index of the column of exact integers that belongs to a column of all numbers. Both are indices in
    /// [`schema`](Self::schema).
    pub fn exact_integers(&self, index: usize) -> Option<usize> {
        match self.column(index) {
            Some(Column::Field(field)) if field.with_integers => Some(index + 1),
            _ => None,
        }
    }

    /// Whether a column has this name.
    pub fn has_column(&self, name: &str) -> bool {
        self.tags.iter().any(|tag| *tag.column == *name)
            || self.fields.iter().any(|field| *field.column == *name)
    }

    fn names(&self) -> HashSet<Arc<str>> {
        let tags = self.tags.iter().map(|tag| tag.column.clone());
        tags.chain(self.fields.iter().map(|field| field.column.clone())).collect()
    }
}

/// The column of all numbers and the column of exact integers. `names` are the names of the other columns.
fn joined_columns(
    integers: &FieldColumn,
    floats: &FieldColumn,
    names: &mut HashSet<Arc<str>>,
) -> (FieldColumn, FieldColumn) {
    let key = &integers.key;
    let column = if integers.column == *key { &integers.column } else { &floats.column };
    let wanted = format!("{column}:{}", FieldType::I64);
    let is_taken = |name: &str| {
        let is_own = *name == *integers.column || *name == *floats.column;
        *name == **column || (names.contains(name) && !is_own)
    };
    let exact = TableColumns::free_name(&wanted, FieldType::I64.name(), is_taken);
    names.insert(exact.clone());
    let all = FieldColumn { column: column.clone(), with_integers: true, ..floats.clone() };
    (all, FieldColumn { column: exact, ..integers.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn columns(fields: &[(&str, FieldType, &str)]) -> TableColumns {
        let field = |(key, field_type, column): &(&str, FieldType, &str)| FieldColumn {
            key: (*key).into(),
            field_type: *field_type,
            column: (*column).into(),
            with_integers: false,
        };
        TableColumns {
            table: "t".try_into().unwrap(),
            tags: Vec::new(),
            fields: fields.iter().map(field).collect(),
        }
    }

    fn joined(fields: &[(&str, FieldType, &str)]) -> Vec<(String, FieldType, bool)> {
        let joined = columns(fields).joined();
        let fields = joined.fields.iter();
        fields.map(|field| (field.column.to_string(), field.field_type, field.with_integers)).collect()
    }

    #[test]
    fn whichever_kind_came_first_the_names_are_the_same() {
        use FieldType::{Bool, F64, I64, String};
        let expected = [("a".to_owned(), F64, true), ("a:i64".to_owned(), I64, false)];
        assert_eq!(joined(&[("a", I64, "a"), ("a", F64, "a:f64")]), expected);
        assert_eq!(joined(&[("a", I64, "a:i64"), ("a", F64, "a")]), expected);
        // After a text, and between other types of the key.
        let found = joined(&[
            ("a", Bool, "a:bool"),
            ("a", I64, "a:i64"),
            ("a", F64, "a:f64"),
            ("a", String, "a"),
            ("b", I64, "b"),
        ]);
        let names: Vec<&str> = found.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["a:bool", "a:f64", "a:f64:i64", "a", "b"]);
        assert_eq!((found[1].1, found[1].2, found[2].1), (F64, true, I64));
    }

    #[test]
    fn one_kind_of_number_stays_as_it_is() {
        use FieldType::{F64, I64, String};
        let plain = columns(&[("a", I64, "a"), ("a", String, "a:string"), ("b", F64, "b"), ("c", I64, "c")]);
        assert_eq!(plain.joined(), plain);
    }

    #[test]
    fn the_exact_integers_take_a_name_that_nobody_has() {
        use FieldType::{F64, I64};
        let found = joined(&[
            ("a", I64, "a"),
            ("a", F64, "a:f64"),
            ("a:i64", I64, "a:i64"),
            ("a:i64", F64, "a:i64:f64"),
        ]);
        let names: Vec<&str> = found.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["a", "a:i64:i64", "a:i64", "a:i64:i64:i64"]);
    }
}
