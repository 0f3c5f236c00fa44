//! Both kinds of clients as one protocol: users speak HTTP and devices MQTT, on one schedule and one clock.

use std::sync::atomic::{AtomicU64, Ordering};

use load::protocol::{Answer, Completion, DueTime, Lifetime, Opening, Protocol, Received, Started};
use load::schedule::SECOND_NS;

use super::device::{Device, DeviceConfig};
use super::options::{Group, Role};
use super::user::{User, UserConfig};
use crate::plan::place_of;

/// The clients of a phase.
#[derive(Debug)]
pub(super) struct Clients {
    /// What the connections of each group are, in the order of [`load::engine::Plan::groups`].
    groups: Vec<Group>,
    users: UserConfig,
    devices: DeviceConfig,
    /// Commands that users have sent.
    sent: AtomicU64,
    /// Commands that have reached their device.
    arrived: AtomicU64,
}

/// One connection.
#[derive(Debug)]
pub(super) enum Session {
    /// Over MQTT.
    Device(Box<Device>),
    /// Over HTTP. Its class follows.
    User(Box<User>, u16),
}

impl Clients {
    pub(super) fn new(groups: Vec<Group>, users: UserConfig, devices: DeviceConfig) -> Self {
        Self { groups, users, devices, sent: AtomicU64::new(0), arrived: AtomicU64::new(0) }
    }
}

impl Protocol for Clients {
    type Session = Session;

    const DELIVERS: bool = true;

    fn awaits_deliveries(&self) -> bool {
        self.arrived.load(Ordering::Relaxed) < self.sent.load(Ordering::Relaxed)
    }

    fn session(&self, number: u32) -> Session {
        let (group, index) = place_of(self.groups.iter().map(|group| group.connections), number);
        match self.groups[group] {
            Group { role: Role::Device, .. } => Session::Device(Box::new(Device::new(index, &self.devices))),
            Group { role: Role::User, class, .. } => {
                Session::User(Box::new(User::new(index, &self.users)), class)
            }
        }
    }

    fn open(&self, session: &mut Session, out: &mut Vec<u8>) -> Opening {
        match session {
            Session::Device(device) => {
                device.open(&self.devices, out);
                Opening::Wait
            }
            Session::User(user, _) => {
                user.open();
                Opening::Ready
            }
        }
    }

    fn lifetime(&self, session: &Session) -> Lifetime {
        match session {
            Session::Device(_) => Lifetime::Run,
            // A server closes an HTTP connection on which nothing is asked.
            Session::User(..) => Lifetime::Renewed,
        }
    }

    fn window(&self, session: &Session) -> usize {
        match session {
            Session::Device(device) => device.window(),
            Session::User(..) => 1,
        }
    }

    fn start(&self, session: &mut Session, due: DueTime, out: &mut Vec<u8>) -> Option<Started> {
        match session {
            Session::Device(device) => {
                let answer = Answer::Key(device.start(&self.devices, due, out));
                Some(Started { class: self.devices.publish, answer })
            }
            Session::User(user, class) => {
                if !user.start(&self.users, due, out) {
                    return None;
                }
                self.sent.fetch_add(1, Ordering::Relaxed);
                Some(Started { class: *class, answer: Answer::InOrder })
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
                let (received, commands) = device.receive(&self.devices, bytes, out, done)?;
                self.arrived.fetch_add(commands, Ordering::Relaxed);
                Ok(received)
            }
            Session::User(user, _) => user.receive(&self.users, bytes, done),
        }
    }

    fn closed(&self, session: &mut Session, _done: &mut impl FnMut(Completion<'_>)) -> Result<(), String> {
        match session {
            Session::User(user, _) if !user.is_waiting() => Ok(()),
            _ => Err("closed by the server".to_owned()),
        }
    }

    fn lost(&self, session: &mut Session) {
        if let Session::User(user, _) = session {
            user.lost();
        }
    }

    fn quiet_ns(&self) -> u64 {
        u64::from(self.devices.keep_alive_s) * SECOND_NS / 2
    }

    fn keep_alive(&self, session: &mut Session, out: &mut Vec<u8>) {
        if let Session::Device(device) = session {
            device.keep_alive(out);
        }
    }

    fn close(&self, session: &mut Session, out: &mut Vec<u8>) {
        if let Session::Device(device) = session {
            device.close(out);
        }
    }
}
