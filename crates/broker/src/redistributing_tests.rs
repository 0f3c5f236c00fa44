//! Messages of a shared subscription after the end of a member's session.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use kv::{Direction, KeyRange, KeyValueStore, MemoryStore, Space};
use proptest::prelude::*;

use super::broker::{QUEUES, SESSIONS, SUBSCRIPTIONS};
use super::shared::CONTENTS;
use super::tests::{
    DEVICE, HOUR_S, TENANT, attach_request, durable, open, puback, publish, subscribe, take, texts,
};
use super::*;

const SHARE: &str = "$share/g/t";

fn count(kv: &MemoryStore, space: Space) -> usize {
    kv.scan(space, &KeyRange::all(), Direction::Ascending).unwrap().count()
}

/// Does all that follows the ends of sessions. Returns the dead letters as text.
fn settle(broker: &Broker) -> Vec<String> {
    let mut letters = Vec::new();
    while broker.has_ended_sessions() {
        let mut redistributed = broker.redistribute(0).unwrap();
        assert_eq!(redistributed.dropped.is_empty(), redistributed.unconfirmed.is_none());
        letters.extend(redistributed.dropped.iter().map(letter));
        broker.confirm(&mut redistributed.unconfirmed).unwrap();
        assert!(redistributed.unconfirmed.is_none());
    }
    letters
}

fn letter(dropped: &Dropped) -> String {
    assert_eq!((dropped.cause, dropped.device), (DropCause::SessionEnded, Some(DEVICE)));
    assert!(dropped.reason.contains("$share/g/t"), "{}", dropped.reason);
    String::from_utf8(dropped.message.payload.to_vec()).unwrap()
}

fn member(broker: &Broker, client_id: &str, qos: Quality) -> Attached {
    let (attached, _) = durable(broker, client_id);
    subscribe(broker, &attached, SHARE, qos);
    attached
}

/// A member whose session ends with its connection.
fn passing_member(broker: &Broker, client_id: &str, qos: Quality) -> Attached {
    let attached = broker.begin(&attach_request(client_id, true, 0, 0));
    subscribe(broker, &attached, SHARE, qos);
    attached
}

/// The ways in which the session of a member ends.
const ENDS: [fn(&Broker, &Attached); 4] = [
    |broker, attached| broker.detach(attached, 0, 0),
    |broker, attached| {
        broker.detach(attached, HOUR_S, 0);
        broker.sweep(i64::from(HOUR_S) * 1_000, &|_| true, &|_| true);
    },
    |broker, attached| {
        broker.detach(attached, HOUR_S, 0);
        broker.sweep(0, &|_| false, &|_| true);
    },
    |broker, attached| {
        let client = attach_request(&attached.session.key.client_id, true, 0, 0);
        assert!(broker.attach(&client).unwrap().0.is_none());
    },
];

#[test]
fn what_a_member_has_not_acknowledged_goes_to_another_one() {
    for end in ENDS {
        let kv = Arc::new(MemoryStore::new());
        let broker = open(&kv);
        let first = member(&broker, "first", Quality::AtLeastOnce);
        for payload in ["acknowledged", "sent"] {
            publish(&broker, "t", payload, Quality::AtLeastOnce);
        }
        let sent = take(&broker, &first);
        puback(&broker, &first, &sent[..1]);
        publish(&broker, "t", "waiting", Quality::AtLeastOnce);
        subscribe(&broker, &first, "own", Quality::AtLeastOnce);
        publish(&broker, "own", "own", Quality::AtLeastOnce);
        let second = member(&broker, "second", Quality::AtLeastOnce);
        end(&broker, &first);
        assert!(settle(&broker).is_empty());
        let got = take(&broker, &second);
        assert_eq!(texts(&got), ["sent", "waiting"]);
        assert_eq!(broker.metrics.redistributed.get(), 2);
        puback(&broker, &second, &got);
        assert_eq!((count(&kv, SESSIONS), count(&kv, SUBSCRIPTIONS), count(&kv, QUEUES)), (1, 1, 0));
    }
}

