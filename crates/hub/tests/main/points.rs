//! Rows of any series by callers, and the databases that they write to.

use hub::points::{AcceptError, Accepted, PointRefusal, Points};
use hub::registry::OWN_DATABASE;
use hub::time_series::TaskError;
use hub::{AUDIT_TABLE, DEAD_LETTER_TABLE, OpenDatabase};
use model::TableName;
use timeseries::influxql::{Removal, ast::Statement, parse};
use timeseries::{Source, SourceError};

use super::*;
use store::Reader as _;

const BUSY: Duration = Duration::from_secs(1);
const SECOND_US: i64 = 1_000_000;
const BEGIN_US: i64 = 1_700_000_000 * SECOND_US;

fn points(fixture: &Fixture, database: &OpenDatabase) -> Points {
    fixture.hub.points(&fixture.administrator(), database, Door::Influx).unwrap()
}

type Key = (&'static str, Vec<(&'static str, &'static str)>);

fn cpu() -> Key {
    ("cpu", vec![("host", "a")])
}

fn add(points: &mut Points, item: u32, second: i64, keys: &[&str]) {
    let fields = keys.iter().map(|key| (*key, ValueRef::F64(f64::from(item))));
    let ts = Timestamp::from_micros(BEGIN_US + second * SECOND_US);
    points.add(item, ts, b"cpu,host=a", cpu, fields).unwrap();
}

async fn accept(fixture: &Fixture, points: Points) -> Result<Accepted, AcceptError> {
    fixture.hub.accept_points(points, "/write", BUSY).await
}

async fn count(fixture: &Fixture, sql: &str) -> usize {
    let answer = fixture.hub.sql(sql, Vec::new(), &Reader::from(fixture.administrator())).await.unwrap();
    answer.collect().await.unwrap().iter().map(|batch| batch.num_rows()).sum()
}

#[tokio::test]
async fn rows_are_durable_and_a_refused_item_is_a_dead_letter() {
    let fixture = fixture();
    fixture.hub.open_sql(QueryLimits::default()).unwrap();
    let own = fixture.hub.own_database(&fixture.administrator());
    let mut request = points(&fixture, &own);
    add(&mut request, 0, 0, &["usage"]);
    add(&mut request, 1, 1, &["usage", "idle"]);
    request.refuse("no fields", b"cpu,host=a");
    let accepted = accept(&fixture, request).await.unwrap();
    assert_eq!(accepted, Accepted { rows: 2, refused: Vec::new() });
    assert_eq!(count(&fixture, "SELECT * FROM cpu WHERE host = 'a' AND usage >= 0").await, 2);
    let dead_letter = format!(
        "SELECT * FROM {DEAD_LETTER_TABLE} WHERE login = 'local' AND door = 'influx' AND topic = '/write' \
         AND reason = 'no fields' AND payload = 'cpu,host=a'"
    );
    assert_eq!(count(&fixture, &dead_letter).await, 1);
}

#[tokio::test]
async fn values_without_a_column_are_named_and_the_others_are_stored() {
    let fixture = fixture();
    let own = fixture.hub.own_database(&fixture.administrator());
    let most = IngestLimits::default().new_columns_per_minute_max;
    let names: Vec<String> = (0..=most).map(|number| format!("key{number}")).collect();
    let keys: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut request = points(&fixture, &own);
    add(&mut request, 4, 0, &keys[..most]);
    add(&mut request, 7, 1, &[keys[0], keys[most]]);
    add(&mut request, 9, 2, &[keys[most]]);
    let accepted = accept(&fixture, request).await.unwrap();
    assert_eq!(accepted.rows, 2);
    let items: Vec<u32> = accepted.refused.iter().map(|refused| refused.item).collect();
    assert_eq!(items, [7, 9]);
    assert!(accepted.refused[0].reason.contains("new_columns_per_minute_max"), "{:?}", accepted.refused[0]);
}

#[tokio::test]
async fn implausible_times_and_the_servers_own_tables_are_refused() {
    let fixture = fixture();
    let own = fixture.hub.own_database(&fixture.administrator());
    let mut request = points(&fixture, &own);
    let mut add = |micros, key: Key, value| {
        request.add(0, Timestamp::from_micros(micros), b"name", || key, [("v", value)])
    };
    let one = ValueRef::I64(1);
    assert!(matches!(add(1, cpu(), one), Err(PointRefusal::TooOld { .. })));
    assert!(matches!(add(i64::MAX, cpu(), one), Err(PointRefusal::TooNew { .. })));
    let long = "x".repeat(100_000);
    let text = add(BEGIN_US, cpu(), ValueRef::String(&long));
    assert!(matches!(text, Err(PointRefusal::TextTooLong { bytes: 100_000, .. })));
    for table in [AUDIT_TABLE, DEAD_LETTER_TABLE] {
        let refused = add(BEGIN_US, (table, Vec::new()), one);
        assert!(matches!(refused, Err(PointRefusal::OwnTable { .. })), "{table}");
    }
    assert!(matches!(add(BEGIN_US, ("", Vec::new()), one), Err(PointRefusal::Name(_))));
    assert!(request.is_empty());
    // Nothing that was refused has left a series.
    assert_eq!(fixture.hub.status().series, 0);
    assert_eq!(accept(&fixture, request).await.unwrap(), Accepted::default());
}

#[tokio::test]
async fn a_series_that_was_deleted_meanwhile_is_reported_and_created_again() {
    let fixture = fixture();
    let own = fixture.hub.own_database(&fixture.administrator());
    let mut request = points(&fixture, &own);
    add(&mut request, 0, 0, &["v"]);
    accept(&fixture, request).await.unwrap();
    let mut request = points(&fixture, &own);
    add(&mut request, 0, 1, &["v"]);
    fixture.hub.drop_table(&fixture.administrator(), "cpu", false).unwrap();
    assert!(matches!(accept(&fixture, request).await, Err(AcceptError::SeriesGone)));
    let mut again = points(&fixture, &own);
    add(&mut again, 0, 1, &["v"]);
    assert_eq!(accept(&fixture, again).await.unwrap().rows, 1);
}

#[tokio::test]
async fn a_series_that_is_not_made_now_fails_the_request_and_is_not_a_fault_of_a_point() {
    let fixture = fixture();
    let own = fixture.hub.own_database(&fixture.administrator());
    fixture.store.set_series_busy(Some("the log is full"));
    let request = || {
        let mut request = points(&fixture, &own);
        let ts = Timestamp::from_micros(BEGIN_US);
        let added = request.add(0, ts, b"cpu,host=a", cpu, [("v", ValueRef::I64(1))]);
        assert!(matches!(added, Err(PointRefusal::NoSeriesNow)));
        request.refuse("the store does not add series now", b"cpu,host=a");
        request
    };
    let soon = Duration::from_millis(10);
    let refused = fixture.hub.accept_points(request(), "/write", soon).await;
    assert!(matches!(refused, Err(AcceptError::Store(StoreError::Busy { .. }))), "{refused:?}");
    let request = request();
    fixture.store.set_series_busy(None);
    assert!(matches!(accept(&fixture, request).await, Err(AcceptError::SeriesMade)));
    let mut again = points(&fixture, &own);
    add(&mut again, 0, 1, &["v"]);
    assert_eq!(accept(&fixture, again).await.unwrap().rows, 1);
    assert_eq!(fixture.hub.metrics().rows.get(), 1, "no dead letter");
}

#[tokio::test]
async fn databases_have_tables_of_their_own_and_inherit_nothing() {
    let fixture = fixture();
    let (hub, caller) = (&fixture.hub, fixture.administrator());
    assert!(hub.database(&caller, "metrics").is_err());
    let metrics = hub.create_database(&caller, "metrics").unwrap();
    assert_eq!(hub.create_database(&caller, "metrics").unwrap(), metrics);
    assert_eq!(hub.database(&caller, "metrics").unwrap(), metrics);
    let names: Vec<_> = hub.databases(&caller).unwrap().iter().map(|one| one.name().to_owned()).collect();
    assert_eq!(names, [OWN_DATABASE, "metrics"]);

    let mut request = points(&fixture, &metrics);
    add(&mut request, 0, 0, &["v"]);
    accept(&fixture, request).await.unwrap();
    let tables =
        || fixture.store.tables().unwrap().into_iter().map(|status| status.table).collect::<Vec<_>>();
    assert!(!tables().contains(&TableName::try_from("cpu").unwrap()));
    assert!(tables().iter().any(|table| table.name() == "cpu"));

    assert!(hub.drop_database(&caller, OWN_DATABASE).is_err());
    hub.drop_database(&caller, "metrics").unwrap();
    hub.drop_database(&caller, "metrics").unwrap();
    assert!(hub.drop_deleted_tables().unwrap() > 0);
    assert!(!tables().iter().any(|table| table.name() == "cpu"));
    let again = hub.create_database(&caller, "metrics").unwrap();
    assert_ne!(again, metrics);
    let mut request = points(&fixture, &again);
    add(&mut request, 0, 0, &["v"]);
    assert_eq!(accept(&fixture, request).await.unwrap().rows, 1);
}

#[tokio::test]
async fn a_query_of_time_series_sees_what_its_reader_may_see() {
    let fixture = fixture();
    let hub = &fixture.hub;
    hub.open_sql(QueryLimits::default()).unwrap();
    let caller = fixture.administrator();
    let metrics = hub.create_database(&caller, "metrics").unwrap();
    for (database, keys) in [(hub.own_database(&caller), ["own"]), (metrics, ["other"])] {
        let mut request = points(&fixture, &database);
        add(&mut request, 0, 0, &keys);
        accept(&fixture, request).await.unwrap();
        let tables = |caller: &Caller| {
            let (reader, database) = (Reader::from(caller.clone()), database.clone());
            async move {
                let found = hub.time_series(&reader, &database, |source| source.tables()).await.unwrap();
                found.clone()
            }
        };
        let audit = if database.is_own() { vec![AUDIT_TABLE] } else { Vec::new() };
        let all: Vec<&str> = audit.into_iter().chain(["cpu"]).collect();
        assert_eq!(tables(&caller).await, all);
        assert_eq!(tables(&Caller::open(caller.tenant(), Role::Operator)).await, ["cpu"]);
        let key = hub
            .time_series(&Reader::from(caller.clone()), &database, |source| {
                let table = source.open("cpu")?.unwrap();
                Ok::<_, SourceError>(table.columns().fields[0].key.to_string())
            })
            .await
            .unwrap();
        assert_eq!(*key, keys[0]);
    }
    let reader = Reader::from(caller.clone()).with_timeout(Some(Duration::from_millis(20)));
    let endless = |source: &dyn Source| -> Result<(), SourceError> {
        loop {
            source.tables()?;
        }
    };
    let stopped = hub.time_series(&reader, &hub.own_database(&caller), endless).await;
    assert!(matches!(stopped, Err(TaskError::Engine(SqlError::Timeout { .. }))));
}

#[test]
fn who_may_not_write_or_sees_a_customer_only_collects_no_rows() {
    let fixture = fixture();
    let (hub, tenant) = (&fixture.hub, fixture.device.tenant);
    let own = hub.own_database(&fixture.administrator());
    let public = Caller::public(tenant);
    assert!(hub.points(&public, &own, Door::Influx).is_err());
    assert!(hub.create_database(&public, "x").is_err());
    assert!(hub.drop_database(&public, "x").is_err());
    let open = Caller::open(tenant, Role::Operator);
    assert!(hub.points(&open, &own, Door::Influx).is_ok());
    assert!(hub.create_database(&open, "x").is_ok(), "Telegraf creates its database before it writes");
    assert!(hub.drop_database(&open, "x").is_err(), "an operator deletes nothing");
    let other =
        hub.add_tenant(&fixture.administrator(), "acme", "root@acme.example", "a long password").unwrap();
    hub.create_database(&fixture.administrator(), "mine").unwrap();
    assert!(hub.database(&Caller::local(other.id), "mine").is_err());
}

#[tokio::test]
async fn a_removal_takes_the_rows_of_its_database_only() {
    let fixture = fixture();
    let (hub, caller) = (&fixture.hub, fixture.administrator());
    hub.open_sql(QueryLimits::default()).unwrap();
    let databases = [hub.own_database(&caller), hub.create_database(&caller, "metrics").unwrap()];
    for database in &databases {
        let mut request = points(&fixture, database);
        add(&mut request, 0, 0, &["usage"]);
        add(&mut request, 1, 9, &["usage"]);
        accept(&fixture, request).await.unwrap();
    }
    let removal = |query: &str| {
        let Statement::Delete { from, condition } = parse(query, &Default::default()).unwrap().remove(0)
        else {
            panic!("{query}")
        };
        Removal::of_rows(from, condition.as_ref(), 0).unwrap()
    };
    let before = removal(&format!("DELETE WHERE time < {}s AND host = 'a'", BEGIN_US / SECOND_US + 5));
    assert_eq!(hub.remove(&caller, &databases[1], &before).unwrap(), 1);
    assert_eq!(hub.remove(&caller, &databases[1], &before).unwrap(), 0);
    assert_eq!(count(&fixture, "SELECT * FROM cpu").await, 2);
    assert_eq!(hub.remove(&caller, &databases[0], &removal("DELETE FROM cpu, mem")).unwrap(), 2);
    assert_eq!(count(&fixture, "SELECT * FROM cpu").await, 0);
    assert!(count(&fixture, &format!("SELECT * FROM {AUDIT_TABLE}")).await >= 3);
    let audit = hub.remove(&caller, &databases[0], &removal(&format!("DELETE FROM {AUDIT_TABLE}")));
    assert!(audit.unwrap_err().to_string().contains("nobody can delete"));
    hub.drop_measurement(&caller, &databases[1], "cpu").unwrap();
    assert_eq!(hub.remove(&caller, &databases[1], &removal("DELETE FROM cpu")).unwrap(), 0);
    let mut request = points(&fixture, &databases[1]);
    add(&mut request, 0, 0, &["usage"]);
    assert_eq!(accept(&fixture, request).await.unwrap().rows, 1, "the series is made again");
}
