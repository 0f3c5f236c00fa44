//! The working half of a WebSocket session: commands, live updates, keep-alive, and the end.

use std::sync::Arc;

use axum::extract::ws::{Utf8Bytes, close_code};
use hub::live::Update;
use hub::registry::Device;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, Interval, MissedTickBehavior, interval_at};

use super::commands::{Command, HistoryCommand, SubscribeCommand, WatchCommand, parse};
use super::inbound::{Activity, Inbound};
use super::outbound::{Gone, Outbound};
use super::reading::{ReadFrom, Reading};
use super::subscriptions::{Kind, Subscriptions, Watching};
use super::update::{Data, NO_SUBSCRIPTION, data_message, error_message};
use super::watch::{Frame, Watch, Watches, check_command};
use super::{Access, Goodbye};
use crate::http::Door;
use crate::http::error::ApiError;
use crate::http::limits::{SOCKET_COMMANDS_MAX, SOCKET_PING_INTERVAL, SOCKET_SILENCE_MAX};
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
    subscriptions: Subscriptions,
    watches: Watches,
    /// Of the registry, when devices were last looked at.
    generation: u64,
    stop: watch::Receiver<Stop>,
    /// Wakes when tokens may have ended.
    token_changes: watch::Receiver<u64>,
    ping: Interval,
}

enum Event {
    Inbound(Option<Inbound>),
    Updates(Vec<Update>),
    /// A watch has to say something.
    Watch(i64),
    Tick,
    Token,
    Stop,
}

impl<'a> Session<'a> {
    pub(crate) fn new(door: Arc<Door>, access: Access, token: String, activity: &'a Activity) -> Self {
        let mut ping = interval_at(Instant::now() + SOCKET_PING_INTERVAL, SOCKET_PING_INTERVAL);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut token_changes = door.hub.registry().session_changes();
        // The token was looked at before: what changed in between counts too.
        token_changes.mark_changed();
        Self {
            subscriptions: Subscriptions::new(door.hub.subscriber()),
            watches: Watches::default(),
            generation: door.hub.registry().generation(),
            stop: door.stop.clone(),
            token_changes,
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
        loop {
            let event = tokio::select! {
                message = messages.recv() => Event::Inbound(message),
                updates = self.subscriptions.next() => Event::Updates(updates),
                id = self.watches.due() => Event::Watch(id),
                _ = self.ping.tick() => Event::Tick,
                Ok(()) = self.token_changes.changed() => Event::Token,
                () = Stop::Drain.reached(&mut self.stop) => Event::Stop,
            };
            match self.handle(event, out).await {
                Ok(()) => {}
                Err(End::Gone) => return None,
                Err(End::Close(goodbye)) => return Some(goodbye),
            }
        }
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
                for (id, data) in self.subscriptions.sort_out(updates) {
                    send(out, id, Ok(&data)).await?;
                }
            }
            Event::Watch(id) => {
                for frame in self.watches.take(id) {
                    match frame {
                        Ok(Frame::Text(text)) => out.send(text).await?,
                        Ok(Frame::Deflated(bytes)) => out.send_bytes(bytes).await?,
                        Err(error) => send(out, id, Err(&error)).await?,
                    }
                }
            }
            Event::Tick => self.tick(out).await?,
            Event::Token => self.check_token()?,
            Event::Stop => {
                return Err(End::Close(Goodbye::new(close_code::AWAY, "stop", "the server stops")));
            }
        }
        Ok(out.flush().await?)
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
                    send(out, id, Err(&error)).await?;
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
        self.watches.add(Watch::new(command, devices, self.door.hub.subscriber()))
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

    /// Reads and replies. Latest values are read many at a time; history one by one, so that only one is in memory.
    async fn read_and_reply(&mut self, readings: Vec<Reading>, out: &mut Outbound) -> Result<(), End> {
        let mut rest = readings.into_iter().peekable();
        while let Some(first) = rest.next() {
            let mut trip = vec![first];
            while trip.len() < READS_PER_TRIP
                && trip[0].is_latest()
                && let Some(next) = rest.next_if(Reading::is_latest)
            {
                trip.push(next);
            }
            for (reading, result) in self.read(trip).await {
                match result {
                    Ok(data) => {
                        if reading.live {
                            self.subscriptions.told(reading.id, &data);
                        }
                        send(out, reading.id, Ok(&data)).await?;
                    }
                    Err(error) => {
                        // Without its beginning a subscription would have a gap that nobody sees.
                        if reading.live {
                            self.subscriptions.remove(reading.id);
                        }
                        self.door.refused(error.label);
                        send(out, reading.id, Err(&error)).await?;
                    }
                }
            }
        }
        Ok(())
    }

    async fn read(&self, trip: Vec<Reading>) -> Vec<(Reading, Result<Data, ApiError>)> {
        let trip = Arc::new(trip);
        let work = {
            let (hub, trip) = (Arc::clone(&self.door.hub), Arc::clone(&trip));
            move || trip.iter().map(|reading| reading.run(&hub)).collect::<Vec<_>>()
        };
        let results = match self.door.reads.run(work).await {
            Ok(results) => results,
            Err(error) => vec![Err(error); trip.len()],
        };
        trip.iter().cloned().zip(results).collect()
    }

    /// Keep-alive, and a look at what may have changed: the session's token, its devices.
    async fn tick(&mut self, out: &mut Outbound) -> Result<(), End> {
        if self.activity.silence() > SOCKET_SILENCE_MAX {
            let seconds = SOCKET_SILENCE_MAX.as_secs();
            let reason = format!("nothing was heard for {seconds} s, not even an answer to a ping");
            return Err(End::Close(Goodbye::new(close_code::POLICY, "silence", reason)));
        }
        self.check_token()?;
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

    /// Goes on while the token opens a session.
    fn check_token(&mut self) -> Result<(), End> {
        match Access::open(&self.door, &self.token) {
            Ok(access) => self.access = access,
            Err(error) => return Err(End::Close(Goodbye::unauthenticated(&error))),
        }
        Ok(())
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
                        Err(error) => send(out, id, Err(&error)).await?,
                    }
                }
                Err(error) => {
                    self.subscriptions.remove(id);
                    send(out, id, Err(&error)).await?;
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

async fn send(out: &mut Outbound, id: i64, result: Result<&Data, &ApiError>) -> Result<(), Gone> {
    let message = match result {
        Ok(data) => data_message(id, data).unwrap_or_else(|too_long| error_message(id, &too_long)),
        Err(error) => error_message(id, error),
    };
    out.send(message).await
}
