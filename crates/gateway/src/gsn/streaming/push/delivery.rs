//! Sends an element to a client: `PUT` with a form of `notification-id` and `data`. Status 200 means that the client has taken it.
//!
//! It does not use `clients::http`, for two reasons. That client blocks, and a client which does not answer for `PUSH_ANSWER_TIMEOUT` would hold a
//! thread for each of up to `PUSHES_MAX` subscriptions; here each is a task. And that client resolves names and follows redirects itself, so the
//! connection could go to another address than the one that [`ContactPoint::address`] has allowed.

use std::io::{self, ErrorKind};
use std::net::IpAddr;

use clients::outgoing::AllowedTargets;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use wire::http1::{Answers, Piece, write};

use super::super::super::limits::{PUSH_ANSWER_BYTES_MAX, PUSH_ANSWER_TIMEOUT};
use super::contact::ContactPoint;

/// The way to a client.
#[derive(Debug)]
pub(super) struct Delivery {
    contact: ContactPoint,
    id: String,
    peer: Option<IpAddr>,
    /// The connection of the last request, if it is still open.
    connection: Option<TcpStream>,
}

/// The outcome of sending an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// The client has taken it, and gets the next one.
    Taken,
    /// The client wants no more, with this status.
    Ended(u16),
}

impl Delivery {
    pub(super) const fn new(contact: ContactPoint, id: String, peer: Option<IpAddr>) -> Self {
        Self { contact, id, peer, connection: None }
    }

    pub(super) const fn contact(&self) -> &ContactPoint {
        &self.contact
    }

    /// Sends an element once.
    ///
    /// # Errors
    /// There is no answer of HTTP, or it says that the client is busy.
    pub(super) async fn send(&mut self, element: &[u8], targets: &AllowedTargets) -> io::Result<Sent> {
        let request = self.request(element);
        let exchange = async {
            let mut stream = match self.connection.take().filter(is_open) {
                Some(stream) => stream,
                None => {
                    let address = self.contact.address(self.peer, targets).await.map_err(io::Error::other)?;
                    TcpStream::connect(address).await?
                }
            };
            stream.write_all(&request).await?;
            let (status, keeps_open) = answer(&mut stream).await?;
            Ok::<_, io::Error>((status, keeps_open.then_some(stream)))
        };
        let (status, connection) = timeout(PUSH_ANSWER_TIMEOUT, exchange).await.map_err(|_| silent())??;
        self.connection = connection;
        match status {
            200 => Ok(Sent::Taken),
            429 | 503 => {
                Err(io::Error::new(ErrorKind::WouldBlock, format!("the client is busy: status {status}")))
            }
            status => Ok(Sent::Ended(status)),
        }
    }

    fn request(&self, element: &[u8]) -> Vec<u8> {
        let mut form = form_urlencoded::Serializer::new(String::new());
        form.append_pair("notification-id", &self.id);
        form.append_pair("data", String::from_utf8_lossy(element).trim());
        let body = form.finish();
        let mut out = Vec::new();
        write::start(&mut out, "PUT", self.contact.target());
        write::header(&mut out, "Host", &self.contact.authority());
        write::header(&mut out, "Content-Type", "application/x-www-form-urlencoded; charset=UTF-8");
        write::header(&mut out, "Content-Length", &body.len().to_string());
        write::end(&mut out);
        out.extend_from_slice(body.as_bytes());
        out
    }
}

/// Whether an idle connection can be used: the client has neither closed it nor sent anything.
fn is_open(stream: &TcpStream) -> bool {
    matches!(stream.try_read(&mut [0]), Err(error) if error.kind() == ErrorKind::WouldBlock)
}

fn silent() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, format!("no answer within {} s", PUSH_ANSWER_TIMEOUT.as_secs()))
}

/// Reads an answer. Returns its status, and whether the connection can be used again.
async fn answer(stream: &mut TcpStream) -> io::Result<(u16, bool)> {
    let (mut answers, mut bytes, mut read) = (Answers::default(), Vec::new(), 0);
    let (mut status, mut keeps_open) = (0, false);
    loop {
        let mut used = 0;
        while let Some((piece, length)) = answers.next(&bytes[used..], false).map_err(io::Error::other)? {
            used += length;
            match piece {
                Piece::Head(head) => (status, keeps_open) = (head.status, head.keeps_open),
                Piece::Body(_) => {}
                Piece::End => return Ok((status, keeps_open && used == bytes.len())),
            }
        }
        bytes.drain(..used);
        let mut room = [0; 4_096];
        let length = stream.read(&mut room).await?;
        read += length;
        match length {
            // A body without a length ends with the connection.
            0 if status != 0 => return Ok((status, false)),
            0 => return Err(ErrorKind::UnexpectedEof.into()),
            _ if read > PUSH_ANSWER_BYTES_MAX => {
                return Err(io::Error::other(format!(
                    "the answer has more than {PUSH_ANSWER_BYTES_MAX} bytes"
                )));
            }
            _ => bytes.extend_from_slice(&room[..length]),
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    fn delivery(port: u16) -> Delivery {
        let contact = ContactPoint::parse(&format!("http://127.0.0.1:{port}/streaming/")).unwrap();
        Delivery::new(contact, "0.25".to_owned(), Some([127, 0, 0, 1].into()))
    }

    #[test]
    fn an_element_is_a_form() {
        let request = String::from_utf8(delivery(80).request(b"  <a b=\"c d\"/>\n")).unwrap();
        let (head, body) = request.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("PUT /streaming/ HTTP/1.1\r\nHost: 127.0.0.1:80\r\n"), "{head}");
        assert_eq!(body, "notification-id=0.25&data=%3Ca+b%3D%22c+d%22%2F%3E");
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{head}");
    }

    #[tokio::test]
    async fn the_status_decides_and_a_connection_is_used_again() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (mut delivery, own) = (delivery(port), format!("127.0.0.1:{port}"));
        let targets = AllowedTargets::parse([own.as_str()]).unwrap();
        let server = tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            for status in ["200 OK", "503 Service Unavailable", "300 Multiple Choices"] {
                let mut room = [0; 4_096];
                assert!(stream.read(&mut room).await.unwrap() > 0);
                let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        assert_eq!(delivery.send(b"<a/>", &targets).await.unwrap(), Sent::Taken);
        assert_eq!(delivery.send(b"<b/>", &targets).await.unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(delivery.send(b"<b/>", &targets).await.unwrap(), Sent::Ended(300));
        server.await.unwrap();
        // The listener is gone.
        assert!(delivery.send(b"<c/>", &targets).await.is_err());
    }
}
