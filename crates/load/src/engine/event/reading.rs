//! Reads from a connection and matches answers with their operations.

use std::collections::VecDeque;
use std::io::{self, ErrorKind};

use clients::tls::TlsFailure;

use super::connection::{Connection, InFlight, IoContext, Phase};
use super::timestamped_reader::TimestampedReader;
use crate::limits::IN_FLIGHT_MAX;
use crate::protocol::{Answer, AnswerStatus, Completion, Protocol};
use crate::recorder::{Operation, Recorder};

/// The results of one read.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Answers {
    /// Operations that were answered, successfully or not. Each makes room in the window.
    pub(super) answered: usize,
    /// Operations among them that succeeded.
    pub(super) completed: u64,
    /// The handshake is over.
    pub(super) ready: bool,
    /// The server has closed the connection in order.
    pub(super) over: bool,
    /// The time at which data arrived; 0 without any.
    pub(super) received_ns: u64,
}

impl<S> Connection<S> {
    /// Reads once and records every complete answer in `answers`. An error ends the connection.
    pub(super) fn read<P: Protocol<Session = S>>(
        &mut self,
        reader: &mut TimestampedReader,
        context: &mut IoContext<'_, P>,
        answers: &mut Answers,
    ) -> io::Result<()> {
        let Some(stream) = &self.stream else { return Ok(()) };
        let (count, received_ns) = match reader.read(stream, self.by_kernel, || context.now_ns()) {
            Ok((0, _)) if matches!(self.phase, Phase::TlsHandshake { .. }) => {
                return Err(TlsFailure::Closed.into_io());
            }
            Ok((0, _)) => return self.closed(context, answers),
            Ok(read) => read,
            Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(()),
            Err(e) => return Err(e),
        };
        answers.received_ns = received_ns;
        if self.tls.is_none() {
            return self.take(&reader.buffer[..count], context, answers);
        }
        let mut content = std::mem::take(&mut reader.content);
        content.clear();
        let taken = self.decrypt(&reader.buffer[..count], &mut content, answers);
        let taken = match taken {
            Ok(()) if content.is_empty() => Ok(()),
            Ok(()) => self.take(&content, context, answers),
            Err(error) => Err(error),
        };
        reader.content = content;
        taken
    }

    /// Decrypts what was read, and sends what TLS itself answers. The end of the handshake begins that of the protocol.
    fn decrypt(&mut self, bytes: &[u8], content: &mut Vec<u8>, answers: &mut Answers) -> io::Result<()> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        let decrypted = tls.decrypt(bytes, content);
        if let Some(mut stream) = self.stream.as_ref() {
            // After an error too: the alert tells the server why the connection ends.
            let sent = tls.flush_to(&mut stream);
            decrypted.and(sent)?;
        }
        let is_ready = !tls.is_handshaking();
        if let (true, Phase::TlsHandshake { waits }) = (is_ready, self.phase) {
            self.phase = Phase::Handshake;
            answers.ready = !waits;
        }
        Ok(())
    }

    /// Gives content to the protocol and keeps what is not a whole answer.
    fn take<P: Protocol<Session = S>>(
        &mut self,
        content: &[u8],
        context: &mut IoContext<'_, P>,
        answers: &mut Answers,
    ) -> io::Result<()> {
        if self.inbound.is_empty() {
            let used = self.receive(content, context, answers)?;
            self.inbound.extend_from_slice(&content[used..]);
            return Ok(());
        }
        let mut joined = std::mem::take(&mut self.inbound);
        joined.extend_from_slice(content);
        let used = self.receive(&joined, context, answers)?;
        joined.drain(..used);
        if !joined.is_empty() {
            self.inbound = joined;
        }
        Ok(())
    }

    fn receive<P: Protocol<Session = S>>(
        &mut self,
        bytes: &[u8],
        context: &mut IoContext<'_, P>,
        answers: &mut Answers,
    ) -> io::Result<usize> {
        context.scratch.clear();
        let Self { session, in_flight, tls, .. } = self;
        let recorder = &mut *context.recorder;
        let mut done =
            |completion: Completion<'_>| record_completion(answers, in_flight, recorder, &completion);
        let received =
            context.protocol.receive(session, bytes, context.scratch, &mut done).map_err(|why| {
                match tls.is_none() && TlsFailure::is_alert(bytes) {
                    true => TlsFailure::Encrypted.into_io(),
                    false => io::Error::new(ErrorKind::ConnectionRefused, why),
                }
            })?;
        (answers.ready, answers.over) = (answers.ready || received.ready, received.over);
        self.window = IN_FLIGHT_MAX.min(context.protocol.window(&self.session));
        if !context.scratch.is_empty() {
            self.send(context.scratch)?;
            self.last_sent_ns = answers.received_ns;
        }
        Ok(received.used)
    }

    /// Handles a connection that the server closed.
    fn closed<P: Protocol<Session = S>>(
        &mut self,
        context: &mut IoContext<'_, P>,
        answers: &mut Answers,
    ) -> io::Result<()> {
        answers.received_ns = context.now_ns();
        let Self { session, in_flight, .. } = self;
        let recorder = &mut *context.recorder;
        let mut done =
            |completion: Completion<'_>| record_completion(answers, in_flight, recorder, &completion);
        context.protocol.closed(session, &mut done).map_err(io::Error::other)?;
        answers.over = true;
        Ok(())
    }
}

/// Records the end of an operation.
#[inline]
fn record_completion(
    answers: &mut Answers,
    in_flight: &mut VecDeque<InFlight>,
    recorder: &mut Recorder,
    completion: &Completion<'_>,
) {
    let operation = match completion.answer {
        Answer::Delivery(operation) => operation,
        answer => {
            let Some(operation) = take(in_flight, answer) else {
                recorder.error("an answer to nothing that was asked", 1);
                return;
            };
            answers.answered += 1;
            operation
        }
    };
    match completion.status {
        AnswerStatus::Failed(what) => return recorder.failed(operation.class, what),
        AnswerStatus::Found { hits, misses } => recorder.found(&operation, hits, misses),
        AnswerStatus::Good => {}
    }
    answers.completed += 1;
    recorder.completed(&operation, answers.received_ns, completion.bytes.into());
}

/// Takes the operation of an answer. Most servers answer in order; the search is for the others.
fn take(in_flight: &mut VecDeque<InFlight>, answer: Answer) -> Option<Operation> {
    let Answer::Key(key) = answer else { return in_flight.pop_front().map(|o| o.operation) };
    if in_flight.front().is_some_and(|o| o.key == key) {
        return in_flight.pop_front().map(|o| o.operation);
    }
    let index = in_flight.iter().position(|o| o.key == key)?;
    in_flight.remove(index).map(|o| o.operation)
}
