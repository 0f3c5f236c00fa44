//! Answers queries.

use std::collections::BTreeSet;

use model::Timestamp;
use model::limits::PAGE_DEVICES_MAX;
use sensors::predicate::Mode;

use super::values::{KeyReader, Work};
use crate::attributes::{Owner, Scope};
use crate::caller::{Action, Caller};
use crate::clock::system_now;
use crate::entity_query::limits::QUERY_KEYS_ENTITIES_MAX;
use crate::entity_query::{
    EntityCountQuery, EntityDataQuery, EntityFilter, EntityKey, EntityKeys, EntityPage, EntityQueryError,
    EntityRow, KeyFilter, KeyKind, PageLink, Pattern, SortOrder, SortValue, TimedValue, check_filters,
    device_of, directed, field,
};
use crate::hub::Hub;
use crate::registry::{Entity, Page};

impl Hub {
    /// A page of the entities of a query, with the selected values.
    ///
    /// # Errors
    /// A limit, something wrong or absent in the query, a missing permission; reads of the stores can fail.
    pub fn find_entities(
        &self,
        caller: &Caller,
        query: &EntityDataQuery,
    ) -> Result<EntityPage, EntityQueryError> {
        let (now, mut work) = (system_now(), Work::default());
        let Page { data, total_pages, total_elements, has_next } = self.page_of(caller, query, &mut work)?;
        let keys = query.selected();
        let data = self.read_rows(caller, data, &keys, now, &mut work)?;
        Ok(EntityPage { keys, page: Page { data, total_pages, total_elements, has_next }, now })
    }

    /// The page of [`find_entities`](Self::find_entities) without values.
    ///
    /// # Errors
    /// The errors of [`find_entities`](Self::find_entities).
    pub fn find_entity_page(
        &self,
        caller: &Caller,
        query: &EntityDataQuery,
    ) -> Result<Page<Entity>, EntityQueryError> {
        self.page_of(caller, query, &mut Work::default())
    }

    /// The values of some keys of entities that [`find_entity_page`](Self::find_entity_page) has found.
    ///
    /// # Errors
    /// The entities and keys are too many; reads of the stores can fail.
    pub fn values_of_entities(
        &self,
        caller: &Caller,
        entities: Vec<Entity>,
        keys: &[EntityKey],
        now: Timestamp,
    ) -> Result<Vec<EntityRow>, EntityQueryError> {
        caller.check(Action::Read)?;
        self.read_rows(caller, entities, keys, now, &mut Work::default())
    }

    fn read_rows(
        &self,
        caller: &Caller,
        entities: Vec<Entity>,
        keys: &[EntityKey],
        now: Timestamp,
        work: &mut Work,
    ) -> Result<Vec<EntityRow>, EntityQueryError> {
        work.count(entities.len(), keys)?;
        let reader = KeyReader::new(self, caller, keys);
        let row = |entity| Ok(EntityRow { values: reader.read(&entity, now)?, entity });
        entities.into_iter().map(row).collect()
    }

    fn page_of(
        &self,
        caller: &Caller,
        query: &EntityDataQuery,
        work: &mut Work,
    ) -> Result<Page<Entity>, EntityQueryError> {
        caller.check(Action::Read)?;
        query.check()?;
        let PageLink { page, page_size, text_search, sort_order, .. } = &query.page_link;
        let page_size = page_size_of(*page_size)?;
        let mut found = self.matching(caller, &query.entity_filter, &query.key_filters, work)?;
        if let Some(pattern) = Pattern::containing(text_search.as_deref().unwrap_or_default())? {
            found = self.containing(caller, found, &query.selected(), &pattern, work)?;
        }
        if let Some(order) = sort_order {
            found = self.sorted(caller, found, order, work)?;
        }
        let total = found.len();
        let skipped = page.saturating_mul(page_size);
        let data: Vec<Entity> = found.into_iter().skip(skipped).take(page_size).collect();
        let has_next = skipped.saturating_add(data.len()) < total && !data.is_empty();
        Ok(Page { data, total_pages: total.div_ceil(page_size), total_elements: total, has_next })
    }

    /// The number of the entities of a query.
    ///
    /// # Errors
    /// The errors of [`find_entities`](Self::find_entities).
    pub fn count_entities(
        &self,
        caller: &Caller,
        query: &EntityCountQuery,
    ) -> Result<usize, EntityQueryError> {
        caller.check(Action::Read)?;
        check_filters(&query.key_filters)?;
        Ok(self.matching(caller, &query.entity_filter, &query.key_filters, &mut Work::default())?.len())
    }

    /// The keys that the first [`QUERY_KEYS_ENTITIES_MAX`] entities of a query have: of time series, and of attributes in these
    /// scopes.
    ///
    /// # Errors
    /// The errors of [`find_entities`](Self::find_entities).
    pub fn keys_of_entities(
        &self,
        caller: &Caller,
        query: &EntityDataQuery,
        time_series: bool,
        scopes: Option<&[Scope]>,
    ) -> Result<EntityKeys, EntityQueryError> {
        let mut first = query.clone();
        first.page_link.page_size = first.page_link.page_size.min(QUERY_KEYS_ENTITIES_MAX);
        let mut keys = EntityKeys {
            kinds: BTreeSet::new(),
            time_series: time_series.then(BTreeSet::new),
            attributes: scopes.map(|_| BTreeSet::new()),
        };
        for entity in self.find_entity_page(caller, &first)?.data {
            keys.kinds.insert(entity.kind());
            if let Some(found) = &mut keys.time_series
                && let Some(device) = device_of(&entity)
                && let Some(series) = self.find_series_of(caller, device)?
            {
                found.extend(self.latest(caller, series, None)?.into_iter().map(|latest| latest.key));
            }
            if let Some(found) = &mut keys.attributes {
                let owner = Owner::from(&entity);
                let scopes = scopes.unwrap_or_default().iter();
                for scope in scopes.filter(|scope| owner.scopes().contains(scope)) {
                    let attributes = self.attributes(caller, owner, *scope, None)?;
                    found.extend(attributes.into_iter().map(|attribute| attribute.key.to_string()));
                }
            }
        }
        Ok(keys)
    }

