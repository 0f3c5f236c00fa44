//! The working half of a WebSocket session: commands, live updates, keep-alive, and closing.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::extract::ws::close_code;
use hub::LatestValue;
use hub::alarms::AlarmFeed;
use hub::attributes::Changes;
use hub::live::{LiveConnection, Update, Updates};
use hub::registry::Device;
use model::SeriesId;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::alarm_queries::next_alarm_change;
use super::attributes::{AttributeSubscriptions, WatchedAttributes};
use super::close_reason::CloseReason;
use super::commands::{Command, HistoryCommand, SubscribeCommand, WatchCommand};
use super::inbound::{Activity, Inbound};
use super::interface::Interface;
use super::outbound::{Disconnected, Outbound};
use super::pending_read::{PendingRead, ReadFrom};
use super::queries::Queries;
use super::query_update::query_error_message;
use super::subscriptions::{Subscriptions, Summary, by_series};
use super::token::token_ended;
use super::update::{Data, NO_SUBSCRIPTION, bytes_of_data, data_message, error_message};
use super::update_filter::SubscriptionKind;
use super::watch::{Frame, Watch, Watches, check_command};
use crate::acceptor::Stop;
use crate::budget::{Charge, OverBudget, Owner, Share};
use crate::error::ApiError;
use crate::http::limits::{
    ANSWER_COUNTED_BYTES_MIN, REGISTRY_CHECK_INTERVAL, SERIES_BIND_INTERVAL, SOCKET_PING_INTERVAL,
    SOCKET_SILENCE_MAX, UPDATE_BYTES_MAX, WATCH_TAKES_MAX,
};
use crate::http::thingsboard::telemetry::read::check_kind;
use crate::http::tools::request::parse_id;
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// Latest values that one blocking job reads: a thousand subscriptions take a few jobs.
const READS_PER_JOB: usize = 256;

/// The end of a session.
pub(super) enum End {
    /// The client is gone.
    Disconnected,
    /// The server closes the socket.
    Close(CloseReason),
}

impl From<OverBudget> for End {
    fn from(over: OverBudget) -> Self {
        Self::Close(CloseReason::new(close_code::AGAIN, "held_bytes", over.to_string()))
    }
}

impl From<Disconnected> for End {
    fn from(Disconnected: Disconnected) -> Self {
        Self::Disconnected
    }
}

/// The session of a client with a valid token.
pub(crate) struct SocketSession<'a> {
    pub(super) state: Arc<HttpState>,
    pub(super) session: Session,
    token: String,
    interface: Interface,
    activity: &'a Activity,
    connection: Arc<LiveConnection>,
    /// Bytes of subscriptions and watches.
    share: Arc<Share>,
    /// Bytes of long replies.
    answers: Arc<Share>,
    subscriptions: Subscriptions,
    watches: Watches,
    pub(super) queries: Queries,
    pub(super) attributes: AttributeSubscriptions,
    /// The entities whose attributes are watched.
    pub(super) watched: WatchedAttributes,
    /// Changes of alarms, since the first subscription of alarms.
    pub(super) alarm_feed: Option<AlarmFeed>,
    /// Generation of the registry at the last check of devices.
    generation: u64,
    /// When that was.
    checked_at: Instant,
    /// Changes when a device gets its series.
    new_series: watch::Receiver<u64>,
    /// When the session last looked for new series.
    bound_at: Instant,
    stop: watch::Receiver<Stop>,
    ping: Interval,
}

enum Event {
    Inbound(Option<Inbound>),
    Updates(Updates),
    /// A watch is due.
    Watch(i64),
    /// Updates of entities of queries.
    Changes(Updates),
    /// A query must run again.
    Query(i64),
    /// Attributes have changed.
    Attributes(Changes),
    /// Alarms have changed.
    Alarms,
    /// A device has got its series.
    NewSeries,
    Tick,
    Stop,
}

impl<'a> SocketSession<'a> {
    pub(crate) fn new(
        state: Arc<HttpState>,
        session: Session,
        token: String,
        interface: Interface,
        activity: &'a Activity,
    ) -> Result<Self, ApiError> {
        let mut ping = interval_at(Instant::now() + SOCKET_PING_INTERVAL, SOCKET_PING_INTERVAL);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let owner = Owner::of(&state.hub, session.caller());
        let (share, answers) = (state.subscriptions.share(owner), state.answers.share(owner));
        let connection = Arc::new(state.hub.live_connection(session.caller()));
        let watched = WatchedAttributes::new(state.hub.watch_attributes(session.caller())?);
        Ok(Self {
            subscriptions: Subscriptions::new(connection.subscriber(), Arc::clone(&share)),
            queries: Queries::new(connection.subscriber(), Arc::clone(&share)),
            attributes: AttributeSubscriptions::new(Arc::clone(&share)),
            watched,
            alarm_feed: None,
            share,
            answers,
            connection,
            watches: Watches::default(),
            generation: state.hub.registry().generation(),
            checked_at: Instant::now(),
            new_series: state.hub.new_series(),
            bound_at: Instant::now(),
            stop: state.stop.clone(),
            state,
            session,
            token,
            interface,
            activity,
            ping,
        })
    }

