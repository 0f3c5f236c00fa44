//! The regions of a table and their servers, from rows of `hbase:meta`.

use std::collections::BTreeMap;

use prost::Message as _;

use super::cell::Cell;
use super::connection::Server;
use super::messages::RegionInfo;
use super::zookeeper::PBUF;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Region {
    /// Its full name, which is its row in `hbase:meta`.
    pub(super) name: Vec<u8>,
    /// Its first row; empty for the first region.
    pub(super) start: Vec<u8>,
    /// The row after its last; empty for the last region.
    pub(super) end: Vec<u8>,
    /// The server that has opened it.
    pub(super) server: Server,
}

/// All regions of a table in the order of their rows, without gaps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RegionMap(Vec<Region>);

impl RegionMap {
    /// Builds the map from the cells of the table's rows of `hbase:meta`. The error states which region is missing or has no
    /// server; both happen while regions move and split.
    pub(super) fn of_meta<'a>(cells: impl Iterator<Item = Cell<'a>>) -> Result<Self, String> {
        let mut rows: BTreeMap<Vec<u8>, MetaRow> = BTreeMap::new();
        for cell in cells {
            let row = rows.entry(cell.row.to_vec()).or_default();
            match cell.qualifier {
                b"regioninfo" => row.info = Some(region_info(cell.value)?),
                b"server" => row.server = server(cell.value),
                _ => {}
            }
        }
        let mut regions = Vec::new();
        for (name, row) in rows {
            let Some(info) = row.info else { continue };
            if info.offline == Some(true) || info.split == Some(true) {
                continue;
            }
            let server = row.server.ok_or_else(|| format!("region {} has no server", printable(&name)))?;
            let (start, end) = (info.start_key.unwrap_or_default(), info.end_key.unwrap_or_default());
            regions.push(Region { name, start, end, server });
        }
        regions.sort_by(|a, b| a.start.cmp(&b.start));
        without_gaps(&regions)?;
        Ok(Self(regions))
    }

    /// The region of a row.
    pub(super) fn of_row(&self, row: &[u8]) -> &Region {
        // The first region begins with the empty row, so one is always found.
        &self.0[self.0.partition_point(|region| region.start.as_slice() <= row) - 1]
    }

    /// All regions.
    pub(super) fn all(&self) -> &[Region] {
        &self.0
    }

    /// All servers, each once.
    pub(super) fn servers(&self) -> Vec<Server> {
        let mut servers: Vec<Server> = self.0.iter().map(|region| region.server.clone()).collect();
        servers.sort();
        servers.dedup();
        servers
    }

    /// The same with another server of one region; `None` if there is no such region.
    pub(super) fn moved(&self, name: &[u8], server: &Server) -> Option<Self> {
        let at = self.0.iter().position(|region| region.name == name)?;
        let mut regions = self.0.clone();
        regions[at].server = server.clone();
        Some(Self(regions))
    }
}

#[derive(Debug, Default)]
struct MetaRow {
    info: Option<RegionInfo>,
    server: Option<Server>,
}

fn region_info(value: &[u8]) -> Result<RegionInfo, String> {
    let message = value.strip_prefix(PBUF).and_then(|message| RegionInfo::decode(message).ok());
    message
        .ok_or_else(|| "hbase:meta has a region that is not in the format of HBase 0.96 and later".to_owned())
}

/// `host:port`; `None` for an empty value of a region that is closed.
fn server(value: &[u8]) -> Option<Server> {
    let (host, port) = std::str::from_utf8(value).ok()?.rsplit_once(':')?;
    Some(Server { host: host.to_owned(), port: port.parse().ok()? })
}

fn without_gaps(regions: &[Region]) -> Result<(), String> {
    let Some(first) = regions.first() else { return Err("hbase:meta has no region of the table".to_owned()) };
    let mut end: &[u8] = &[];
    for region in regions {
        if region.start != end || (region.start.is_empty() && region.name != first.name) {
            return Err(format!("the regions of the table have a gap at row {}", printable(end)));
        }
        end = &region.end;
    }
    if end.is_empty() { Ok(()) } else { Err("the table has no last region".to_owned()) }
}

/// Bytes as HBase prints them: other than printable ones as `\xNN`.
pub(super) fn printable(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

#[cfg(test)]
mod tests {
    use super::super::messages::TableName;
    use super::*;

    fn row(start: &str, end: &str, split: bool) -> (Vec<u8>, Vec<u8>) {
        let info = RegionInfo {
            table_name: TableName { namespace: b"default".to_vec(), qualifier: b"T".to_vec() },
            start_key: Some(start.into()),
            end_key: Some(end.into()),
            split: Some(split),
            ..RegionInfo::default()
        };
        (
            format!("T,{start},1{}.", if split { "" } else { "2" }).into_bytes(),
            [PBUF, &info.encode_to_vec()].concat(),
        )
    }

    fn map(rows: &[(Vec<u8>, Vec<u8>)], servers: &[&str]) -> Result<RegionMap, String> {
        let cell = |row, qualifier, value| Cell { row, family: b"info", qualifier, value };
        let cells = rows.iter().zip(servers).flat_map(|((name, info), server)| {
            [cell(&name[..], &b"regioninfo"[..], &info[..]), cell(name, b"server", server.as_bytes())]
        });
        RegionMap::of_meta(cells)
    }

    #[test]
    fn a_row_belongs_to_the_region_that_begins_before_it() {
        // The region that was split is still there for a while.
        let rows = [row("m", "", false), row("", "", true), row("", "m", false)];
        let map = map(&rows, &["b:2", "a:1", "a:1"]).unwrap();
        let server = |row: &[u8]| map.of_row(row).server.to_string();
        assert_eq!(
            (server(b""), server(b"lzz"), server(b"m"), server(b"z")),
            ("a:1".into(), "a:1".into(), "b:2".into(), "b:2".into())
        );
        assert_eq!(map.servers().len(), 2);
        let there = Server { host: "c".into(), port: 3 };
        let moved = map.moved(&map.of_row(b"z").name, &there).unwrap();
        assert_eq!((&moved.of_row(b"z").server, moved.of_row(b"a")), (&there, map.of_row(b"a")));
        assert_eq!(map.moved(b"T,x,1.", &there), None);
    }

    #[test]
    fn a_table_in_motion_is_not_a_map() {
        let error = |rows: &[(Vec<u8>, Vec<u8>)], servers: &[&str]| map(rows, servers).unwrap_err();
        assert!(error(&[], &[]).contains("no region of the table"));
        assert!(error(&[row("", "m", false)], &["a:1"]).contains("no last region"));
        assert!(error(&[row("m", "", false)], &["a:1"]).contains("a gap at row"));
        assert!(
            error(&[row("", "k", false), row("m", "", false)], &["a:1", "a:1"]).contains("a gap at row k")
        );
        assert!(error(&[row("", "", false)], &[""]).contains("T,,12. has no server"));
        let cell = Cell { row: b"T,,1.", family: b"info", qualifier: b"regioninfo", value: b"old" };
        assert!(RegionMap::of_meta([cell].into_iter()).unwrap_err().contains("0.96"));
    }
}
