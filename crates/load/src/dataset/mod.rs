//! Datasets: keys, rows and values that follow from a seed.
//!
//! The same seed gives the same bytes on every machine: the code uses only integer arithmetic and the mathematical
//! functions of `libm`, never those of the platform. Each item follows from (seed, domain, index). So any number of
//! processes can generate any part of a dataset independently, a reader can check values without a record of them, and
//! no file is needed.

mod content;
mod distribution;
mod permutation;
mod random;
mod zipf;

pub use content::{Alphabet, Content, digits};
pub use distribution::{Distribution, Sampler};
pub use permutation::{Unique, UniqueShare};
pub use random::Random;
pub use zipf::{ScrambledZipf, Zipf, fnv64};
