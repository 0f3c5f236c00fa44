//! Checks of writes that fail after the store has taken them.

use model::Value;

use super::patient::PatientStore;
use super::rows::{append, batch_of, device, read, wait};
use crate::{Durability, Outcome, Store, StoreError, Ticket};

/// Runs the checks for a backend that can lose single writes. `lose` makes the store lose a write that it has taken.
///
/// # Panics
/// When a check fails.
pub fn run_late_failures<S: Store>(store: &std::sync::Arc<S>, lose: &dyn Fn(Ticket)) {
    let store = &PatientStore(std::sync::Arc::clone(store) as _);
    a_lost_write_fails_alone(store, lose);
    a_lost_row_fails_no_other_row_of_its_batch(store, lose);
    a_lost_write_can_be_repeated(store, lose);
    a_store_without_losses_keeps_everything(store);
}

fn a_lost_write_fails_alone(store: &dyn Store, lose: &dyn Fn(Ticket)) {
    let series = device(store, "alone");
    let tickets: Vec<Ticket> = (0..3).map(|ts| write(store, series, ts)).collect();
    lose(tickets[1]);
    wait(store, Durability::Fsync, tickets[2].last);
    assert!(is_kept(store, tickets[0]) && is_kept(store, tickets[2]), "their neighbour was lost");
    assert!(is_lost(store, tickets[1]));
    assert!(!store.progress().sealed && store.status().sealed.is_none(), "a lost write seals nothing");
    let later = write(store, series, 9);
    wait(store, Durability::Fsync, later.last);
    assert!(is_kept(store, later));
    assert!(is_lost(store, tickets[1]), "an outcome is final");
}

fn a_lost_row_fails_no_other_row_of_its_batch(store: &dyn Store, lose: &dyn Fn(Ticket)) {
    let series = device(store, "rows");
    let fields: &[(&str, Value)] = &[("n", Value::I64(1))];
    let batch = batch_of(series, &[(1, fields), (2, fields), (3, fields)]);
    let last = store.append(&batch, Durability::Fsync).expect("room");
    let whole = Ticket::of_rows(last, batch.len());
    lose(whole.part(1..2));
    wait(store, Durability::Fsync, last);
    assert!(is_lost(store, whole), "a write with a lost row is lost");
    assert!(is_kept(store, whole.part(0..1)) && is_kept(store, whole.part(2..3)));
    assert!(is_lost(store, whole.part(1..2)));
}

fn a_lost_write_can_be_repeated(store: &dyn Store, lose: &dyn Fn(Ticket)) {
    let series = device(store, "again");
    let first = write(store, series, 5);
    lose(first);
    wait(store, Durability::Fsync, first.last);
    assert!(is_lost(store, first));
    let second = write(store, series, 5);
    wait(store, Durability::Fsync, second.last);
    assert!(is_kept(store, second));
    assert_eq!(read(store, series, &["n"]), [(5, vec![Some(Value::I64(5))])]);
}

fn a_store_without_losses_keeps_everything(store: &dyn Store) {
    let series = device(store, "kept");
    let tickets: Vec<Ticket> = (0..20).map(|ts| write(store, series, ts)).collect();
    wait(store, Durability::Fsync, tickets[19].last);
    assert!(tickets.iter().all(|ticket| is_kept(store, *ticket)));
}

fn write(store: &dyn Store, series: model::SeriesId, ts: i64) -> Ticket {
    Ticket::of_rows(append(store, series, &[(ts, &[("n", Value::I64(ts))])]), 1)
}

fn is_kept(store: &dyn Store, ticket: Ticket) -> bool {
    matches!(store.outcome(ticket, Durability::Fsync), Outcome::Kept)
}

fn is_lost(store: &dyn Store, ticket: Ticket) -> bool {
    matches!(store.outcome(ticket, Durability::Fsync), Outcome::Failed(StoreError::Lost { .. }))
}