#[test]
fn a_message_of_qos_2_that_may_have_been_sent_becomes_a_dead_letter() {
    for is_durable in [true, false] {
        let kv = Arc::new(MemoryStore::new());
        let broker = open(&kv);
        let join = if is_durable { member } else { passing_member };
        let first = join(&broker, "first", Quality::ExactlyOnce);
        publish(&broker, "t", "received", Quality::ExactlyOnce);
        publish(&broker, "t", "sent", Quality::ExactlyOnce);
        let sent = take(&broker, &first);
        let mut acknowledged = Acknowledged::default();
        broker.on_pubrec(&first.session, sent[0].0.unwrap(), &mut acknowledged).unwrap();
        publish(&broker, "t", "waiting", Quality::ExactlyOnce);
        let second = member(&broker, "second", Quality::ExactlyOnce);
        broker.detach(&first, 0, 0);
        assert_eq!(settle(&broker), ["sent"]);
        assert_eq!(broker.metrics.dropped_shared.get(), 1);
        assert_eq!(texts(&take(&broker, &second)), ["waiting"]);
    }
}

#[test]
fn messages_of_a_session_that_ends_with_its_connection_go_to_another_member() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let first = passing_member(&broker, "first", Quality::AtLeastOnce);
    subscribe(&broker, &first, "t", Quality::AtLeastOnce);
    publish(&broker, "t", "sent", Quality::AtLeastOnce);
    // Its own copy and that of the group.
    assert_eq!(take(&broker, &first).len(), 2);
    publish(&broker, "t", "waiting", Quality::AtLeastOnce);
    let second = passing_member(&broker, "second", Quality::AtLeastOnce);
    broker.detach(&first, 0, 0);
    assert!(settle(&broker).is_empty());
    assert_eq!(texts(&take(&broker, &second)), ["sent", "waiting"]);
    broker.detach(&second, 0, 0);
    assert_eq!(settle(&broker), ["sent", "waiting"], "no member is left");
}

#[test]
fn an_absent_member_takes_over_and_one_of_qos_0_does_not() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let first = member(&broker, "first", Quality::AtLeastOnce);
    publish(&broker, "t", "1", Quality::AtLeastOnce);
    let second = member(&broker, "second", Quality::AtLeastOnce);
    broker.detach(&second, HOUR_S, 0);
    let careless = member(&broker, "careless", Quality::AtMostOnce);
    broker.detach(&first, 0, 0);
    assert!(settle(&broker).is_empty());
    assert!(take(&broker, &careless).is_empty());
    let (second, is_present) = durable(&broker, "second");
    assert!(is_present);
    assert_eq!(texts(&take(&broker, &second)), ["1"]);
    broker.detach(&second, 0, 0);
    assert_eq!(settle(&broker), ["1"]);
}

#[test]
fn dead_letters_are_found_again_until_they_are_confirmed() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let first = member(&broker, "first", Quality::AtLeastOnce);
    for n in 0..300 {
        publish(&broker, "t", &n.to_string(), Quality::AtLeastOnce);
    }
    broker.detach(&first, 0, 0);
    let step = broker.redistribute(0).unwrap();
    assert_eq!(step.dropped.len(), limits::ENDED_STEP_ENTRIES);
    assert!(
        step.dropped[0].reason.contains("no other member of \"$share/g/t\""),
        "{}",
        step.dropped[0].reason
    );
    assert!(!broker.has_ended_sessions(), "no step follows before the confirmation");
    drop(broker);

    let broker = open(&kv);
    assert_eq!(broker.sessions.lock().len(), 0, "the session does not come back");
    let mut step = broker.redistribute(0).unwrap();
    assert_eq!(step.dropped.len(), limits::ENDED_STEP_ENTRIES);
    kv.set_busy(Some("full"));
    assert!(broker.confirm(&mut step.unconfirmed).unwrap_err().is_busy());
    kv.set_busy(None);
    broker.confirm(&mut step.unconfirmed).unwrap();
    let rest: Vec<String> = (limits::ENDED_STEP_ENTRIES..300).map(|n| n.to_string()).collect();
    assert_eq!(settle(&broker), rest);
    assert_eq!((count(&kv, SESSIONS), count(&kv, SUBSCRIPTIONS), count(&kv, QUEUES)), (0, 0, 0));
}

