//! What the clients of a phase sent and received, added up.

use load::result::Check;

use super::sequence::Sequence;

/// The counts of one publisher.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Published {
    /// The number of its next message; earlier phases count.
    pub(crate) next: u64,
    /// Messages of this phase.
    pub(crate) sent: u64,
    /// Messages of this phase that are not acknowledged; none at QoS 0.
    pub(crate) unacknowledged: u64,
}

/// What one subscriber received.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Received {
    /// Its publishers, by number, and the numbers of their messages.
    pub(crate) sequences: Vec<(u32, Sequence)>,
    /// Messages that no publisher of this run sent, or sent to another topic, or that were changed.
    pub(crate) foreign: u64,
}

/// The sum over the subscribers of a phase.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Deliveries {
    /// The number of deliveries that the messages need.
    pub(crate) expected: u64,
    /// Messages that came for the first time.
    pub(crate) received: u64,
    /// Messages that must have come and did not.
    pub(crate) lost: u64,
    /// Messages that came after a later one of their publisher.
    pub(crate) reordered: u64,
    /// Messages that came again.
    pub(crate) repeated: u64,
    /// Messages that no publisher sent to this subscriber.
    pub(crate) foreign: u64,
    /// The first subscriber that lost something, as text.
    pub(crate) first_loss: Option<String>,
}

impl Deliveries {
    /// Compares what the subscribers received with what the publishers sent. `first` has for each publisher the number of
    /// its first message that these subscribers must get.
    pub(crate) fn of(received: &[Received], published: &[Published], first: &[u64]) -> Self {
        let mut sum = Self::default();
        for (subscriber, received) in received.iter().enumerate() {
            sum.foreign += received.foreign;
            for (publisher, sequence) in &received.sequences {
                let index = *publisher as usize;
                let Published { next, unacknowledged, .. } =
                    published.get(index).copied().unwrap_or_default();
                sum.expected += next - first.get(index).copied().unwrap_or(next);
                sum.received += sequence.received;
                sum.reordered += sequence.reordered;
                sum.repeated += sequence.repeated;
                sum.foreign += sequence.beyond(next);
                // A message without an ack may have been lost on its way to the broker.
                let lost = sequence.missing(next).saturating_sub(unacknowledged);
                sum.lost += lost;
                if lost > 0 && sum.first_loss.is_none() {
                    sum.first_loss = Some(format!(
                        "subscriber {subscriber} lost {lost} messages of publisher {publisher}"
                    ));
                }
            }
        }
        sum
    }

    /// The checks of a phase. With `may_repeat` a message may come more than once, as at QoS 1.
    pub(crate) fn checks(&self, phase: &str, may_repeat: bool) -> Vec<Check> {
        let check = |what: &str, found: u64| Check::equal(format!("{what} ({phase})"), 0, found);
        let mut checks = vec![
            check("messages lost", self.lost),
            check("messages delivered out of order", self.reordered),
            check("messages delivered that were not sent", self.foreign),
        ];
        if !may_repeat {
            checks.push(check("messages delivered more than once", self.repeated));
        }
        checks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn published(next: u64, unacknowledged: u64) -> Published {
        Published { next, sent: next, unacknowledged }
    }

    fn received(publisher: u32, numbers: &[u64]) -> Received {
        let mut sequence = Sequence::from(0);
        numbers.iter().for_each(|number| _ = sequence.note(*number));
        Received { sequences: vec![(publisher, sequence)], foreign: 0 }
    }

    #[test]
    fn each_subscriber_must_get_what_its_own_publisher_sent() {
        let subscribers = [received(0, &[0, 1]), received(1, &[0])];
        let good = Deliveries::of(&subscribers, &[published(2, 0), published(1, 0)], &[0, 0]);
        assert_eq!((good.expected, good.received, good.lost, good.foreign), (3, 3, 0, 0));
        // One too many here and one too few there do not cancel out.
        let bad = Deliveries::of(&subscribers, &[published(1, 0), published(2, 0)], &[0, 0]);
        assert_eq!((bad.expected, bad.lost, bad.foreign), (3, 1, 1));
        assert_eq!(bad.first_loss.as_deref(), Some("subscriber 1 lost 1 messages of publisher 1"));
    }

    #[test]
    fn only_a_message_without_an_ack_may_be_missing() {
        let subscribers = [received(0, &[0, 2])];
        assert_eq!(Deliveries::of(&subscribers, &[published(3, 1)], &[0]).lost, 0);
        assert_eq!(Deliveries::of(&subscribers, &[published(3, 0)], &[0]).lost, 1);
        assert_eq!(Deliveries::of(&subscribers, &[published(5, 1)], &[0]).lost, 2);
    }

    #[test]
    fn messages_before_the_first_one_that_is_due_are_not_expected() {
        let mut sequence = Sequence::from(10);
        [10, 11, 11, 13, 12].into_iter().for_each(|number| _ = sequence.note(number));
        let subscribers = [Received { sequences: vec![(0, sequence)], foreign: 2 }];
        let sum = Deliveries::of(&subscribers, &[published(14, 0)], &[10]);
        assert_eq!((sum.expected, sum.received, sum.lost), (4, 4, 0));
        assert_eq!((sum.reordered, sum.repeated, sum.foreign), (1, 1, 2));
    }
}