    /// Handles the commands of the message that came with the token, then serves the client like [`run`](Self::run).
    pub(crate) async fn run_after(
        mut self,
        commands: Vec<Command>,
        messages: &mut mpsc::Receiver<Inbound>,
        out: &mut Outbound,
    ) -> Option<CloseReason> {
        let first = async {
            self.work(commands, out).await?;
            Ok::<(), End>(out.flush().await?)
        };
        match first.await {
            Ok(()) => self.run(messages, out).await,
            Err(End::Disconnected) => None,
            Err(End::Close(reason)) => Some(reason),
        }
    }

    /// Serves the client until the client or the server ends the session. Returns the close reason; `None` if the client is gone.
    pub(crate) async fn run(
        mut self,
        messages: &mut mpsc::Receiver<Inbound>,
        out: &mut Outbound,
    ) -> Option<CloseReason> {
        let (state, token, connection) =
            (Arc::clone(&self.state), self.token.clone(), Arc::clone(&self.connection));
        let mut token_changes = self.state.hub.session_changes();
        // The token was checked before; changes since then count too.
        token_changes.mark_changed();
        loop {
            let done = tokio::select! {
                done = self.step(messages, out) => done,
                // This also ends an answer that the client does not take, and frees its memory.
                error = token_ended(&state, &token, &mut token_changes) => {
                    Err(End::Close(CloseReason::unauthenticated(&error)))
                }
                overrun = connection.overrun() => {
                    Err(End::Close(CloseReason::new(close_code::AGAIN, "live_unread", overrun.to_string())))
                }
            };
            match done {
                Ok(()) => {}
                Err(End::Disconnected) => return None,
                Err(End::Close(reason)) => return Some(reason),
            }
        }
    }

    /// Waits for an event and handles it.
    async fn step(&mut self, messages: &mut mpsc::Receiver<Inbound>, out: &mut Outbound) -> Result<(), End> {
        let is_unbound =
            self.subscriptions.has_unbound() || self.watches.has_unbound() || self.queries.has_unbound();
        let event = tokio::select! {
            message = messages.recv() => Event::Inbound(message),
            updates = self.subscriptions.next() => Event::Updates(updates),
            id = self.watches.due() => Event::Watch(id),
            updates = self.queries.next() => Event::Changes(updates),
            id = self.queries.due() => Event::Query(id),
            changes = self.watched.next() => Event::Attributes(changes),
            () = next_alarm_change(&mut self.alarm_feed) => Event::Alarms,
            () = next_bind(&mut self.new_series, self.bound_at), if is_unbound => Event::NewSeries,
            _ = self.ping.tick() => Event::Tick,
            () = Stop::Drain.reached(&mut self.stop) => Event::Stop,
        };
        self.handle(event, out).await
    }

    async fn handle(&mut self, event: Event, out: &mut Outbound) -> Result<(), End> {
        let has_values = matches!(event, Event::Updates(_) | Event::Changes(_) | Event::Attributes(_));
        if has_values && self.checked_at.elapsed() >= REGISTRY_CHECK_INTERVAL {
            self.check_registry(out).await?;
        }
        match event {
            Event::Inbound(None) => return Err(End::Disconnected),
            Event::Inbound(Some(Inbound::Text(text))) => match self.interface.parse(&text) {
                Ok(commands) => self.work(commands, out).await?,
                Err(error) => {
                    self.state.refused(error.label);
                    out.send(error_message(NO_SUBSCRIPTION, &error)).await?;
                }
            },
            Event::Inbound(Some(Inbound::Binary)) => {
                let error = ApiError::bad_request("this WebSocket takes text messages only");
                out.send(error_message(NO_SUBSCRIPTION, &error)).await?;
            }
            Event::Inbound(Some(Inbound::Broken(reason))) => return Err(End::Close(reason)),
            Event::Updates(updates) => {
                // Handled one subscription at a time: ten thousand subscriptions of one device share its values.
                for (series, updates) in by_series(&updates) {
                    for id in self.subscriptions.of(series) {
                        for news in self.subscriptions.news(id, &updates)? {
                            send(out, id, data_message(id, &news)).await?;
                        }
                    }
                }
            }
            Event::Watch(id) => {
                let mut updates = self.watches.take(id);
                // The session sends it also without updates, so that the client sees a live connection.
                self.send_watch(id, updates.as_deref().unwrap_or_default(), out).await?;
                for _ in 1..WATCH_TAKES_MAX {
                    updates = self.watches.take(id);
                    let Some(more) = &updates else { break };
                    self.send_watch(id, more, out).await?;
                }
            }
            Event::Changes(updates) => self.send_changes(&updates, out).await?,
            Event::Query(id) => self.refresh_query(id, out).await?,
            Event::Attributes(changes) => self.send_attribute_changes(&changes.of, out).await?,
            Event::Alarms => self.queries.alarms_changed(),
            Event::NewSeries => self.bind(out).await?,
            Event::Tick => self.tick(out).await?,
            Event::Stop => {
                return Err(End::Close(CloseReason::new(close_code::AWAY, "stop", "the server stops")));
            }
        }
        Ok(out.flush().await?)
    }

