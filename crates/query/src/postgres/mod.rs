//! PostgreSQL's system catalog: `pg_catalog`, `information_schema`, their functions, and the SQL that drivers write about them.
//!
//! A statement is parsed and checked like all others. Only if it names something of the catalog, [`rewrite`] turns it into SQL that
//! DataFusion understands. All listings are made for one query, from the tables that its user may see, and dropped afterwards.

mod arrays;
mod boolean_text;
mod cast_names;
mod casts;
mod columns;
mod empty;
mod forms;
mod functions;
mod headings;
mod keywords;
mod listing;
mod lookup;
mod membership;
mod names;
mod objects;
mod output_names;
mod relations;
mod rewrite;
mod server;
mod system_tables;
mod types;

pub(crate) use arrays::{
    compares_with_array, function as array_comparison, functions as array_functions, implied_parameter_types,
    name_comparisons, read as read_array, settle as settle_arrays,
};
pub(crate) use boolean_text::planner as truth_planner;
pub(crate) use cast_names::keep_casts;
pub(crate) use columns::PG_CATALOG_NAME;
pub(crate) use forms::normalize_forms;
pub(crate) use functions::{find as function, is_of_catalog};
pub(crate) use headings::{folded, headings, name_of};
pub(crate) use membership::settle_memberships;
pub(crate) use output_names::{name_columns, shown as shown_columns};
pub(crate) use rewrite::rewrite;
pub(crate) use system_tables::table;
