//! The working half of a WebSocket session: commands, live updates, keep-alive, and the end.

use std::collections::VecDeque;
use std::sync::Arc;

use axum::extract::ws::{Utf8Bytes, close_code};
use hub::live::{LiveConnection, Update, Updates};
use hub::registry::Device;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::commands::{Command, HistoryCommand, SubscribeCommand, WatchCommand, parse};
use super::inbound::{Activity, Inbound};
use super::outbound::{Gone, Outbound};
use super::reading::{ReadFrom, Reading};
use super::subscriptions::{Kind, Subscriptions, Watching, by_series};
use super::update::{Data, NO_SUBSCRIPTION, bytes_of_data, data_message, error_message};
use super::watch::{Frame, Watch, Watches, check_command};
use super::{Access, Goodbye};
use crate::budget::{OverBudget, Share};
use crate::http::Door;
use crate::http::error::ApiError;
use crate::http::limits::{
    ANSWER_COUNTED_BYTES_MIN, SOCKET_COMMANDS_MAX, SOCKET_PING_INTERVAL, SOCKET_SILENCE_MAX,
    UPDATE_BYTES_MAX, WATCH_TAKES_MAX,
};
use crate::http::request::parse_id;
use crate::http::telemetry::check_kind;
use crate::seats::Stop;

/// Latest values that are read in one go; a thousand subscriptions are a few trips to a blocking thread.
const READS_PER_TRIP: usize = 256;

/// How a step of the session ended it.
enum End {
    /// The client is gone.
    Gone,
    /// We close.
    Close(Goodbye),
}

impl From<OverBudget> for End {
    fn from(over: OverBudget) -> Self {
        Self::Close(Goodbye::new(close_code::AGAIN, "held_bytes", over.to_string()))
    }
}

impl From<Gone> for End {
    fn from(Gone: Gone) -> Self {
        Self::Gone
    }
}

/// One client with a valid token.
pub(crate) struct Session<'a> {
    door: Arc<Door>,
    access: Access,
    token: String,
    activity: &'a Activity,
    connection: Arc<LiveConnection>,
    /// What subscriptions and watches hold.
    share: Arc<Share>,
    /// What long replies hold.
    answers: Arc<Share>,
    subscriptions: Subscriptions,
    watches: Watches,
    /// Of the registry, when devices were last looked at.
    generation: u64,
    stop: watch::Receiver<Stop>,
    ping: Interval,
}

enum Event {
    Inbound(Option<Inbound>),
    Updates(Updates),
    /// A watch has to say something.
    Watch(i64),
    Tick,
    Stop,
}

impl<'a> Session<'a> {
    pub(crate) fn new(door: Arc<Door>, access: Access, token: String, activity: &'a Activity) -> Self {
        let mut ping = interval_at(Instant::now() + SOCKET_PING_INTERVAL, SOCKET_PING_INTERVAL);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let login = access.caller().user_id().unwrap_or_default();
        let (share, answers) = (door.subscriptions.share(login), door.answers.share(login));
        let connection = Arc::new(door.hub.live_connection(access.caller()));
        Self {
            subscriptions: Subscriptions::new(connection.subscriber(), Arc::clone(&share)),
            share,
            answers,
            connection,
            watches: Watches::default(),
            generation: door.hub.registry().generation(),
            stop: door.stop.clone(),
            door,
            access,
            token,
            activity,
            ping,
        }
    }

    /// Serves the client until one of the two ends it; says how to close, if there is anybody left to close with.
    pub(crate) async fn run(
        mut self,
        messages: &mut mpsc::Receiver<Inbound>,
        out: &mut Outbound,
    ) -> Option<Goodbye> {
        let (door, token, connection) =
            (Arc::clone(&self.door), self.token.clone(), Arc::clone(&self.connection));
        let mut token_changes = self.door.hub.registry().session_changes();
        // The token was looked at before: what changed in between counts too.
        token_changes.mark_changed();
        loop {
            let done = tokio::select! {
                done = self.step(messages, out) => done,
                // Also amid an answer that the client does not take: what is held for it goes with the session.
                error = token_ended(&door, &token, &mut token_changes) => {
                    Err(End::Close(Goodbye::unauthenticated(&error)))
                }
                overrun = connection.overrun() => {
                    Err(End::Close(Goodbye::new(close_code::AGAIN, "live_unread", overrun.to_string())))
                }
            };
            match done {
                Ok(()) => {}
                Err(End::Gone) => return None,
                Err(End::Close(goodbye)) => return Some(goodbye),
            }
        }
    }

    /// Waits for something to do and does it.
    async fn step(&mut self, messages: &mut mpsc::Receiver<Inbound>, out: &mut Outbound) -> Result<(), End> {
        let event = tokio::select! {
            message = messages.recv() => Event::Inbound(message),
            updates = self.subscriptions.next() => Event::Updates(updates),
            id = self.watches.due() => Event::Watch(id),
            _ = self.ping.tick() => Event::Tick,
            () = Stop::Drain.reached(&mut self.stop) => Event::Stop,
        };
        self.handle(event, out).await
    }

