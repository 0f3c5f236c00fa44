//! Queries over entities.

mod candidates;
mod execute;
mod owner_value;
mod values;
