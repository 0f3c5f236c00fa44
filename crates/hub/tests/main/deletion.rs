//! Deletions, and devices that report after them.

use hub::bulk::{BulkError, DeleteRequest, Deleted, ParquetBounds};
use hub::{AUDIT_TABLE, Error, ParquetImport, StoredMessage};

use super::*;
use store::Reader as _;

const MESSAGE: &[u8] = br#"{"speed": 51}"#;

fn everything() -> DeleteRequest {
    DeleteRequest { matchers: Vec::new(), what: Deleted::Series }
}

fn speeds(fixture: &Fixture) -> Vec<Value> {
    let Some(series) = fixture.hub.find_series_of(&fixture.administrator(), &fixture.device).unwrap() else {
        return Vec::new();
    };
    let latest = fixture.hub.latest(&fixture.administrator(), series, None).unwrap();
    latest.into_iter().map(|latest| latest.value).collect()
}

#[test]
fn a_message_whose_series_was_deleted_meanwhile_is_stored() {
    let ways: [fn(&Fixture); 2] = [
        |fixture| {
            fixture.hub.drop_table(&fixture.administrator(), "telemetry", false).unwrap();
        },
        |fixture| {
            fixture.hub.delete_rows(&fixture.administrator(), "telemetry", &everything(), false).unwrap();
        },
    ];
    for delete in ways {
        let fixture = fixture();
        fixture.hub.ingest(&one_row(&fixture, 1, 50), Durability::Memory).unwrap();
        let late = one_row(&fixture, 2, 51);
        let generation = fixture.hub.registry().generation();
        delete(&fixture);
        assert!(fixture.hub.registry().generation() > generation, "the doors look up their series again");
        assert_eq!(speeds(&fixture), []);
        let refused = fixture.hub.ingest(&late, Durability::Memory);
        assert!(refused.as_ref().is_err_and(StoreError::is_unknown_series), "{refused:?}");
        let message =
            Message { owner: (&fixture.device).into(), door: Door::Http, topic: "t", payload: MESSAGE };
        let kept = fixture.hub.ingest_message(&message, &late, Durability::Memory).unwrap();
        assert!(matches!(kept, StoredMessage { refusal: None, .. }), "{kept:?}");
        assert_eq!(speeds(&fixture), [Value::I64(51)]);
    }
}

#[test]
fn a_dead_letter_whose_table_was_dropped_meanwhile_is_stored() {
    let fixture = fixture();
    let mut dead_letters = Batch::new();
    let dead_letter = DeadLetter { door: "http", topic: "t", reason: "r", payload: MESSAGE };
    fixture.hub.add_dead_letter(&fixture.device, dead_letter, &mut dead_letters).unwrap();
    fixture.hub.ingest_dead_letters(&fixture.device, &dead_letters, Durability::Memory).unwrap();
    let rows = || fixture.hub.delete_rows(&fixture.administrator(), "dead_letter", &everything(), true);
    assert_eq!(rows().unwrap(), 1);
    fixture.hub.drop_table(&fixture.administrator(), "dead_letter", false).unwrap();
    assert!(matches!(rows(), Err(Error::Bulk(BulkError::NoTable { .. }))));
    fixture.hub.ingest_dead_letters(&fixture.device, &dead_letters, Durability::Memory).unwrap();
    assert_eq!(rows().unwrap(), 1);
}

#[test]
fn deletions_have_audit_rows_which_nobody_deletes() {
    let fixture = fixture();
    let administrator = fixture.administrator();
    fixture.hub.ingest(&one_row(&fixture, 1, 50), Durability::Memory).unwrap();
    let keys = ["speed".to_owned()];
    assert_eq!(
        fixture.hub.delete_values(&administrator, &fixture.device, Some(&keys), TimeRange::ALL).unwrap(),
        1
    );
    let unknown = ["spede".to_owned()];
    let refused = fixture.hub.delete_values(&administrator, &fixture.device, Some(&unknown), TimeRange::ALL);
    assert!(matches!(refused, Err(Error::Bulk(BulkError::NoKey { .. }))), "{refused:?}");
    for refused in [
        fixture.hub.delete_rows(&administrator, AUDIT_TABLE, &everything(), false).map(drop),
        fixture.hub.drop_table(&administrator, AUDIT_TABLE, false),
        fixture.hub.drop_key(&administrator, AUDIT_TABLE, "act", false).map(drop),
    ] {
        assert!(matches!(refused, Err(Error::Bulk(BulkError::Asked(_)))), "{refused:?}");
    }
    let bounds = ParquetBounds { held_bytes_max: 1 << 20, rows_max: 10 };
    let import = ParquetImport { bounds, zone: None, any_time: true, busy_timeout: Duration::ZERO };
    let file = bytes::Bytes::from_static(b"no");
    let refused =
        fixture.hub.import_parquet(&administrator, AUDIT_TABLE, file, &import).unwrap_err().to_string();
    assert!(refused.contains("only the server writes to the table audit"), "{refused}");
    let audit =
        fixture.store.find_series(&SeriesKey::new(AUDIT_TABLE, &[("login", administrator.login())]).unwrap());
    let acts = fixture.hub.latest(&administrator, audit.unwrap(), Some(&["act".to_owned()])).unwrap();
    assert_eq!(acts[0].value, Value::String("delete values".into()));
}