    /// The entities of a filter that satisfy all conditions, in the order of the filter.
    fn matching(
        &self,
        caller: &Caller,
        filter: &EntityFilter,
        conditions: &[KeyFilter],
        work: &mut Work,
    ) -> Result<Vec<Entity>, EntityQueryError> {
        let mut conditions = conditions.to_vec();
        for condition in &mut conditions {
            condition.predicate.resolve(&mut |source| self.owner_value(caller, source))?;
        }
        let (stored, own): (Vec<_>, Vec<_>) =
            conditions.into_iter().partition(|condition| condition.key.is_stored());
        let mut found = self.candidates(caller, filter)?;
        // Properties are in memory; they leave fewer entities whose values must be read.
        found.retain(|entity| own.iter().all(|condition| holds_for_field(condition, entity)));
        if stored.is_empty() {
            return Ok(found);
        }
        let keys: Vec<EntityKey> = stored.iter().map(|condition| condition.key.clone()).collect();
        work.count(found.len(), &keys)?;
        let (reader, now) = (KeyReader::new(self, caller, &keys), system_now());
        let mut kept = Vec::new();
        for entity in found {
            let values = reader.read(&entity, now)?;
            let holds = stored.iter().zip(&values).all(|(condition, sample)| {
                condition.predicate.holds(sample.as_ref().map(|(_, value)| value.as_ref()))
            });
            if holds {
                kept.push(entity);
            }
        }
        Ok(kept)
    }

    /// The entities with a text in a selected key; in the name if no key is selected.
    fn containing(
        &self,
        caller: &Caller,
        found: Vec<Entity>,
        keys: &[EntityKey],
        pattern: &Pattern,
        work: &mut Work,
    ) -> Result<Vec<Entity>, EntityQueryError> {
        let matches = |value: Option<model::ValueRef<'_>>| {
            value.is_some_and(|value| pattern.matches(&Mode::Query.text(value)))
        };
        let (stored, own): (Vec<EntityKey>, Vec<EntityKey>) =
            keys.iter().cloned().partition(EntityKey::is_stored);
        let in_field = |entity: &Entity| match keys.is_empty() {
            true => pattern.matches(entity.name()),
            false => own.iter().any(|key| matches(field(entity, &key.key).as_ref())),
        };
        if stored.is_empty() {
            return Ok(found.into_iter().filter(in_field).collect());
        }
        work.count(found.len(), &stored)?;
        let (reader, now) = (KeyReader::new(self, caller, &stored), system_now());
        let mut kept = Vec::new();
        for entity in found {
            let in_value = |samples: Vec<Option<TimedValue>>| {
                samples.iter().flatten().any(|(_, value)| matches(Some(value.as_ref())))
            };
            if in_field(&entity) || in_value(reader.read(&entity, now)?) {
                kept.push(entity);
            }
        }
        Ok(kept)
    }

    /// The entities in an order. Equal ones keep their order.
    fn sorted(
        &self,
        caller: &Caller,
        mut found: Vec<Entity>,
        order: &SortOrder,
        work: &mut Work,
    ) -> Result<Vec<Entity>, EntityQueryError> {
        let SortOrder { key, direction } = order;
        if key.kind == KeyKind::EntityField && key.key == "name" {
            found.sort_by(|one, other| directed(one.name().cmp(other.name()), *direction));
            return Ok(found);
        }
        let keys = std::slice::from_ref(key);
        work.count(found.len(), keys)?;
        let (reader, now) = (KeyReader::new(self, caller, keys), system_now());
        let mut keyed = Vec::with_capacity(found.len());
        for entity in found {
            let values = reader.read(&entity, now)?;
            let value = values.into_iter().next().flatten();
            keyed.push((SortValue::of(value.as_ref().map(|(_, value)| value.as_ref())), entity));
        }
        keyed.sort_by(|(one, _), (other, _)| directed(one.compare(other), *direction));
        Ok(keyed.into_iter().map(|(_, entity)| entity).collect())
    }
}

fn holds_for_field(condition: &KeyFilter, entity: &Entity) -> bool {
    let KeyFilter { key, predicate, .. } = condition;
    match key.kind {
        KeyKind::Constant => predicate.holds(Some(model::ValueRef::String(&key.key))),
        _ => predicate.holds(field(entity, &key.key).as_ref()),
    }
}

/// A page has at most [`PAGE_DEVICES_MAX`] entities, however many are asked for.
fn page_size_of(asked: usize) -> Result<usize, EntityQueryError> {
    if asked == 0 {
        return Err(EntityQueryError::Invalid("pageSize is 0; it must be 1 or more".to_owned()));
    }
    Ok(asked.min(PAGE_DEVICES_MAX))
}
