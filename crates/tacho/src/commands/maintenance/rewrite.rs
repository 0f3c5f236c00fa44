//! `tacho flush` and `tacho compact`.

use std::time::Duration;

use clap::Args;
use gateway::http::rewritten_json;
use indicatif::{HumanBytes, HumanCount};
use serde_json::{Value, json};
use store::{Rewritten, Store, StoreError};

use crate::client::ServerArgs;
use crate::data_args::DataArgs;
use crate::data_directory::{Access, directory_or_server_within, open_store};
use crate::output::say;

/// The longest time until a running server answers: it may rewrite all parts.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(24 * 60 * 60);

/// Writes the rows in memory into Parquet parts, and waits until that is done
///
/// A server does this by itself when memory or log have grown. Run it before tools read the parts, or to make the next start shorter.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho flush --data /var/lib/tacho")]
pub(crate) struct FlushArgs {
    #[command(flatten)]
    common: RewriteArgs,
}

/// Merges Parquet parts until there is nothing to merge, and waits until that is done
///
/// A server does this by itself. The command waits for it, for example after an import or before a backup. Rows in memory stay there:
/// run `tacho flush` first to include them.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho compact --data /var/lib/tacho
  tacho compact --url http://server:8080 --json")]
pub(crate) struct CompactArgs {
    #[command(flatten)]
    common: RewriteArgs,
}

#[derive(Debug, Args)]
struct RewriteArgs {
    /// Prints the result as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
}

/// Runs `tacho flush`.
pub(crate) fn flush(args: &FlushArgs) -> anyhow::Result<()> {
    rewrite(&args.common, "flush", |store| store.flush())
}

/// Runs `tacho compact`.
pub(crate) fn compact(args: &CompactArgs) -> anyhow::Result<()> {
    rewrite(&args.common, "compact", |store| store.compact())
}

fn rewrite(
    args: &RewriteArgs,
    act: &str,
    stopped: fn(&dyn Store) -> Result<Rewritten, StoreError>,
) -> anyhow::Result<()> {
    let config = args.data.load()?;
    let in_directory = || {
        let store = open_store(&config)?;
        let done = stopped(&*store);
        store.close()?;
        Ok(rewritten_json(&done?))
    };
    let done = match directory_or_server_within(&args.server, &config, ANSWER_TIMEOUT, in_directory)? {
        Access::Directory(done) => done,
        Access::Server(api) => api.post(&format!("/api/tacho/maintenance/{act}"), &json!({}))?,
    };
    if args.json { say(done) } else { say(sentence(&done)) }
}

fn sentence(done: &Value) -> String {
    let number = |name: &str| done[name].as_u64().unwrap_or(0);
    format!(
        "{} rows in {} of parts written: {} parts with {} before, {} with {} after",
        HumanCount(number("rows")),
        HumanBytes(number("bytes")),
        number("partsBefore"),
        HumanBytes(number("bytesBefore")),
        number("partsAfter"),
        HumanBytes(number("bytesAfter")),
    )
}
