//! One HTTP/2 connection: streams, flow control, and connection-level frames.

use std::collections::VecDeque;

use load::protocol::{Answer, Completion, Opening, Received};
use wire::http2::limits::{FRAME_BYTES_MAX, WINDOW_DEFAULT, WINDOW_MAX};
use wire::http2::{Frame, FrameKind, PREFACE, flag, frame, hpack, reason, setting, write};

use super::expect::ReceivedAnswer;
use super::request::{PreparedRequest, SentRequest};
use super::template::Text;

/// The receive window that the server gets. It is large, so that the server never waits for the generator.
const WINDOW_BYTES: u32 = 1 << 30;
/// The last stream number before a new connection is opened; stream numbers end at 2^31.
const LAST_STREAM: u32 = WINDOW_MAX - 2;
/// The longest part of the server's GOAWAY text in an error.
const WORDS_BYTES: usize = 80;

/// A request in flight.
#[derive(Debug)]
struct Stream {
    number: u32,
    request: SentRequest,
    /// The answer so far; `None` before its head.
    seen: Option<ReceivedAnswer>,
    /// The bytes of the answer's frames.
    bytes: u64,
    /// The bytes of the answer's body that the server may still send.
    window: u32,
    /// The bytes of the request's body that the client may still send.
    send_window: i64,
    /// The unsent rest of the request's body.
    unsent: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct Http2Connection {
    /// Requests in flight, by stream number.
    streams: VecDeque<Stream>,
    next_stream: u32,
    /// Whether the server has sent its settings.
    greeted: bool,
    /// The largest number of concurrent streams that the server allows.
    streams_max: u32,
    frame_bytes_max: usize,
    initial_window: i64,
    send_window: i64,
    /// The bytes of bodies that the server may still send on the connection.
    window: u32,
    /// A block of headers that continues: its stream, and whether it ends the stream.
    continued: Option<(u32, bool)>,
    /// The last stream that the server answers.
    last_stream: Option<u32>,
    /// Whether every request has its own connection.
    close: bool,
}

impl Http2Connection {
    pub(super) fn new(close: bool) -> Self {
        Self {
            streams: VecDeque::new(),
            next_stream: 1,
            greeted: false,
            streams_max: u32::MAX,
            frame_bytes_max: FRAME_BYTES_MAX,
            initial_window: WINDOW_DEFAULT.into(),
            send_window: WINDOW_DEFAULT.into(),
            window: WINDOW_BYTES,
            continued: None,
            last_stream: None,
            close,
        }
    }

    pub(super) fn open(&mut self, out: &mut Vec<u8>) -> Opening {
        *self = Self::new(self.close);
        out.extend_from_slice(PREFACE);
        write::settings(
            out,
            &[
                (setting::HEADER_TABLE_SIZE, 0),
                (setting::ENABLE_PUSH, 0),
                (setting::INITIAL_WINDOW_SIZE, WINDOW_BYTES),
            ],
        );
        write::window_update(out, 0, WINDOW_BYTES - WINDOW_DEFAULT);
        Opening::Wait
    }

    pub(super) fn lost(&mut self) {
        self.streams.clear();
    }

    /// The number of streams that may be open now.
    pub(super) fn window(&self) -> usize {
        if self.last_stream.is_some() || self.next_stream > LAST_STREAM {
            return 0;
        }
        self.streams_max as usize
    }

    pub(super) fn start(
        &mut self,
        prepared: &PreparedRequest,
        request: SentRequest,
        out: &mut Vec<u8>,
    ) -> Answer {
        let number = self.next_stream;
        self.next_stream += 2;
        let body = prepared.http2.body.as_ref();
        let flags = flag::END_HEADERS | if body.is_some() { 0 } else { flag::END_STREAM };
        let header_at = out.len();
        write::header(out, 0, FrameKind::Headers, flags, number);
        let block_at = out.len();
        prepared.http2.append_head(out, request.fill(&[]));
        let length = ((out.len() - block_at) as u32).to_be_bytes();
        out[header_at..header_at + 3].copy_from_slice(&length[1..]);
        let mut unsent = Vec::new();
        if let Some(body) = body {
            Text::append(body, &mut unsent, request.fill(&[]));
        }
        self.streams.push_back(Stream {
            number,
            request,
            seen: None,
            bytes: 0,
            window: WINDOW_BYTES,
            send_window: self.initial_window,
            unsent,
        });
        if body.is_some() {
            self.send_body(self.streams.len() - 1, out, true);
        }
        Answer::Key(number)
    }

