//! The number of attributes of a device in a scope, and their bytes. It is stored beside them, so a write needs not to read them.

/// A tally. The default one is that of no attributes, which is not stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Tally {
    pub(super) count: usize,
    pub(super) bytes: usize,
}

impl Tally {
    pub(super) fn encode(self) -> Vec<u8> {
        [(self.count as u64).to_le_bytes(), (self.bytes as u64).to_le_bytes()].concat()
    }

    /// Reads what [`encode`](Self::encode) wrote; `None` if the record is something else.
    pub(super) fn decode(record: &[u8]) -> Option<Self> {
        let (count, bytes) = record.split_at_checked(8)?;
        let number = |bytes: &[u8]| usize::try_from(u64::from_le_bytes(bytes.try_into().ok()?)).ok();
        Some(Self { count: number(count)?, bytes: number(bytes)? })
    }

    /// Takes an attribute out.
    pub(super) fn remove(&mut self, bytes: usize) {
        self.count = self.count.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(bytes);
    }

    pub(super) fn add(&mut self, bytes: usize) {
        self.count += 1;
        self.bytes += bytes;
    }
}
