//! HTTP/1.1 and 1.0 for clients (RFC 9110, RFC 9112).
//!
//! Parsing has two layers: [`head()`] parses the status line and headers of one answer, and [`Answers`] goes through the answers
//! of a connection piece by piece, with any framing. Neither keeps or copies a body. [`mod@write`] writes requests.
//!
//! A client of one connection:
//!
//! ```
//! use wire::http1::{Answers, Piece, write};
//!
//! let mut request = Vec::new();
//! write::start(&mut request, "GET", "/index.html");
//! write::header(&mut request, "Host", "127.0.0.1:8080");
//! write::end(&mut request);
//! // ... send it, read what comes:
//! let bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
//! let (mut answers, mut at, mut whole) = (Answers::default(), 0, false);
//! // `false`: the request was not a HEAD, whose answers have no body.
//! while let Some((piece, used)) = answers.next(&bytes[at..], false)? {
//!     at += used;
//!     match piece {
//!         Piece::Head(head) => assert_eq!((head.status, head.keeps_open), (200, true)),
//!         Piece::Body(part) => assert_eq!(part, b"hello"),
//!         Piece::End => whole = true,
//!     }
//! }
//! // Bytes behind `at` are the beginning of something: show them again with what comes next.
//! assert_eq!((at, whole), (bytes.len(), true));
//! # Ok::<(), wire::http1::DecodeError>(())
//! ```

mod answers;
mod head;
pub mod limits;
pub mod write;

pub use answers::{Answers, Piece};
pub use head::{DecodeError, Framing, Head, head};
