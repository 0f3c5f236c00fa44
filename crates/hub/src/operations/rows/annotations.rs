//! Reads, saves and deletes annotations.

use std::ops::RangeInclusive;

use kv::{Direction, KvError, Sequence, WriteBatch};

use crate::annotations::limits::{
    ANNOTATIONS_PER_REQUEST_MAX, ANNOTATIONS_READ_BYTES_MAX, ANNOTATIONS_READ_MAX, TSUIDS_PER_REQUEST_MAX,
};
use crate::annotations::{
    ANNOTATIONS, Annotation, AnnotationChange, AnnotationDeletion, AnnotationError, between, canonical, key,
    millis, of_database,
};
use crate::caller::{Action, Caller};
use crate::databases::OpenDatabase;
use crate::hub::Hub;

impl Hub {
    /// The annotation of a series, or of all if `tsuid` is empty, that begins at a time.
    ///
    /// # Errors
    /// The caller may not read, the text names no series, or the store of keys fails.
    pub fn annotation(
        &self,
        caller: &Caller,
        database: &OpenDatabase,
        tsuid: &str,
        start_time: i64,
    ) -> Result<Option<Annotation>, AnnotationError> {
        caller.check_on(Action::Read, caller.tenant(), None)?;
        self.stored_annotation(database, &canonical(tsuid)?, start_time)
    }

    /// The annotations of a series, or of all if `tsuid` is empty, that begin in a time in milliseconds, oldest first. A caller that
    /// sees only what is assigned to a customer sees none.
    ///
    /// # Errors
    /// The caller may not read, the text names no series, there are more than an answer may have, or the store of keys fails.
    pub fn annotations(
        &self,
        caller: &Caller,
        database: &OpenDatabase,
        tsuid: &str,
        range: RangeInclusive<i64>,
    ) -> Result<Vec<Annotation>, AnnotationError> {
        caller.check(Action::Read)?;
        if !caller.sees(caller.tenant(), None) {
            return Ok(Vec::new());
        }
        let tsuid = canonical(tsuid)?;
        let Some(range) = times(range) else { return Ok(Vec::new()) };
        let range = between(database.namespace(), &tsuid, range);
        let (mut found, mut bytes) = (Vec::new(), 0);
        for record in self.kv.scan(ANNOTATIONS, &range, Direction::Ascending)? {
            let (key, value) = record?;
            bytes += value.len();
            AnnotationError::check("annotations of an answer", found.len() + 1, ANNOTATIONS_READ_MAX)?;
            AnnotationError::check(
                "bytes of the annotations of an answer",
                bytes,
                ANNOTATIONS_READ_BYTES_MAX,
            )?;
            found.push(Annotation { tsuid: tsuid.clone(), ..decode(&key, &value)? });
        }
        Ok(found)
    }

    /// Whether any series of a database has annotations. A caller that sees only what is assigned to a customer sees none.
    ///
    /// # Errors
    /// The caller may not read, or the store of keys fails.
    pub fn annotates_series(
        &self,
        caller: &Caller,
        database: &OpenDatabase,
    ) -> Result<bool, AnnotationError> {
        caller.check(Action::Read)?;
        let namespace = database.namespace();
        // The annotations of all series come first.
        let of_series = kv::KeyRange::prefix(of_database(namespace)).after(&key(namespace, "", u64::MAX));
        let first = self.kv.scan(ANNOTATIONS, &of_series, Direction::Ascending)?.next().transpose()?;
        Ok(first.is_some() && caller.sees(caller.tenant(), None))
    }

    /// Adds or changes annotations, all or none. With `replace` what a change does not say becomes empty. Returns the annotations,
    /// and the sequence that makes them durable. It reads the store of keys: call it on a thread that may block.
    ///
    /// # Errors
    /// The caller may not write, a change is invalid, a limit is exceeded, or the store of keys fails or is busy.
    pub fn save_annotations(
        &self,
        caller: &Caller,
        database: &OpenDatabase,
        changes: Vec<AnnotationChange>,
        replace: bool,
    ) -> Result<(Vec<Annotation>, Sequence), AnnotationError> {
        caller.check_on(Action::Write, caller.tenant(), None)?;
        AnnotationError::check("annotations of a request", changes.len(), ANNOTATIONS_PER_REQUEST_MAX)?;
        let namespace = database.namespace();
        let mut usages = self.annotation_usages.lock();
        let mut usage = usages.of(&*self.kv, namespace)?;
        let (mut saved, mut batch) = (Vec::<Annotation>::new(), WriteBatch::new());
        for mut change in changes {
            change.tsuid = canonical(&change.tsuid)?;
            let key = key(namespace, &change.tsuid, millis(change.start_time)?);
            // A request may have several changes of one annotation.
            let is_same = |one: &Annotation| {
                one.tsuid == change.tsuid && millis(one.start_time).ok() == millis(change.start_time).ok()
            };
            let stored = match saved.iter().rfind(|one| is_same(one)) {
                Some(earlier) => Some(earlier.clone()),
                None => self.stored_annotation(database, &change.tsuid, change.start_time)?,
            };
            let before = stored.as_ref().map(|stored| key.len() + stored.encode().len());
            let annotation = change.on(stored, replace)?;
            let value = annotation.encode();
            usage.replace(before, key.len() + value.len())?;
            batch.put(ANNOTATIONS, key, value);
            saved.push(annotation);
        }
        let sequence = self.kv.commit(&batch)?;
        usages.set(namespace, usage);
        Ok((saved, sequence))
    }

