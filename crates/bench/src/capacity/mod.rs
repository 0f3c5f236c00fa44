//! Finds the largest rate at which a target meets its objective. The functions are pure: `next` takes the steps so far
//! and returns the next one, which a runner carries out.
//!
//! A geometric ramp finds a rate that passes and one that fails. Bisection of the logarithm narrows them to 3 %. Then
//! rates around the edge are repeated in random order, and a logistic curve is fitted to all trials. The answer is the
//! rate at which half of the trials pass, with its interval, and the safe rate at which nine of ten pass.

mod answer;
mod file;
mod plan;
mod search;

pub use answer::Answer;
pub use file::{FILE, read_answer};
pub use plan::{Plan, Step};
pub use search::next;
