//! The records of packages. `docs/format/packages.md` describes them.

use kv::{KeyRange, Space};
use model::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::package::{Package, PackageFile};

/// What describes packages: JSON by the id of the package.
pub(crate) const PACKAGES: Space = Space::new("packages");
/// The bytes of packages: the id of the package, and the number of the piece.
pub(crate) const PIECES: Space = Space::new("package_pieces");
/// Devices and profiles whose packages are being changed: kind and id. The value is the tenant.
pub(crate) const CHANGES: Space = Space::new("package_changes");

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    tenant: Uuid,
    profile: Option<Uuid>,
    #[serde(rename = "type")]
    kind: String,
    title: String,
    version: String,
    tag: String,
    url: Option<String>,
    additional_info: Option<String>,
    created_ms: i64,
    file: Option<FileRecord>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct FileRecord {
    name: String,
    content_type: String,
    bytes: u64,
    algorithm: String,
    checksum: String,
}

/// The key of a package.
pub(crate) fn key(package: Uuid) -> Vec<u8> {
    package.as_bytes().to_vec()
}

/// The key of a piece of a package.
pub(crate) fn piece_key(package: Uuid, number: u64) -> Vec<u8> {
    let number = u32::try_from(number).unwrap_or(u32::MAX);
    [&package.as_bytes()[..], &number.to_be_bytes()].concat()
}

/// All pieces of a package, from a number on.
pub(crate) fn pieces_from(package: Uuid, number: u64) -> KeyRange {
    KeyRange::new(piece_key(package, number), [&package.as_bytes()[..], &[0xff; 5]].concat())
}

pub(crate) fn encode(package: &Package) -> Vec<u8> {
    let file = package.file.as_ref().map(|file| FileRecord {
        name: file.name.clone(),
        content_type: file.content_type.clone(),
        bytes: file.bytes,
        algorithm: file.algorithm.name().to_owned(),
        checksum: file.checksum.clone(),
    });
    let record = Record {
        tenant: package.tenant,
        profile: package.profile,
        kind: package.kind.name().to_owned(),
        title: package.title.clone(),
        version: package.version.clone(),
        tag: package.tag.clone(),
        url: package.url.clone(),
        additional_info: package.additional_info.clone(),
        created_ms: package.created_at.millis(),
        file,
    };
    serde_json::to_vec(&record).expect("BUG: ids, numbers and texts are always JSON")
}

/// Reads what [`encode`] wrote.
pub(super) fn decode(key: &[u8], record: &[u8]) -> Result<Package, String> {
    let id = Uuid::from_slice(key).map_err(|error| error.to_string())?;
    let record: Record = serde_json::from_slice(record).map_err(|error| error.to_string())?;
    let file = match record.file {
        Some(file) => Some(PackageFile {
            name: file.name,
            content_type: file.content_type,
            bytes: file.bytes,
            algorithm: file.algorithm.parse()?,
            checksum: file.checksum,
        }),
        None => None,
    };
    Ok(Package {
        id,
        tenant: record.tenant,
        profile: record.profile,
        kind: record.kind.parse()?,
        title: record.title,
        version: record.version,
        tag: record.tag,
        url: record.url,
        additional_info: record.additional_info,
        file,
        created_at: Timestamp::from_millis(record.created_ms).unwrap_or(Timestamp::MAX),
    })
}

#[cfg(test)]
mod tests {
    use super::super::checksum::ChecksumAlgorithm;
    use super::*;
    use crate::registry::PackageKind;

    #[test]
    fn a_package_comes_back() {
        let file = PackageFile {
            name: "a.bin".into(),
            content_type: "application/octet-stream".into(),
            bytes: 7,
            algorithm: ChecksumAlgorithm::Crc32,
            checksum: "00".into(),
        };
        let package = Package {
            id: Uuid::from_u128(1),
            tenant: Uuid::from_u128(2),
            profile: None,
            kind: PackageKind::Software,
            title: "app".into(),
            version: "2".into(),
            tag: "app 2".into(),
            url: None,
            additional_info: Some("{}".into()),
            file: Some(file),
            created_at: Timestamp::from_millis(5).unwrap(),
        };
        assert_eq!(decode(&key(package.id), &encode(&package)), Ok(package.clone()));
        let without = Package { file: None, url: Some("https://x".into()), ..package };
        assert_eq!(decode(&key(without.id), &encode(&without)), Ok(without));
        assert!(decode(b"short", b"{}").is_err() && decode(&[0; 16], b"{}").is_err());
    }

    #[test]
    fn pieces_follow_each_other_and_belong_to_their_package() {
        let [one, two] = [1, 2].map(Uuid::from_u128);
        let range = pieces_from(one, 256);
        assert!(range.contains(&piece_key(one, 256)) && range.contains(&piece_key(one, u64::from(u32::MAX))));
        assert!(!range.contains(&piece_key(one, 255)) && !range.contains(&piece_key(two, 0)));
    }
}