    /// Deletes the annotation of a series, or of all if `tsuid` is empty, that begins at a time, if it is there.
    ///
    /// # Errors
    /// The caller may not write, the text names no series, or the store of keys fails or is busy.
    pub fn delete_annotation(
        &self,
        caller: &Caller,
        database: &OpenDatabase,
        tsuid: &str,
        start_time: i64,
    ) -> Result<Sequence, AnnotationError> {
        let at = millis(start_time)?.cast_signed();
        let deletion = match tsuid.is_empty() {
            true => AnnotationDeletion { tsuids: Vec::new(), global: true },
            false => AnnotationDeletion { tsuids: vec![tsuid.to_owned()], global: false },
        };
        self.delete_annotations(caller, database, &deletion, at..=at).map(|(_, sequence)| sequence)
    }

    /// Deletes the annotations that begin in a time in milliseconds. Returns their number, and the sequence that makes the deletion
    /// durable. It reads the store of keys: call it on a thread that may block.
    ///
    /// # Errors
    /// The caller may not write, a text names no series, a limit is exceeded, or the store of keys fails or is busy.
    pub fn delete_annotations(
        &self,
        caller: &Caller,
        database: &OpenDatabase,
        deletion: &AnnotationDeletion,
        range: RangeInclusive<i64>,
    ) -> Result<(usize, Sequence), AnnotationError> {
        caller.check_on(Action::Write, caller.tenant(), None)?;
        AnnotationError::check("TSUIDs of a request", deletion.tsuids.len(), TSUIDS_PER_REQUEST_MAX)?;
        let mut of: Vec<String> =
            deletion.tsuids.iter().map(|tsuid| canonical(tsuid)).collect::<Result<_, _>>()?;
        if of.iter().any(String::is_empty) {
            return Err(AnnotationError::Invalid("a TSUID is empty".to_owned()));
        }
        of.extend(deletion.global.then(String::new));
        of.sort_unstable();
        of.dedup();
        let namespace = database.namespace();
        let mut usages = self.annotation_usages.lock();
        let mut usage = usages.of(&*self.kv, namespace)?;
        let (mut count, mut batch) = (0, WriteBatch::new());
        for (tsuid, range) in of.iter().zip(times(range).into_iter().cycle()) {
            let range = between(namespace, tsuid, range);
            let mut deleted = 0;
            for record in self.kv.scan(ANNOTATIONS, &range, Direction::Ascending)? {
                let (key, value) = record?;
                usage.remove(key.len() + value.len());
                deleted += 1;
            }
            if deleted > 0 {
                batch.delete_range(ANNOTATIONS, range);
                count += deleted;
            }
        }
        let sequence = self.kv.commit(&batch)?;
        usages.set(namespace, usage);
        drop(usages);
        if count > 0 {
            self.audit(caller, "delete annotations", &format!("{count} of the database {}", database.name()));
        }
        Ok((count, sequence))
    }

    /// Deletes the annotations of a database that is gone.
    pub(crate) fn forget_annotations(&self, namespace: &model::Namespace) -> Result<(), KvError> {
        let all = kv::KeyRange::prefix(of_database(namespace));
        let mut usages = self.annotation_usages.lock();
        if self.kv.scan(ANNOTATIONS, &all, Direction::Ascending)?.next().transpose()?.is_some() {
            self.kv.commit(WriteBatch::new().delete_range(ANNOTATIONS, all))?;
        }
        usages.forget(namespace);
        Ok(())
    }

    fn stored_annotation(
        &self,
        database: &OpenDatabase,
        tsuid: &str,
        start_time: i64,
    ) -> Result<Option<Annotation>, AnnotationError> {
        let key = key(database.namespace(), tsuid, millis(start_time)?);
        let Some(value) = self.kv.get(ANNOTATIONS, &key)? else { return Ok(None) };
        Ok(Some(Annotation { tsuid: tsuid.to_owned(), ..decode(&key, &value)? }))
    }
}

/// A time as keys have it; `None` if nothing can be in it.
fn times(range: RangeInclusive<i64>) -> Option<(u64, u64)> {
    let (from, to) = (*range.start(), *range.end());
    (to >= 0 && from <= to).then(|| (from.max(0).cast_unsigned(), to.cast_unsigned()))
}

fn decode(key: &[u8], value: &[u8]) -> Result<Annotation, KvError> {
    serde_json::from_slice(value).map_err(|error| {
        let key = key.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        KvError::Corrupt { path: format!("{ANNOTATIONS}/{key}").into(), reason: error.to_string() }
    })
}
