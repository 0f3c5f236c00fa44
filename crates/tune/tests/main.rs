//! The rules against their examples, the pages against the rules, and the probes against recorded answers of servers.

mod pages;
mod probes;
mod recorded_server;
mod rules;
