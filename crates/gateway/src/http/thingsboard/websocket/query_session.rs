//! The part of a session that serves subscriptions by queries.

use std::sync::Arc;

use hub::caller::Caller;
use hub::entity_query::{EntityCountQuery, EntityDataQuery, EntityKey, device_of};
use hub::live::Update;
use hub::registry::{Entity, Page};
use hub::{EntityId, Hub};
use model::SeriesId;
use tokio::time::Instant;

use super::entity_json::{ChangedRows, PageRows, Rows};
use super::entity_read::{EntityRead, EntityValues};
use super::outbound::Outbound;
use super::queries::Query;
use super::query_commands::{EntityCountCommand, EntityDataCommand};
use super::query_update::{UpdateType, changes_message, count_message, page_message, query_error_message};
use super::session::{End, SocketSession};
use crate::error::ApiError;
use crate::http::limits::ENTITIES_PER_SUBSCRIPTION_MAX;

/// Entities with their series.
type Bound = Vec<(Entity, Option<SeriesId>)>;

impl SocketSession<'_> {
    /// Serves a command for entities and their values.
    pub(super) async fn entity_data(
        &mut self,
        command: EntityDataCommand,
        out: &mut Outbound,
    ) -> Result<(), End> {
        let id = command.cmd_id;
        let done = match command.query {
            Some(_) => self.begin_entities(command).await,
            None => self.change_entities(command).await,
        };
        if done.is_err() {
            // Without its reply the subscription would have a hidden gap.
            self.end_query(id);
        }
        self.reply(id, UpdateType::EntityData, done, out).await
    }

    /// Starts a subscription. Returns the message with its page.
    async fn begin_entities(&mut self, mut command: EntityDataCommand) -> Result<String, ApiError> {
        let id = command.cmd_id;
        let mut query = command.query.take().expect("BUG: the caller has looked");
        query.page_link.page_size = query.page_link.page_size.min(ENTITIES_PER_SUBSCRIPTION_MAX);
        if let Some(part) = &command.latest_cmd {
            query.latest_values.extend(part.keys.iter().cloned());
        }
        // A wrong part is refused before anything is read.
        let mut read = EntityRead::of(&command, hub::clock::system_now())?;
        read.keys = query.selected();
        let (page, bound) = self.find(&query).await?;
        self.put_entities(id, query, live_parts(&command), &bound)?;
        self.send_page(id, &page, bound, read).await
    }

    /// Starts to watch the entities of a page, instead of those of an earlier subscription with this id.
    fn put_entities(
        &mut self,
        id: i64,
        query: EntityDataQuery,
        parts: EntityDataCommand,
        bound: &Bound,
    ) -> Result<(), ApiError> {
        self.end_query(id);
        for entity in self.queries.put_entities(id, query, parts, bound)? {
            self.watched.add(entity).map_err(|over| ApiError::busy(over.to_string()))?;
        }
        Ok(())
    }

    /// Reads the values of a page whose entities are watched by now. Returns the message with the page.
    async fn send_page(
        &mut self,
        id: i64,
        page: &Page<()>,
        bound: Bound,
        read: EntityRead,
    ) -> Result<String, ApiError> {
        let (rows, values) = self.read(bound, read.clone()).await?;
        self.queries.record(id, &read.keys, &values)?;
        let rows = Rows { ids: &rows, keys: &read.keys, values: &values, now: hub::clock::system_now() };
        page_message(id, UpdateType::EntityData, &PageRows { rows, page }, ENTITIES_PER_SUBSCRIPTION_MAX)
    }

    /// Changes a subscription by a command without a query: its parts replace the earlier ones. Returns the message with the
    /// values of the new parts.
    async fn change_entities(&mut self, command: EntityDataCommand) -> Result<String, ApiError> {
        let id = command.cmd_id;
        if !command.has_parts() {
            let message = "the command has neither a query nor a part such as latestCmd or tsCmd";
            return Err(ApiError::argument(message));
        }
        let mut read = EntityRead::of(&command, hub::clock::system_now())?;
        let Some(Query::Entities(subscription)) = self.queries.get(id) else {
            let message = format!(
                "there is no subscription {id} of entities in this session; the first command needs a query"
            );
            return Err(ApiError::argument(message));
        };
        let (query, bound) = (subscription.query.clone(), subscription.page());
        let bound: Bound = bound.map(|(entity, series)| (entity.clone(), series)).collect();
        self.put_entities(id, query, live_parts(&command), &bound)?;
        read.keys = keys_of(&command);
        let (rows, values) = self.read(bound, read.clone()).await?;
        self.queries.record(id, &read.keys, &values)?;
        let rows = Rows { ids: &rows, keys: &read.keys, values: &values, now: hub::clock::system_now() };
        changes_message(id, UpdateType::EntityData, &rows, ENTITIES_PER_SUBSCRIPTION_MAX)
    }

    /// Serves a command for a number of entities.
    pub(super) async fn entity_count(
        &mut self,
        command: EntityCountCommand,
        out: &mut Outbound,
    ) -> Result<(), End> {
        let EntityCountCommand { cmd_id: id, query } = command;
        let begun = Instant::now();
        let counted = self.count(query.clone()).await;
        let done = counted.and_then(|count| {
            self.end_query(id);
            self.queries.put_count(id, query, count, begun.elapsed())?;
            Ok(count_message(id, UpdateType::EntityCount, count))
        });
        self.reply(id, UpdateType::EntityCount, done, out).await
    }

    /// Runs a query again that is due, and sends what has changed.
    pub(super) async fn refresh_query(&mut self, id: i64, out: &mut Outbound) -> Result<(), End> {
        let begun = Instant::now();
        let (kind, done) = match self.queries.get(id) {
            None => return Ok(()),
            Some(Query::Count(subscription)) => {
                let query = subscription.query.clone();
                (UpdateType::EntityCount, self.refresh_count(id, query).await)
            }
            Some(Query::Alarms(subscription)) => {
                let ask = subscription.ask.clone();
                (ask.kind(), self.refresh_alarms(ask).await)
            }
            Some(Query::Entities(subscription)) => {
                let (query, parts) = (subscription.query.clone(), subscription.parts.clone());
                (UpdateType::EntityData, self.refresh_entities(id, query, parts).await)
            }
        };
        self.queries.refreshed(id, begun.elapsed());
        match done {
            Ok(None) => Ok(()),
            Ok(Some(message)) => self.reply(id, kind, Ok(message), out).await,
            Err(error) => {
                self.end_query(id);
                self.reply(id, kind, Err(error), out).await
            }
        }
    }

    async fn refresh_count(&mut self, id: i64, query: EntityCountQuery) -> Result<Option<String>, ApiError> {
        let count = self.count(query).await?;
        let Some(subscription) = self.queries.count(id) else { return Ok(None) };
        let is_new = subscription.count != count;
        subscription.count = count;
        Ok(is_new.then(|| count_message(id, UpdateType::EntityCount, count)))
    }

    /// Looks for the page of a subscription again. Sends it if its entities, their series or their properties have changed.
    async fn refresh_entities(
        &mut self,
        id: i64,
        query: EntityDataQuery,
        parts: EntityDataCommand,
    ) -> Result<Option<String>, ApiError> {
        let (page, bound) = self.find(&query).await?;
        let Some(Query::Entities(subscription)) = self.queries.get(id) else { return Ok(None) };
        let is_same = subscription.page().count() == bound.len()
            && subscription
                .page()
                .zip(&bound)
                .all(|((entity, series), (other, of_other))| entity == other && series == *of_other);
        if is_same {
            return Ok(None);
        }
        let mut read = EntityRead::of(&parts, hub::clock::system_now())?;
        read.keys = query.selected();
        self.put_entities(id, query, parts, &bound)?;
        self.send_page(id, &page, bound, read).await.map(Some)
    }

    /// Looks for the series of live entities that have reported nothing before.
    pub(super) async fn bind_queries(&mut self, out: &mut Outbound) -> Result<(), End> {
        for id in self.queries.unbound() {
            let Some(Query::Entities(subscription)) = self.queries.get(id) else { continue };
            let (hub, caller) = (&self.state.hub, self.session.caller());
            let is_new = subscription.page().any(|(entity, series)| {
                series.is_none() && matches!(series_of(hub, caller, entity), Ok(Some(_)))
            });
            if is_new {
                self.refresh_query(id, out).await?;
            }
        }
        Ok(())
    }

    /// Sends what is new for the subscriptions.
    pub(super) async fn send_changes(
        &mut self,
        updates: &[Arc<Update>],
        out: &mut Outbound,
    ) -> Result<(), End> {
        for (id, rows) in self.queries.changes(updates)? {
            let changes = ChangedRows(&rows);
            let message =
                changes_message(id, UpdateType::EntityData, &changes, ENTITIES_PER_SUBSCRIPTION_MAX);
            out.send(message.unwrap_or_else(|error| query_error_message(id, UpdateType::EntityData, &error)))
                .await?;
        }
        Ok(())
    }

    /// Sends the reply to a command. A long one counts until the client has taken it.
    pub(super) async fn reply(
        &mut self,
        id: i64,
        kind: UpdateType,
        done: Result<String, ApiError>,
        out: &mut Outbound,
    ) -> Result<(), End> {
        match done.and_then(|message| Ok((self.hold(&message)?, message))) {
            Ok((held, message)) => {
                out.send(message).await?;
                if held.is_some() {
                    out.flush().await?;
                }
            }
            Err(error) => {
                self.state.refused(error.label);
                out.send(query_error_message(id, kind, &error)).await?;
            }
        }
        Ok(())
    }

    async fn find(&self, query: &EntityDataQuery) -> Result<(Page<()>, Bound), ApiError> {
        let (hub, caller) = (Arc::clone(&self.state.hub), self.session.caller().clone());
        let query = query.clone();
        let find = move || {
            let Page { data, total_pages, total_elements, has_next } =
                hub.find_entity_page(&caller, &query)?;
            let with_series = |entity: Entity| Ok((series_of(&hub, &caller, &entity)?, entity));
            let bound = data.into_iter().map(with_series).collect::<Result<Vec<_>, ApiError>>()?;
            let bound = bound.into_iter().map(|(series, entity)| (entity, series)).collect();
            Ok((Page { data: Vec::new(), total_pages, total_elements, has_next }, bound))
        };
        self.state.reads.run(find).await?
    }

    async fn read(
        &self,
        bound: Bound,
        read: EntityRead,
    ) -> Result<(Vec<EntityId>, Vec<EntityValues>), ApiError> {
        let (hub, caller) = (Arc::clone(&self.state.hub), self.session.caller().clone());
        let run = move || {
            let values = read.run(&hub, &caller, &bound, hub::clock::system_now())?;
            Ok((bound.iter().map(|(entity, _)| entity.id()).collect(), values))
        };
        self.state.reads.run(run).await?
    }

    async fn count(&self, query: EntityCountQuery) -> Result<usize, ApiError> {
        let (hub, caller) = (Arc::clone(&self.state.hub), self.session.caller().clone());
        Ok(self.state.reads.run(move || hub.count_entities(&caller, &query)).await??)
    }
}

/// The parts of a command that live on after its reply.
fn live_parts(command: &EntityDataCommand) -> EntityDataCommand {
    EntityDataCommand { query: None, history_cmd: None, agg_history_cmd: None, ..command.clone() }
}

/// The keys of a command's latest values, each once, sorted by kind.
fn keys_of(command: &EntityDataCommand) -> Vec<EntityKey> {
    let mut keys: Vec<EntityKey> =
        command.latest_cmd.iter().flat_map(|part| part.keys.iter().cloned()).collect();
    keys.sort_unstable();
    keys.dedup();
    keys
}

/// The series that an entity writes to, if it has reported.
fn series_of(hub: &Hub, caller: &Caller, entity: &Entity) -> Result<Option<SeriesId>, ApiError> {
    match device_of(entity) {
        Some(device) => Ok(hub.find_series_of(caller, device)?),
        None => Ok(None),
    }
}
