//! Values as PostgreSQL has them, below its functions and its rules of computation, which share them.

pub(crate) mod interval_text;
pub(crate) mod intervals;
pub(crate) mod patterns;
pub(crate) mod regex;
