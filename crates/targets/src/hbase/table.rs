//! Makes and drops the table, through the master.

use std::thread;
use std::time::{Duration, Instant};

use super::cluster::Cluster;
use super::connection::{CallError, Connection};
use super::messages::{
    BytesBytesPair, ColumnFamilySchema, CreateTableRequest, Empty, FlushRegionRequest,
    GetProcedureResultRequest, GetProcedureResultResponse, GetTableDescriptorsRequest,
    GetTableDescriptorsResponse, PROCEDURE_RUNNING, ProcedureResponse, RegionSpecifier, TableName,
    TableRequest, TableSchema,
};
use super::rows::Dataset;
use crate::limits::HBASE_PROCEDURE_TIMEOUT_S;

/// The pause between two looks at a procedure.
const PAUSE: Duration = Duration::from_millis(50);
/// The attributes of the column family that PerformanceEvaluation sets; the others are defaults.
const ATTRIBUTES: [(&str, &str); 3] = [("VERSIONS", "1"), ("BLOOMFILTER", "ROW"), ("BLOCKSIZE", "65536")];

/// The name of a table in the default namespace.
pub(super) fn name(table: &str) -> TableName {
    TableName { namespace: b"default".to_vec(), qualifier: table.as_bytes().to_vec() }
}

/// The column families of the table; `None` if there is no such table.
pub(super) fn families(cluster: &Cluster) -> Result<Option<Vec<String>>, String> {
    let request = GetTableDescriptorsRequest { table_names: vec![name(&cluster.table)] };
    let answer: GetTableDescriptorsResponse =
        asked("GetTableDescriptors", cluster.master()?.call("GetTableDescriptors", &request))?;
    let families = |schema: TableSchema| {
        let name = |family: ColumnFamilySchema| String::from_utf8_lossy(&family.name).into_owned();
        schema.column_families.into_iter().map(name).collect()
    };
    Ok(answer.table_schema.into_iter().next().map(families))
}

/// Makes the table with its regions, and waits until all are open.
pub(super) fn create(cluster: &Cluster, data: &Dataset) -> Result<(), String> {
    let attribute = |(name, value): &(&str, &str)| BytesBytesPair {
        first: name.as_bytes().to_vec(),
        second: value.as_bytes().to_vec(),
    };
    let family = ColumnFamilySchema {
        name: data.family.clone().into_bytes(),
        attributes: ATTRIBUTES.iter().map(attribute).collect(),
    };
    let request = CreateTableRequest {
        table_schema: TableSchema { table_name: Some(name(&data.table)), column_families: vec![family] },
        split_keys: data.splits(),
    };
    let mut master = cluster.master()?;
    let started = master.call("CreateTable", &request);
    wait(&mut master, "CreateTable", started)?;
    cluster.forget();
    cluster.regions().map(|_| ())
}

/// Disables and deletes the table. Returns whether there was one.
pub(super) fn drop(cluster: &Cluster) -> Result<bool, String> {
    if families(cluster)?.is_none() {
        return Ok(false);
    }
    cluster.forget();
    let mut master = cluster.master()?;
    let request = TableRequest { table_name: name(&cluster.table) };
    let started = master.call("DisableTable", &request);
    match &started {
        // A run that ended between the two calls has disabled it.
        Err(CallError::Exception(exception)) if exception.short_class() == "TableNotEnabledException" => {}
        _ => wait(&mut master, "DisableTable", started)?,
    }
    let started = master.call("DeleteTable", &request);
    wait(&mut master, "DeleteTable", started)?;
    Ok(true)
}

/// Writes the rows that regions have in memory into files.
pub(super) fn flush(cluster: &Cluster) -> Result<(), String> {
    for region in cluster.regions()?.all() {
        let request = FlushRegionRequest { region: RegionSpecifier::named(&region.name) };
        let flushed = Connection::open(&region.server, "AdminService", cluster.silence)
            .and_then(|mut server| server.call::<Empty>("FlushRegion", &request));
        flushed.map_err(|error| format!("{} answers FlushRegion: {error}", region.server))?;
    }
    Ok(())
}

fn asked<T>(method: &str, answer: Result<T, CallError>) -> Result<T, String> {
    answer.map_err(|error| format!("the master answers {method}: {error}"))
}

/// Waits for the end of a procedure of the master.
fn wait(
    master: &mut Connection,
    method: &str,
    started: Result<ProcedureResponse, CallError>,
) -> Result<(), String> {
    let proc_id = asked(method, started)?.proc_id.unwrap_or(0);
    let began = Instant::now();
    loop {
        let answer: GetProcedureResultResponse = asked(
            "getProcedureResult",
            master.call("getProcedureResult", &GetProcedureResultRequest { proc_id }),
        )?;
        if answer.state != PROCEDURE_RUNNING {
            let Some(exception) = answer.exception.and_then(|exception| exception.generic_exception) else {
                return Ok(());
            };
            let (class, message) =
                (exception.class_name.unwrap_or_default(), exception.message.unwrap_or_default());
            return Err(format!("{method} failed: {class}: {message}"));
        }
        if began.elapsed() > Duration::from_secs(HBASE_PROCEDURE_TIMEOUT_S) {
            return Err(format!(
                "{method} is not finished after {HBASE_PROCEDURE_TIMEOUT_S} s; the master's log says what it waits for"
            ));
        }
        thread::sleep(PAUSE);
    }
}