    /// Sends the messages of a watch for some updates.
    async fn send_watch(&mut self, id: i64, updates: &[Arc<Update>], out: &mut Outbound) -> Result<(), End> {
        for rows in self.watches.messages(id, updates)? {
            match self.watches.frame(id, &rows) {
                Some(Ok(Frame::Text(text))) => out.send(text).await?,
                Some(Ok(Frame::Deflated(bytes))) => out.send_bytes(bytes).await?,
                Some(Err(error)) => send(out, id, Err(error)).await?,
                None => {}
            }
        }
        Ok(())
    }

    /// Handles the commands of one message.
    async fn work(&mut self, commands: Vec<Command>, out: &mut Outbound) -> Result<(), End> {
        let mut reads = Vec::new();
        for command in commands {
            let (id, prepared) = match command {
                Command::Unsubscribe(id) => {
                    self.subscriptions.remove(id);
                    self.attributes.remove(id, &mut self.watched);
                    // An earlier command of the same message may have requested the initial reply.
                    reads.retain(|read: &PendingRead| read.id != id);
                    continue;
                }
                Command::Subscribe(command) => (command.cmd_id, self.subscribe(&command)),
                Command::History(command) => (command.cmd_id, self.history(&command)),
                Command::Unwatch(id) => {
                    self.watches.remove(id);
                    continue;
                }
                Command::Watch(command) => {
                    let id = command.cmd_id;
                    match self.watch(command) {
                        Ok(()) => continue,
                        Err(error) => (id, Err(error)),
                    }
                }
                Command::EntityData(command) => {
                    self.entity_data(*command, out).await?;
                    continue;
                }
                Command::EntityCount(command) => {
                    self.entity_count(*command, out).await?;
                    continue;
                }
                Command::Alarms(ask) => {
                    self.alarms(*ask, out).await?;
                    continue;
                }
                Command::EndQuery(id) => {
                    self.end_query(id);
                    continue;
                }
                Command::Wrong { id, answer: Some(kind), error } => {
                    self.state.refused(error.label);
                    out.send(query_error_message(id.unwrap_or(NO_SUBSCRIPTION), kind, &error)).await?;
                    continue;
                }
                Command::Wrong { id, answer: None, error } => (id.unwrap_or(NO_SUBSCRIPTION), Err(error)),
                Command::Attributes(command) => {
                    self.attributes(command, out).await?;
                    continue;
                }
            };
            match prepared {
                Ok(read) => reads.push(read),
                Err(error) => {
                    self.state.refused(error.label);
                    send(out, id, Err(error)).await?;
                }
            }
        }
        self.read_and_reply(reads, out).await
    }

    /// Starts a subscription. Returns the read for its initial reply.
    fn subscribe(&mut self, command: &SubscribeCommand) -> Result<PendingRead, ApiError> {
        let device = self.device(command.entity_type.as_deref(), command.entity_id.as_deref())?;
        let from = ReadFrom::of_subscription(command, hub::clock::system_now())?;
        let series = self.state.hub.find_series_of(self.session.caller(), &device)?;
        let keys = from.keys().map(<[String]>::to_vec);
        let kind = match from {
            ReadFrom::Latest(_) => SubscriptionKind::Latest,
            ReadFrom::History(_) => SubscriptionKind::History,
        };
        self.subscriptions.add(command.cmd_id, device.id, series, keys.as_deref(), kind)?;
        if series.is_none() {
            self.subscriptions.bind_later(command.cmd_id, from.clone())?;
        }
        Ok(PendingRead { id: command.cmd_id, device, from, live: true })
    }

