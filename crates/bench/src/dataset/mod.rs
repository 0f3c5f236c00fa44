//! What a load reads and writes: keys, rows and values that follow from a seed.
//!
//! The same seed gives the same bytes on any machine: integer arithmetic and the mathematical functions of `libm`
//! only, never those of the platform. Whatever belongs to one item follows from (seed, domain, index), so any number of
//! processes can make any part of a dataset without talking to each other, and what is read back can be checked without
//! remembering it. Nothing is written to a file first.

mod content;
mod distribution;
mod random;
mod unique;
mod zipf;

pub use content::{Alphabet, Content, digits};
pub use distribution::{Distribution, Sampler};
pub use random::Random;
pub use unique::{Unique, UniqueShare};
pub use zipf::{ScrambledZipf, Zipf, fnv64};
