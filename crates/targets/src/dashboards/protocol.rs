//! All kinds of clients as one protocol: devices speak MQTT, dashboards WebSocket and other clients HTTP, on one schedule and one
//! clock.

use load::protocol::{Answer, Completion, DueTime, Lifetime, Opening, Protocol, Received, Started};
use load::schedule::SECOND_NS;

use super::creator::{Creator, CreatorConfig};
use super::device::{Device, DeviceConfig};
use super::live::{Live, LiveConfig};
use super::newest_messages::NewestMessages;
use super::options::{Group, Role};
use super::page::{Page, PageConfig};
use super::watch::Watch;
use crate::plan::place_of;

/// What the connections of the role `socket` do.
#[derive(Debug)]
pub(super) enum Sockets {
    /// They follow devices.
    Live(LiveConfig),
    /// They ask for pages.
    Page(PageConfig),
}

/// The clients of a phase.
#[derive(Debug)]
pub(super) struct Clients<'a> {
    /// What the connections of each group are, in the order of [`load::engine::Plan::groups`].
    pub(super) groups: Vec<Group>,
    pub(super) devices: Option<DeviceConfig>,
    pub(super) sockets: Option<Sockets>,
    pub(super) creators: Option<CreatorConfig>,
    pub(super) followed: &'a NewestMessages,
    /// Looks for alarms; `None` without rules.
    pub(super) watch: Option<&'a Watch>,
}

/// One connection.
#[derive(Debug)]
pub(super) enum Session {
    Device(Box<Device>),
    /// A dashboard that follows devices.
    Live(Box<Live>),
    /// A dashboard that asks for pages.
    Page(Box<Page>),
    /// A client that creates devices.
    Creator(Box<Creator>),
}

/// The message of a panic if a phase lacks what a role of its mixes needs.
const NO_ROLE: &str = "BUG: a phase has no configuration for one of its roles";

impl Clients<'_> {
    fn devices(&self) -> &DeviceConfig {
        self.devices.as_ref().expect(NO_ROLE)
    }

    fn live(&self) -> &LiveConfig {
        match &self.sockets {
            Some(Sockets::Live(config)) => config,
            _ => unreachable!("{NO_ROLE}"),
        }
    }

    fn page(&self) -> &PageConfig {
        match &self.sockets {
            Some(Sockets::Page(config)) => config,
            _ => unreachable!("{NO_ROLE}"),
        }
    }

    fn creators(&self) -> &CreatorConfig {
        self.creators.as_ref().expect(NO_ROLE)
    }
}

impl Protocol for Clients<'_> {
    type Session = Session;

    const DELIVERS: bool = true;

    fn awaits_deliveries(&self) -> bool {
        self.watch.is_some_and(Watch::is_missing) || self.followed.differences().next().is_some()
    }

    fn session(&self, number: u32) -> Session {
        let (group, index) = place_of(self.groups.iter().map(|group| group.connections), number);
        match (self.groups[group].role, &self.sockets) {
            (Role::Device, _) => Session::Device(Box::new(Device::new(index, self.devices()))),
            (Role::Client, _) => Session::Creator(Box::new(Creator::new(index))),
            (Role::Socket, Some(Sockets::Live(config))) => {
                Session::Live(Box::new(Live::new(index, config, self.followed)))
            }
            (Role::Socket, _) => Session::Page(Box::default()),
        }
    }

    fn open(&self, session: &mut Session, out: &mut Vec<u8>) -> Opening {
        match session {
            Session::Device(device) => device.open(self.devices(), out),
            Session::Live(live) => live.open(self.live(), out),
            Session::Page(page) => page.open(self.page(), out),
            Session::Creator(creator) => {
                creator.open();
                return Opening::Ready;
            }
        }
        Opening::Wait
    }

    fn lifetime(&self, session: &Session) -> Lifetime {
        match session {
            Session::Device(_) | Session::Live(_) | Session::Page(_) => Lifetime::Run,
            // A server closes an HTTP connection on which nothing is asked.
            Session::Creator(_) => Lifetime::Renewed,
        }
    }

    fn window(&self, session: &Session) -> usize {
        match session {
            Session::Device(device) => device.window(),
            Session::Live(_) | Session::Page(_) | Session::Creator(_) => 1,
        }
    }

    fn start(&self, session: &mut Session, due: DueTime, out: &mut Vec<u8>) -> Option<Started> {
        match session {
            Session::Device(device) => {
                let config = self.devices();
                let key = device.start(config, self.followed, due, out);
                Some(Started { class: config.publish, answer: Answer::Key(key) })
            }
            // It only receives.
            Session::Live(_) => None,
            Session::Page(page) => {
                page.start(self.page(), out);
                Some(Started { class: self.page().class, answer: Answer::InOrder })
            }
            Session::Creator(creator) => {
                creator.start(self.creators(), out);
                Some(Started { class: self.creators().class, answer: Answer::InOrder })
            }
        }
    }

    fn receive(
        &self,
        session: &mut Session,
        bytes: &[u8],
        out: &mut Vec<u8>,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<Received, String> {
        match session {
            Session::Device(device) => {
                device.receive(self.devices(), (self.followed, self.watch), bytes, out, done)
            }
            Session::Live(live) => live.receive(self.live(), self.followed, bytes, out, done),
            Session::Page(page) => page.receive(self.page(), bytes, out, done),
            Session::Creator(creator) => creator.receive(bytes, done),
        }
    }

    fn closed(&self, session: &mut Session, _done: &mut impl FnMut(Completion<'_>)) -> Result<(), String> {
        match session {
            Session::Creator(creator) if !creator.is_waiting() => Ok(()),
            _ => Err("closed by the server".to_owned()),
        }
    }

    fn lost(&self, session: &mut Session) {
        if let Session::Creator(creator) = session {
            creator.lost();
        }
    }

    fn quiet_ns(&self) -> u64 {
        self.devices.as_ref().map_or(0, |config| u64::from(config.keep_alive_s) * SECOND_NS / 2)
    }

    fn keep_alive(&self, session: &mut Session, out: &mut Vec<u8>) {
        // The server pings a WebSocket itself.
        if let Session::Device(device) = session {
            device.keep_alive(out);
        }
    }

    fn close(&self, session: &mut Session, out: &mut Vec<u8>) {
        match session {
            Session::Device(device) => device.close(out),
            Session::Live(live) => live.close(out),
            Session::Page(page) => page.close(out),
            Session::Creator(_) => {}
        }
    }
}
