//! Checksums of files: CRC-32C detects accidents, SHA-256 detects forgery.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest as _, Sha256};

/// A SHA-256. A reader that has it from a trusted source can verify the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Digest([u8; 32]);

impl Digest {
    /// Computes the digest of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(formatter, "{byte:02x}"))
    }
}

impl FromStr for Digest {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        const FORM: &str = "a SHA-256 has 64 hexadecimal digits";
        let digits = text.as_bytes();
        if digits.len() != 64 || !digits.iter().all(u8::is_ascii_hexdigit) {
            return Err(FORM);
        }
        let mut digest = [0; 32];
        for (byte, pair) in digest.iter_mut().zip(text.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).map_err(|_| FORM)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| FORM)?;
        }
        Ok(Self(digest))
    }
}

/// Length and checksums of bytes that arrive in pieces.
#[derive(Debug, Clone, Default)]
pub struct Sums {
    bytes: u64,
    crc: u32,
    sha256: Sha256,
}

impl Sums {
    /// Adds the next bytes.
    pub fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.crc = crc32c::crc32c_append(self.crc, bytes);
        self.sha256.update(bytes);
    }

    /// The number of bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The CRC-32C of the bytes.
    pub fn crc(&self) -> u32 {
        self.crc
    }

    /// The SHA-256 of the bytes.
    pub fn digest(self) -> Digest {
        Digest(self.sha256.finalize().into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_digest_is_that_of_other_programs_and_comes_back_from_its_text() {
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(Digest::of(b"abc").to_string(), text);
        assert_eq!(text.parse(), Ok(Digest::of(b"abc")));
        assert_eq!(text.to_uppercase().parse(), Ok(Digest::of(b"abc")));
        for wrong in ["", &text[1..], &format!("{text}0"), &text.replace('b', "g"), &"+a".repeat(32)] {
            assert!(wrong.parse::<Digest>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn pieces_have_the_sums_of_the_whole() {
        let mut sums = Sums::default();
        sums.add(b"a");
        sums.add(b"bc");
        assert_eq!((sums.bytes(), sums.crc()), (3, crc32c::crc32c(b"abc")));
        assert_eq!(sums.digest(), Digest::of(b"abc"));
    }
}
