//! `StreamExporter` and `ScheduledStreamExporter`: the table of a database.

use crate::virtual_sensors::fault::{Fault, Note};
use crate::virtual_sensors::plan::params::Params;
use crate::virtual_sensors::plan::storage::{CONNECTIONS_DEFAULT, DatabaseOptions, server};

/// A table of a database that rows are written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseExport {
    pub options: DatabaseOptions,
    pub table: String,
}

impl DatabaseExport {
    pub(super) fn target(&self) -> String {
        format!("{}, table {}", self.options.address, self.table)
    }
}

pub(super) fn read(
    params: &mut Params<'_>,
    sensor: &str,
    notes: &mut Vec<Note>,
) -> Result<DatabaseExport, Fault> {
    let url = &params.needed("url")?.value;
    let driver = params.take("driver").map(|pair| &pair.value);
    let Some(address) = server(url, driver, notes)? else {
        let reason = "a database inside of Java cannot be written to; the output is a table of this server";
        return Err(Fault::unsupported(url.place, reason));
    };
    let user = params.needed("user")?.value.value.clone();
    let password = params.text("password").unwrap_or_default();
    let table = params.text("table").unwrap_or_else(|| sensor.to_owned());
    params.note(notes, "entries", "rows are counted in the metrics");
    let options = DatabaseOptions { address, user, password, connections_max: CONNECTIONS_DEFAULT };
    Ok(DatabaseExport { options, table })
}
