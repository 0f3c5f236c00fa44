//! `tacho restore`.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::Args;
use hub::maintenance::{KEYS_DUMP, SMALL_FILES};
use hub::registry::problems_of;
use indicatif::{HumanBytes, HumanCount};
use model::calendar::Moment;
use model::limits::Portion;
use serde_json::json;
use store::backup::Digest;
use store_local::RealDisk;
use store_local::backup::{RestoreOptions, RestoreReport, Restored, restore_directory, restore_stream};

use crate::data_args::DataArgs;
use crate::data_directory::{Permission, REGISTRY_FILE, check_permission, create_directory, open_keys};
use crate::output::say;
use crate::progress::Progress;

/// Files beside the store that may be in a backup.
const FILES_BESIDE: [&str; 4] = [REGISTRY_FILE, SMALL_FILES[0], SMALL_FILES[1], KEYS_DUMP];

/// Restores a data directory from a backup
///
/// The directory must be empty or missing. The command verifies the checksum of each file while it copies it, and then checks
/// the whole result as `tacho check` does. Until the command succeeds, the directory contains the file restore.unfinished, and
/// no server starts on it.
///
/// If others could have changed the backup, use --digest with the SHA-256 that `tacho backup` printed. The command then
/// refuses a changed list and changed files.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho restore /mnt/backup/tacho --data /var/lib/tacho
  tacho restore tacho.tar --data /var/lib/tacho
  tacho restore tacho.tar --data /var/lib/tacho --digest 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08")]
pub(crate) struct RestoreArgs {
    /// Directory of a backup, or its tar file
    backup: PathBuf,
    /// Refuses a backup whose list does not have this SHA-256 (`tacho backup` prints it)
    #[arg(long, value_name = "SHA256")]
    digest: Option<Digest>,
    /// Prints a summary as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    data: DataArgs,
}

/// Runs the command.
pub(crate) fn run(args: &RestoreArgs) -> anyhow::Result<()> {
    let data = args.data.load()?.data;
    check_permission(&data, Permission::Read)?;
    if let Ok(mut entries) = std::fs::read_dir(&data)
        && let Some(Ok(entry)) = entries.next()
    {
        let name = entry.file_name();
        bail!(
            "{} is not empty ({} is in it); name a directory that is, or that is not there yet",
            data.display(),
            name.to_string_lossy()
        );
    }
    let backup = &args.backup;
    let reading = || format!("cannot read {}", backup.display());
    let metadata = std::fs::metadata(backup).with_context(reading)?;
    create_directory(&data)?;
    let mut progress = Progress::new("restoring");
    let options = RestoreOptions { beside: &FILES_BESIDE, required: &[REGISTRY_FILE], digest: args.digest };
    let restored = if metadata.is_dir() {
        restore_directory(&RealDisk, backup, &RealDisk, &data, options, &mut progress.watch())
    } else {
        let mut file = BufReader::with_capacity(1024 * 1024, File::open(backup).with_context(reading)?);
        let stream = (backup.as_path(), metadata.len());
        restore_stream(&mut file, stream, &RealDisk, &data, options, &mut progress.watch())
    };
    drop(progress);
    let report = restored.map_err(anyhow::Error::from).and_then(|restored| finish(restored, &data));
    let report = report.with_context(|| {
        format!(
            "nothing was restored, and no server starts on {}; remove it before the next attempt",
            data.display()
        )
    })?;
    if args.json {
        return say(json!({
            "data": data.to_string_lossy(),
            "backupCreatedUs": report.list.created_us,
            "digest": report.digest.to_string(),
            "bytes": report.bytes,
            "files": report.files,
            "partRows": report.check.part_rows,
            "logRows": report.check.log_rows,
            "leftOut": report.list.left_out,
        }));
    }
    for path in &report.list.left_out {
        say(format_args!("note  {path} was damaged when the backup was made and is not in it"))?;
    }
    let created = Moment::from_micros(report.list.created_us);
    let created = created.map_or_else(String::new, |time| format!(" of {}", time.to_seconds_text()));
    say(format_args!(
        "restored  {} in {} files from the backup{created} to {}: {} rows in parts, {} in the log; checked, no damage",
        HumanBytes(report.bytes),
        report.files,
        data.display(),
        HumanCount(report.check.part_rows),
        HumanCount(report.check.log_rows),
    ))
}

/// Checks the registry, reads the dump of the keys into an engine, then releases the directory for use. The store was checked before.
fn finish(restored: Restored<'_>, data: &Path) -> anyhow::Result<RestoreReport> {
    let registry = data.join(REGISTRY_FILE);
    if let Some(problem) = problems_of(&registry)?.first() {
        bail!("{}: {problem}", registry.display());
    }
    drop(open_keys(data, Portion::ALL)?);
    Ok(restored.finish()?)
}
