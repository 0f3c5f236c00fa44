//! The record of an offer: when it ends, and the hash of its secret. `docs/format/claims.md` describes it.

use kv::Space;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// The space of offers. A key is the tenant's id and the device's id.
pub(crate) const CLAIMS: Space = Space::new("claims");

/// Bytes of the time, and of the hash behind it.
const TIME_BYTES: usize = 8;
const HASH_BYTES: usize = 32;

/// An offer of a device to be claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offer {
    /// The last millisecond since 1970 at which the device can be claimed.
    pub(crate) expires_ms: i64,
    /// SHA-256 of the secret.
    pub(crate) hash: [u8; HASH_BYTES],
}

impl Offer {
    pub(crate) fn new(secret: &str, expires_ms: i64) -> Self {
        Self { expires_ms, hash: hash(secret) }
    }

    /// Whether a claim with this secret succeeds now.
    pub(crate) fn takes(&self, secret: &str, now_ms: i64) -> bool {
        // Hashes may be compared in any time: nobody can choose them byte by byte.
        now_ms <= self.expires_ms && self.hash == hash(secret)
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut record = Vec::with_capacity(TIME_BYTES + HASH_BYTES);
        record.extend_from_slice(&self.expires_ms.to_le_bytes());
        record.extend_from_slice(&self.hash);
        record
    }

    /// Reads what [`encode`](Self::encode) wrote; `None` if the record is something else.
    pub(crate) fn decode(record: &[u8]) -> Option<Self> {
        let (time, hash) = record.split_at_checked(TIME_BYTES)?;
        let expires_ms = i64::from_le_bytes(time.try_into().ok()?);
        Some(Self { expires_ms, hash: hash.try_into().ok()? })
    }
}

/// Whether an offer can be deleted at a time, in microseconds since 1970: its time is over, or the record is something else.
pub(crate) fn has_expired(_key: &[u8], record: &[u8], now_us: i64) -> bool {
    Offer::decode(record).is_none_or(|offer| offer.expires_ms < now_us.div_euclid(1_000))
}

fn hash(secret: &str) -> [u8; HASH_BYTES] {
    Sha256::digest(secret.as_bytes()).into()
}

/// The key of the offer of a device.
pub(crate) fn claim_key(tenant: Uuid, device: Uuid) -> Vec<u8> {
    [*tenant.as_bytes(), *device.as_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_offer_comes_back_and_takes_its_secret_until_its_end() {
        let offer = Offer::new("secret", 1_000);
        assert_eq!(Offer::decode(&offer.encode()), Some(offer));
        assert!(offer.takes("secret", 1_000) && !offer.takes("secret", 1_001) && !offer.takes("Secret", 0));
        let expired_at = |now_us| has_expired(b"", &offer.encode(), now_us);
        assert!(!expired_at(1_000_999) && expired_at(1_001_000) && has_expired(b"", b"other", 0));
    }

    #[test]
    fn the_bytes_are_those_of_the_format() {
        let bytes = Offer::new("", 258).encode();
        assert_eq!(bytes[..9], [2, 1, 0, 0, 0, 0, 0, 0, 0xe3]);
        for wrong in [&bytes[..7], &bytes[..39], &[&bytes[..], &[0]].concat()] {
            assert_eq!(Offer::decode(wrong), None);
        }
        let key = claim_key(Uuid::from_u128(1), Uuid::from_u128(2));
        assert_eq!((key.len(), key[15], key[31]), (32, 1, 2));
    }
}
