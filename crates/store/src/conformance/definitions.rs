//! What a store has defined, and who limits it.

use std::sync::Arc;

use model::{Namespace, SeriesId, SeriesKey, TableName, Value};

use super::rows::{append, batch_of, table};
use crate::{DefinitionCounts, DefinitionLimits, Definitions, Durability, Store, StoreError};

pub(super) const CHECKS: [fn(&dyn Store); 3] = [
    definitions_are_counted_by_namespace,
    a_limit_refuses_new_series_and_tables,
    a_limit_refuses_new_columns_by_row_and_field,
];

/// Limits one namespace.
struct Limited(Namespace, Definitions);

impl DefinitionLimits for Limited {
    fn check(
        &self,
        table: &TableName,
        new: Definitions,
        present: &DefinitionCounts,
    ) -> Result<(), StoreError> {
        let Self(namespace, most) = self;
        if !table.is_in(namespace) {
            return Ok(());
        }
        let next = present.of(namespace).plus(new);
        for (what, actual, limit) in [
            ("tables", next.tables, most.tables),
            ("series", next.series, most.series),
            ("columns", next.columns, most.columns),
        ] {
            if actual > limit {
                return Err(StoreError::OverLimit { what, actual, limit });
            }
        }
        Ok(())
    }
}

fn elsewhere(name: &str) -> TableName {
    let namespace = Namespace::new("elsewhere").expect("a valid name");
    TableName::new(&namespace, name).expect("a valid name")
}

fn device(store: &dyn Store, table: &TableName, name: &str) -> Result<SeriesId, StoreError> {
    store.series(&SeriesKey::device(table, name).expect("a valid name"))
}

fn counts(store: &dyn Store, table: &TableName) -> [u64; 3] {
    let Definitions { tables, series, columns } = store.definitions().of(&table.namespace());
    [tables, series, columns]
}

fn definitions_are_counted_by_namespace(store: &dyn Store) {
    let (ours, theirs) = (table("t"), elsewhere("t"));
    let series = device(store, &ours, "a").expect("a series");
    device(store, &ours, "b").expect("a series");
    let other = device(store, &theirs, "a").expect("a series");
    append(store, series, &[(1, &[("n", Value::I64(1)), ("s", Value::String("x".into()))])]);
    append(store, other, &[(1, &[("n", Value::I64(1))])]);
    append(store, series, &[(2, &[("n", Value::Bool(true))])]);
    assert_eq!(counts(store, &ours), [1, 2, 4]);
    assert_eq!(counts(store, &theirs), [1, 1, 2]);
    assert_eq!(store.definitions().total(), Definitions { tables: 2, series: 3, columns: 6 });
    assert!(store.drop_key(&ours, "n").expect("room for a drop"));
    let deleted = [series.0 as u32].into_iter().collect();
    store.delete_series(&deleted, Durability::Memory).expect("room for a deletion");
    assert_eq!(counts(store, &ours), [1, 1, 2]);
    assert!(store.drop_table(&ours).expect("room for a drop"));
    store.set_ttl(&elsewhere("empty"), None).expect("a ttl");
    assert_eq!((counts(store, &ours), counts(store, &theirs)), ([0; 3], [2, 1, 2]));
}

fn a_limit_refuses_new_series_and_tables(store: &dyn Store) {
    let theirs = elsewhere("t");
    let first = device(store, &theirs, "a").expect("a series");
    let most = Definitions { tables: 1, series: 2, columns: 10 };
    store.limit_definitions(Arc::new(Limited(theirs.namespace(), most)));
    let over = |what, actual, limit| StoreError::OverLimit { what, actual, limit }.to_string();
    device(store, &theirs, "b").expect("within the limit");
    let refused = |result: Result<SeriesId, StoreError>| result.expect_err("over the limit").to_string();
    assert_eq!(refused(device(store, &theirs, "c")), over("series", 3, 2));
    assert_eq!(refused(device(store, &elsewhere("u"), "a")), over("tables", 2, 1));
    assert_eq!(
        store.set_ttl(&elsewhere("u"), None).expect_err("over the limit").to_string(),
        over("tables", 2, 1)
    );
    assert_eq!(device(store, &theirs, "a").expect("a known series"), first);
    assert_eq!((counts(store, &theirs), store.tables().expect("the tables").len()), ([1, 2, 1], 1));
    for name in ["a", "b", "c"] {
        device(store, &table("t"), name).expect("another namespace has no limit");
    }
    let deleted = [first.0 as u32].into_iter().collect();
    store.delete_series(&deleted, Durability::Memory).expect("room for a deletion");
    device(store, &theirs, "c").expect("a deleted series has left room");
}

fn a_limit_refuses_new_columns_by_row_and_field(store: &dyn Store) {
    let theirs = elsewhere("t");
    let series = device(store, &theirs, "a").expect("a series");
    append(store, series, &[(1, &[("n", Value::I64(1))])]);
    let most = Definitions { tables: 1, series: 1, columns: 3 };
    store.limit_definitions(Arc::new(Limited(theirs.namespace(), most)));
    let batch = batch_of(
        series,
        &[
            (2, &[("n", Value::I64(2)), ("a", Value::I64(2))]),
            (3, &[("b", Value::I64(3)), ("n", Value::I64(3)), ("c", Value::I64(3))]),
            (4, &[("a", Value::I64(4))]),
        ],
    );
    let refused = match store.append(&batch, Durability::Memory) {
        Err(StoreError::Rows(refused)) => refused,
        other => panic!("the columns b and c are over the limit: {other:?}"),
    };
    let named: Vec<_> = refused.rows().iter().map(|one| (one.row, one.fields.clone())).collect();
    assert_eq!(named, [(1, vec![0, 2])]);
    assert!(refused.rows()[0].reason.to_string().contains("columns"));
    assert_eq!(counts(store, &theirs), [1, 1, 2]);
    append(
        store,
        series,
        &[(2, &[("n", Value::I64(2)), ("a", Value::I64(2))]), (4, &[("a", Value::I64(4))])],
    );
    assert_eq!(counts(store, &theirs), [1, 1, 3]);
}
