//! The allocator of a program that limits what its statements allocate.
//!
//! Operators account for the memory that they plan to hold. They do not account for the result of a function or for a batch on its
//! way, so the allocator counts all allocations. Each statement has a [`Slot`]. A thread that works for a statement carries the
//! number of the slot, and its allocations are added to the slot.
//!
//! 1. An allocation of [`HEADED_BYTES_MIN`] bytes or more begins with a header that names its slot. Whichever thread frees it, the
//!    bytes leave that slot.
//! 2. A smaller allocation has no header. It is added to, and taken from, the slot of the thread that allocates or frees it. A
//!    statement frees nearly all of its small allocations itself, also those of its answer, so the error stays far below any limit.
//! 3. A slot is used again after its statement has ended. A header also names the generation of the slot, so that memory of an
//!    earlier statement is not taken from a later one. The bytes and a part of their generation are one number, so this also holds
//!    for a thread that frees memory while its statement ends and the next one begins.
//! 4. Each thread also counts all its allocations in one of [`SHARDS`] counters, whose sum is what the program has allocated.
//! 5. The allocator itself allocates nothing, takes no lock and never panics.

#![allow(unsafe_code, reason = "an allocator is an unsafe trait; each block has its proof")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Smallest allocation with a header. The header, or one alignment, is small in comparison.
const HEADED_BYTES_MIN: usize = 1024;
/// Bytes of a header. Every offset is a multiple of them.
const HEADER_BYTES: usize = size_of::<u64>();
/// Bytes of small allocations that a thread counts before it adds them to the slot.
const SMALL_BYTES_KEPT: i64 = 64 * 1024;
/// The number of statements that may exist at once: running ones, waiting ones, and ended ones that still compute.
pub(crate) const SLOTS: usize = 4096;

/// The system's allocator, which also counts what statements allocate. A program makes it the global allocator. Without it, a
/// statement is limited only by what its operators account for.
#[derive(Debug, Clone, Copy, Default)]
pub struct CountingAllocator;

/// Bits of the bytes in [`Slot::count`], with their sign.
const BYTES_BITS: u32 = 48;

/// The bytes of one statement. The alignment keeps slots in separate cache lines.
#[repr(align(64))]
struct Slot {
    is_taken: AtomicBool,
    generation: AtomicU32,
    /// The lowest bits of the generation, and the bytes: see [`count`].
    count: AtomicU64,
}

static ALL: [Slot; SLOTS] = [const { Slot::new() }; SLOTS];

impl Slot {
    const fn new() -> Self {
        Self { is_taken: AtomicBool::new(false), generation: AtomicU32::new(0), count: AtomicU64::new(0) }
    }

    /// Begins a generation without bytes, and returns it.
    fn begin(&self) -> u32 {
        let generation = self.generation.fetch_add(1, Ordering::AcqRel).wrapping_add(1);
        self.count.store(count(generation, 0), Ordering::Release);
        generation
    }

    /// Adds bytes if they belong to the generation that the slot counts for.
    fn add(&self, generation: u32, bytes: i64) {
        let mut found = self.count.load(Ordering::Relaxed);
        while found >> BYTES_BITS == count(generation, 0) >> BYTES_BITS {
            let sum = count(generation, bytes_of(found).wrapping_add(bytes));
            match self.count.compare_exchange_weak(found, sum, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return,
                Err(changed) => found = changed,
            }
        }
    }

    fn bytes(&self) -> i64 {
        bytes_of(self.count.load(Ordering::Relaxed))
    }
}

/// The lowest 16 bits of a generation, and bytes in the other 48: more than any machine has.
fn count(generation: u32, bytes: i64) -> u64 {
    u64::from(generation) << BYTES_BITS | bytes.cast_unsigned() & ((1 << BYTES_BITS) - 1)
}

fn bytes_of(count: u64) -> i64 {
    (count << (u64::BITS - BYTES_BITS)).cast_signed() >> (u64::BITS - BYTES_BITS)
}

/// Counters of all allocations. Threads share one if there are more of them, which costs time and no bytes.
const SHARDS: usize = 64;

/// The bytes that some threads have allocated, less those that they have freed. The alignment keeps shards in separate cache
/// lines.
#[repr(align(64))]
struct Shard(AtomicI64);

static PROCESS: [Shard; SHARDS] = [const { Shard(AtomicI64::new(0)) }; SHARDS];
/// The number of threads that have got a shard.
static THREADS: AtomicUsize = AtomicUsize::new(0);

