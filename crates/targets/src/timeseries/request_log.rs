//! What the clients of a cell have written: which requests each has sent, and the outcome of them.
//!
//! Request `r` of a cell has the points `r * points_per_request` and following. Client `c` of `n` sends the requests
//! `first + c`, `first + c + n` and so on of a phase.

use std::collections::BTreeMap;
use std::ops::Range;

/// The requests of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Order {
    /// The first request of the phase.
    pub(crate) first: u64,
    /// The number of clients.
    pub(crate) clients: u64,
    /// The number of requests of the phase; `None` without an end.
    pub(crate) requests: Option<u64>,
}

impl Order {
    /// Request number `index` of a client; `None` after the end.
    pub(crate) fn request(&self, client: u64, index: u64) -> Option<u64> {
        let offset = index.checked_mul(self.clients)?.checked_add(client)?;
        let is_over = self.requests.is_some_and(|requests| offset >= requests);
        if is_over { None } else { self.first.checked_add(offset) }
    }

    /// The client that sends a request, and the index among its requests; `None` for a request of another phase.
    fn place(&self, request: u64) -> Option<(u64, u64)> {
        let offset = request.checked_sub(self.first)?;
        let is_over = self.requests.is_some_and(|requests| offset >= requests);
        (!is_over).then_some((offset % self.clients, offset / self.clients))
    }
}

/// The outcome of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RequestOutcome {
    /// It was not sent.
    NotSent,
    /// The server has acknowledged it.
    Stored,
    /// The server has refused it, or answered wrongly, or not at all. Its points may be there.
    Unknown,
}

/// The requests of one client in a phase.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ClientRequests {
    /// The number of requests that were sent.
    pub(crate) sent: u64,
    /// The indexes of those that were not acknowledged.
    pub(crate) unknown: std::collections::BTreeSet<u64>,
}

/// The requests of all clients in a phase.
#[derive(Debug, Clone)]
pub(crate) struct PhaseRequests {
    pub(crate) order: Order,
    /// By number of the client.
    pub(crate) clients: Vec<ClientRequests>,
}

impl PhaseRequests {
    /// The end of the requests that any client has sent.
    fn end(&self) -> u64 {
        let last = |(client, requests): (usize, &ClientRequests)| {
            let index = requests.sent.checked_sub(1)?;
            self.order.request(client as u64, index)
        };
        self.clients.iter().enumerate().filter_map(last).max().map_or(self.order.first, |last| last + 1)
    }

    fn fate(&self, request: u64) -> Option<RequestOutcome> {
        let (client, index) = self.order.place(request)?;
        let client = self.clients.get(client as usize)?;
        Some(match index < client.sent {
            false => RequestOutcome::NotSent,
            true if client.unknown.contains(&index) => RequestOutcome::Unknown,
            true => RequestOutcome::Stored,
        })
    }
}

/// All that was written into a cell.
#[derive(Debug, Clone, Default)]
pub(crate) struct RequestLog {
    /// By first request.
    phases: BTreeMap<u64, PhaseRequests>,
    pub(crate) points_per_request: u64,
}

/// A number of points, of which some may or may not be stored.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Expected {
    /// Those that were acknowledged.
    pub(crate) stored: u64,
    /// Those of requests without an acknowledgement.
    pub(crate) unknown: u64,
}

impl Expected {
    /// Whether a number of stored points is possible.
    pub(crate) fn allows(self, found: u64) -> bool {
        (self.stored..=self.stored + self.unknown).contains(&found)
    }

    /// In words.
    pub(crate) fn text(self) -> String {
        match self.unknown {
            0 => self.stored.to_string(),
            unknown => format!("{} to {}", self.stored, self.stored + unknown),
        }
    }

    /// Adds the outcome of some points.
    pub(crate) fn add(&mut self, fate: RequestOutcome, points: u64) {
        match fate {
            RequestOutcome::Stored => self.stored += points,
            RequestOutcome::Unknown => self.unknown += points,
            RequestOutcome::NotSent => {}
        }
    }
}

impl RequestLog {
    /// Nothing yet.
    pub(crate) fn new(points_per_request: u64) -> Self {
        Self { phases: BTreeMap::new(), points_per_request }
    }

    pub(crate) fn add(&mut self, phase: PhaseRequests) {
        self.phases.insert(phase.order.first, phase);
    }

    /// The first request of the next phase.
    pub(crate) fn next_request(&self) -> u64 {
        self.phases.values().map(PhaseRequests::end).max().unwrap_or(0)
    }

