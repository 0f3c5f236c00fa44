//! Run aggregation: the first stage of an aggregation over a table whose groups come in runs.
//!
//! The store returns the rows of a series one after the other, in the order of time. So the rows of one group (a device, five minutes of
//! a device) follow each other: they form a run. To find where a run ends, the operator compares a row with the row before. To look up
//! the group of each row in a hash table, as DataFusion does, costs several times as much, mostly for tags, which are text. The operator
//! returns the states of the aggregates for each run. The last stage merges the runs of a group, wherever they come from. Its result is
//! the same for rows in any order; only the number of runs grows.
//!
//! Where the groups name the series of their rows and the scan returns whole series, all runs of a group are neighbours. Then the operator
//! merges them itself ([`group_merger`]) and there is no last stage.

mod boundaries;
mod eligible;
mod first_last;
mod group_merger;
mod groups;
mod input;
mod operator;
mod run_states;
mod stages;
mod states;
mod stream;

pub(super) use operator::RunAggregate;
pub(super) use stages::aggregate_runs;
