//! The newest message of each device: as its acknowledgements say, and as each socket that follows it has received it.

use std::sync::atomic::{AtomicU64, Ordering};

/// The devices of a phase and the sockets that follow some of them each.
///
/// Socket s follows the devices from s times `each` on, modulo their number: every device has as many followers as any other, up to
/// one.
#[derive(Debug)]
pub(super) struct NewestMessages {
    each: u32,
    /// For each device the number after that of its newest acknowledged message; 0 without any.
    acknowledged: Vec<AtomicU64>,
    /// The number of its next message.
    next: Vec<AtomicU64>,
    /// The same as `acknowledged` at each place of each socket.
    received: Vec<AtomicU64>,
}

/// What an arriving message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Arrived {
    /// It is newer than the one before, and this many between them did not come.
    New { skipped: u64 },
    /// It came before.
    Again,
    /// It is older than one that came before.
    Back,
}

/// A device whose newest message at a socket is another one than that of its acknowledgements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) socket: u32,
    pub(super) device: u32,
    /// The numbers after the newest message.
    pub(super) received: u64,
    pub(super) acknowledged: u64,
}

impl NewestMessages {
    /// `devices` has for each the number after its newest acknowledged message, and the number of its next one.
    pub(super) fn new(devices: &[(u64, u64)], sockets: u32, each: u32) -> Self {
        let atomics = |of: fn(&(u64, u64)) -> u64| devices.iter().map(|it| AtomicU64::new(of(it))).collect();
        let places = sockets as usize * each as usize;
        Self {
            each,
            acknowledged: atomics(|(acknowledged, _)| *acknowledged),
            next: atomics(|(_, next)| *next),
            received: (0..places).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    fn devices(&self) -> u32 {
        self.next.len() as u32
    }

    /// The number of devices that a socket follows.
    pub(super) fn each(&self) -> u32 {
        self.each
    }

    /// The device at a place of a socket.
    pub(super) fn device_at(&self, socket: u32, place: u32) -> u32 {
        ((u64::from(socket) * u64::from(self.each) + u64::from(place)) % u64::from(self.devices())) as u32
    }

    /// The place of a device at a socket; `None` if the socket does not follow it.
    pub(super) fn place_of(&self, socket: u32, device: u32) -> Option<u32> {
        let first = self.device_at(socket, 0);
        let place =
            (u64::from(device) + u64::from(self.devices()) - u64::from(first)) % u64::from(self.devices());
        (device < self.devices() && place < u64::from(self.each)).then_some(place as u32)
    }

    /// Notes that a device has sent a message.
    pub(super) fn sent(&self, device: u32, number: u64) {
        self.next[device as usize].fetch_max(number + 1, Ordering::Relaxed);
    }

    /// Notes that the server has acknowledged a message.
    pub(super) fn acknowledged(&self, device: u32, number: u64) {
        self.acknowledged[device as usize].fetch_max(number + 1, Ordering::Relaxed);
    }

    /// The number after the newest acknowledged message of a device.
    pub(super) fn newest_of(&self, device: u32) -> u64 {
        self.acknowledged[device as usize].load(Ordering::Relaxed)
    }

    fn place(&self, socket: u32, place: u32) -> &AtomicU64 {
        &self.received[socket as usize * self.each as usize + place as usize]
    }

    /// Notes the message of a first answer. Returns whether it is the newest acknowledged one.
    pub(super) fn begin(&self, socket: u32, place: u32, number: Option<u64>) -> bool {
        let newest = number.map_or(0, |number| number + 1);
        self.place(socket, place).store(newest, Ordering::Relaxed);
        newest == self.newest_of(self.device_at(socket, place))
    }

    /// Notes a message of a device at its place. Only the thread of the socket calls it.
    pub(super) fn note(&self, socket: u32, place: u32, number: u64) -> Arrived {
        let newest = self.place(socket, place);
        let before = newest.load(Ordering::Relaxed);
        if number + 1 < before {
            return Arrived::Back;
        }
        if number + 1 == before {
            return Arrived::Again;
        }
        newest.store(number + 1, Ordering::Relaxed);
        Arrived::New { skipped: number - before }
    }

    /// The places whose socket lacks the newest acknowledged message, or has one that was never sent.
    pub(super) fn differences(&self) -> impl Iterator<Item = Difference> + '_ {
        self.received.iter().enumerate().filter_map(|(at, received)| {
            let (socket, place) = (at as u32 / self.each, at as u32 % self.each);
            let device = self.device_at(socket, place);
            let (received, acknowledged) = (received.load(Ordering::Relaxed), self.newest_of(device));
            let next = self.next[device as usize].load(Ordering::Relaxed);
            // A message without an ack may have been stored or not.
            let is_right = (acknowledged..=next).contains(&received);
            (!is_right).then_some(Difference { socket, device, received, acknowledged })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_device_has_its_followers_and_every_place_its_device() {
        let followed = NewestMessages::new(&[(0, 0); 7], 7, 3);
        let mut followers = [0; 7];
        for socket in 0..7 {
            let devices: Vec<u32> = (0..3).map(|place| followed.device_at(socket, place)).collect();
            for device in 0..8 {
                let place = devices.iter().position(|known| *known == device).map(|place| place as u32);
                assert_eq!(followed.place_of(socket, device), place, "{socket} {device}");
            }
            devices.iter().for_each(|device| followers[*device as usize] += 1);
        }
        assert_eq!(followers, [3; 7]);
    }

    #[test]
    fn what_is_missing_at_one_socket_is_a_difference_there() {
        let followed = NewestMessages::new(&[(2, 2), (0, 0)], 2, 2);
        assert_eq!(followed.differences().count(), 2, "nobody has the messages of before");
        assert!(followed.begin(0, 0, Some(1)) && followed.begin(1, 0, Some(1)) && followed.begin(0, 1, None));
        assert!(!followed.begin(1, 0, Some(0)), "an older one");
        followed.note(1, 0, 1);
        assert_eq!(followed.differences().count(), 0);
        (2..5).for_each(|number| {
            followed.sent(0, number);
            followed.acknowledged(0, number);
        });
        assert_eq!(followed.note(0, 0, 2), Arrived::New { skipped: 0 });
        assert_eq!(followed.note(0, 0, 4), Arrived::New { skipped: 1 });
        assert_eq!((followed.note(0, 0, 4), followed.note(0, 0, 3)), (Arrived::Again, Arrived::Back));
        let found: Vec<Difference> = followed.differences().collect();
        assert_eq!(found, [Difference { socket: 1, device: 0, received: 2, acknowledged: 5 }]);
        followed.note(1, 0, 7);
        assert_eq!(followed.differences().count(), 1, "nobody sent it");
        followed.sent(0, 7);
        assert_eq!(followed.differences().count(), 0, "it may have been stored without an ack");
    }
}
