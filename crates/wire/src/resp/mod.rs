//! RESP, the protocol of Redis and what speaks like it, versions 2 and 3.
//!
//! Reading is in two layers: [`token()`] gives one token after the other (a header such as `*3` is a token of its own), and
//! [`reply()`] finds the end of a whole reply and says what it is. Neither allocates. Writing is [`mod@write`].

pub mod limits;
pub mod reply;
pub mod token;
pub mod write;

pub use reply::{Reply, reply};
pub use token::{DecodeError, Token, token};
