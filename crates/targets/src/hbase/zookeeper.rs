//! The part of ZooKeeper's protocol that finds HBase's servers: open a session, read a znode, end the session. Sans-I/O.
//!
//! Every message begins with its length (4 bytes). Numbers are big-endian; buffers and texts begin with their length
//! (`zookeeper.jute`).

use prost::Message as _;

use super::messages::{ServerName, ZnodeServer};
use crate::limits::ZOOKEEPER_ANSWER_BYTES_MAX;

/// The longest time without a message, milliseconds. A session lives for a few reads.
const SESSION_TIMEOUT_MS: u32 = 10_000;
const GET_DATA: u32 = 4;
const CLOSE_SESSION: i32 = -11;
/// The error code of a missing znode.
const NO_NODE: i32 = -101;
/// The first byte of a znode that HBase wrote; the length and the name of the writer follow.
const WRITER_MAGIC: u8 = 0xff;
/// The beginning of a message that HBase stores.
pub(super) const PBUF: &[u8] = b"PBUF";

/// Appends the request for a session.
pub(super) fn connect(out: &mut Vec<u8>) {
    framed(out, |out| {
        // Protocol version and the last transaction seen.
        out.extend_from_slice(&0_u32.to_be_bytes());
        out.extend_from_slice(&0_u64.to_be_bytes());
        out.extend_from_slice(&SESSION_TIMEOUT_MS.to_be_bytes());
        // Session number, password of 16 bytes, read-only.
        out.extend_from_slice(&0_u64.to_be_bytes());
        buffer(out, &[0; 16]);
        out.push(0);
    });
}

/// Appends the request for the data of a znode.
pub(super) fn get_data(out: &mut Vec<u8>, request: u32, path: &str) {
    framed(out, |out| {
        out.extend_from_slice(&request.to_be_bytes());
        out.extend_from_slice(&GET_DATA.to_be_bytes());
        buffer(out, path.as_bytes());
        out.push(0);
    });
}

/// Appends the end of a session.
pub(super) fn close(out: &mut Vec<u8>, request: u32) {
    framed(out, |out| {
        out.extend_from_slice(&request.to_be_bytes());
        out.extend_from_slice(&CLOSE_SESSION.to_be_bytes());
    });
}

/// The length of the answer that `bytes` begin with, including its length field; `None` if the field is not complete.
pub(super) fn answer_bytes(bytes: &[u8]) -> Result<Option<usize>, String> {
    let Some(length) = bytes.first_chunk::<4>() else { return Ok(None) };
    match usize::try_from(i32::from_be_bytes(*length)) {
        Ok(length) if length <= ZOOKEEPER_ANSWER_BYTES_MAX => Ok(Some(4 + length)),
        _ => Err("the answer is not one of ZooKeeper".to_owned()),
    }
}

/// The data of a znode in the answer to [`get_data`], without its length field; `None` if there is no such znode.
pub(super) fn data(frame: &[u8]) -> Result<Option<&[u8]>, String> {
    let cut = || "the answer of ZooKeeper is cut off".to_owned();
    // Request number (4), transaction (8), error (4), then the data.
    let error = frame.get(12..16).and_then(|bytes| bytes.try_into().ok()).map(i32::from_be_bytes);
    match error.ok_or_else(cut)? {
        0 => {}
        NO_NODE => return Ok(None),
        code => return Err(format!("ZooKeeper answers with error {code}")),
    }
    let rest = &frame[16..];
    let length = rest.first_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes) as usize).ok_or_else(cut)?;
    rest.get(4..).and_then(|rest| rest.get(..length)).map(Some).ok_or_else(cut)
}

/// The server in the data of `meta-region-server` or `master`.
pub(super) fn server(data: &[u8]) -> Result<ServerName, String> {
    let wrong = || "the znode has no server in the format of HBase".to_owned();
    let data = match data.split_first() {
        Some((&WRITER_MAGIC, rest)) => {
            let length = rest.first_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes) as usize);
            length.and_then(|length| rest.get(4..)?.get(length..)).ok_or_else(wrong)?
        }
        _ => data,
    };
    let message = data.strip_prefix(PBUF).ok_or_else(wrong)?;
    ZnodeServer::decode(message).map(|znode| znode.server).map_err(|_| wrong())
}

fn framed(out: &mut Vec<u8>, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    body(out);
    let length = (out.len() - start - 4) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

fn buffer(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
    out.extend_from_slice(bytes);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests_have_their_lengths() {
        let mut out = Vec::new();
        get_data(&mut out, 1, "/hbase/master");
        assert_eq!(
            out,
            [&[0, 0, 0, 26, 0, 0, 0, 1, 0, 0, 0, 4, 0, 0, 0, 13][..], b"/hbase/master\0"].concat()
        );
        out.clear();
        connect(&mut out);
        assert_eq!(out.len(), 4 + 45);
    }

    #[test]
    fn a_znode_without_a_server_is_refused() {
        assert!(server(b"").is_err() && server(&[0xff, 0, 0, 0, 9]).is_err() && server(b"PBUF\xff").is_err());
        let mut missing = [0; 16];
        missing[12..].copy_from_slice(&NO_NODE.to_be_bytes());
        assert_eq!(data(&missing), Ok(None));
        assert!(answer_bytes(b"HTTP/1.1 400").is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = (answer_bytes(&bytes), data(&bytes), server(&bytes));
        }

        #[test]
        fn a_server_is_read_as_hbase_writes_it(host in "[a-z.]{1,20}", port in 1_u32..65_536, writer in "[a-z:0-9]{0,12}") {
            let written = ServerName { host_name: host, port: Some(port), start_code: Some(7) };
            let znode = ZnodeServer { server: written.clone() };
            let mut data = vec![WRITER_MAGIC];
            buffer(&mut data, writer.as_bytes());
            data.extend_from_slice(PBUF);
            znode.encode_raw(&mut data);
            prop_assert_eq!(server(&data).unwrap(), written);
        }
    }
}
