//! The part of a session that serves attributes.

use std::collections::BTreeSet;
use std::sync::Arc;

use hub::attributes::{Changed, Scope};
use hub::entity_query::{EntityKey, EntityRow};
use hub::registry::RegistryError;
use hub::{AttributeError, EntityId, EntityKind};

use super::attributes::Wanted;
use super::commands::{AttributeCommand, Keys};
use super::entity_json::ChangedAttributes;
use super::outbound::Outbound;
use super::queries::LiveRow;
use super::query_update::{UpdateType, changes_message, query_error_message};
use super::session::{End, SocketSession};
use super::update::{data_message, error_message};
use crate::error::ApiError;
use crate::http::limits::ENTITIES_PER_SUBSCRIPTION_MAX;
use crate::http::thingsboard::telemetry::read::unique_keys;
use crate::http::tools::request::parse_id;

/// Subscriptions, or rows of queries, whose attributes one job reads.
const READS_PER_JOB: usize = 256;

impl SocketSession<'_> {
    /// Serves a command for attributes.
    pub(super) async fn attributes(
        &mut self,
        command: AttributeCommand,
        out: &mut Outbound,
    ) -> Result<(), End> {
        let id = command.cmd_id;
        let begun = self.wanted(&command).and_then(|wanted| {
            self.attributes.add(id, wanted.clone(), &mut self.watched)?;
            Ok(wanted)
        });
        match begun {
            Ok(wanted) => self.send_attributes(vec![(id, wanted)], true, out).await,
            Err(error) => {
                self.state.refused(error.label);
                Ok(out.send(error_message(id, &error)).await?)
            }
        }
    }

    /// The attributes that a command names.
    fn wanted(&self, command: &AttributeCommand) -> Result<Wanted, ApiError> {
        let kind = command.entity_type.as_deref().unwrap_or(EntityKind::Device.name());
        let kind: EntityKind = kind.parse().map_err(ApiError::argument)?;
        let id = command.entity_id.as_deref();
        let id = id.ok_or_else(|| ApiError::argument("entityId is missing; name the id of an entity"))?;
        let scopes = match command.scope.as_deref() {
            None | Some("" | "ANY_SCOPE") => Scope::ALL.to_vec(),
            Some(name) => vec![name.parse().map_err(ApiError::argument)?],
        };
        let keys = unique_keys(command.keys.iter().flat_map(Keys::iter))?;
        let id = EntityId { kind, id: parse_id(id)? };
        let entity =
            self.state.hub.visible_entity(self.session.caller(), id).map_err(|error| match error {
                RegistryError::Unknown { .. } => ApiError::not_found(format!("there is no {id}")),
                error => error.into(),
            })?;
        Ok(Wanted { entity, scopes, keys: (!keys.is_empty()).then_some(keys) })
    }

    /// Reads attributes and sends what the clients of the subscriptions have not got; a first reply in any case.
    async fn send_attributes(
        &mut self,
        some: Vec<(i64, Wanted)>,
        is_first: bool,
        out: &mut Outbound,
    ) -> Result<(), End> {
        for part in some.chunks(READS_PER_JOB) {
            let (hub, caller) = (Arc::clone(&self.state.hub), self.session.caller().clone());
            let wanted: Vec<Wanted> = part.iter().map(|(_, wanted)| wanted.clone()).collect();
            let read = move || wanted.iter().map(|wanted| wanted.read(&hub, &caller)).collect::<Vec<_>>();
            let found: Vec<Result<_, ApiError>> = match self.state.attributes.run(read).await {
                Ok(found) => found.into_iter().map(|one| one.map_err(ApiError::from)).collect(),
                Err(error) => vec![Err(error.into()); part.len()],
            };
            for ((id, _), found) in part.iter().zip(found) {
                let news = found.and_then(|data| Ok(self.attributes.news(*id, data)?));
                match news {
                    Ok(news) if news.is_empty() && !is_first => {}
                    Ok(news) => {
                        let message = data_message(*id, &news);
                        out.send(message.unwrap_or_else(|error| error_message(*id, &error))).await?;
                    }
                    Err(error) => {
                        // Without its reply the subscription would have a hidden gap.
                        self.attributes.remove(*id, &mut self.watched);
                        self.state.refused(error.label);
                        out.send(error_message(*id, &error)).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Sends the attributes that have changed.
    pub(super) async fn send_attribute_changes(
        &mut self,
        changes: &BTreeSet<Changed>,
        out: &mut Outbound,
    ) -> Result<(), End> {
        self.send_attributes(self.attributes.affected(changes), false, out).await?;
        for row in self.queries.affected(changes).chunks(READS_PER_JOB) {
            self.send_row_changes(row, out).await?;
        }
        Ok(())
    }

    /// Sends the attributes of rows of queries that have changed.
    async fn send_row_changes(&mut self, rows: &[LiveRow], out: &mut Outbound) -> Result<(), End> {
        let (hub, caller) = (Arc::clone(&self.state.hub), self.session.caller().clone());
        let wanted: Vec<_> = rows.iter().map(|row| (row.entity.clone(), Arc::clone(&row.keys))).collect();
        let now = hub::clock::system_now();
        let read = move || {
            let one = |(entity, keys): (_, Arc<Vec<EntityKey>>)| {
                let mut found = hub.values_of_entities(&caller, vec![entity], &keys, now)?;
                Ok(found.pop().map(|EntityRow { values, .. }| values).unwrap_or_default())
            };
            wanted.into_iter().map(one).collect::<Result<Vec<_>, ApiError>>()
        };
        let found = match self.state.attributes.run(read).await {
            Ok(found) => found,
            Err(error) => Err(error.into()),
        };
        let found = match found {
            Ok(found) => found,
            Err(error) => {
                self.state.refused(error.label);
                for id in rows.iter().map(|row| row.id).collect::<BTreeSet<_>>() {
                    self.end_query(id);
                    out.send(query_error_message(id, UpdateType::EntityData, &error)).await?;
                }
                return Ok(());
            }
        };
        for (row, values) in rows.iter().zip(found) {
            let changed = self.queries.changed_attributes(row, values);
            if changed.is_empty() {
                continue;
            }
            let (keys, values): (Vec<EntityKey>, Vec<_>) = changed.into_iter().unzip();
            let rows = [ChangedAttributes { id: row.entity.id(), keys: &keys, values: &values, now }];
            let message =
                changes_message(row.id, UpdateType::EntityData, &rows, ENTITIES_PER_SUBSCRIPTION_MAX);
            let message =
                message.unwrap_or_else(|error| query_error_message(row.id, UpdateType::EntityData, &error));
            out.send(message).await?;
        }
        Ok(())
    }

    /// Ends the subscriptions of attributes of entities that the caller does not see any more.
    pub(super) async fn check_attributes(&mut self, out: &mut Outbound) -> Result<(), End> {
        for (id, entity) in self.attributes.all() {
            let seen = self.state.hub.visible_entity(self.session.caller(), entity);
            if let Err(error) = seen {
                self.attributes.remove(id, &mut self.watched);
                out.send(error_message(id, &AttributeError::from(error).into())).await?;
            }
        }
        Ok(())
    }

    /// Ends the subscription by a query with this id, if there is one.
    pub(super) fn end_query(&mut self, id: i64) {
        for entity in self.queries.remove(id) {
            self.watched.remove(entity);
        }
    }
}
