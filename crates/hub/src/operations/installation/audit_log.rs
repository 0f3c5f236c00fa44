//! Reads the audit table, newest acts first, for callers with the permission.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use arrow_array::cast::AsArray;
use arrow_array::types::TimestampMicrosecondType;
use arrow_array::{Array, RecordBatch};
use model::{TimeRange, Timestamp};
use store::Column;
use uuid::Uuid;

use crate::audit::{AUDIT_KEYS, AUDIT_TABLE, AUDIT_TAG};
use crate::caller::{Action, Caller};
use crate::error::Error;
use crate::hub::Hub;
use crate::registry::{EntityId, Page, RegistryError};
use crate::table_scan::each_batch;

/// The last act that a request can reach. The hub holds this many acts in memory while it answers.
pub const AUDIT_ROWS_MAX: usize = 100_000;

/// An administrative act.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct AuditedAct {
    /// When it was recorded. No two acts have the same time.
    pub at: Timestamp,
    /// The login of the caller.
    pub login: String,
    /// The role of the caller.
    pub role: String,
    /// What the caller did, such as `add device`.
    pub act: String,
    /// What it was about, in words.
    pub subject: String,
    /// The entity that it was about.
    pub entity: Option<EntityId>,
}

/// Which acts to list, and which page of them.
#[derive(Debug, Clone, Default)]
pub struct AuditRequest {
    /// Their times; all if it is `None`.
    pub range: Option<TimeRange>,
    /// Only acts of this user.
    pub user: Option<Uuid>,
    /// Only acts about this entity.
    pub entity: Option<EntityId>,
    /// Only acts that contain this text, ignoring case, in login, act or subject.
    pub filter: Option<String>,
    /// Whether the oldest come first.
    pub ascending: bool,
    /// Number of the page, from 0.
    pub page: usize,
    /// Acts per page.
    pub page_size: usize,
}

impl Hub {
    /// A page of the acts of the caller's tenant for which `wanted` holds. It reads files: call it on a thread that may block.
    ///
    /// # Errors
    /// The caller lacks the permission, the page ends beyond [`AUDIT_ROWS_MAX`], or the store fails.
    pub fn audited_acts(
        &self,
        caller: &Caller,
        request: &AuditRequest,
        wanted: impl Fn(&AuditedAct) -> bool,
    ) -> Result<Page<AuditedAct>, Error> {
        caller.check(Action::ReadAudit)?;
        let end = request.page.saturating_add(1).saturating_mul(request.page_size);
        if request.page_size == 0 || end > AUDIT_ROWS_MAX {
            let (what, limit) = ("number of acts up to the end of the page", AUDIT_ROWS_MAX);
            return Err(RegistryError::OverLimit { what, actual: end, limit }.into());
        }
        let login = match request.user {
            Some(id) => {
                let user = self.registry.user_by_id(id).filter(|user| user.tenant == caller.tenant());
                Some(user.ok_or_else(|| RegistryError::unknown("user", id))?.login.clone())
            }
            None => None,
        };
        let filter = request.filter.as_ref().map(|text| text.to_lowercase());
        let accepts = |act: &AuditedAct| {
            login.as_ref().is_none_or(|login| act.login == *login)
                && request.entity.is_none_or(|entity| act.entity == Some(entity))
                && filter.as_deref().is_none_or(|text| act.contains(text))
                && wanted(act)
        };
        let mut kept =
            FirstActs { acts: BinaryHeap::new(), limit: end, total: 0, ascending: request.ascending };
        self.each_act(caller, request.range.unwrap_or(TimeRange::ALL), |act| {
            if accepts(&act) {
                kept.add(act);
            }
        })?;
        Ok(kept.page(request.page, request.page_size))
    }

    fn each_act(
        &self,
        caller: &Caller,
        range: TimeRange,
        mut visit: impl FnMut(AuditedAct),
    ) -> Result<(), Error> {
        let Some(snapshot) = self.store.snapshot(&self.table(caller, AUDIT_TABLE)?)? else { return Ok(()) };
        let columns = snapshot.columns();
        let width = columns.schema().fields().len();
        let find = |wanted: &dyn Fn(Column<'_>) -> bool| {
            (0..width).find(|index| columns.column(*index).is_some_and(wanted))
        };
        let login = find(&|column| matches!(column, Column::Tag(tag) if *tag.tag == *AUDIT_TAG));
        let fields = AUDIT_KEYS
            .map(|key| find(&|column| matches!(column, Column::Field(field) if *field.key == *key)));
        let mut read = vec![columns.ts_index()];
        read.extend(login);
        read.extend(fields.into_iter().flatten());
        // A column that the table does not have yet is empty.
        let mut next = 1;
        let mut place = |found: Option<usize>| {
            found.map(|_| {
                next += 1;
                next - 1
            })
        };
        let login = place(login);
        let fields = fields.map(&mut place);
        each_batch(&*snapshot, read, None, range, |batch| {
            let text = |place: Option<usize>, row: usize| text(batch, place?, row);
            let times = batch.column(0).as_primitive::<TimestampMicrosecondType>();
            for row in 0..batch.num_rows() {
                let [role, act, subject, kind, id] = fields.map(|field| text(field, row));
                let entity = kind.zip(id).and_then(|(kind, id)| {
                    Some(EntityId { kind: kind.parse().ok()?, id: Uuid::parse_str(id).ok()? })
                });
                let owned = |text: Option<&str>| text.unwrap_or_default().to_owned();
                visit(AuditedAct {
                    at: Timestamp::from_micros(times.value(row)),
                    login: owned(text(login, row)),
                    role: owned(role),
                    act: owned(act),
                    subject: owned(subject),
                    entity,
                });
            }
        })?;
        Ok(())
    }
}

fn text(batch: &RecordBatch, column: usize, row: usize) -> Option<&str> {
    let column = batch.column(column).as_string_view_opt()?;
    column.is_valid(row).then(|| column.value(row))
}

impl AuditedAct {
    fn contains(&self, text: &str) -> bool {
        [&self.login, &self.act, &self.subject].into_iter().any(|part| part.to_lowercase().contains(text))
    }
}

/// The first acts in the order of a request, as many as its page needs.
struct FirstActs {
    /// The last of them is on top.
    acts: BinaryHeap<Ordered>,
    limit: usize,
    total: usize,
    ascending: bool,
}

/// An act in the order of a request.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Ordered {
    Ascending(AuditedAct),
    Descending(Reverse<AuditedAct>),
}

impl FirstActs {
    fn add(&mut self, act: AuditedAct) {
        self.total += 1;
        self.acts.push(match self.ascending {
            true => Ordered::Ascending(act),
            false => Ordered::Descending(Reverse(act)),
        });
        if self.acts.len() > self.limit {
            self.acts.pop();
        }
    }

    fn page(self, page: usize, page_size: usize) -> Page<AuditedAct> {
        let sorted = self.acts.into_sorted_vec().into_iter().map(|ordered| match ordered {
            Ordered::Ascending(act) | Ordered::Descending(Reverse(act)) => act,
        });
        let kept = Page::of(sorted, page, page_size);
        let has_next = page.saturating_mul(page_size).saturating_add(kept.data.len()) < self.total;
        let (total_pages, total_elements) = (self.total.div_ceil(page_size), self.total);
        let has_next = has_next && !kept.data.is_empty();
        Page { data: kept.data, total_pages, total_elements, has_next }
    }
}
