//! What is spoken on a connection that is there for its own sake.

use wire::http1::{Answers, Piece, write};

/// Sent and expected back.
const LINE: &[u8] = b"tacho bench echo\r\n";

/// What is spoken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Application {
    /// Nothing.
    None,
    /// A line that comes back as it was sent.
    Echo,
    /// GET of HTTP/1.1.
    Http {
        /// Host and port for the header of that name.
        host: String,
        /// What is asked for.
        path: String,
    },
}

impl Application {
    /// The bytes of a request; empty where nothing is spoken.
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

/// How far an answer has come.
pub(super) struct Progress {
    /// Bytes of it that need not be shown again.
    pub(super) used: usize,
    /// It is complete.
    pub(super) whole: bool,
}

/// Goes on in an answer of HTTP/1.1, to its end at most.
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
