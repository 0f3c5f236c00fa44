//! Frames of HBase's RPC (`RPC.proto`): the preamble, requests and answers. Sans-I/O.
//!
//! A request is its length (4 bytes), a header, a message and optionally a block of cells; an answer is the same. Headers
//! and messages begin with their length as a varint.

use prost::Message;
use prost::bytes::Buf as _;
use prost::encoding::{decode_varint, encode_varint, encoded_len_varint};

use super::exception::Exception;
use super::messages::{
    CellBlockMeta, ConnectionHeader, RequestHeader, ResponseHeader, UserInformation, VersionInfo,
};
use crate::limits::HBASE_ANSWER_BYTES_MAX;

/// The magic word, the version of the protocol, and the authentication by name only (`AuthMethod.SIMPLE`).
const PREAMBLE: &[u8] = b"HBas\x00\x50";
/// The codec of cell blocks. Without one a server puts every cell into messages, which takes it longer.
const CODEC: &str = "org.apache.hadoop.hbase.codec.KeyValueCodec";
/// The version that servers see. From 1.2 on a client understands all answers of a server that is too busy, and from 2.0
/// on those of scans.
const CLIENT_VERSION: (u32, u32) = (2, 6);

/// Appends the first bytes of a connection to a service, such as `ClientService`.
pub(super) fn open(out: &mut Vec<u8>, service: &str, user: &str) {
    let (major, minor) = CLIENT_VERSION;
    let header = ConnectionHeader {
        user_info: Some(UserInformation { effective_user: user.to_owned() }),
        service_name: Some(service.to_owned()),
        cell_block_codec_class: Some(CODEC.to_owned()),
        version_info: Some(VersionInfo {
            version: format!("{major}.{minor}"),
            user: user.to_owned(),
            version_major: Some(major),
            version_minor: Some(minor),
            ..VersionInfo::default()
        }),
    };
    out.extend_from_slice(PREAMBLE);
    out.extend_from_slice(&(header.encoded_len() as u32).to_be_bytes());
    header.encode_raw(out);
}

/// Appends a request.
pub(super) fn request(
    out: &mut Vec<u8>,
    (call_id, timeout_ms): (u32, u32),
    method: &str,
    message: &impl Message,
    cells: &[u8],
) {
    let header = RequestHeader {
        call_id: Some(call_id),
        method_name: Some(method.to_owned()),
        request_param: Some(true),
        cell_block_meta: (!cells.is_empty()).then_some(CellBlockMeta { length: Some(cells.len() as u32) }),
        timeout: Some(timeout_ms),
    };
    let delimited = |length: usize| encoded_len_varint(length as u64) + length;
    let (header_bytes, message_bytes) = (header.encoded_len(), message.encoded_len());
    let total = delimited(header_bytes) + delimited(message_bytes) + cells.len();
    out.extend_from_slice(&(total as u32).to_be_bytes());
    encode_varint(header_bytes as u64, out);
    header.encode_raw(out);
    encode_varint(message_bytes as u64, out);
    message.encode_raw(out);
    out.extend_from_slice(cells);
}

/// The length of the answer that `bytes` begin with, including its length field; `None` if the field is not complete.
pub(super) fn answer_bytes(bytes: &[u8]) -> Result<Option<usize>, String> {
    let Some(length) = bytes.first_chunk::<4>() else { return Ok(None) };
    let length = i64::from(i32::from_be_bytes(*length));
    match usize::try_from(length) {
        Ok(length) if length <= HBASE_ANSWER_BYTES_MAX => Ok(Some(4 + length)),
        _ => Err(format!(
            "an answer of {length} bytes, but at most {HBASE_ANSWER_BYTES_MAX} are read: the server is not an HBase, or \
             scans ask for too many rows at once (caching)"
        )),
    }
}

/// An answer, borrowed from its frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Answer<'a> {
    /// The message with its length.
    message: &'a [u8],
    /// The cell block; may be empty.
    pub(super) cells: &'a [u8],
}

impl<'a> Answer<'a> {
    /// Parses a whole frame without its length field: the call id, and the answer or an exception.
    pub(super) fn parse(frame: &'a [u8]) -> Result<(u32, Result<Self, Exception>), String> {
        let cut = |what: &str| format!("an answer of {} bytes has no whole {what}", frame.len());
        let mut rest = frame;
        let header = delimited(&mut rest).ok_or_else(|| cut("header"))?;
        let header =
            ResponseHeader::decode(header).map_err(|error| format!("the header of an answer: {error}"))?;
        let call_id = header.call_id.unwrap_or(0);
        if let Some(exception) = header.exception {
            return Ok((call_id, Err(Exception::of_call(exception))));
        }
        let cell_bytes = header.cell_block_meta.and_then(|meta| meta.length).unwrap_or(0) as usize;
        let message_bytes = rest.len().checked_sub(cell_bytes).ok_or_else(|| cut("cell block"))?;
        let (message, cells) = rest.split_at(message_bytes);
        Ok((call_id, Ok(Self { message, cells })))
    }