    /// The points that no request at or after this number has.
    pub(crate) fn points_end(&self) -> u64 {
        self.next_request() * self.points_per_request
    }

    /// The outcome of the request of a point.
    pub(crate) fn fate(&self, point: u64) -> RequestOutcome {
        let request = point / self.points_per_request;
        let phase = self.phases.range(..=request).next_back();
        phase.and_then(|(_, phase)| phase.fate(request)).unwrap_or(RequestOutcome::NotSent)
    }

    /// The points of all requests.
    pub(crate) fn total(&self) -> Expected {
        let mut total = Expected::default();
        for client in self.phases.values().flat_map(|phase| &phase.clients) {
            let unknown = client.unknown.len() as u64;
            total.add(RequestOutcome::Unknown, unknown * self.points_per_request);
            total.add(RequestOutcome::Stored, (client.sent - unknown) * self.points_per_request);
        }
        total
    }

    /// The number of timelines that have a point.
    pub(crate) fn timelines(&self, count: u64) -> Expected {
        let mut expected = Expected::default();
        for timeline in 0..count {
            expected.add(self.best(timeline, count), 1);
        }
        expected
    }

    /// The best fate of the points of a timeline.
    fn best(&self, timeline: u64, count: u64) -> RequestOutcome {
        let mut best = RequestOutcome::NotSent;
        for point in (timeline..self.points_end()).step_by(count as usize) {
            match self.fate(point) {
                RequestOutcome::Stored => return RequestOutcome::Stored,
                RequestOutcome::Unknown => best = RequestOutcome::Unknown,
                RequestOutcome::NotSent => {}
            }
        }
        best
    }

    /// The points of a timeline in some cycles.
    pub(crate) fn of_timeline(&self, timeline: u64, count: u64, cycles: Range<u64>) -> Expected {
        let mut expected = Expected::default();
        for cycle in cycles {
            expected.add(self.fate(cycle * count + timeline), 1);
        }
        expected
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn client(sent: u64, unknown: &[u64]) -> ClientRequests {
        ClientRequests { sent, unknown: BTreeSet::from_iter(unknown.iter().copied()) }
    }

    fn written() -> RequestLog {
        let mut written = RequestLog::new(4);
        let order = Order { first: 0, clients: 2, requests: Some(3) };
        written.add(PhaseRequests { order, clients: vec![client(2, &[]), client(1, &[0])] });
        let order = Order { first: 3, clients: 2, requests: None };
        written.add(PhaseRequests { order, clients: vec![client(2, &[]), client(0, &[])] });
        written
    }

    #[test]
    fn clients_take_turns_and_a_phase_ends_with_its_requests() {
        let order = Order { first: 10, clients: 2, requests: Some(3) };
        assert_eq!([0, 1].map(|index| order.request(0, index)), [Some(10), Some(12)]);
        assert_eq!([0, 1].map(|index| order.request(1, index)), [Some(11), None]);
    }

    #[test]
    fn every_point_has_the_fate_of_its_request() {
        let written = written();
        let fates: Vec<RequestOutcome> = (0..8).map(|request| written.fate(request * 4)).collect();
        use RequestOutcome::{NotSent, Stored, Unknown};
        assert_eq!(fates, [Stored, Unknown, Stored, Stored, NotSent, Stored, NotSent, NotSent]);
        assert_eq!(written.total(), Expected { stored: 16, unknown: 4 });
        assert_eq!((written.next_request(), written.points_end()), (6, 24));
    }

    #[test]
    fn expectations_are_those_of_counting_point_by_point() {
        let written = written();
        for count in 1..30 {
            let mut by_timeline: BTreeMap<u64, BTreeSet<u8>> = BTreeMap::new();
            for point in 0..written.points_end() {
                let fate = match written.fate(point) {
                    RequestOutcome::Stored => 2,
                    RequestOutcome::Unknown => 1,
                    RequestOutcome::NotSent => 0,
                };
                by_timeline.entry(point % count).or_default().insert(fate);
            }
            let best = |fate| by_timeline.values().filter(|fates| fates.last() == Some(&fate)).count() as u64;
            assert_eq!(written.timelines(count), Expected { stored: best(2), unknown: best(1) }, "{count}");
            let cycles = written.points_end().div_ceil(count);
            let sum = (0..count).fold(Expected::default(), |mut sum, timeline| {
                let one = written.of_timeline(timeline, count, 0..cycles);
                (sum.stored, sum.unknown) = (sum.stored + one.stored, sum.unknown + one.unknown);
                sum
            });
            assert_eq!(sum, written.total());
        }
    }
}
