//! The application protocol of the driver `tcp`.

use wire::http1::{Answers, Piece, write};

/// The line to send, which the echo server returns.
const LINE: &[u8] = b"tacho bench echo\r\n";

/// The application protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Application {
    None,
    /// An echo server.
    Echo,
    /// GET of HTTP/1.1.
    Http {
        /// Host and port for the header `Host`.
        host: String,
        /// The path of the request.
        path: String,
    },
}

impl Application {
    /// The bytes of a request; empty without an application protocol.
    pub(crate) fn request(&self) -> Vec<u8> {
        let mut request = Vec::new();
        match self {
            Self::None => {}
            Self::Echo => request.extend_from_slice(LINE),
            Self::Http { host, path } => {
                write::start(&mut request, "GET", path);
                write::header(&mut request, "Host", host);
                write::end(&mut request);
            }
        }
        request
    }
}

/// The progress of an answer.
pub(super) struct Progress {
    /// The bytes that need not come again.
    pub(super) used: usize,
    /// Whether the answer is complete.
    pub(super) whole: bool,
}

/// Parses an HTTP/1.1 answer, at most to its end.
pub(super) fn http_answer(answers: &mut Answers, status: &mut u16, bytes: &[u8]) -> Result<Progress, String> {
    let mut used = 0;
    while let Some((piece, taken)) = answers.next(&bytes[used..], false).map_err(|e| e.to_string())? {
        used += taken;
        match piece {
            Piece::Head(head) => *status = head.status,
            Piece::Body(_) => {}
            Piece::End => return Ok(Progress { used, whole: true }),
        }
    }
    Ok(Progress { used, whole: false })
}