    /// Parses the message.
    pub(super) fn message<M: Message + Default>(&self) -> Result<M, String> {
        let mut rest = self.message;
        let message = delimited(&mut rest).ok_or_else(|| "the message of an answer is cut off".to_owned())?;
        M::decode(message).map_err(|error| format!("the message of an answer: {error}"))
    }
}

fn delimited<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    if !bytes.has_remaining() {
        return None;
    }
    let length = usize::try_from(decode_varint(bytes).ok()?).ok()?;
    let (message, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(message)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::messages::{Get, GetRequest, GetResponse, RegionSpecifier};
    use super::*;

    #[test]
    fn a_connection_begins_with_the_preamble() {
        let mut out = Vec::new();
        open(&mut out, "ClientService", "me");
        assert_eq!(&out[..6], b"HBas\x00\x50");
        let length = u32::from_be_bytes(out[6..10].try_into().unwrap()) as usize;
        assert_eq!(out.len(), 10 + length);
        let header = ConnectionHeader::decode(&out[10..]).unwrap();
        assert_eq!(header.service_name.as_deref(), Some("ClientService"));
        assert_eq!(header.cell_block_codec_class.as_deref(), Some(CODEC));
    }

    #[test]
    fn hostile_lengths_are_refused() {
        assert_eq!(answer_bytes(&[0, 0, 0]), Ok(None));
        assert_eq!(answer_bytes(&[0, 0, 0, 9]), Ok(Some(13)));
        assert!(answer_bytes(&[0x7f, 0xff, 0xff, 0xff]).unwrap_err().contains("2147483647 bytes"));
        assert!(answer_bytes(&[0xff, 0xff, 0xff, 0xff]).unwrap_err().contains("-1 bytes"));
        // A header that says it is longer than its frame, and a cell block that is longer than the rest.
        assert!(Answer::parse(&[0x7f, 8, 1]).unwrap_err().contains("no whole header"));
        let header = ResponseHeader {
            call_id: Some(1),
            cell_block_meta: Some(CellBlockMeta { length: Some(u32::MAX) }),
            exception: None,
        };
        let frame = header.encode_length_delimited_to_vec();
        assert!(Answer::parse(&frame).unwrap_err().contains("no whole cell block"));
    }

    proptest! {
        #[test]
        fn any_frame_is_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            if let Ok((_, Ok(answer))) = Answer::parse(&bytes) {
                let _ = answer.message::<GetResponse>();
            }
        }

        #[test]
        fn a_request_reads_as_an_answer_of_the_same_form(
            id in any::<u32>(), row in prop::collection::vec(any::<u8>(), 0..40), cells in prop::collection::vec(any::<u8>(), 0..60),
            cut in any::<prop::sample::Index>(),
        ) {
            // The fields of both headers that are read here have the same numbers, but for those of cell blocks.
            let message = GetRequest { region: RegionSpecifier::named(b"t,,1."), get: Get { row, ..Get::default() } };
            let mut out = Vec::new();
            let header = ResponseHeader {
                call_id: Some(id),
                exception: None,
                cell_block_meta: Some(CellBlockMeta { length: Some(cells.len() as u32) }),
            };
            header.encode_length_delimited(&mut out).unwrap();
            message.encode_length_delimited(&mut out).unwrap();
            out.extend_from_slice(&cells);
            let (call, answer) = Answer::parse(&out).unwrap();
            let answer = answer.unwrap();
            prop_assert_eq!(call, id);
            prop_assert_eq!(answer.cells, &cells[..]);
            prop_assert_eq!(answer.message::<GetRequest>().unwrap(), message);
            let cut = &out[..cut.index(out.len())];
            let whole = Answer::parse(cut).ok().and_then(|(_, answer)| answer.ok()?.message::<GetRequest>().ok());
            prop_assert_eq!(whole, None, "an answer that is cut off is noticed");
        }

        #[test]
        fn a_request_has_the_length_that_it_says(method in "[A-Z][a-z]{0,200}", cells in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut out = Vec::new();
            let message = GetRequest { region: RegionSpecifier::named(b"t,,1."), get: Get::default() };
            request(&mut out, (7, 30_000), &method, &message, &cells);
            prop_assert_eq!(answer_bytes(&out).unwrap(), Some(out.len()));
            let mut rest = &out[4..];
            let header = RequestHeader::decode(delimited(&mut rest).unwrap()).unwrap();
            prop_assert_eq!(header.method_name, Some(method));
            prop_assert_eq!(GetRequest::decode(delimited(&mut rest).unwrap()).unwrap(), message);
            prop_assert_eq!(rest, &cells[..]);
        }
    }
}
