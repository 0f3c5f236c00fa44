use std::collections::BTreeMap;

use model::SeriesKey;
use proptest::prelude::*;
use regex::Regex;
use store::TagMatcher;

use super::*;
use crate::catalog::Catalog;

const TAGS: [&str; 4] = ["device", "region", "model", "never"];

/// Tags of a series by name.
type Tags = BTreeMap<&'static str, String>;

fn catalog(series: &[(usize, Tags)]) -> Catalog {
    let mut catalog = Catalog::default();
    for (table, tags) in series {
        let tags: Vec<(&str, &str)> = tags.iter().map(|(name, value)| (*name, value.as_str())).collect();
        let key = SeriesKey::new(["t", "u"][*table], &tags).unwrap();
        catalog.create_series(&key, 10, 10, &mut |_| {}).unwrap();
    }
    catalog
}

fn selected(catalog: &Catalog, table: &str, series_end: u32, matchers: &[TagMatcher]) -> Vec<u32> {
    let Some(table) = catalog.table(&table.try_into().unwrap()) else { return Vec::new() };
    let columns = catalog.tables[table as usize].tags.iter();
    let columns: Vec<TagColumn> =
        columns.map(|tag| TagColumn { tag: tag.name.clone(), column: tag.physical.clone() }).collect();
    let conditions: Vec<Condition<'_>> =
        matchers.iter().map(|matcher| Condition::new(&columns, matcher)).collect();
    let dropped = catalog.series.read().dropped().clone();
    select(&catalog.series, table, series_end, &dropped, &conditions).iter().collect()
}

fn matcher(tag: &str, predicate: TagPredicate) -> TagMatcher {
    TagMatcher { tag: tag.to_owned(), predicate }
}

/// A few hundred series of two tables: a tag that is nearly unique, two with few values that may be absent.
fn any_series() -> impl Strategy<Value = Vec<(usize, Tags)>> {
    let series = (0..2_usize, 0..3_usize, proptest::option::of(0..3_u32), proptest::option::of(0..40_u32));
    proptest::collection::vec(series, 0..300).prop_map(|all| {
        let numbered = all.into_iter().enumerate();
        let named = numbered.map(|(number, (table, unique, region, model))| {
            let mut tags = Tags::new();
            // Two of three have a device of their own; the others differ in a tag that no test selects by.
            match unique {
                0 => tags.insert("serial", format!("s{number}")),
                _ => tags.insert("device", format!("dev-{number}")),
            };
            tags.extend(region.map(|region| ("region", format!("r-{region}"))));
            tags.extend(model.map(|model| ("model", format!("m-{model}"))));
            (table, tags)
        });
        named.collect()
    })
}

fn any_value() -> impl Strategy<Value = String> {
    prop_oneof![
        (0..300_u32).prop_map(|n| format!("dev-{n}")),
        (0..4_u32).prop_map(|n| format!("r-{n}")),
        (0..50_u32).prop_map(|n| format!("m-{n}")),
    ]
}

fn any_predicate() -> impl Strategy<Value = TagPredicate> {
    let pattern = prop_oneof![
        Just("1"),
        Just("^r-[01]$"),
        Just("dev-.*[02468]$"),
        Just("m-[1-3]"),
        Just("."),
        Just("^$")
    ]
    .prop_map(|pattern| Regex::new(pattern).unwrap());
    let values = || proptest::collection::vec(any_value(), 0..5);
    prop_oneof![
        any_value().prop_map(TagPredicate::Is),
        any_value().prop_map(TagPredicate::IsNot),
        values().prop_map(TagPredicate::OneOf),
        values().prop_map(TagPredicate::NoneOf),
        pattern.clone().prop_map(TagPredicate::Matches),
        pattern.prop_map(TagPredicate::MatchesNot),
        Just(TagPredicate::Present),
        Just(TagPredicate::Absent),
    ]
}

fn any_matchers() -> impl Strategy<Value = Vec<TagMatcher>> {
    let tag = proptest::sample::select(&TAGS[..]);
    proptest::collection::vec((tag, any_predicate()).prop_map(|(tag, is)| matcher(tag, is)), 0..4)
}

proptest! {
    #[test]
    fn the_index_selects_what_each_series_would_be_accepted_for(
        series in any_series(),
        matchers in any_matchers(),
        table in 0..2_usize,
        kept in 0.0..=1.0_f64,
    ) {
        let series_end = (series.len() as f64 * kept) as usize;
        let accepted = |tags: &Tags| {
            let value = |matcher: &TagMatcher| tags.get(matcher.tag.as_str()).map(String::as_str);
            matchers.iter().all(|matcher| matcher.predicate.accepts(value(matcher)))
        };
        let of_table = series.iter().enumerate().take(series_end).filter(|(_, (of, _))| *of == table);
        let expected: Vec<u32> =
            of_table.filter(|(_, (_, tags))| accepted(tags)).map(|(id, _)| id as u32).collect();
        let catalog = catalog(&series);
        prop_assert_eq!(selected(&catalog, ["t", "u"][table], series_end as u32, &matchers), expected);
    }
}

#[test]
fn patterns_go_over_more_values_than_one_slice() {
    let count = 5 * SLICE as u32 / 2;
    let series: Vec<(usize, Tags)> = (0..count)
        .map(|n| (0, Tags::from([("device", format!("dev-{n}")), ("region", format!("r-{}", n % 2))])))
        .collect();
    let catalog = catalog(&series);
    let even = || matcher("region", TagPredicate::Is("r-0".to_owned()));
    let sevens = || matcher("device", TagPredicate::Matches(Regex::new("7$").unwrap()));
    let others = || matcher("device", TagPredicate::MatchesNot(Regex::new("7$").unwrap()));
    let of = |matchers: &[TagMatcher]| selected(&catalog, "t", u32::MAX, matchers);
    let numbers = |wanted: fn(&u32) -> bool| (0..count).filter(wanted).collect::<Vec<_>>();
    assert_eq!(of(&[sevens()]), numbers(|n| n % 10 == 7));
    assert_eq!(of(&[others()]), numbers(|n| n % 10 != 7));
    // Half of the series: fewer than values, so each is asked for its own.
    assert_eq!(of(&[others(), even()]), numbers(|n| n % 2 == 0));
    assert_eq!(of(&[sevens(), even()]), [0_u32; 0]);
    assert_eq!(selected(&catalog, "unknown", u32::MAX, &[]), [0_u32; 0]);
}