/// The bytes that the whole program has allocated and not freed, if its allocator is [`CountingAllocator`]. The system's
/// allocator takes some bytes more for each allocation.
pub fn allocated_bytes() -> u64 {
    // A block may be allocated by one thread and freed by another, so only the sum means something.
    let sum = PROCESS.iter().fold(0i64, |sum, shard| sum.wrapping_add(shard.0.load(Ordering::Relaxed)));
    u64::try_from(sum).unwrap_or(0)
}

/// A slot and its generation: `generation << 32 | index + 1`. Zero is not a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Owner(u64);

const NOBODY: Owner = Owner(0);

/// The slot that the thread works for, the small allocations that it has not yet added to the slot, and its shard.
struct Working {
    owner: Cell<Owner>,
    small: Cell<i64>,
    /// The index of the shard and one; zero before the first allocation.
    shard: Cell<usize>,
}

thread_local! {
    // A constant without a destructor: its use neither allocates nor fails, not even while the thread ends.
    static WORKING: Working =
        const { Working { owner: Cell::new(NOBODY), small: Cell::new(0), shard: Cell::new(0) } };
}

/// A slot that belongs to one statement until dropped.
#[derive(Debug)]
pub(crate) struct Account(Owner);

impl Account {
    /// Takes a free slot; `None` if all are taken.
    pub(crate) fn open() -> Option<Self> {
        let free = |slot: &Slot| !slot.is_taken.swap(true, Ordering::AcqRel);
        let index = ALL.iter().position(free)?;
        let generation = ALL[index].begin();
        Some(Self(Owner(u64::from(generation) << 32 | (index as u64 + 1))))
    }

    /// The bytes that the statement has allocated and that are not freed. Small allocations of threads that work at this moment may
    /// be missing.
    pub(crate) fn bytes(&self) -> usize {
        let bytes = self.0.slot().map_or(0, Slot::bytes);
        usize::try_from(bytes).unwrap_or(0)
    }

    /// Counts this thread's allocations for the statement until the guard is dropped.
    pub(crate) fn enter(&self) -> Entered {
        enter(self.0)
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let Some(slot) = self.0.slot() else { return };
        // From here on, headers of this generation belong to no statement.
        slot.generation.fetch_add(1, Ordering::AcqRel);
        slot.is_taken.store(false, Ordering::Release);
    }
}

/// Counts this thread's allocations for no statement until the guard is dropped.
pub(crate) fn leave() -> Entered {
    enter(NOBODY)
}

fn enter(owner: Owner) -> Entered {
    flush_small();
    Entered { before: WORKING.with(|working| working.owner.replace(owner)) }
}

/// Adds the small allocations that this thread has counted to the slot of its statement.
pub(crate) fn flush_small() {
    WORKING.with(|working| add(working.owner.get(), working.small.replace(0)));
}

/// The slot that the thread worked for before.
#[derive(Debug)]
pub(crate) struct Entered {
    before: Owner,
}

impl Drop for Entered {
    fn drop(&mut self) {
        flush_small();
        WORKING.with(|working| working.owner.set(self.before));
    }
}

impl Owner {
    fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// Returns the slot, if it still has this generation.
    fn slot(self) -> Option<&'static Slot> {
        let index = (self.0 & u64::from(u32::MAX)).checked_sub(1)?;
        let slot = ALL.get(usize::try_from(index).ok()?)?;
        (slot.generation.load(Ordering::Acquire) == self.generation()).then_some(slot)
    }
}

fn add(owner: Owner, bytes: i64) {
    if bytes != 0
        && let Some(slot) = owner.slot()
    {
        slot.add(owner.generation(), bytes);
    }
}

impl Working {
    /// Counts bytes for the whole program.
    #[inline]
    fn count(&self, bytes: i64) {
        let mut shard = self.shard.get();
        if shard == 0 {
            shard = THREADS.fetch_add(1, Ordering::Relaxed) % SHARDS + 1;
            self.shard.set(shard);
        }
        PROCESS[(shard - 1) % SHARDS].0.fetch_add(bytes, Ordering::Relaxed);
    }
}

#[inline]
fn add_small(bytes: i64) {
    WORKING.with(|working| {
        working.count(bytes);
        let owner = working.owner.get();
        if owner == NOBODY {
            return;
        }
        let sum = working.small.get() + bytes;
        if sum.abs() < SMALL_BYTES_KEPT {
            working.small.set(sum);
        } else {
            working.small.set(0);
            add(owner, sum);
        }
    });
}

/// Converts bytes to the type of the counters. No allocation is larger than `isize::MAX`.
fn signed(bytes: usize) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

fn is_headed(layout: Layout) -> bool {
    layout.size() >= HEADED_BYTES_MIN
}

