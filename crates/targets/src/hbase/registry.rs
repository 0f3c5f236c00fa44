//! Finds the master and the region server of `hbase:meta`: through ZooKeeper, or through the masters (from HBase 2.3 on).

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use clients::target_url::{HBASE, TargetUrl};

use super::connection::{CallError, Connection, Server, connect};
use super::messages::{Empty, GetActiveMasterResponse, GetMetaRegionLocationsResponse, ServerName};
use super::zookeeper;

/// Where to ask.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Registry {
    /// A server of ZooKeeper, and the path of HBase's znodes.
    ZooKeeper(Server, String),
    /// A master, or from HBase 2.5 on any region server.
    Rpc(Server),
}

impl Registry {
    /// Parses `hbase://host:2181/hbase` or `hbase+rpc://host:16000`.
    pub(super) fn parse(url: &str) -> Result<Self, String> {
        let url = TargetUrl::parse(url, &HBASE)?;
        let server = Server { port: url.port(), host: url.host.clone() };
        match (url.scheme.as_str(), url.path.as_str()) {
            ("hbase+rpc", "") => Ok(Self::Rpc(server)),
            ("hbase+rpc", _) => {
                Err("hbase+rpc:// asks a master, which has no znodes: leave the path out".to_owned())
            }
            (_, "") => Ok(Self::ZooKeeper(server, "/hbase".to_owned())),
            (_, path) => Ok(Self::ZooKeeper(server, format!("/{path}"))),
        }
    }

    /// The address to print.
    pub(super) fn url(&self) -> String {
        match self {
            Self::ZooKeeper(server, path) => format!("hbase://{server}{path}"),
            Self::Rpc(server) => format!("hbase+rpc://{server}"),
        }
    }

    /// The active master.
    pub(super) fn master(&self, silence: Duration) -> Result<Server, String> {
        let found = match self {
            Self::ZooKeeper(server, path) => znode(server, &format!("{path}/master"), silence),
            Self::Rpc(server) => {
                let answer: Result<GetActiveMasterResponse, CallError> =
                    Connection::open(server, "ClientMetaService", silence)
                        .and_then(|mut connection| connection.call("GetActiveMaster", &Empty {}));
                answer.map_err(|error| error.to_string()).map(|answer| answer.server_name)
            }
        };
        self.server_of(found, "the active master")
    }

    /// The region server of `hbase:meta`.
    pub(super) fn meta(&self, silence: Duration) -> Result<Server, String> {
        let found = match self {
            Self::ZooKeeper(server, path) => znode(server, &format!("{path}/meta-region-server"), silence),
            Self::Rpc(server) => {
                let answer: Result<GetMetaRegionLocationsResponse, CallError> =
                    Connection::open(server, "ClientMetaService", silence)
                        .and_then(|mut connection| connection.call("GetMetaRegionLocations", &Empty {}));
                let first = |answer: GetMetaRegionLocationsResponse| {
                    answer.meta_locations.into_iter().find_map(|location| location.server_name)
                };
                answer.map_err(|error| error.to_string()).map(first)
            }
        };
        self.server_of(found, "the server of hbase:meta")
    }

    fn server_of(&self, found: Result<Option<ServerName>, String>, what: &str) -> Result<Server, String> {
        let name = found.map_err(|why| format!("{}: {why}", self.url()))?;
        let server = name.and_then(|name| {
            Some(Server {
                host: name.host_name,
                port: u16::try_from(name.port?).ok().filter(|port| *port > 0)?,
            })
        });
        server.ok_or_else(|| {
            format!(
                "{}: it does not know {what}. HBase is starting, or its znodes have another path (zookeeper.znode.parent)",
                self.url()
            )
        })
    }
}

/// The server in a znode; `None` if there is no such znode.
fn znode(server: &Server, path: &str, silence: Duration) -> Result<Option<ServerName>, String> {
    let mut stream = connect(server, silence)?;
    let mut out = Vec::new();
    zookeeper::connect(&mut out);
    exchange(&mut stream, &mut out)?;
    zookeeper::get_data(&mut out, 1, path);
    let answer = exchange(&mut stream, &mut out)?;
    zookeeper::close(&mut out, 2);
    // The session ends with its timeout too.
    let _ = stream.write_all(&out);
    zookeeper::data(&answer)?.map(zookeeper::server).transpose()
}

/// Sends a request and reads its answer, without the length field. It leaves `out` empty.
fn exchange(stream: &mut TcpStream, out: &mut Vec<u8>) -> Result<Vec<u8>, String> {
    let failed = |error: std::io::Error| format!("ZooKeeper does not answer: {error}");
    stream.write_all(out).map_err(failed)?;
    out.clear();
    let mut answer = vec![0; 4];
    stream.read_exact(&mut answer).map_err(failed)?;
    let bytes = zookeeper::answer_bytes(&answer)?.unwrap_or(4);
    answer.resize(bytes - 4, 0);
    stream.read_exact(&mut answer).map_err(failed)?;
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_names_the_registry() {
        let url = |text: &str| Registry::parse(text).map(|registry| registry.url());
        assert_eq!(url("hbase://zk"), Ok("hbase://zk:2181/hbase".to_owned()));
        assert_eq!(url("hbase://zk:9/other"), Ok("hbase://zk:9/other".to_owned()));
        assert_eq!(url("hbase+rpc://m"), Ok("hbase+rpc://m:16000".to_owned()));
        assert!(url("hbase+rpc://m/hbase").unwrap_err().contains("leave the path out"));
        assert!(url("hbase://me@zk").is_err() && url("zk:2181").is_err());
    }

    #[test]
    fn a_closed_port_is_named() {
        let error = Registry::parse("hbase://127.0.0.1:1").unwrap().meta(Duration::from_secs(1)).unwrap_err();
        assert!(error.contains("hbase://127.0.0.1:1/hbase: no connection to 127.0.0.1:1"), "{error}");
    }
}
