//! A session against a model of its client: random windows, acknowledgements, durability that comes late, and reconnects.
//!
//! The door asks for packets only when it has a reason: a wake, an acknowledgement, room in the output, or progress of the engine
//! after [`Delivered::Undurable`]. The model does the same, and then asks without a reason: a packet that comes now was stuck.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use kv::MemoryStore;
use proptest::prelude::*;

use super::tests::{HOUR_S, Wakes, attach_request, open, publish, subscribe};
use super::*;

#[derive(Debug, Clone)]
enum Step {
    Publish {
        qos: Quality,
        count: u8,
    },
    /// The client answers the oldest, or the newest, of the packets that it has not answered.
    Answer {
        oldest: bool,
        count: u8,
    },
    /// The engine makes nothing durable until `Release`.
    Hold,
    Release,
    /// The next output has room for so many packets only.
    Room(u8),
    Reconnect {
        inflight_max: u16,
    },
    Restart {
        inflight_max: u16,
    },
}

fn quality() -> impl Strategy<Value = Quality> {
    prop_oneof![
        1 => Just(Quality::AtMostOnce),
        3 => Just(Quality::AtLeastOnce),
        4 => Just(Quality::ExactlyOnce)
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let inflight_max = || prop_oneof![Just(1_u16), 1_u16..5, Just(1_000)];
    prop_oneof![
        6 => (quality(), 1_u8..8).prop_map(|(qos, count)| Step::Publish { qos, count }),
        8 => (any::<bool>(), 1_u8..5).prop_map(|(oldest, count)| Step::Answer { oldest, count }),
        3 => Just(Step::Hold),
        4 => Just(Step::Release),
        2 => (0_u8..4).prop_map(Step::Room),
        1 => inflight_max().prop_map(|inflight_max| Step::Reconnect { inflight_max }),
        1 => inflight_max().prop_map(|inflight_max| Step::Restart { inflight_max }),
    ]
}

/// A packet that the client has got and not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Open {
    Publish(u16, Quality),
    Release(u16),
}

struct Model {
    kv: Arc<MemoryStore>,
    broker: Broker,
    attached: Attached,
    wakes: Arc<Wakes>,
    wakes_seen: usize,
    inflight_max: u16,
    /// The door has a reason to ask.
    must_ask: bool,
    undurable: bool,
    is_held: bool,
    room: usize,
    open: Vec<Open>,
    acknowledged: Acknowledged,
    /// QoS 2 messages that the client has received, by identifier, until PUBREL.
    unreleased: BTreeMap<u16, u32>,
    published: Vec<(u32, Quality)>,
    got: BTreeMap<u32, u32>,
}