/// Returns the layout of an allocation with its header, and the offset of the allocation in it; `None` if it is too large.
fn with_header(layout: Layout) -> Option<(Layout, usize)> {
    let align = layout.align().max(HEADER_BYTES);
    // The header lies right before the allocation; an offset of one alignment keeps the allocation aligned.
    let size = layout.size().checked_add(align)?;
    Some((Layout::from_size_align(size, align).ok()?, align))
}

impl CountingAllocator {
    /// # Safety
    /// `allocate` returns memory of the layout it is given, or null.
    unsafe fn allocate(self, layout: Layout, allocate: unsafe fn(&System, Layout) -> *mut u8) -> *mut u8 {
        if !is_headed(layout) {
            add_small(signed(layout.size()));
            // SAFETY: the caller's layout has a size above zero, as for us.
            return unsafe { allocate(&System, layout) };
        }
        let Some((whole, offset)) = with_header(layout) else { return std::ptr::null_mut() };
        // SAFETY: `whole` is larger than `layout`, so its size is above zero.
        let start = unsafe { allocate(&System, whole) };
        if start.is_null() {
            return start;
        }
        let owner = WORKING.with(|working| {
            working.count(signed(layout.size()));
            working.owner.get()
        });
        add(owner, signed(layout.size()));
        // SAFETY: `whole` has `offset + layout.size()` bytes, so both pointers lie in it. `offset` is a multiple of the header's size
        // and alignment, and so is `start`: the header is aligned and ends where the allocation begins.
        unsafe {
            let allocation = start.add(offset);
            allocation.sub(HEADER_BYTES).cast::<u64>().write(owner.0);
            allocation
        }
    }
}

