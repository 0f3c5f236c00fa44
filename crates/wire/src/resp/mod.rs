//! RESP versions 2 and 3: the protocol of Redis and compatible servers.
//!
//! Parsing has two layers: [`token()`] parses one token after the other (a header such as `*3` is a token of its own), and
//! [`reply()`] finds the end of a whole reply and classifies it. Neither allocates. [`mod@write`] writes commands.

pub mod limits;
pub mod reply;
pub mod token;
pub mod write;

pub use reply::{Reply, reply};
pub use token::{DecodeError, Token, token};
