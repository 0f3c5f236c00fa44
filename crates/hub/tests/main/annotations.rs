//! Annotations of a database.

use std::collections::BTreeMap;

use hub::OpenDatabase;
use hub::annotations::limits::{ANNOTATION_BYTES_MAX, ANNOTATIONS_PER_REQUEST_MAX, TSUIDS_PER_REQUEST_MAX};
use hub::annotations::{Annotation, AnnotationChange, AnnotationDeletion, AnnotationError};
use hub::caller::{Caller, Role};
use hub::registry::{CustomerFields, NewUser};

use super::*;

/// The series `cpu{a=1,b=2}`, with its tags in two orders.
const SERIES: &str = "0003637075000161000131000162000132";
const SAME_SERIES: &str = "0003637075000162000132000161000131";
const OTHER: &str = "0003637075";
/// A second, and the same in milliseconds.
const SECOND: i64 = 1_700_000_000;
const MILLIS: i64 = SECOND * 1_000;

fn note(tsuid: &str, start_time: i64, text: &str) -> AnnotationChange {
    AnnotationChange {
        tsuid: tsuid.into(),
        start_time,
        description: Some(text.into()),
        ..AnnotationChange::default()
    }
}

/// A caller of the fixture and its database.
struct Notes<'a> {
    hub: &'a Hub,
    caller: Caller,
}

impl Notes<'_> {
    fn of(fixture: &Fixture) -> Notes<'_> {
        Notes { hub: &fixture.hub, caller: fixture.administrator() }
    }

    fn save(
        &self,
        changes: Vec<AnnotationChange>,
        replace: bool,
    ) -> Result<Vec<Annotation>, AnnotationError> {
        let database = self.hub.own_database(&self.caller);
        self.hub.save_annotations(&self.caller, &database, changes, replace).map(|(saved, _)| saved)
    }

    fn get(&self, tsuid: &str, start_time: i64) -> Option<Annotation> {
        let database = self.hub.own_database(&self.caller);
        self.hub.annotation(&self.caller, &database, tsuid, start_time).unwrap()
    }

    fn texts(&self, tsuid: &str, from: i64, to: i64) -> Vec<String> {
        let database = self.hub.own_database(&self.caller);
        let found = self.hub.annotations(&self.caller, &database, tsuid, from..=to).unwrap();
        found.into_iter().map(|one| one.description).collect()
    }

    fn delete(&self, tsuids: &[&str], global: bool, from: i64, to: i64) -> Result<usize, AnnotationError> {
        let database = self.hub.own_database(&self.caller);
        let tsuids = tsuids.iter().map(|tsuid| (*tsuid).to_owned()).collect();
        let deletion = AnnotationDeletion { tsuids, global };
        self.hub.delete_annotations(&self.caller, &database, &deletion, from..=to).map(|(count, _)| count)
    }
}

#[test]
fn a_change_keeps_what_it_does_not_say_and_a_replacement_does_not() {
    let fixture = fixture();
    let notes = Notes::of(&fixture);
    let custom = BTreeMap::from([("owner".to_owned(), "ann".to_owned())]);
    let first =
        AnnotationChange { notes: Some("n".into()), custom: Some(custom), ..note(SERIES, SECOND, "d") };
    let saved = notes.save(vec![first], false).unwrap().remove(0);
    assert_eq!((saved.tsuid.as_str(), saved.end_time), (SERIES, 0));
    let change = AnnotationChange { end_time: Some(SECOND + 1), ..note(SAME_SERIES, MILLIS, "e") };
    let saved = notes.save(vec![change], false).unwrap().remove(0);
    let expected = Annotation {
        tsuid: SERIES.into(),
        start_time: SECOND,
        end_time: SECOND + 1,
        description: "e".into(),
        notes: "n".into(),
        custom: Some(BTreeMap::from([("owner".to_owned(), "ann".to_owned())])),
    };
    assert_eq!(saved, expected, "seconds and milliseconds, and both orders of tags, name the same");
    assert_eq!(notes.get(SERIES, MILLIS), Some(expected));
    let replaced = notes.save(vec![note(SERIES, SECOND, "f")], true).unwrap().remove(0);
    assert_eq!((replaced.notes.as_str(), replaced.end_time, replaced.custom), ("", 0, None));
    let both = notes.save(vec![note("", SECOND, "g"), note("", SECOND, "h")], false).unwrap();
    assert_eq!(both.len(), 2);
    assert_eq!(notes.texts("", 0, i64::MAX), ["h"]);
}

