//! `tacho backup`.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, bail};
use clap::Args;
use hub::maintenance::{BackupStream, stopped_registry};
use indicatif::{HumanBytes, HumanCount};
use serde_json::json;
use store::backup::BackupList;
use store_local::RealDisk;
use store_local::backup::{BackupReport, BackupTarget, ReceiveOptions, stopped_files, verify_stream};

use super::finding::describe;
use crate::client::ServerArgs;
use crate::config::Config;
use crate::data_args::DataArgs;
use crate::data_directory::{
    Access, REGISTRY_FILE, create_directory, directory_or_server, open_copy_of_keys, store_directory,
};
use crate::output::say;
use crate::progress::Progress;

/// Makes a backup of a data directory, with or without a running server
///
/// The backup has every row that was acknowledged before it began, the devices and users, and the tacho.toml of the data
/// directory. The command verifies the checksums of all parts while it copies them. It writes the list of files last, so
/// `tacho restore` refuses an interrupted backup, and an earlier backup in the same directory stays valid until then.
///
/// Another backup into the same directory copies only new parts. A running server sends its files, continues to serve, and
/// writes no files for the backup. The backup contains access tokens: protect it like the data directory.
///
/// The command prints the SHA-256 of the list, which contains the SHA-256 of every file. Keep this digest elsewhere: with it,
/// `tacho restore --digest` refuses a backup that was changed.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho backup --data /var/lib/tacho /mnt/backup/tacho
  tacho backup --data /var/lib/tacho --base /mnt/backup/monday /mnt/backup/tuesday
  tacho backup --data /var/lib/tacho --to tacho.tar")]
pub(crate) struct BackupArgs {
    /// Directory for the backup: empty, missing, or with an earlier backup of the same data
    #[arg(required_unless_present = "to", conflicts_with = "to")]
    dir: Option<PathBuf>,
    /// Writes one tar file instead, which unpacks to a data directory
    #[arg(long, value_name = "FILE")]
    to: Option<PathBuf>,
    /// Earlier backup in another directory, whose parts are linked or copied from there
    #[arg(long, value_name = "DIR", conflicts_with = "to")]
    base: Option<PathBuf>,
    /// Leaves out damaged parts, and names them. Without this a damaged part ends the backup
    #[arg(long, conflicts_with = "to")]
    leave_out_damaged: bool,
    /// Prints a summary as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
}

pub(crate) fn run(args: &BackupArgs) -> anyhow::Result<()> {
    let config = args.data.load()?;
    match (&args.dir, &args.to) {
        (Some(dir), _) => into_directory(args, dir, &config),
        (None, Some(file)) => into_file(args, file, &config),
        (None, None) => bail!("BUG: the command line needs a directory or a file"),
    }
}

fn into_directory(args: &BackupArgs, dir: &Path, config: &Config) -> anyhow::Result<()> {
    create_directory(dir)?;
    let target = BackupTarget::open(&RealDisk, dir, args.base.as_deref())?;
    let mut source = open(args, config, target.have())?;
    let mut progress = Progress::new("copying");
    let options = ReceiveOptions { leave_out_damaged: args.leave_out_damaged };
    let received = target.receive(&mut source.stream, options, source.bytes, &mut progress.watch());
    drop(progress);
    let report = source.blame(received)?;
    if !args.json {
        for left_out in &report.left_out {
            say(describe(left_out))?;
        }
    }
    tell(args, &report, dir)?;
    match report.left_out.len() {
        0 => Ok(()),
        count => bail!("{count} damaged parts are not in the backup; everything else is"),
    }
}

fn tell(args: &BackupArgs, report: &BackupReport, place: &Path) -> anyhow::Result<()> {
    if !args.json {
        say(summary(report, place))?;
        return say(format_args!("digest     {}", report.digest));
    }
    let left_out: Vec<_> = report.left_out.iter().map(|finding| finding.path.to_string_lossy()).collect();
    say(json!({
        "place": place.to_string_lossy(),
        "bytes": report.bytes,
        "files": report.files,
        "parts": report.parts,
        "rows": report.rows,
        "keptBytes": report.kept_bytes,
        "leftOut": left_out,
        "digest": report.digest.to_string(),
    }))
}

fn summary(report: &BackupReport, place: &Path) -> String {
    let kept = match report.kept_bytes {
        0 => String::new(),
        bytes => format!(", {} of it from an earlier backup", HumanBytes(bytes)),
    };
    format!(
        "backed up  {} in {} files to {}: {} parts with {} rows{kept}",
        HumanBytes(report.bytes),
        report.files,
        place.display(),
        report.parts,
        HumanCount(report.rows),
    )
}

