//! A message: who sent it, its number and its times, and then bytes that the receiver compares.

/// The length of the part that differs between messages.
pub(super) const STAMP_BYTES: usize = 36;
/// The beginning of every message.
const MARK: [u8; 4] = *b"tbm1";

/// The part of a message that differs from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    /// The run that sent it.
    pub(super) run: u32,
    /// The number of the publisher.
    pub(super) publisher: u32,
    /// The number of the message among those of the publisher.
    pub(super) number: u64,
    /// When it was due, nanoseconds after the start of the segment.
    pub(super) intended_ns: u64,
    /// When it was sent.
    pub(super) sent_ns: u64,
}

/// A message of this length without its stamp.
pub(super) fn blank(bytes: usize) -> Vec<u8> {
    (0..bytes).map(filler).collect()
}

fn filler(at: usize) -> u8 {
    b'a' + (at % 26) as u8
}

impl Stamp {
    /// Writes the stamp at the beginning of a message.
    pub(super) fn write(&self, message: &mut [u8]) {
        let Self { run, publisher, number, intended_ns, sent_ns } = self;
        message[..4].copy_from_slice(&MARK);
        message[4..8].copy_from_slice(&run.to_be_bytes());
        message[8..12].copy_from_slice(&publisher.to_be_bytes());
        for (at, value) in [number, intended_ns, sent_ns].into_iter().enumerate() {
            message[12 + 8 * at..20 + 8 * at].copy_from_slice(&value.to_be_bytes());
        }
    }

    /// Reads a message that [`blank`] and [`Self::write`] made; `None` if another sender made or changed it. `blank` is
    /// a message of the right length.
    pub(super) fn read(message: &[u8], blank: &[u8]) -> Option<Self> {
        if message.len() != blank.len() || message.get(STAMP_BYTES..)? != &blank[STAMP_BYTES..] {
            return None;
        }
        let half = |at: usize| Some(u32::from_be_bytes(message.get(at..at + 4)?.try_into().ok()?));
        let whole = |at: usize| Some(u64::from_be_bytes(message.get(at..at + 8)?.try_into().ok()?));
        (message[..4] == MARK).then_some(())?;
        Some(Self {
            run: half(4)?,
            publisher: half(8)?,
            number: whole(12)?,
            intended_ns: whole(20)?,
            sent_ns: whole(28)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_says_who_sent_it_and_every_changed_byte_but_those_of_the_stamp_is_noticed() {
        let stamp = Stamp { run: 7, publisher: 3, number: 1 << 40, intended_ns: 5, sent_ns: u64::MAX };
        for bytes in [STAMP_BYTES, 100] {
            let blank = blank(bytes);
            let mut message = blank.clone();
            stamp.write(&mut message);
            assert_eq!(Stamp::read(&message, &blank), Some(stamp));
            assert_eq!(Stamp::read(&message[..bytes - 1], &blank), None);
            for at in (0..4).chain(STAMP_BYTES..bytes) {
                let mut changed = message.clone();
                changed[at] ^= 1;
                assert_eq!(Stamp::read(&changed, &blank), None, "byte {at}");
            }
        }
    }
}