// SAFETY: memory comes from the system's allocator with the layout that was asked for, or a larger one that begins `offset` bytes
// earlier. Whether it has a header follows from the layout alone, which the caller must give again to free it, so what is freed is
// exactly what was allocated. Nothing here unwinds: counters wrap, thread locals are constants without destructors.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: `System::alloc` does what it must.
        unsafe { self.allocate(layout, System::alloc) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above. Only the header is written, so the allocation stays zero.
        unsafe { self.allocate(layout, System::alloc_zeroed) }
    }

    unsafe fn dealloc(&self, allocation: *mut u8, layout: Layout) {
        if !is_headed(layout) {
            add_small(-signed(layout.size()));
            // SAFETY: it was allocated by the system's allocator with this layout.
            return unsafe { System.dealloc(allocation, layout) };
        }
        // The same call has returned a layout when the memory was allocated.
        let Some((whole, offset)) = with_header(layout) else { return };
        // SAFETY: `allocate` has put a header before an allocation of this layout, at this offset.
        unsafe {
            let owner = Owner(allocation.sub(HEADER_BYTES).cast::<u64>().read());
            WORKING.with(|working| working.count(-signed(layout.size())));
            add(owner, -signed(layout.size()));
            System.dealloc(allocation.sub(offset), whole);
        }
    }

    unsafe fn realloc(&self, allocation: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller promises that `new_size` is above zero and, rounded up to the alignment, no more than `isize::MAX`.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        if is_headed(layout) != is_headed(new_layout) {
            // SAFETY: both layouts have sizes above zero; the old allocation is at least as large as what is copied, the two do not overlap,
            // and the old one is freed only when there is a new one.
            unsafe {
                let moved = self.alloc(new_layout);
                if !moved.is_null() {
                    moved.copy_from_nonoverlapping(allocation, layout.size().min(new_size));
                    self.dealloc(allocation, layout);
                }
                return moved;
            }
        }
        if !is_headed(layout) {
            add_small(signed(new_size) - signed(layout.size()));
            // SAFETY: it was allocated by the system's allocator with this layout.
            return unsafe { System.realloc(allocation, layout, new_size) };
        }
        let (Some((whole, offset)), Some((new_whole, _))) = (with_header(layout), with_header(new_layout))
        else {
            return std::ptr::null_mut();
        };
        // SAFETY: the allocation begins `offset` bytes after what the system gave for `whole`. Both layouts have the same alignment and so
        // the same offset: what is copied has the header at its place.
        unsafe {
            let owner = Owner(allocation.sub(HEADER_BYTES).cast::<u64>().read());
            let start = System.realloc(allocation.sub(offset), whole, new_whole.size());
            if start.is_null() {
                return start;
            }
            let more = signed(new_size) - signed(layout.size());
            WORKING.with(|working| working.count(more));
            add(owner, more);
            start.add(offset)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allocation_counts_for_its_statement_until_it_is_freed() {
        let account = Account::open().unwrap();
        let other = Account::open().unwrap();
        let entered = account.enter();
        let mut large = vec![1u8; 1_000_000];
        let small: Vec<Vec<u8>> = (0..1_000).map(|_| vec![2; 500]).collect();
        drop(entered);
        let held = account.bytes();
        assert!((1_500_000..1_700_000).contains(&held), "{held}");
        assert_eq!(other.bytes(), 0);
        // The allocation grows, and is freed, while the thread works for another statement.
        let entered = other.enter();
        large.reserve_exact(1_000_000);
        assert!((2_500_000..2_700_000).contains(&account.bytes()), "{}", account.bytes());
        drop(large);
        drop(entered);
        assert!(other.bytes() < 1_000, "{}", other.bytes());
        let entered = account.enter();
        drop(small);
        drop(entered);
        assert!(account.bytes() < 1_000, "{}", account.bytes());
    }

    #[test]
    fn the_program_counts_each_allocation_once_whichever_thread_frees_it() {
        const BYTES: u64 = 512 * 1024 * 1024;
        // Other tests allocate at the same time, but less.
        let near = |found: u64, expected: u64| found.abs_diff(expected) < BYTES / 4;
        let before = allocated_bytes();
        // Untouched memory takes address space only.
        let mut large: Vec<u8> = Vec::with_capacity(BYTES as usize / 2);
        large.reserve_exact(BYTES as usize);
        let with_it = allocated_bytes();
        assert!(near(with_it, before + BYTES), "{before} {with_it}");
        std::thread::spawn(move || drop(large)).join().unwrap();
        let after = allocated_bytes();
        assert!(near(after, before), "{before} {after}");
    }

    #[test]
    fn leaked_allocations_do_not_count_for_a_later_statement() {
        let left = {
            let account = Account::open().unwrap();
            let _entered = account.enter();
            vec![0u8; 100_000]
        };
        let accounts: Vec<_> = (0..100).map(|_| Account::open().unwrap()).collect();
        drop(left);
        for account in &accounts {
            let entered = account.enter();
            let own = vec![0u8; 2_000];
            drop(entered);
            assert!((2_000..3_000).contains(&account.bytes()), "{}", account.bytes());
            drop(own);
            assert!(account.bytes() < 1_000);
        }
    }

    #[test]
    fn a_thread_that_has_found_its_slot_adds_nothing_to_the_next_statement() {
        let slot = Slot::new();
        let ended = slot.begin();
        slot.add(ended, 1_000);
        assert_eq!(slot.bytes(), 1_000);
        // The statement ends and the next one begins, after the thread has compared the generations.
        let next = slot.begin();
        slot.add(ended, -1_000);
        assert_eq!(slot.bytes(), 0);
        slot.add(next, -5);
        assert_eq!(slot.bytes(), -5, "more small allocations were freed than made");
        slot.add(next, 1 << 40);
        assert_eq!(slot.bytes(), (1 << 40) - 5);
    }

    /// For every size and alignment around the smallest headed one: content survives wherever the allocation moves.
    #[test]
    fn allocations_keep_their_alignment_and_their_bytes() {
        let allocator = CountingAllocator;
        for align in [1, 2, 8, 16, 64, 128, 4096] {
            for size in [1, 100, HEADED_BYTES_MIN - 1, HEADED_BYTES_MIN, 5_000, 300_000] {
                for new_size in [1, 100, HEADED_BYTES_MIN - 1, HEADED_BYTES_MIN, 5_000, 300_000] {
                    let layout = Layout::from_size_align(size, align).unwrap();
                    let grown = Layout::from_size_align(new_size, align).unwrap();
                    // SAFETY: sizes are above zero, layouts are those of the allocations, and nothing is used after it is freed.
                    unsafe {
                        let first = allocator.alloc_zeroed(layout);
                        assert!(first.addr().is_multiple_of(align));
                        assert!(std::slice::from_raw_parts(first, size).iter().all(|byte| *byte == 0));
                        first.write_bytes(7, size);
                        let second = allocator.realloc(first, layout, new_size);
                        assert!(second.addr().is_multiple_of(align));
                        let kept = std::slice::from_raw_parts(second, size.min(new_size));
                        assert!(kept.iter().all(|byte| *byte == 7));
                        allocator.dealloc(second, grown);
                    }
                }
            }
        }
        let huge = Layout::from_size_align(isize::MAX as usize - 7, 8).unwrap();
        // SAFETY: the size is above zero; null is not an allocation.
        assert!(unsafe { allocator.alloc(huge) }.is_null());
    }
}
