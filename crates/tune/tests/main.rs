//! The rules against their examples, and the pages against the rules.

mod pages;
mod rules;