#[test]
fn series_and_times_are_apart() {
    let fixture = fixture();
    let notes = Notes::of(&fixture);
    let all = [(SERIES, 0), (SERIES, 1), (SERIES, 2), (OTHER, 1), ("", 1)];
    let changes = all.iter().map(|(tsuid, at)| note(tsuid, SECOND + at, &format!("{}{at}", tsuid.len())));
    notes.save(changes.collect(), false).unwrap();
    assert_eq!(notes.texts(SERIES, MILLIS + 1_000, MILLIS + 2_000), ["341", "342"]);
    assert_eq!(notes.texts(SERIES, -5, MILLIS), ["340"]);
    assert_eq!(notes.texts(SERIES, MILLIS + 1, MILLIS), Vec::<String>::new());
    assert_eq!(notes.texts("", 0, i64::MAX), ["01"]);
    let annotates =
        || fixture.hub.annotates_series(&notes.caller, &fixture.hub.own_database(&notes.caller)).unwrap();
    assert!(annotates());
    assert_eq!(notes.delete(&[SERIES, SAME_SERIES], false, MILLIS, MILLIS + 1_000).unwrap(), 2);
    assert_eq!(notes.delete(&[OTHER], true, 0, i64::MAX).unwrap(), 2);
    assert_eq!(notes.delete(&[OTHER], true, 0, i64::MAX).unwrap(), 0);
    assert_eq!(notes.texts(SERIES, 0, i64::MAX), ["342"]);
    assert_eq!(notes.delete(&[SERIES], false, 0, i64::MAX).unwrap(), 1);
    notes.save(vec![note("", SECOND, "g")], false).unwrap();
    assert!(!annotates());
}

#[test]
fn what_is_too_much_or_names_nothing_is_refused_as_a_whole() {
    let fixture = fixture();
    let notes = Notes::of(&fixture);
    let refused = |changes| notes.save(changes, false).unwrap_err().to_string();
    assert!(refused(vec![note("", 0, "d")]).contains("start"));
    assert!(refused(vec![note("zz", 1, "d")]).contains("TSUID"));
    let long = note("", 2, &"x".repeat(ANNOTATION_BYTES_MAX + 1));
    assert!(refused(vec![note("", 1, "d"), long]).starts_with("bytes of an annotation"));
    assert!(
        refused(vec![note("", 1, "d"); ANNOTATIONS_PER_REQUEST_MAX + 1])
            .starts_with("annotations of a request")
    );
    assert_eq!(notes.texts("", 0, i64::MAX), Vec::<String>::new(), "all or none");
    let many = vec![OTHER; TSUIDS_PER_REQUEST_MAX + 1];
    assert!(notes.delete(&many, false, 0, 1).is_err());
    assert!(notes.delete(&[""], false, 0, 1).is_err());
    fixture.kv.set_busy(Some("full"));
    assert!(matches!(notes.save(vec![note("", 1, "d")], false), Err(AnnotationError::Kv(_))));
    fixture.kv.set_busy(None);
    notes.save(vec![note("", 1, "d")], false).unwrap();
}

#[test]
fn the_annotations_of_a_dropped_database_go_with_it() {
    let fixture = fixture();
    let caller = fixture.administrator();
    let database = fixture.hub.create_database(&caller, "other").unwrap();
    let save = |database: &OpenDatabase| {
        fixture.hub.save_annotations(&caller, database, vec![note("", 1, "d")], false).unwrap()
    };
    save(&database);
    save(&fixture.hub.own_database(&caller));
    fixture.hub.drop_database(&caller, "other").unwrap();
    fixture.hub.drop_deleted_tables().unwrap();
    let found = fixture.hub.annotations(&caller, &database, "", 0..=i64::MAX).unwrap();
    assert_eq!(found, []);
    let own = fixture.hub.own_database(&caller);
    assert_eq!(fixture.hub.annotations(&caller, &own, "", 0..=i64::MAX).unwrap().len(), 1);
}

#[test]
fn a_user_of_a_customer_sees_and_changes_none() {
    let fixture = fixture();
    Notes::of(&fixture).save(vec![note("", 1, "d")], false).unwrap();
    let registry = fixture.hub.registry();
    let tenant = registry.default_tenant();
    let fields = CustomerFields { title: "c", ..CustomerFields::default() };
    let customer = fixture.hub.add_customer(&fixture.administrator(), &fields).unwrap();
    let new =
        NewUser { login: "eve", role: Role::Customer, customer: Some(customer.id), ..NewUser::default() };
    let eve = Caller::user(&registry.create_user(tenant, new).unwrap());
    let notes = Notes { hub: &fixture.hub, caller: eve };
    assert_eq!(notes.texts("", 0, i64::MAX), Vec::<String>::new());
    assert!(matches!(notes.save(vec![note("", 2, "d")], false), Err(AnnotationError::Forbidden(_))));
    assert!(matches!(notes.delete(&[], true, 0, 9), Err(AnnotationError::Forbidden(_))));
}
