//! Topic aliases of one direction of a connection, on the side that sends [MQTT5 3.3.2.3.4].

use super::limits::{SENT_ALIAS_TOPIC_BYTES_MAX, SENT_ALIASES_MAX};

/// Bytes that the property takes. A topic that is not longer gains nothing.
const ALIAS_BYTES: usize = 3;

/// The aliases that a sender has given to topics. When all are in use, the topic that was sent least recently loses its alias.
#[derive(Debug, Default)]
pub struct SentAliases {
    /// By alias, from 1 on.
    entries: Vec<Entry>,
    /// Grows with each use.
    uses: u64,
}

#[derive(Debug)]
struct Entry {
    topic: Box<str>,
    used: u64,
}

/// How a message names its topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TopicForm {
    /// The topic without an alias.
    Plain,
    /// The topic, and the alias that it has from now on.
    Define(u16),
    /// An empty topic and its alias.
    Alias(u16),
}

impl SentAliases {
    /// The form of the next message under a topic, for a receiver with this Topic Alias Maximum; the sender uses at most
    /// [`SENT_ALIASES_MAX`] of them. Call [`sent`](Self::sent) when the message was sent in this form.
    pub fn form(&self, topic: &str, maximum: u16) -> TopicForm {
        let maximum = maximum.min(SENT_ALIASES_MAX);
        if maximum == 0 || topic.len() <= ALIAS_BYTES || topic.len() > SENT_ALIAS_TOPIC_BYTES_MAX {
            return TopicForm::Plain;
        }
        if let Some(at) = self.entries.iter().position(|entry| *entry.topic == *topic) {
            return TopicForm::Alias(at as u16 + 1);
        }
        if self.entries.len() < usize::from(maximum) {
            return TopicForm::Define(self.entries.len() as u16 + 1);
        }
        let oldest = self.entries.iter().enumerate().min_by_key(|(_, entry)| entry.used);
        oldest.map_or(TopicForm::Plain, |(at, _)| TopicForm::Define(at as u16 + 1))
    }

    /// A message under a topic was sent in a form.
    pub fn sent(&mut self, topic: &str, form: TopicForm) {
        self.uses += 1;
        match form {
            TopicForm::Plain => {}
            TopicForm::Alias(alias) => self.entries[usize::from(alias) - 1].used = self.uses,
            TopicForm::Define(alias) => {
                let entry = Entry { topic: topic.into(), used: self.uses };
                match self.entries.get_mut(usize::from(alias) - 1) {
                    Some(old) => *old = entry,
                    None => self.entries.push(entry),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// Sends a message and returns its form.
    fn send(aliases: &mut SentAliases, topic: &str, maximum: u16) -> TopicForm {
        let form = aliases.form(topic, maximum);
        aliases.sent(topic, form);
        form
    }

    #[test]
    fn the_topic_that_was_sent_least_recently_loses_its_alias() {
        let mut aliases = SentAliases::default();
        let (one, two, three) = ("topic/1", "topic/2", "topic/3");
        let forms = [one, two, one, three, one, two].map(|topic| send(&mut aliases, topic, 2));
        use TopicForm::{Alias, Define};
        assert_eq!(forms, [Define(1), Define(2), Alias(1), Define(2), Alias(1), Define(2)]);
    }

    #[test]
    fn topics_that_gain_nothing_or_take_too_much_have_no_alias() {
        let mut aliases = SentAliases::default();
        let long = "x".repeat(SENT_ALIAS_TOPIC_BYTES_MAX + 1);
        for topic in ["abc", &long] {
            assert_eq!([send(&mut aliases, topic, 9), send(&mut aliases, topic, 9)], [TopicForm::Plain; 2]);
        }
        assert_eq!(send(&mut aliases, "a long topic", 0), TopicForm::Plain, "the receiver takes none");
        assert_eq!(send(&mut aliases, "abcd", 1), TopicForm::Define(1));
    }

    #[test]
    fn a_message_that_was_not_sent_changes_nothing() {
        let mut aliases = SentAliases::default();
        assert_eq!(aliases.form("topic/1", 4), TopicForm::Define(1));
        assert_eq!(aliases.form("topic/2", 4), TopicForm::Define(1));
        aliases.sent("topic/2", TopicForm::Define(1));
        assert_eq!(aliases.form("topic/1", 4), TopicForm::Define(2));
    }

    proptest! {
        /// A receiver that keeps a plain map of aliases finds the topic of every message, if some are not sent in the form that was
        /// proposed; and no alias exceeds its maximum.
        #[test]
        fn a_naive_receiver_finds_every_topic(
            messages in prop::collection::vec((0_u8..60, 0_u8..4), 0..400),
            maximum in 0_u16..50,
        ) {
            let mut aliases = SentAliases::default();
            let mut received: HashMap<u16, String> = HashMap::new();
            for (number, fate) in messages {
                let topic = format!("t/{number}");
                let form = match fate {
                    // The packet found no room.
                    0 => { aliases.form(&topic, maximum); continue }
                    // The packet with the alias was too large.
                    1 => TopicForm::Plain,
                    _ => aliases.form(&topic, maximum),
                };
                let (name, alias) = match form {
                    TopicForm::Plain => (topic.as_str(), None),
                    TopicForm::Define(alias) => (topic.as_str(), Some(alias)),
                    TopicForm::Alias(alias) => ("", Some(alias)),
                };
                aliases.sent(&topic, form);
                prop_assert!(alias.is_none_or(|alias| alias > 0 && alias <= maximum.min(SENT_ALIASES_MAX)));
                if let (Some(alias), false) = (alias, name.is_empty()) {
                    received.insert(alias, name.to_owned());
                }
                let found = match (name, alias) {
                    ("", Some(alias)) => received.get(&alias).map(String::as_str),
                    (name, _) => Some(name),
                };
                prop_assert_eq!(found, Some(topic.as_str()));
            }
        }
    }
}
