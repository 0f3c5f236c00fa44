//! Checksums of packages, with ThingsBoard's names and forms.

use md5::Md5;
use sha2::{Digest, Sha256, Sha384, Sha512};

/// An algorithm. ThingsBoard's MURMUR3_32 and MURMUR3_128 are absent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ChecksumAlgorithm {
    Md5,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
    /// CRC-32 (ISO-HDLC), lowest byte first as in ThingsBoard.
    Crc32,
}

impl ChecksumAlgorithm {
    /// All algorithms.
    pub const ALL: [Self; 5] = [Self::Md5, Self::Sha256, Self::Sha384, Self::Sha512, Self::Crc32];

    /// ThingsBoard's name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Md5 => "MD5",
            Self::Sha256 => "SHA256",
            Self::Sha384 => "SHA384",
            Self::Sha512 => "SHA512",
            Self::Crc32 => "CRC32",
        }
    }
}

impl std::str::FromStr for ChecksumAlgorithm {
    type Err = String;

    /// Ignores case, as ThingsBoard does.
    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|one| one.name().eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("{name:?}; this server has {names}")
        })
    }
}

/// A checksum that is being computed.
#[derive(Debug, Clone)]
pub(crate) enum Checksum {
    Md5(Md5),
    Sha256(Sha256),
    Sha384(Sha384),
    Sha512(Sha512),
    Crc32(crc32fast::Hasher),
}

impl Checksum {
    pub(crate) fn new(algorithm: ChecksumAlgorithm) -> Self {
        match algorithm {
            ChecksumAlgorithm::Md5 => Self::Md5(Md5::new()),
            ChecksumAlgorithm::Sha256 => Self::Sha256(Sha256::new()),
            ChecksumAlgorithm::Sha384 => Self::Sha384(Sha384::new()),
            ChecksumAlgorithm::Sha512 => Self::Sha512(Sha512::new()),
            ChecksumAlgorithm::Crc32 => Self::Crc32(crc32fast::Hasher::new()),
        }
    }

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        match self {
            Self::Md5(hasher) => hasher.update(bytes),
            Self::Sha256(hasher) => hasher.update(bytes),
            Self::Sha384(hasher) => hasher.update(bytes),
            Self::Sha512(hasher) => hasher.update(bytes),
            Self::Crc32(hasher) => hasher.update(bytes),
        }
    }

    /// The checksum in lower-case hexadecimal digits.
    pub(crate) fn finish(self) -> String {
        match self {
            Self::Md5(hasher) => hex(&hasher.finalize()),
            Self::Sha256(hasher) => hex(&hasher.finalize()),
            Self::Sha384(hasher) => hex(&hasher.finalize()),
            Self::Sha512(hasher) => hex(&hasher.finalize()),
            Self::Crc32(hasher) => hex(&hasher.finalize().to_le_bytes()),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_are_those_of_their_standards() {
        for (name, expected) in [
            ("MD5", "900150983cd24fb0d6963f7d28e17f72"),
            ("sha256", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            ("CRC32", "c2412435"),
        ] {
            let mut checksum = Checksum::new(name.parse().unwrap());
            checksum.add(b"a");
            checksum.add(b"bc");
            assert_eq!(checksum.finish(), expected, "{name}");
        }
        for (algorithm, digits) in [(ChecksumAlgorithm::Sha384, 96), (ChecksumAlgorithm::Sha512, 128)] {
            assert_eq!(Checksum::new(algorithm).finish().len(), digits);
        }
        assert!("MURMUR3_32".parse::<ChecksumAlgorithm>().unwrap_err().contains("MD5, SHA256"));
    }
}
