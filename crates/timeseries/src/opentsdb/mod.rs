//! The queries of OpenTSDB 2.4, and of HiTSDB, which adds fields.
//!
//! A metric is a table and its values are the field `value`. A metric `table.field` reads another field of a table, if no table has the
//! full name and the field `value` ([`Metric`]).
//!
//! A sub query filters series, groups them by tags, reduces each series to intervals, takes its rate, and combines the series of a
//! group at the times of all of them. What each step computes is what OpenTSDB's source does, quirks included.

mod aggregate;
mod calendar;
mod deletable_rows;
mod downsample;
mod error;
mod fields;
mod filter;
mod grammar;
mod group;
mod interval;
mod last;
pub mod limits;
mod line;
mod list;
mod merge;
mod metric;
mod percentile;
mod point_limits;
mod query;
mod rate;
mod raw;
mod read;
mod run;
mod tags;
mod time;
mod tsuid;
mod window;

pub use aggregate::{AGGREGATORS, Aggregator};
pub use chrono_tz::Tz;
pub use deletable_rows::{QueriedRows, queried_rows};
pub use downsample::{Downsample, Fill};
pub use error::QueryError;
pub use fields::{FieldSub, FieldsAnswer, FieldsSub, last_fields, run_fields};
pub use filter::{FILTER_TYPES, Filter, FilterType};
pub use grammar::{LookupText, metric_and_tags, sub_query, tsuid_query};
pub use group::Answer;
pub use interval::duration_millis;
pub use last::{LastPoint, last_points};
pub use line::{Line, Number, Values};
pub use list::{SeriesName, field_names, metrics, metrics_with, series, tag_names, tag_values};
pub use metric::Metric;
pub use point_limits::PointLimits;
pub use query::{Query, Selection, SubQuery};
pub use rate::RateOptions;
pub use raw::Cell;
pub use run::run;
pub use tags::Tags;
pub use time::{instant_millis, zone};
pub use tsuid::{tsuid, tsuid_parts};

#[cfg(test)]
mod golden;
