//! The content of one file: as programs see it, and as it is after a power cut.

use super::survivors::Survivors;

/// The unit of a write of a disk.
const SECTOR_BYTES: usize = 512;

/// The content of a file.
#[derive(Debug, Default, Clone)]
pub(super) struct Content {
    visible: Vec<u8>,
    durable: Vec<u8>,
    unsynced: Vec<Change>,
}

#[derive(Debug, Clone)]
enum Change {
    Write { offset: usize, bytes: Vec<u8> },
    SetLen(usize),
}

impl Content {
    pub(super) fn durable(bytes: Vec<u8>) -> Self {
        Self { visible: bytes.clone(), durable: bytes, unsynced: Vec::new() }
    }

    pub(super) fn visible(&self) -> &[u8] {
        &self.visible
    }

    pub(super) fn write(&mut self, bytes: &[u8], offset: usize) {
        put(&mut self.visible, bytes, offset);
        self.unsynced.push(Change::Write { offset, bytes: bytes.to_vec() });
    }

    pub(super) fn set_len(&mut self, len: usize) {
        self.visible.resize(len, 0);
        self.unsynced.push(Change::SetLen(len));
    }

    pub(super) fn sync(&mut self) {
        for change in std::mem::take(&mut self.unsynced) {
            match change {
                Change::Write { offset, bytes } => put(&mut self.durable, &bytes, offset),
                Change::SetLen(len) => self.durable.resize(len, 0),
            }
        }
    }

    /// After a failed sync programs still see the unsynced changes, but no later sync makes them durable.
    pub(super) fn forget_unsynced(&mut self) {
        self.unsynced.clear();
    }

    pub(super) fn after_cut(&self, survivors: Survivors, dice: &mut Dice) -> Self {
        match survivors {
            Survivors::Synced => Self::durable(self.durable.clone()),
            Survivors::All => Self::durable(self.visible.clone()),
            Survivors::Random(_) => Self::durable(self.torn(dice)),
        }
    }

    /// The durable content with some sectors of the unsynced writes.
    fn torn(&self, dice: &mut Dice) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        for change in &self.unsynced {
            match change {
                Change::SetLen(len) if dice.coin() => bytes.resize(*len, 0),
                Change::SetLen(_) => {}
                Change::Write { offset, bytes: written } => {
                    for (start, end) in sectors(*offset, written.len()) {
                        if dice.coin() {
                            put(&mut bytes, &written[start..end], offset + start);
                        }
                    }
                }
            }
        }
        bytes
    }
}

/// The pieces of a write, split at the ends of sectors, as positions in the write.
fn sectors(offset: usize, len: usize) -> Vec<(usize, usize)> {
    let mut pieces = Vec::new();
    let mut start = 0;
    while start < len {
        let end = len.min(start + SECTOR_BYTES - (offset + start) % SECTOR_BYTES);
        pieces.push((start, end));
        start = end;
    }
    pieces
}

fn put(content: &mut Vec<u8>, bytes: &[u8], offset: usize) {
    let end = offset + bytes.len();
    if content.len() < end {
        content.resize(end, 0);
    }
    content[offset..end].copy_from_slice(bytes);
}

/// A small random number generator (splitmix64). The seed determines all numbers.
#[derive(Debug)]
pub(super) struct Dice(u64);

impl Dice {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn coin(&mut self) -> bool {
        self.next() & 1 == 1
    }

    /// A number below `bound`, which must be above zero.
    pub(super) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_cut_at_sector_ends() {
        assert_eq!(sectors(500, 20), [(0, 12), (12, 20)]);
        assert_eq!(sectors(512, 1024), [(0, 512), (512, 1024)]);
        assert!(sectors(5, 0).is_empty());
    }

    #[test]
    fn a_torn_write_keeps_some_sectors_whole() {
        let mut content = Content::durable(vec![0; 64 * SECTOR_BYTES]);
        content.write(&vec![1; 64 * SECTOR_BYTES], 0);
        let torn = content.after_cut(Survivors::Random(7), &mut Dice::new(7));
        let kept = torn.visible().chunks(SECTOR_BYTES).map(|sector| {
            assert!(sector.iter().all(|byte| *byte == sector[0]), "sectors are written whole");
            usize::from(sector[0])
        });
        let kept: usize = kept.sum();
        assert!((10..54).contains(&kept), "about half of 64 sectors, not {kept}");
    }
}