    /// Starts a watch.
    fn watch(&mut self, command: WatchCommand) -> Result<(), ApiError> {
        check_command(&command)?;
        let with_series = |id: &String| {
            let device = self.device(None, Some(id))?;
            let series = self.state.hub.find_series_of(self.session.caller(), &device)?;
            Ok((device.id, series))
        };
        let devices = command.entity_ids.iter().map(with_series).collect::<Result<Vec<_>, ApiError>>()?;
        self.watches.add(Watch::new(command, devices, &self.connection, &self.share)?)
    }

    fn history(&self, command: &HistoryCommand) -> Result<PendingRead, ApiError> {
        let device = self.device(command.entity_type.as_deref(), command.entity_id.as_deref())?;
        Ok(PendingRead { id: command.cmd_id, device, from: ReadFrom::of_history(command)?, live: false })
    }

    fn device(&self, kind: Option<&str>, id: Option<&str>) -> Result<Arc<Device>, ApiError> {
        check_kind(kind.unwrap_or("DEVICE"), "time series")?;
        let id = id.ok_or_else(|| ApiError::argument("entityId is missing; name the id of a device"))?;
        self.session.device(&self.state.hub, parse_id(id)?)
    }

    /// Reads and replies, a few reads at a time: results stay in memory until the client has taken them.
    async fn read_and_reply(&mut self, reads: Vec<PendingRead>, out: &mut Outbound) -> Result<(), End> {
        let mut rest = VecDeque::from(reads);
        while !rest.is_empty() {
            for (read, result) in self.read_some(&mut rest).await {
                let message = result.and_then(|data| {
                    if read.live {
                        self.subscriptions.record_reply(read.id, &data)?;
                    }
                    data_message(read.id, &data)
                });
                // A long message counts until the client has taken it.
                match message.and_then(|message| Ok((self.hold(&message)?, message))) {
                    Ok((held, message)) => {
                        out.send(message).await?;
                        if held.is_some() {
                            out.flush().await?;
                        }
                    }
                    Err(error) => {
                        // Without its initial reply the subscription would have a hidden gap.
                        if read.live {
                            self.subscriptions.remove(read.id);
                        }
                        self.state.refused(error.label);
                        send(out, read.id, Err(error)).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Counts a long message until the result is dropped.
    pub(super) fn hold(&self, message: &str) -> Result<Option<Charge>, OverBudget> {
        let is_long = message.len() >= ANSWER_COUNTED_BYTES_MIN;
        is_long.then(|| self.answers.hold(message.len())).transpose()
    }

    /// Does the first reads: latest values of many devices until they form a long message, or one history.
    async fn read_some(
        &self,
        rest: &mut VecDeque<PendingRead>,
    ) -> Vec<(PendingRead, Result<Data, ApiError>)> {
        let latest = rest.iter().take(READS_PER_JOB).take_while(|read| read.is_latest()).count();
        let job: Arc<Vec<PendingRead>> = Arc::new(rest.drain(..latest.max(1)).collect());
        let work = {
            let (hub, job) = (Arc::clone(&self.state.hub), Arc::clone(&job));
            let caller = self.session.caller().clone();
            move || {
                let mut bytes = 0;
                let mut results = Vec::new();
                for read in job.iter() {
                    if bytes >= UPDATE_BYTES_MAX {
                        break;
                    }
                    let result = read.run(&hub, &caller);
                    bytes += result.as_ref().map_or(0, bytes_of_data);
                    results.push(result);
                }
                results
            }
        };
        let pressure = self.state.hub.memory_pressure();
        let bytes = if latest > 0 { UPDATE_BYTES_MAX as u64 } else { self.state.history_bytes(usize::MAX) };
        let results = match self.state.reads.run_large(pressure, bytes, work).await {
            Ok(results) => results,
            Err(error) => vec![Err(error.into()); job.len()],
        };
        job[results.len()..].iter().rev().for_each(|read| rest.push_front(read.clone()));
        job.iter().cloned().zip(results).collect()
    }

    /// Keep-alive. Also checks the token and the devices of the session.
    async fn tick(&mut self, out: &mut Outbound) -> Result<(), End> {
        if self.activity.silence() > SOCKET_SILENCE_MAX {
            let seconds = SOCKET_SILENCE_MAX.as_secs();
            let reason = format!("nothing was heard for {seconds} s, not even an answer to a ping");
            return Err(End::Close(CloseReason::new(close_code::POLICY, "silence", reason)));
        }
        match Session::open(&self.state, &self.token) {
            Ok(session) => self.session = session,
            Err(error) => return Err(End::Close(CloseReason::unauthenticated(&error))),
        }
        self.subscriptions.forget_replies();
        self.queries.forget_replies();
        self.check_registry(out).await?;
        Ok(out.ping().await?)
    }

    /// Looks up all entities again after a change of the registry: one may be gone, renamed, or hidden from the caller.
    async fn check_registry(&mut self, out: &mut Outbound) -> Result<(), End> {
        let generation = self.state.hub.registry().generation();
        if generation != self.generation {
            (self.generation, self.checked_at) = (generation, Instant::now());
            self.follow(|_| true, out).await?;
            self.queries.refresh_all();
            self.check_attributes(out).await?;
        }
        Ok(())
    }

    /// Binds what waits for the series of devices.
    async fn bind(&mut self, out: &mut Outbound) -> Result<(), End> {
        self.bound_at = Instant::now();
        self.follow(|summary| summary.series.is_none(), out).await?;
        self.bind_queries(out).await
    }

    /// Sends the latest values of series that are new in watches: their first values came before the watch of the series.
    async fn begin_watching(&mut self, found: Vec<(i64, SeriesId)>, out: &mut Outbound) -> Result<(), End> {
        for some in found.chunks(READS_PER_JOB) {
            let (hub, caller) = (Arc::clone(&self.state.hub), self.session.caller().clone());
            let series: Vec<SeriesId> = some.iter().map(|(_, series)| *series).collect();
            let read = move || {
                series
                    .into_iter()
                    .map(|series| hub.latest(&caller, series, None))
                    .collect::<Result<Vec<_>, _>>()
            };
            let read = self.state.reads.run(read).await.map_err(ApiError::from);
            let latest = match read.and_then(|read| Ok(read?)) {
                Ok(latest) => latest,
                Err(error) => {
                    send(out, some[0].0, Err(error)).await?;
                    continue;
                }
            };
            for ((id, series), latest) in some.iter().zip(latest) {
                let update =
                    |LatestValue { key, ts, value }| Arc::new(Update { series: *series, key, ts, value });
                let updates: Vec<Arc<Update>> = latest.into_iter().map(update).collect();
                if !updates.is_empty() {
                    self.send_watch(*id, &updates, out).await?;
                }
            }
        }
        Ok(())
    }

    /// Ends subscriptions of deleted devices. Moves those of devices that have another series now: the first one, or one in
    /// another table. Looks at some subscriptions, and at all watches.
    async fn follow(&mut self, of: impl Fn(&Summary) -> bool, out: &mut Outbound) -> Result<(), End> {
        let (session, hub) = (&self.session, &self.state.hub);
        let found = self
            .watches
            .follow(|device| hub.find_series_of(session.caller(), &*session.device(hub, device).ok()?).ok());
        self.begin_watching(found, out).await?;
        let some: Vec<Summary> = self.subscriptions.all().filter(of).collect();
        let mut moved = Vec::new();
        for Summary { id, device, series, keys, kind } in some {
            let hub = &self.state.hub;
            let now = self.session.device(hub, device).and_then(|device| {
                let series = hub.find_series_of(self.session.caller(), &device)?;
                Ok((device, series))
            });
            match now {
                Ok((_, same)) if same == series => {}
                Ok((device, series)) => {
                    let from = self.subscriptions.take_unbound(id);
                    let from = from.unwrap_or_else(|| ReadFrom::Latest(keys.clone()));
                    match self.subscriptions.add(id, device.id, series, keys.as_deref(), kind) {
                        Ok(()) => {
                            if series.is_none() {
                                self.subscriptions.bind_later(id, from.clone())?;
                            }
                            moved.push(PendingRead { id, device, from, live: true });
                        }
                        Err(error) => send(out, id, Err(error)).await?,
                    }
                }
                Err(error) => {
                    self.subscriptions.remove(id);
                    send(out, id, Err(error)).await?;
                }
            }
        }
        self.read_and_reply(moved, out).await
    }
}

/// Returns when a device has got its series, and the last look for new ones is long enough ago.
async fn next_bind(changes: &mut watch::Receiver<u64>, last: Instant) {
    tokio::time::sleep_until(last + SERIES_BIND_INTERVAL).await;
    // The hub lives as long as the door.
    if changes.changed().await.is_err() {
        std::future::pending().await
    }
}

/// Sends a subscription its values, or an error.
async fn send(out: &mut Outbound, id: i64, message: Result<String, ApiError>) -> Result<(), Disconnected> {
    out.send(message.unwrap_or_else(|error| error_message(id, &error))).await
}