    /// Sends as much of a body as the windows allow. `begins` sends an empty body as well.
    fn send_body(&mut self, index: usize, out: &mut Vec<u8>, begins: bool) {
        let stream = &mut self.streams[index];
        let mut sent = 0;
        while sent < stream.unsent.len() || (begins && stream.unsent.is_empty()) {
            let window = self.send_window.min(stream.send_window).max(0);
            let length = (stream.unsent.len() - sent).min(window as usize).min(self.frame_bytes_max);
            let last = sent + length == stream.unsent.len();
            if length == 0 && !last {
                break;
            }
            write::header(
                out,
                length,
                FrameKind::Data,
                if last { flag::END_STREAM } else { 0 },
                stream.number,
            );
            out.extend_from_slice(&stream.unsent[sent..sent + length]);
            self.send_window -= length as i64;
            stream.send_window -= length as i64;
            sent += length;
            if last {
                break;
            }
        }
        stream.unsent.drain(..sent);
    }

    fn send_bodies(&mut self, out: &mut Vec<u8>) {
        (0..self.streams.len()).for_each(|index| self.send_body(index, out, false));
    }

    pub(super) fn receive(
        &mut self,
        operations: &[PreparedRequest],
        bytes: &[u8],
        out: &mut Vec<u8>,
        again: &mut VecDeque<SentRequest>,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<Received, String> {
        let mut received = Received::default();
        if !self.greeted && bytes.starts_with(b"HTTP/1.") {
            return Err(
                "the server speaks HTTP/1.1 here and not HTTP/2 without TLS (protocol = \"h1\")".to_owned()
            );
        }
        let limit = FRAME_BYTES_MAX;
        while let Some((frame, used)) =
            frame(&bytes[received.used..], limit).map_err(|error| error.to_string())?
        {
            received.used += used;
            if !self.greeted && (frame.kind != FrameKind::Settings || frame.has(flag::ACK)) {
                return Err("no HTTP/2: the server does not begin with its settings".to_owned());
            }
            received.ready |= !self.greeted;
            self.greeted = true;
            let ended = self.take(operations, &frame, used, out, done)?;
            received.over = self.is_over() || (ended && self.close);
            if received.over {
                again.extend(self.streams.drain(..).map(|stream| stream.request));
                break;
            }
        }
        Ok(received)
    }

    /// Whether the server answers no more streams.
    fn is_over(&self) -> bool {
        let answered = |last: u32| self.streams.front().is_none_or(|stream| stream.number > last);
        let exhausted = self.next_stream > LAST_STREAM && self.streams.is_empty();
        exhausted || self.last_stream.is_some_and(answered)
    }

    /// Handles a frame of `used` bytes. Returns whether it ended a stream.
    fn take(
        &mut self,
        operations: &[PreparedRequest],
        frame: &Frame<'_>,
        used: usize,
        out: &mut Vec<u8>,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<bool, String> {
        let said = |error: wire::http2::DecodeError| error.to_string();
        if self.continued.is_some() && frame.kind != FrameKind::Continuation {
            return Err("no HTTP/2: a block of headers is interrupted".to_owned());
        }
        match frame.kind {
            FrameKind::Headers => {
                let index = self.find(frame.stream, used);
                if let Some(stream) = index.map(|index| &mut self.streams[index])
                    && stream.seen.is_none()
                {
                    let status = hpack::status(frame.content().map_err(said)?).map_err(said)?;
                    let expected = &operations[usize::from(stream.request.class)].expected;
                    // An interim answer does not count.
                    stream.seen = (status >= 200).then(|| expected.begin(status, stream.request.fill(&[])));
                }
                if !frame.has(flag::END_HEADERS) {
                    self.continued = Some((frame.stream, frame.has(flag::END_STREAM)));
                    return Ok(false);
                }
                Ok(frame.has(flag::END_STREAM) && self.end(operations, index, done)?)
            }
            FrameKind::Continuation => {
                let Some((number, ends)) = self.continued.filter(|(number, _)| *number == frame.stream)
                else {
                    return Err("not HTTP/2: headers continue that have not begun".to_owned());
                };
                let index = self.find(number, used);
                if !frame.has(flag::END_HEADERS) {
                    return Ok(false);
                }
                self.continued = None;
                Ok(ends && self.end(operations, index, done)?)
            }
            FrameKind::Data => {
                let content = frame.content().map_err(said)?;
                self.window = refilled(self.window, frame.payload.len(), 0, out)?;
                let index = self.find(frame.stream, used);
                if let Some(stream) = index.map(|index| &mut self.streams[index]) {
                    let Some(seen) = &mut stream.seen else {
                        return Err("no HTTP/2: a body comes before its headers".to_owned());
                    };
                    operations[usize::from(stream.request.class)].expected.take(seen, content);
                    stream.window = refilled(stream.window, frame.payload.len(), frame.stream, out)?;
                }
                Ok(frame.has(flag::END_STREAM) && self.end(operations, index, done)?)
            }
            FrameKind::RstStream => {
                let code = frame.first_number().map_err(said)?;
                let Some(index) = self.find(frame.stream, used) else { return Ok(false) };
                self.reset(index, code, done);
                Ok(true)
            }
            FrameKind::Settings if !frame.has(flag::ACK) => {
                self.settings(frame).map_err(said)?;
                write::settings_ack(out);
                self.send_bodies(out);
                Ok(false)
            }
            FrameKind::Ping if !frame.has(flag::ACK) => {
                write::ping_ack(out, frame.payload);
                Ok(false)
            }
            FrameKind::GoAway => self.go_away(frame).map(|()| false),
            FrameKind::WindowUpdate => {
                let more = i64::from(frame.first_number().map_err(said)?);
                if frame.stream == 0 {
                    self.send_window += more;
                } else if let Some(index) = self.find(frame.stream, 0) {
                    self.streams[index].send_window += more;
                }
                self.send_bodies(out);
                Ok(false)
            }
            FrameKind::PushPromise => Err("the server pushes although it was told not to".to_owned()),
            FrameKind::Priority | FrameKind::Settings | FrameKind::Ping | FrameKind::Unknown(_) => Ok(false),
        }
    }

    /// Finds the index of a stream and counts bytes for it. Streams that have ended are not found.
    fn find(&mut self, number: u32, bytes: usize) -> Option<usize> {
        let index = self.streams.iter().position(|stream| stream.number == number)?;
        self.streams[index].bytes += bytes as u64;
        Some(index)
    }

    fn end(
        &mut self,
        operations: &[PreparedRequest],
        index: Option<usize>,
        done: &mut impl FnMut(Completion<'_>),
    ) -> Result<bool, String> {
        let Some(stream) = index.and_then(|index| self.streams.remove(index)) else { return Ok(false) };
        let Some(seen) = &stream.seen else {
            return Err("no HTTP/2: a stream ends without a status".to_owned());
        };
        let prepared = &operations[usize::from(stream.request.class)];
        prepared.judge(seen, stream.request, &mut [], Answer::Key(stream.number), stream.bytes, done);
        Ok(true)
    }

    fn reset(&mut self, index: usize, code: u32, done: &mut impl FnMut(Completion<'_>)) {
        let Some(stream) = self.streams.remove(index) else { return };
        let what = format!("stream reset by the server: {}", reason(code));
        done(Completion {
            answer: Answer::Key(stream.number),
            status: load::protocol::AnswerStatus::Failed(&what),
            bytes: u32::try_from(stream.bytes).unwrap_or(u32::MAX),
        });
    }

    fn settings(&mut self, frame: &Frame<'_>) -> Result<(), wire::http2::DecodeError> {
        for (number, value) in frame.settings()? {
            match number {
                setting::MAX_CONCURRENT_STREAMS => self.streams_max = value,
                setting::MAX_FRAME_SIZE => self.frame_bytes_max = value as usize,
                setting::INITIAL_WINDOW_SIZE => {
                    // The setting also changes the windows of open streams, below zero if need be (RFC 9113, 6.9.2).
                    let change = i64::from(value) - self.initial_window;
                    self.initial_window = value.into();
                    self.streams.iter_mut().for_each(|stream| stream.send_window += change);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn go_away(&mut self, frame: &Frame<'_>) -> Result<(), String> {
        let last = frame.first_number().map_err(|error| error.to_string())?;
        let (code, words) = frame.last_words().map_err(|error| error.to_string())?;
        if code != 0 {
            let words = words[..words.len().min(WORDS_BYTES)].escape_ascii();
            return Err(format!("the server ends the connection: {} {words}", reason(code)));
        }
        self.last_stream = Some(last.min(self.last_stream.unwrap_or(last)));
        Ok(())
    }

    pub(super) fn closed(&mut self, again: &mut VecDeque<SentRequest>) -> Result<(), String> {
        let last = self.last_stream;
        if self.streams.iter().all(|stream| last.is_some_and(|last| stream.number > last)) && self.greeted {
            again.extend(self.streams.drain(..).map(|stream| stream.request));
            return Ok(());
        }
        Err("closed by the server before it had answered".to_owned())
    }
}

/// Updates a receive window after `bytes` have arrived, and extends it before it is used up.
fn refilled(window: u32, bytes: usize, stream: u32, out: &mut Vec<u8>) -> Result<u32, String> {
    let left = u32::try_from(bytes).ok().and_then(|bytes| window.checked_sub(bytes));
    let left = left.ok_or("no HTTP/2: the server sends more than its window allows")?;
    if left >= WINDOW_BYTES / 2 {
        return Ok(left);
    }
    write::window_update(out, stream, WINDOW_BYTES - left);
    Ok(WINDOW_BYTES)
}