#[test]
fn a_crash_between_the_steps_loses_and_doubles_nothing() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let first = member(&broker, "first", Quality::AtLeastOnce);
    for n in 0..600 {
        publish(&broker, "t", &n.to_string(), Quality::AtLeastOnce);
    }
    member(&broker, "second", Quality::AtLeastOnce);
    broker.detach(&first, 0, 0);
    kv.set_busy(Some("full"));
    assert!(broker.redistribute(0).unwrap_err().is_busy());
    kv.set_busy(None);
    broker.redistribute(0).unwrap();
    drop(broker);
    let broker = open(&kv);
    broker.redistribute(0).unwrap();
    drop(broker);
    let broker = open(&kv);
    assert!(settle(&broker).is_empty());
    let (second, is_present) = durable(&broker, "second");
    assert!(is_present);
    let mut got: BTreeMap<usize, usize> = BTreeMap::new();
    loop {
        let packets = take(&broker, &second);
        if packets.is_empty() {
            break;
        }
        for text in texts(&packets) {
            *got.entry(text.trim_end_matches('!').parse().unwrap()).or_default() += 1;
        }
        puback(&broker, &second, &packets);
    }
    assert_eq!(got.len(), 600);
    assert!(got.values().all(|times| *times == 1));
    assert_eq!(count(&kv, QUEUES), 0);
}

#[test]
fn a_session_whose_mark_was_lost_gives_way_to_the_next_one_of_its_client() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    member(&broker, "c", Quality::AtLeastOnce);
    publish(&broker, "t", "1", Quality::AtLeastOnce);
    kv.set_busy(Some("full"));
    assert!(!broker.attach(&attach_request("c", true, HOUR_S, 0)).unwrap().1);
    kv.set_busy(None);
    let (second, is_present) = durable(&broker, "c");
    assert!(is_present);
    subscribe(&broker, &second, SHARE, Quality::AtLeastOnce);
    drop(broker);
    let broker = open(&kv);
    assert_eq!(broker.sessions.lock().len(), 1);
    assert!(settle(&broker).is_empty());
    let (second, is_present) = durable(&broker, "c");
    assert!(is_present);
    assert_eq!(texts(&take(&broker, &second)), ["1"]);
}

#[test]
fn a_full_queue_and_the_expiry_of_a_message_have_their_effect() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let first = member(&broker, "first", Quality::AtLeastOnce);
    let content = Content { topic: "t", payload: b"late", properties: &[], expires_at_ms: Some(-1) };
    let (message, qos) = (broker.message(TENANT, content), Quality::AtLeastOnce);
    let mut publications = vec![Publication { message, qos, retain: false, tenant: TENANT, publisher: None }];
    broker.publish(&mut publications, &mut Published::default()).unwrap();
    let large = "x".repeat(4 << 20);
    publish(&broker, "t", &large, Quality::AtLeastOnce);
    publish(&broker, "t", "small", Quality::AtLeastOnce);
    let (second, _) = durable(&broker, "second");
    subscribe(&broker, &second, "own", Quality::AtLeastOnce);
    (0..15).for_each(|_| drop(publish(&broker, "own", &large, Quality::AtLeastOnce)));
    subscribe(&broker, &second, SHARE, Quality::AtLeastOnce);
    broker.detach(&second, HOUR_S, 0);
    broker.detach(&first, 0, 0);
    let mut step = broker.redistribute(0).unwrap();
    let [dropped] = &step.dropped[..] else { panic!("{} dead letters", step.dropped.len()) };
    assert_eq!(dropped.message.payload.len(), large.len());
    assert!(dropped.reason.contains("\"first\"") && dropped.reason.contains("QUEUE_BYTES_MAX is 67108864"));
    broker.confirm(&mut step.unconfirmed).unwrap();
    assert!(settle(&broker).is_empty());
    assert_eq!(broker.metrics.redistributed.get(), 1, "the small one has room");
}

#[test]
fn contents_that_queues_share_stay_until_the_last_of_them_has_delivered_it() {
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let first = member(&broker, "first", Quality::AtLeastOnce);
    subscribe(&broker, &first, "t", Quality::AtLeastOnce);
    let (own, _) = durable(&broker, "own");
    subscribe(&broker, &own, "t", Quality::AtLeastOnce);
    let payload = "p".repeat(10_000);
    publish(&broker, "t", &payload, Quality::AtLeastOnce);
    assert_eq!((count(&kv, CONTENTS), count(&kv, QUEUES)), (1, 3));
    let second = member(&broker, "second", Quality::AtLeastOnce);
    broker.detach(&first, 0, 0);
    assert!(settle(&broker).is_empty());
    assert_eq!(
        (count(&kv, CONTENTS), count(&kv, QUEUES)),
        (1, 2),
        "the client with its own subscription needs it"
    );
    let packets = take(&broker, &own);
    assert_eq!(texts(&packets), [&payload]);
    puback(&broker, &own, &packets);
    assert_eq!((count(&kv, CONTENTS), count(&kv, QUEUES)), (0, 1));
    assert_eq!(texts(&take(&broker, &second)), [&payload]);
}