impl Model {
    fn new() -> Self {
        let kv = Arc::new(MemoryStore::new());
        let broker = open(&kv);
        let wakes = Arc::new(Wakes::default());
        let attached = attach(&broker, &wakes, 3);
        subscribe(&broker, &attached, "t", Quality::ExactlyOnce);
        Self {
            kv,
            broker,
            attached,
            wakes,
            wakes_seen: 0,
            inflight_max: 3,
            must_ask: true,
            undurable: false,
            is_held: false,
            room: usize::MAX,
            open: Vec::new(),
            acknowledged: Acknowledged::default(),
            unreleased: BTreeMap::new(),
            published: Vec::new(),
            got: BTreeMap::new(),
        }
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::Publish { qos, count } => (0..count).for_each(|_| self.publish(qos)),
            Step::Answer { oldest, count } => (0..count).for_each(|_| self.answer(oldest)),
            Step::Hold => {
                self.kv.hold();
                self.is_held = true;
            }
            Step::Release => self.release(),
            Step::Room(packets) => self.room = usize::from(packets),
            Step::Reconnect { inflight_max } => self.reconnect(inflight_max),
            Step::Restart { inflight_max } => self.restart(inflight_max),
        }
        self.settle();
    }

    fn publish(&mut self, qos: Quality) {
        let number = self.published.len() as u32;
        self.published.push((number, qos));
        publish(&self.broker, "t", &number.to_string(), qos);
    }

    fn answer(&mut self, oldest: bool) {
        if self.open.is_empty() {
            return;
        }
        let open = if oldest { self.open.remove(0) } else { self.open.pop().unwrap() };
        let session = &self.attached.session;
        match open {
            Open::Publish(id, Quality::AtLeastOnce) => {
                self.broker.on_puback(session, id, &mut self.acknowledged);
            }
            Open::Publish(id, _) => {
                let effect = self.broker.on_pubrec(session, id, &mut self.acknowledged).unwrap();
                assert_eq!(effect, PubrecEffect::Known);
            }
            Open::Release(id) => {
                assert!(self.broker.on_pubcomp(session, id, &mut self.acknowledged), "PUBCOMP of {id}");
            }
        }
        self.must_ask = true;
    }

    fn release(&mut self) {
        self.kv.release();
        self.is_held = false;
        self.must_ask |= std::mem::take(&mut self.undurable);
    }

    /// The client comes back. The old connection is gone with what it had not answered.
    fn reconnect(&mut self, inflight_max: u16) {
        self.broker.detach(&self.attached, HOUR_S, 0);
        self.connect(inflight_max);
    }

    fn restart(&mut self, inflight_max: u16) {
        // What is not durable is lost at a crash; the model publishes again only what was acknowledged as durable.
        self.release();
        self.broker.commit(&mut self.acknowledged);
        self.broker = open(&self.kv);
        self.connect(inflight_max);
    }

    fn connect(&mut self, inflight_max: u16) {
        self.attached = attach(&self.broker, &self.wakes, inflight_max);
        self.inflight_max = inflight_max;
        self.open.clear();
        (self.must_ask, self.undurable, self.room) = (true, false, usize::MAX);
    }

    /// The door asks as long as it has a reason. Then it asks without one.
    fn settle(&mut self) {
        loop {
            let wakes = self.wakes.0.load(Ordering::Relaxed);
            let woken = std::mem::replace(&mut self.wakes_seen, wakes) != wakes;
            if !std::mem::take(&mut self.must_ask) && !woken {
                break;
            }
            self.ask();
        }
        if self.room > 0 {
            assert_eq!(self.ask(), 0, "packets were stuck");
        }
    }

    /// Returns the number of packets that came.
    fn ask(&mut self) -> usize {
        let Self { broker, attached, acknowledged, open, unreleased, got, room, .. } = self;
        let mut packets = 0;
        let delivered = broker.deliver(attached, 0, acknowledged, &mut |packet| {
            if *room == 0 {
                return Sent::NoRoom;
            }
            *room = room.saturating_sub(usize::from(*room != usize::MAX));
            packets += 1;
            match packet {
                Outgoing::Release { packet_id } => {
                    unreleased.remove(packet_id);
                    open.push(Open::Release(*packet_id));
                }
                Outgoing::Publish { message, qos, packet_id, .. } => {
                    let number: u32 = std::str::from_utf8(&message.payload).unwrap().parse().unwrap();
                    let is_new = match (qos, packet_id) {
                        (Quality::ExactlyOnce, Some(id)) => unreleased.insert(*id, number) != Some(number),
                        _ => true,
                    };
                    *got.entry(number).or_default() += u32::from(is_new);
                    open.extend(packet_id.map(|id| Open::Publish(id, *qos)));
                }
            }
            Sent::Yes
        });
        self.broker.commit(&mut self.acknowledged);
        match delivered.unwrap() {
            Delivered::All => self.undurable = false,
            Delivered::Undurable => self.undurable = true,
            Delivered::Again => self.must_ask = true,
        }
        let publishes = self.open.iter().filter(|open| matches!(open, Open::Publish(_, _))).count();
        assert!(publishes <= usize::from(self.inflight_max), "more than the Receive Maximum in flight");
        if self.room == 0 {
            // The output is sent, and the door asks again.
            (self.room, self.must_ask) = (usize::MAX, true);
        }
        packets
    }

    /// The client answers everything: every message has come, and those of QoS 2 once.
    fn finish(mut self) {
        self.release();
        self.settle();
        while !self.open.is_empty() {
            self.answer(true);
            self.settle();
        }
        let numbers: BTreeSet<u32> = self.got.keys().copied().collect();
        for (number, qos) in &self.published {
            match qos {
                Quality::AtMostOnce => {}
                Quality::AtLeastOnce => assert!(numbers.contains(number), "{number} is lost"),
                Quality::ExactlyOnce => {
                    assert_eq!(self.got.get(number), Some(&1), "{number} came once");
                }
            }
        }
    }
}

fn attach(broker: &Broker, wakes: &Arc<Wakes>, inflight_max: u16) -> Attached {
    let request = Attach {
        inflight_max,
        wake: Arc::clone(wakes) as Arc<dyn model::Wake>,
        ..attach_request("c", false, HOUR_S, 0)
    };
    broker.attach(&request).unwrap().0.unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn nothing_is_stuck_lost_or_sent_twice(steps in proptest::collection::vec(step(), 1..60)) {
        let mut model = Model::new();
        steps.iter().for_each(|step| model.run(step));
        model.finish();
    }
}
