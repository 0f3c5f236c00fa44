//! Finds the rate up to which a target meets its objective. Pure: `next` looks at what was run and says what to run
//! next; a runner carries it out.
//!
//! A geometric ramp finds a rate that passes and one that fails, bisection of the logarithm narrows them to 3 %, then
//! rates around the edge are repeated in random order and a logistic curve is fitted to all trials. The answer is the
//! rate at which half of the trials pass, with its interval, and the safe rate at which nine of ten do.

mod answer;
mod measured;
mod objective;
mod outcome;
mod plan;
mod search;

pub use answer::Answer;
pub use objective::{Objective, ParseError};
pub use outcome::Outcome;
pub use plan::{Plan, Step};
pub use search::next;