/// The engine learns of an acknowledgement later than the queue. A message that is done meanwhile is neither given to others, nor sent
/// again, nor does it release its content twice.
#[test]
fn what_is_acknowledged_is_done_before_the_engine_knows_it() {
    for reconnects in [false, true] {
        let kv = Arc::new(MemoryStore::new());
        let broker = open(&kv);
        let first = member(&broker, "first", Quality::AtLeastOnce);
        let (own, _) = durable(&broker, "own");
        subscribe(&broker, &own, "t", Quality::AtLeastOnce);
        let payload = |n: u32| n.to_string().repeat(1_000);
        (1..=3).for_each(|n| drop(publish(&broker, "t", &payload(n), Quality::AtLeastOnce)));
        let packets = take(&broker, &first);
        let mut acknowledged = Acknowledged::default();
        broker.on_puback(&first.session, packets[1].0.unwrap(), &mut acknowledged);
        let second = member(&broker, "second", Quality::AtLeastOnce);
        if reconnects {
            broker.detach(&first, HOUR_S, 0);
            let (first, is_present) = durable(&broker, "first");
            assert!(is_present);
            let again = [payload(1) + "!", payload(3) + "!"];
            assert_eq!(texts(&take(&broker, &first)), again);
            broker.detach(&first, 0, 0);
        } else {
            broker.detach(&first, 0, 0);
        }
        assert!(settle(&broker).is_empty());
        broker.commit(&mut acknowledged);
        assert_eq!(texts(&take(&broker, &second)), [payload(1), payload(3)]);
        assert_eq!(texts(&take(&broker, &own)), [payload(1), payload(2), payload(3)]);
        assert_eq!(count(&kv, CONTENTS), 3);
    }
}

#[derive(Debug, Clone)]
enum Step {
    Publish { count: u8 },
    Join { client: u8, is_durable: bool },
    Leave { client: u8, ends: bool },
    Read { client: u8, acknowledge: u8 },
    Redistribute,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    let client = || 0_u8..3;
    prop_oneof![
        4 => (1_u8..6).prop_map(|count| Step::Publish { count }),
        4 => (client(), any::<bool>()).prop_map(|(client, is_durable)| Step::Join { client, is_durable }),
        3 => (client(), any::<bool>()).prop_map(|(client, ends)| Step::Leave { client, ends }),
        4 => (client(), 0_u8..4).prop_map(|(client, acknowledge)| Step::Read { client, acknowledge }),
        2 => Just(Step::Redistribute),
        1 => Just(Step::Restart),
    ]
}

/// A group with random ends of its members.
struct Group {
    kv: Arc<MemoryStore>,
    broker: Broker,
    members: BTreeMap<u8, (Attached, bool)>,
    published: u32,
    /// What clients have acknowledged, and the dead letters.
    done: BTreeMap<u32, u32>,
}

impl Group {
    fn new() -> Self {
        let kv = Arc::new(MemoryStore::new());
        Self { broker: open(&kv), kv, members: BTreeMap::new(), published: 0, done: BTreeMap::new() }
    }

    fn run(&mut self, step: &Step) {
        match *step {
            Step::Publish { count } => (0..count).for_each(|_| self.publish()),
            Step::Join { client, is_durable } => self.join(client, is_durable),
            Step::Leave { client, ends } => {
                if let Some((attached, _)) = self.members.remove(&client) {
                    self.broker.detach(&attached, if ends { 0 } else { HOUR_S }, 0);
                }
            }
            Step::Read { client, acknowledge } => self.read(client, usize::from(acknowledge)),
            Step::Redistribute => self.redistribute(),
            Step::Restart => self.restart(),
        }
    }

    fn publish(&mut self) {
        let published = publish(&self.broker, "t", &self.published.to_string(), Quality::AtLeastOnce);
        // Without a member nobody gets it.
        let has_member = published.sequence.is_some() || !self.members.is_empty();
        self.published += u32::from(has_member);
    }

    fn join(&mut self, client: u8, is_durable: bool) {
        if self.members.contains_key(&client) {
            return;
        }
        let name = client.to_string();
        let attached = match is_durable {
            true => durable(&self.broker, &name).0,
            false => self.broker.begin(&attach_request(&format!("passing {name}"), true, 0, 0)),
        };
        subscribe(&self.broker, &attached, SHARE, Quality::AtLeastOnce);
        self.members.insert(client, (attached, is_durable));
    }