    async fn handle(&mut self, event: Event, out: &mut Outbound) -> Result<(), End> {
        match event {
            Event::Inbound(None) => return Err(End::Gone),
            Event::Inbound(Some(Inbound::Text(text))) => self.work(&text, out).await?,
            Event::Inbound(Some(Inbound::Binary)) => {
                let error = ApiError::bad_request("this WebSocket takes text messages only");
                out.send(error_message(NO_SUBSCRIPTION, &error)).await?;
            }
            Event::Inbound(Some(Inbound::Broken(goodbye))) => return Err(End::Close(goodbye)),
            Event::Updates(updates) => {
                // One subscription after the other: ten thousand of one device share its values.
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
                // Also without updates: it is a sign of life.
                self.tell_watch(id, updates.as_deref().unwrap_or_default(), out).await?;
                for _ in 1..WATCH_TAKES_MAX {
                    updates = self.watches.take(id);
                    let Some(more) = &updates else { break };
                    self.tell_watch(id, more, out).await?;
                }
            }
            Event::Tick => self.tick(out).await?,
            Event::Stop => {
                return Err(End::Close(Goodbye::new(close_code::AWAY, "stop", "the server stops")));
            }
        }
        Ok(out.flush().await?)
    }

    /// Tells a watch what updates mean for it.
    async fn tell_watch(&mut self, id: i64, updates: &[Arc<Update>], out: &mut Outbound) -> Result<(), End> {
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

    /// Does what one message asks, command by command.
    async fn work(&mut self, text: &Utf8Bytes, out: &mut Outbound) -> Result<(), End> {
        let commands = match parse(text).and_then(bounded) {
            Ok(commands) => commands,
            Err(error) => {
                self.door.refused(error.label);
                return Ok(out.send(error_message(NO_SUBSCRIPTION, &error)).await?);
            }
        };
        let mut readings = Vec::new();
        for command in commands {
            let (id, prepared) = match command {
                Command::Unsubscribe(id) => {
                    self.subscriptions.remove(id);
                    // Its initial reply, asked for by the same message, is not wanted either.
                    readings.retain(|reading: &Reading| reading.id != id);
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
                Command::Attributes(id) => {
                    (id, Err(ApiError::bad_request("attributes are not there yet; subscribe to time series")))
                }
            };
            match prepared {
                Ok(reading) => readings.push(reading),
                Err(error) => {
                    self.door.refused(error.label);
                    send(out, id, Err(error)).await?;
                }
            }
        }
        self.read_and_reply(readings, out).await
    }

    /// Starts collecting updates, and says what the initial reply has to read.
    fn subscribe(&mut self, command: &SubscribeCommand) -> Result<Reading, ApiError> {
        let device = self.device(command.entity_type.as_deref(), command.entity_id.as_deref())?;
        let from = ReadFrom::of_subscription(command, hub::clock::system_now())?;
        let series = self.door.hub.series_of(&device)?;
        let keys = from.keys().map(<[String]>::to_vec);
        let kind = match from {
            ReadFrom::Latest(_) => Kind::Latest,
            ReadFrom::History(_) => Kind::History,
        };
        self.subscriptions.add(command.cmd_id, Arc::clone(&device), series, keys.as_deref(), kind)?;
        Ok(Reading { id: command.cmd_id, device, from, live: true })
    }

    /// Starts a watch.
    fn watch(&mut self, command: WatchCommand) -> Result<(), ApiError> {
        check_command(&command)?;
        let with_series = |id: &String| {
            let device = self.device(None, Some(id))?;
            let series = self.door.hub.series_of(&device)?;
            Ok((device, series))
        };
        let devices = command.entity_ids.iter().map(with_series).collect::<Result<Vec<_>, ApiError>>()?;
        self.watches.add(Watch::new(command, devices, &self.connection, &self.share)?)
    }

    fn history(&self, command: &HistoryCommand) -> Result<Reading, ApiError> {
        let device = self.device(command.entity_type.as_deref(), command.entity_id.as_deref())?;
        Ok(Reading { id: command.cmd_id, device, from: ReadFrom::of_history(command)?, live: false })
    }

    fn device(&self, kind: Option<&str>, id: Option<&str>) -> Result<Arc<Device>, ApiError> {
        check_kind(kind.unwrap_or("DEVICE"))?;
        let id = id.ok_or_else(|| ApiError::argument("entityId is missing; name the id of a device"))?;
        self.access.device(&self.door.hub, parse_id(id)?)
    }

    /// Reads and replies, a few readings at a time: what is read is in memory until the client has taken it.
    async fn read_and_reply(&mut self, readings: Vec<Reading>, out: &mut Outbound) -> Result<(), End> {
        let mut rest = VecDeque::from(readings);
        while !rest.is_empty() {
            for (reading, result) in self.read_some(&mut rest).await {
                let message = result.and_then(|data| {
                    if reading.live {
                        self.subscriptions.told(reading.id, &data)?;
                    }
                    data_message(reading.id, &data)
                });
                // A long one counts until the client has taken it.
                let held = message.and_then(|message| {
                    let is_long = message.len() >= ANSWER_COUNTED_BYTES_MIN;
                    let held = is_long.then(|| self.answers.hold(message.len())).transpose()?;
                    Ok((message, held))
                });
                match held {
                    Ok((message, held)) => {
                        out.send(message).await?;
                        if held.is_some() {
                            out.flush().await?;
                        }
                    }
                    Err(error) => {
                        // Without its beginning a subscription would have a gap that nobody sees.
                        if reading.live {
                            self.subscriptions.remove(reading.id);
                        }
                        self.door.refused(error.label);
                        send(out, reading.id, Err(error)).await?;
                    }
                }
            }
        }
        Ok(())
    }

    /// Takes the first readings and reads: latest values of many devices, until they make a long message; else one history.
    async fn read_some(&self, rest: &mut VecDeque<Reading>) -> Vec<(Reading, Result<Data, ApiError>)> {
        let latest = rest.iter().take(READS_PER_TRIP).take_while(|reading| reading.is_latest()).count();
        let trip: Arc<Vec<Reading>> = Arc::new(rest.drain(..latest.max(1)).collect());
        let work = {
            let (hub, trip) = (Arc::clone(&self.door.hub), Arc::clone(&trip));
            move || {
                let mut bytes = 0;
                let mut results = Vec::new();
                for reading in trip.iter() {
                    if bytes >= UPDATE_BYTES_MAX {
                        break;
                    }
                    let result = reading.run(&hub);
                    bytes += result.as_ref().map_or(0, bytes_of_data);
                    results.push(result);
                }
                results
            }
        };
        let results = match self.door.reads.run(work).await {
            Ok(results) => results,
            Err(error) => vec![Err(error); trip.len()],
        };
        trip[results.len()..].iter().rev().for_each(|reading| rest.push_front(reading.clone()));
        trip.iter().cloned().zip(results).collect()
    }

    /// Keep-alive, and a look at what may have changed: the session's token, its devices.
    async fn tick(&mut self, out: &mut Outbound) -> Result<(), End> {
        if self.activity.silence() > SOCKET_SILENCE_MAX {
            let seconds = SOCKET_SILENCE_MAX.as_secs();
            let reason = format!("nothing was heard for {seconds} s, not even an answer to a ping");
            return Err(End::Close(Goodbye::new(close_code::POLICY, "silence", reason)));
        }
        match Access::open(&self.door, &self.token) {
            Ok(access) => self.access = access,
            Err(error) => return Err(End::Close(Goodbye::unauthenticated(&error))),
        }
        self.subscriptions.forget_told();
        let generation = self.door.hub.registry().generation();
        if generation != self.generation {
            self.generation = generation;
            let (access, hub) = (&self.access, &self.door.hub);
            self.watches.follow(|device| hub.series_of(&*access.device(hub, device.id).ok()?).ok());
            self.follow_devices(out).await?;
        }
        Ok(out.ping().await?)
    }

    /// Ends subscriptions of devices that are gone, and moves those whose profile has another table now.
    async fn follow_devices(&mut self, out: &mut Outbound) -> Result<(), End> {
        let all: Vec<Watching> = self.subscriptions.all().collect();
        let mut moved = Vec::new();
        for Watching { id, device, series, keys, kind } in all {
            let hub = &self.door.hub;
            let now = self.access.device(hub, device).and_then(|device| {
                let series = hub.series_of(&device)?;
                Ok((device, series))
            });
            match now {
                Ok((_, same)) if same == series => {}
                Ok((device, series)) => {
                    match self.subscriptions.add(id, Arc::clone(&device), series, keys.as_deref(), kind) {
                        Ok(()) => {
                            moved.push(Reading { id, device, from: ReadFrom::Latest(keys), live: true })
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

fn bounded(commands: Vec<Command>) -> Result<Vec<Command>, ApiError> {
    if commands.len() > SOCKET_COMMANDS_MAX {
        let count = commands.len();
        let message =
            format!("{count} commands in one message, the limit is {SOCKET_COMMANDS_MAX}; send several");
        return Err(ApiError::argument(message));
    }
    Ok(commands)
}

/// Returns when the token opens nothing any more because a user or the key has changed.
async fn token_ended(door: &Door, token: &str, changes: &mut watch::Receiver<u64>) -> ApiError {
    while changes.changed().await.is_ok() {
        if let Err(error) = Access::open(door, token) {
            return error;
        }
    }
    // The registry lives as long as the door.
    std::future::pending().await
}

/// Tells a subscription its values, or why it gets none.
async fn send(out: &mut Outbound, id: i64, message: Result<String, ApiError>) -> Result<(), Gone> {
    out.send(message.unwrap_or_else(|error| error_message(id, &error))).await
}
