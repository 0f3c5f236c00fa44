//! The fields of the elements of a source.

use crate::virtual_sensors::descriptor::{Descriptor, Source};
use crate::virtual_sensors::fault::Fault;
use crate::virtual_sensors::limits::FIELDS_MAX;
use crate::virtual_sensors::sql::statement::{Demand, Statement};

/// The table that a source reads, in its SQL.
pub(super) const WRAPPER: &str = "wrapper";

/// The fields: those that are known, or those that the queries and the output ask for. The first is `timed`.
pub(super) fn of(
    source: &Source,
    known: Option<Vec<String>>,
    query: &Statement,
    stream: &Statement,
    descriptor: &Descriptor,
) -> Result<Vec<String>, Fault> {
    let mut columns = vec!["timed".to_owned()];
    let mut add = |name: &str| {
        if !columns.iter().any(|column| column == name) && name != "pk" {
            columns.push(name.to_owned());
        }
    };
    match known {
        Some(known) => known.iter().for_each(|name| add(&name.to_lowercase())),
        None => {
            let demand = query.demand();
            named(&demand, None).for_each(&mut add);
            if demand.everything || demand.whole_tables.contains(WRAPPER) {
                let alias = source.alias.value.as_str();
                let demand = stream.demand();
                named(&demand, Some(alias)).for_each(&mut add);
                if demand.everything || demand.whole_tables.contains(alias) {
                    descriptor.processing.output.iter().for_each(|field| add(&field.name.value));
                }
            }
        }
    }
    if columns.len() > FIELDS_MAX {
        let reason = format!("the source has {} fields; at most {FIELDS_MAX} (FIELDS_MAX)", columns.len());
        return Err(Fault::limit(source.alias.place, reason));
    }
    Ok(columns)
}

/// The columns that a statement names without a table, or with this one; with any table if none is given.
fn named<'a>(demand: &'a Demand, table: Option<&'a str>) -> impl Iterator<Item = &'a str> {
    let here = move |said: &Option<String>| match (said, table) {
        (Some(said), Some(table)) => said == table,
        _ => true,
    };
    demand.columns.iter().filter(move |(said, _)| here(said)).map(|(_, name)| name.as_str())
}