    fn read(&mut self, client: u8, acknowledge: usize) {
        let Some((attached, _)) = self.members.get(&client) else { return };
        let packets = take(&self.broker, attached);
        let acknowledged = &packets[..acknowledge.min(packets.len())];
        puback(&self.broker, attached, acknowledged);
        for text in texts(acknowledged) {
            *self.done.entry(text.trim_end_matches('!').parse().unwrap()).or_default() += 1;
        }
    }

    fn redistribute(&mut self) {
        for text in settle(&self.broker) {
            *self.done.entry(text.parse().unwrap()).or_default() += 1;
        }
    }

    /// A restart keeps what is in the engine; so members that are only in memory leave before, and their messages go on.
    fn restart(&mut self) {
        for (attached, _) in std::mem::take(&mut self.members).into_values().filter(|member| !member.1) {
            self.broker.detach(&attached, 0, 0);
        }
        self.redistribute();
        self.broker = open(&self.kv);
    }

    fn finish(mut self) {
        for (attached, _) in std::mem::take(&mut self.members).into_values() {
            self.broker.detach(&attached, 0, 0);
        }
        // Absent members end too.
        self.broker.sweep(i64::MAX, &|_| true, &|_| true);
        self.redistribute();
        let all: Vec<u32> = (0..self.published).collect();
        assert_eq!(self.done.keys().copied().collect::<Vec<_>>(), all, "a message is lost");
        assert!(self.done.values().all(|times| *times == 1), "a message is done once");
        for space in [SESSIONS, SUBSCRIPTIONS, QUEUES, CONTENTS] {
            assert_eq!(count(&self.kv, space), 0, "{space}");
        }
    }
}

proptest! {
    #[test]
    fn every_message_of_a_group_is_acknowledged_or_becomes_a_dead_letter(
        steps in proptest::collection::vec(step(), 1..40),
    ) {
        let mut group = Group::new();
        steps.iter().for_each(|step| group.run(step));
        group.finish();
    }
}

/// Members come and go while messages enter their queues: a session may end between the selection of a member and the write.
#[test]
fn nothing_is_lost_when_members_end_while_messages_come() {
    const ENDS: usize = 60;
    let kv = Arc::new(MemoryStore::new());
    let broker = open(&kv);
    let keeper = member(&broker, "keeper", Quality::AtLeastOnce);
    broker.detach(&keeper, HOUR_S, 0);
    let (is_over, ends) = (AtomicBool::new(false), AtomicUsize::new(0));
    let churn = |client: &str| {
        let mut done = Vec::new();
        while !is_over.load(Ordering::Relaxed) {
            for join in [member, passing_member] {
                let attached = join(&broker, client, Quality::AtLeastOnce);
                let mut packets = Vec::new();
                while packets.len() < 5 && !is_over.load(Ordering::Relaxed) {
                    packets.extend(take(&broker, &attached));
                }
                let acknowledged = &packets[..packets.len() / 2];
                puback(&broker, &attached, acknowledged);
                done.extend(texts(acknowledged).into_iter().map(str::to_owned));
                broker.detach(&attached, 0, 0);
                ends.fetch_add(1, Ordering::Relaxed);
            }
        }
        done
    };
    let mut published = 0_u32..;
    let mut done = std::thread::scope(|scope| {
        let churn = &churn;
        let churns = ["one", "two"].map(|client| scope.spawn(move || churn(client)));
        let letters = scope.spawn(|| {
            let mut letters = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                letters.extend(settle(&broker));
            }
            letters
        });
        while ends.load(Ordering::Relaxed) < ENDS {
            let n = published.next().unwrap();
            assert!(publish(&broker, "t", &n.to_string(), Quality::AtLeastOnce).dropped.is_empty());
        }
        is_over.store(true, Ordering::Relaxed);
        let of_churns = churns.into_iter().flat_map(|thread| thread.join().unwrap());
        let mut done: Vec<String> = of_churns.collect();
        done.extend(letters.join().unwrap());
        done
    });
    assert!(done.len() > 10, "members got messages");
    let (keeper, is_present) = durable(&broker, "keeper");
    assert!(is_present);
    broker.detach(&keeper, 0, 0);
    done.extend(settle(&broker));
    let mut numbers: Vec<u32> = done.iter().map(|text| text.trim_end_matches('!').parse().unwrap()).collect();
    numbers.sort_unstable();
    assert!(
        numbers.iter().copied().eq(0..published.start),
        "each message is done once: {} of {}",
        numbers.len(),
        published.start
    );
    assert_eq!(count(&kv, QUEUES), 0);
}
