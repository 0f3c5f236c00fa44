//! Imports of tables, into the store of a data directory or through the bulk import of a running server.

use anyhow::{Context, bail};
use hub::bulk::Importer;
use hub::registry::Registry;
use import::tables::TableImport;
use import::{FileOutcome, ServerSink, SkipPolicy, WRITE_TIMEOUT, verdict};
use model::TableName;

use super::args::ImportArgs;
use crate::config::Config;
use crate::data_directory::{Access, REGISTRY_FILE, directory_or_server, open_store};
use crate::output::say;

/// Runs the import, in the directory or through its server.
pub(super) fn run(import: &TableImport<'_>, args: &ImportArgs, config: &Config) -> anyhow::Result<()> {
    if args.skip_policy() == SkipPolicy::Strict {
        let examined = import.examine()?;
        if !examined.iter().all(FileOutcome::is_exact) {
            report(import, args, &examined, false)?;
            bail!(
                "not everything in the files can be stored as it is; because of --strict nothing was imported"
            );
        }
    }
    let done = directory_or_server(&args.server, config, || {
        let store = open_store(config)?;
        let (registry, _first_start) = Registry::open(&config.data.join(REGISTRY_FILE))?;
        let namespace = registry.namespace(args.tenant.of(&registry)?);
        let outcomes = import.all(&mut |table, columns| {
            Ok(Box::new(Importer::new(
                store.as_ref(),
                &TableName::new(&namespace, table)?,
                columns,
                import.rules,
                WRITE_TIMEOUT,
            )))
        });
        let closed = store.close();
        let outcomes = outcomes?;
        closed.context(
            "the rows were imported, but the store did not close cleanly; the next start recovers it",
        )?;
        Ok(outcomes)
    })?;
    let outcomes = match done {
        Access::Directory(outcomes) => outcomes,
        Access::Server(api) => {
            args.tenant.check_server()?;
            import.all(&mut |table, columns| {
                Ok(Box::new(ServerSink::new(&api, table, columns, args.any_time)))
            })?
        }
    };
    report(import, args, &outcomes, true)?;
    verdict(&outcomes, args.skip_policy())
}

fn report(
    import: &TableImport<'_>,
    args: &ImportArgs,
    outcomes: &[FileOutcome],
    stored: bool,
) -> anyhow::Result<()> {
    if args.json {
        return say(import.json(outcomes, stored));
    }
    for outcome in outcomes {
        say(outcome.text(&import.rules, stored))?;
    }
    if stored { say(import.summary(outcomes)) } else { Ok(()) }
}