/// Writes the backup into one file. The file gets its name when it is complete and on the disk.
fn into_file(args: &BackupArgs, path: &Path, config: &Config) -> anyhow::Result<()> {
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".unfinished");
    let unfinished = PathBuf::from(unfinished);
    let writing = || format!("cannot write {}", unfinished.display());
    if path.exists() {
        bail!("{} is there already; name a file that is not", path.display());
    }
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(true).mode(0o600).open(&unfinished);
    let file = file.with_context(writing)?;
    let mut source = open(args, config, BackupList::default())?;
    let mut progress = Progress::new("copying");
    let mut tee = Tee { stream: &mut source.stream, file: &file, failed: None };
    let verified = verify_stream(&mut tee, source.bytes, &mut progress.watch());
    let rest = io::copy(&mut tee, &mut io::sink());
    let failed = tee.failed.take();
    drop(progress);
    if let Some(error) = failed {
        return Err(error).with_context(|| format!("{}; it is not finished and may be removed", writing()));
    }
    let report = source.blame(verified)?;
    rest.context("the files did not arrive whole")?;
    file.sync_all().with_context(writing)?;
    std::fs::rename(&unfinished, path).with_context(|| format!("cannot name {}", path.display()))?;
    let parent = path.parent().filter(|parent| *parent != Path::new("")).unwrap_or(Path::new("."));
    File::open(parent).and_then(|parent| parent.sync_all()).with_context(writing)?;
    tell(args, &report, path)
}

/// A reader that also writes what it reads to a file.
struct Tee<'a> {
    stream: &'a mut Box<dyn Read + Send>,
    file: &'a File,
    failed: Option<io::Error>,
}

impl Read for Tee<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.stream.read(buffer)?;
        if let Err(error) = self.file.write_all(&buffer[..count]) {
            self.failed = Some(error);
            return Err(io::Error::other("the file cannot be written"));
        }
        Ok(count)
    }
}

/// The stream of the files that are backed up.
struct Source {
    stream: Box<dyn Read + Send>,
    bytes: u64,
    /// The thread that writes the stream if no server does.
    writer: Option<std::thread::JoinHandle<io::Result<()>>>,
}

impl Source {
    /// If the stream ended early, replaces the error by the one of the thread that wrote it.
    fn blame<T>(self, outcome: Result<T, store_local::backup::BackupError>) -> anyhow::Result<T> {
        drop(self.stream);
        let written = self.writer.map(|writer| writer.join().expect("BUG: the writer does not panic"));
        match (outcome, written) {
            (Err(store_local::backup::BackupError::Stream(_)), Some(Err(error))) => {
                Err(error).context("cannot read the files of the data directory")
            }
            (outcome, _) => Ok(outcome?),
        }
    }
}

fn open(args: &BackupArgs, config: &Config, have: BackupList) -> anyhow::Result<Source> {
    let for_server = have.encode();
    let api = match directory_or_server(&args.server, config, || stopped(config, have))? {
        Access::Directory(source) => return Ok(source),
        Access::Server(api) => api,
    };
    let answer = api.post_for_stream("/api/tacho/backup", for_server.as_bytes())?;
    Ok(Source { bytes: answer.bytes.unwrap_or(0), stream: answer.body, writer: None })
}

/// The stream of a directory without a server. A thread writes it into a pipe.
fn stopped(config: &Config, have: BackupList) -> anyhow::Result<Source> {
    let store = store_directory(&config.data);
    let (files, damages) = stopped_files(Arc::new(RealDisk), &store, config.store.log_segment_bytes)?;
    if let Some(first) = damages.first() {
        say(describe(first))?;
        bail!(
            "the log is damaged; `tacho check` has more. Start the server once, so that it keeps what can be kept, and back up then"
        );
    }
    let registry = config.data.join(REGISTRY_FILE);
    let copy = stopped_registry(&registry)?;
    // A directory whose server has never started has no engine.
    let engine = open_copy_of_keys(&config.data)?;
    let keys = engine.as_ref().map(|copied| &copied.engine as &dyn kv::KeyValueStore);
    let stream = BackupStream::new(files, &config.data, &registry, copy, keys, have)?;
    let bytes = stream.bytes();
    let (reader, mut writer) = io::pipe().context("cannot make a pipe")?;
    let thread = std::thread::spawn(move || {
        // The copy is removed when the stream is written.
        let _engine = engine;
        let mut out = io::BufWriter::with_capacity(256 * 1024, &mut writer);
        stream.write(&mut out)
    });
    Ok(Source { stream: Box::new(reader), bytes, writer: Some(thread) })
}
