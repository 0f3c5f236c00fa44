use super::*;

fn series(catalog: &mut Catalog, table: &str, tags: &[(&str, &str)]) -> u32 {
    let key = SeriesKey::new(table, tags).unwrap();
    match catalog.find_series(&key) {
        Some(id) => id,
        None => catalog.create_series(&key, 10, 10, &mut |_| {}).unwrap(),
    }
}

#[test]
fn physical_names_never_clash() {
    let mut catalog = Catalog::default();
    series(&mut catalog, "t", &[("device", "d")]);
    let mut column = |name: &str, field_type| {
        let key = catalog.column(0, name, field_type, &mut |_| {});
        catalog.tables[0].keys[key as usize].column(field_type).unwrap().to_string()
    };
    assert_eq!(column("speed", FieldType::F64), "speed");
    assert_eq!(column("speed", FieldType::String), "speed:string");
    assert_eq!(column("speed:i64", FieldType::Bool), "speed:i64");
    assert_eq!(column("speed", FieldType::I64), "speed:i64:i64");
    assert_eq!(column("device", FieldType::I64), "device:i64");
    assert_eq!(column("ts", FieldType::I64), "ts:i64");
    assert_eq!(column("__series", FieldType::I64), "__series:i64");
    assert_eq!(column("speed", FieldType::F64), "speed");
    series(&mut catalog, "t", &[("speed", "x")]);
    assert_eq!(&*catalog.tables[0].tags[1].physical, "speed:tag");
}

#[test]
fn a_key_that_comes_again_is_shown_under_the_plain_name_and_kept_under_another() {
    let mut bytes = Vec::new();
    let mut catalog = Catalog::default();
    catalog.create_table(&"t".try_into().unwrap(), 10, &mut |entry| entry.put(&mut bytes)).unwrap();
    let names = |catalog: &Catalog| {
        let table = &catalog.tables[0];
        let stored = table.live_keys().flat_map(|(_, key)| FieldType::ALL.map(|of| key.column(of).cloned()));
        let names =
            stored.flatten().map(|physical| (table.shown(&physical).to_string(), physical.to_string()));
        names.collect::<Vec<_>>()
    };
    let mut number = 0;
    for _ in 0..3 {
        for field_type in [FieldType::F64, FieldType::Bool] {
            number = catalog.column(0, "a", field_type, &mut |entry| entry.put(&mut bytes));
        }
        assert!(catalog.drop_key(0, "a", &mut |entry| entry.put(&mut bytes)).unwrap());
        assert!(!catalog.drop_key(0, "a", &mut |entry| entry.put(&mut bytes)).unwrap());
    }
    assert_eq!((number, names(&catalog), catalog.tables[0].columns()), (2, Vec::new(), 0));
    catalog.column(0, "a", FieldType::I64, &mut |entry| entry.put(&mut bytes));
    // What takes a name that a dropped column has in files.
    catalog.column(0, "a:f64", FieldType::F64, &mut |entry| entry.put(&mut bytes));
    catalog.column(0, "a", FieldType::Bool, &mut |entry| entry.put(&mut bytes));
    let expected = [("a:bool", "a:bool:bool:bool:bool"), ("a", "a:i64"), ("a:f64", "a:f64:f64:f64")];
    let expected = expected.map(|(shown, stored)| (shown.to_owned(), stored.to_owned()));
    assert_eq!(names(&catalog), expected);

    // Recovery may meet all definitions a second time.
    let mut again = Catalog::default();
    for _ in 0..2 {
        let mut reader = crate::codec::Reader::new(&bytes);
        while !reader.is_empty() {
            again.apply(Entry::read(&mut reader).unwrap()).unwrap();
        }
        assert_eq!(names(&again), expected);
    }
}

#[test]
fn definitions_rebuild_the_catalog_and_may_repeat() {
    let mut bytes = Vec::new();
    let mut catalog = Catalog::default();
    for name in ["a", "b", "a"] {
        let key = SeriesKey::new("t", &[("device", name), ("site", "x")]).unwrap();
        if catalog.find_series(&key).is_none() {
            catalog.create_series(&key, 10, 10, &mut |entry| entry.put(&mut bytes)).unwrap();
        }
    }
    catalog.column(0, "v", FieldType::Json, &mut |entry| entry.put(&mut bytes));

    let mut copy = Catalog::default();
    for round in 0..2 {
        let mut reader = crate::codec::Reader::new(&bytes);
        while !reader.is_empty() {
            let new = copy.apply(Entry::read(&mut reader).unwrap()).unwrap();
            assert_eq!(new, round == 0);
        }
    }
    assert_eq!(copy.series.read().len(), 2);
    assert_eq!(copy.tables[0].key("v"), Some(0));
    let b = SeriesKey::new("t", &[("site", "x"), ("device", "b")]).unwrap();
    assert_eq!(copy.find_series(&b), Some(1));
    assert_eq!(
        copy.apply(Entry::Series { id: 1, table: 0, tags: &[] }),
        Err(Malformed("series number defined twice"))
    );
}

#[test]
fn limits_are_named() {
    let mut catalog = Catalog::default();
    let mut refused = None;
    for number in 0..11 {
        let key = SeriesKey::new("t", &[(format!("tag{number}").as_str(), "x")]).unwrap();
        refused = catalog.create_series(&key, 10, 10, &mut |_| {}).err();
    }
    assert_eq!(refused.unwrap().to_string(), "columns of a table is 11, the limit is 10");
}
