//! `StreamExporter` and `ScheduledStreamExporter`: the table of a database.

use crate::virtual_sensors::descriptor::Said;
use crate::virtual_sensors::fault::{Fault, Note};
use crate::virtual_sensors::plan::classes::Params;
use crate::virtual_sensors::plan::storage::{DatabaseOptions, JdbcUrl, check_driver};

/// A table of a database that rows are written to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatabaseExport {
    /// The database.
    pub options: DatabaseOptions,
    /// The table.
    pub table: String,
}

/// One exporter writes one batch at a time.
const CONNECTIONS: usize = 1;

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
    let refused = |said: &Said<String>, reason: String| Fault::unsupported(said.place, reason);
    let address = match JdbcUrl::parse(&url.value).map_err(|reason| refused(url, reason))? {
        JdbcUrl::Server(address, unused) => {
            for name in unused {
                let text = format!("the parameter {name} of the url has no effect");
                notes.push(Note { place: url.place, text });
            }
            address
        }
        JdbcUrl::Embedded => {
            let reason =
                "a database inside of Java cannot be written to; the output is a table of this server";
            return Err(refused(url, reason.to_owned()));
        }
    };
    if let Some(driver) = params.take("driver").map(|pair| &pair.value).filter(|said| !said.value.is_empty())
    {
        check_driver(&driver.value, address.kind).map_err(|reason| Fault::invalid(driver.place, reason))?;
    }
    let user = params.needed("user")?.value.value.clone();
    let password = params.text("password").unwrap_or_default();
    let table = params.text("table").unwrap_or_else(|| sensor.to_owned());
    params.note(notes, "entries", "rows are counted in the metrics");
    let options = DatabaseOptions { address, user, password, connections_max: CONNECTIONS };
    Ok(DatabaseExport { options, table })
}
