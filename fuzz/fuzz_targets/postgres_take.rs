//! Messages of PostgreSQL's clients: refused, or the same messages however the bytes are cut into pieces.
//!
//! The first byte of the input is the length of a piece; its highest bit states that the connection is before its login.

#![no_main]

use bytes::BytesMut;
use libfuzzer_sys::fuzz_target;
use wire::postgres::{First, Malformed, Message, take, take_first};

fuzz_target!(|input: &[u8]| {
    let Some((&head, bytes)) = input.split_first() else { return };
    let (is_first, length) = (head > 127, usize::from(head % 128).max(1));
    let whole = read(is_first, bytes, bytes.len().max(1));
    assert_eq!(read(is_first, bytes, length), whole);
    for message in &whole.messages {
        assert!(message.bytes() <= bytes.len(), "{message:?}");
    }
});

#[derive(Debug, PartialEq, Eq)]
enum Taken {
    First(First),
    Message(Message),
}

impl Taken {
    /// Bytes that the message keeps.
    fn bytes(&self) -> usize {
        match self {
            Self::First(First::Startup { parameters, .. }) => {
                parameters.iter().map(|(name, value)| name.len() + value.len()).sum()
            }
            Self::Message(Message::Password(text) | Message::Query(text)) => text.len(),
            Self::Message(Message::Parse { name, text, types }) => name.len() + text.len() + 4 * types.len(),
            Self::Message(Message::Bind(bind)) => {
                let values =
                    bind.parameters.iter().map(|bound| bound.bytes.as_ref().map_or(0, bytes::Bytes::len));
                bind.portal.len()
                    + bind.statement.len()
                    + values.sum::<usize>()
                    + 2 * bind.result_formats.len()
            }
            _ => 0,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Read {
    messages: Vec<Taken>,
    rest: Vec<u8>,
    fault: Option<Malformed>,
}

fn read(mut is_first: bool, bytes: &[u8], length: usize) -> Read {
    let (mut input, mut messages) = (BytesMut::new(), Vec::new());
    for piece in bytes.chunks(length) {
        input.extend_from_slice(piece);
        loop {
            let taken = match is_first {
                true => take_first(&mut input).map(|first| first.map(Taken::First)),
                false => take(&mut input).map(|message| message.map(Taken::Message)),
            };
            match taken {
                Ok(Some(taken)) => {
                    is_first = matches!(taken, Taken::First(First::Tls | First::Kerberos));
                    messages.push(taken);
                }
                Ok(None) => break,
                Err(fault) => {
                    assert!(!fault.to_string().is_empty());
                    return Read { messages, rest: Vec::new(), fault: Some(fault) };
                }
            }
        }
    }
    Read { messages, rest: input.to_vec(), fault: None }
}
