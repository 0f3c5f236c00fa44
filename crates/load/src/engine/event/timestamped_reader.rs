//! Arrival times. The kernel stamps received data on request (`SO_TIMESTAMPNS`). So the worker can read many answers
//! together, later than they arrive, and still knows their arrival times.

use std::io::{self, IoSliceMut, Read as _};
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nix::sys::socket::sockopt::ReceiveTimestampns;
use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt};
use nix::sys::time::TimeSpec;

use crate::limits::READ_BYTES;

/// Asks the kernel for timestamps. If it refuses, the worker reads answers as soon as they arrive.
pub(super) fn ask_for_stamps(stream: &TcpStream) {
    let _ = setsockopt(stream, ReceiveTimestampns, &true);
}

/// Reads from sockets and returns arrival times.
#[derive(Debug)]
pub(super) struct TimestampedReader {
    /// The data of the latest read.
    pub(super) buffer: Vec<u8>,
    /// The content of a read from a connection with TLS.
    pub(super) content: Vec<u8>,
    control: Vec<u8>,
    /// Whether some connections have timestamps.
    stamped: bool,
    /// Whether data without a timestamp arrived in this segment.
    unstamped: bool,
    /// The times of the latest two polls.
    polled_ns: u64,
    polled_before_ns: u64,
}

impl TimestampedReader {
    /// With `stamped`, the kernel was asked for timestamps on some connections ([`ask_for_stamps`]).
    pub(super) fn new(stamped: bool) -> Self {
        Self {
            buffer: vec![0; READ_BYTES],
            content: Vec::new(),
            control: nix::cmsg_space!(TimeSpec),
            stamped,
            unstamped: false,
            polled_ns: 0,
            polled_before_ns: 0,
        }
    }

    /// Whether some connections have timestamps.
    pub(super) fn wants_stamps(&self) -> bool {
        self.stamped
    }

    /// Whether all data of this segment had a timestamp.
    pub(super) fn has_stamps(&self) -> bool {
        self.stamped && !self.unstamped
    }

    /// Resets the times for a new segment.
    pub(super) fn begin_segment(&mut self) {
        (self.unstamped, self.polled_ns, self.polled_before_ns) = (false, 0, 0);
    }

    /// Notes that the worker is about to poll the sockets.
    pub(super) fn note_poll(&mut self, now_ns: u64) {
        self.polled_before_ns = std::mem::replace(&mut self.polled_ns, now_ns);
    }

    /// Reads once into [`Self::buffer`]. Returns the number of bytes and the arrival time of the last one: the kernel's
    /// timestamp, or now.
    pub(super) fn read(
        &mut self,
        mut stream: &TcpStream,
        by_kernel: bool,
        now_ns: impl Fn() -> u64,
    ) -> io::Result<(usize, u64)> {
        if !by_kernel {
            let count = stream.read(&mut self.buffer)?;
            return Ok((count, now_ns()));
        }
        let (count, stamp) = receive(stream, &mut self.buffer, &mut self.control)?;
        let now_ns = now_ns();
        let Some(stamp) = stamp else {
            self.unstamped |= count > 0;
            return Ok((count, now_ns));
        };
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Ok((count, received_ns(now_ns, wall.saturating_sub(stamp), self.polled_before_ns)))
    }
}

/// Receives once with the kernel's timestamp, by the wall clock since 1970. Of several segments that are read together
/// it is the timestamp of the last.
fn receive(
    stream: &TcpStream,
    buffer: &mut [u8],
    control: &mut [u8],
) -> io::Result<(usize, Option<Duration>)> {
    let mut parts = [IoSliceMut::new(buffer)];
    let received = recvmsg::<()>(stream.as_raw_fd(), &mut parts, Some(control), MsgFlags::empty())?;
    let stamp = received.cmsgs()?.find_map(|message| match message {
        ControlMessageOwned::ScmTimestampns(at) => Some(Duration::from(at)),
        _ => None,
    });
    Ok((received.bytes, stamp))
}

/// Converts the age of data by the wall clock into an arrival time. The wall clock may be set meanwhile. The result is
/// therefore not before the poll before the latest one, which would have found the data.
fn received_ns(now_ns: u64, age: Duration, polled_before_ns: u64) -> u64 {
    let age_ns = u64::try_from(age.as_nanos()).unwrap_or(u64::MAX);
    now_ns.saturating_sub(age_ns).max(polled_before_ns.min(now_ns))
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn a_step_of_the_wall_clock_moves_no_answer_out_of_its_turn() {
        assert_eq!(received_ns(1_000, Duration::from_nanos(300), 200), 700);
        assert_eq!(received_ns(1_000, Duration::from_secs(3_600), 200), 200, "set forward");
        assert_eq!(received_ns(1_000, Duration::ZERO, 200), 1_000, "set back");
        assert_eq!(received_ns(1_000, Duration::MAX, 2_000), 1_000);
    }

    fn heard(stamped: bool) -> (usize, u64, TimestampedReader) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut server = listener.accept().unwrap().0;
        let mut reader = TimestampedReader::new(stamped);
        if reader.wants_stamps() {
            ask_for_stamps(&stream);
        }
        // The kernel starts to stamp shortly after the first request.
        loop {
            reader.begin_segment();
            server.write_all(b"answer").unwrap();
            let (count, at_ns) = reader.read(&stream, stamped, || u64::MAX).unwrap();
            if reader.has_stamps() == stamped {
                return (count, at_ns, reader);
            }
        }
    }

    #[test]
    fn what_has_no_stamp_came_when_it_was_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut server = listener.accept().unwrap().0;
        let mut reader = TimestampedReader::new(true);
        assert!(reader.has_stamps());
        server.write_all(b"answer").unwrap();
        assert_eq!(reader.read(&stream, true, || 7).unwrap(), (6, 7));
        assert!(!reader.has_stamps(), "answers are not held in this segment any more");
        drop(server);
        reader.begin_segment();
        assert_eq!(
            (reader.read(&stream, true, || 8).unwrap(), reader.has_stamps()),
            ((0, 8), true),
            "the end has no time"
        );
    }

    #[test]
    fn what_is_asked_for_without_the_kernel_came_when_it_was_read() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut server = listener.accept().unwrap().0;
        let mut reader = TimestampedReader::new(true);
        ask_for_stamps(&stream);
        let mut at_ns = u64::MAX;
        while at_ns == u64::MAX {
            server.write_all(b"stamped").unwrap();
            at_ns = reader.read(&stream, true, || u64::MAX).unwrap().1;
        }
        reader.begin_segment();
        server.write_all(b"answer").unwrap();
        assert_eq!(reader.read(&stream, false, || 7).unwrap(), (6, 7));
        assert!(reader.has_stamps(), "those of other connections may still wait");
    }

    #[test]
    fn the_kernel_says_when_an_answer_came() {
        let (count, at_ns, reader) = heard(true);
        assert_eq!(&reader.buffer[..count], b"answer");
        assert!(at_ns < u64::MAX, "it came before it was read");
        let (count, at_ns, reader) = heard(false);
        assert_eq!((&reader.buffer[..count], at_ns), (&b"answer"[..], u64::MAX));
    }
}
