//! The server under test: one that runs, one of ours, or one that a command starts. The last two are started on an empty
//! directory, and started again for each cell.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clients::target_url::{ASKED, HTTP, TargetUrl};
use load::progress::Progress;
use load::sampling::server_pid;
use load::server_process::ServerProcess;
use load::{Error, Result};

use super::options::{Door, TargetOptions};
use crate::Context;
use crate::server::{ADMIN, DataDirectory, Server as Process, ServerInstance};

/// Process names of servers of these protocols.
const PROCESS_NAMES: [&str; 5] = ["victoria", "influx", "java", "questdb", "tacho"];

/// The server under test.
#[derive(Debug)]
pub(crate) struct Server {
    kind: Kind,
    /// The address to write to.
    pub(crate) address: SocketAddr,
    /// Where to read from.
    pub(crate) read: TargetUrl,
}

#[derive(Debug)]
enum Kind {
    Running { data: Option<PathBuf> },
    Started(Box<Started>),
}

/// A server that the run has started.
#[derive(Debug)]
struct Started {
    launch: Launch,
    process: ServerProcess,
    running: Option<Process>,
    /// Declared after the process, so that it is dropped after it.
    data: DataDirectory,
}

/// How a server is started.
#[derive(Debug)]
enum Launch {
    Ours(ServerInstance),
    Command { command: String, addresses: Vec<SocketAddr> },
}

impl Server {
    /// Starts a server of ours without an address, else starts or uses the one of the address.
    pub(crate) fn open(
        url: Option<&TargetUrl>,
        options: &TargetOptions,
        context: &Context,
        progress: &Progress,
    ) -> Result<Self> {
        let Some(url) = url else {
            progress.step(format!("starting {} serve", context.server_binary.display()));
            return Self::ours(context);
        };
        Self::of(url, options)
    }

    /// Starts a server of ours.
    fn ours(context: &Context) -> Result<Self> {
        let data = DataDirectory::new(None)?;
        let instance = ServerInstance::new(&context.server_binary, data.path())?;
        let read = TargetUrl::parse(&instance.http_url(), &HTTP).map_err(Error::Options)?;
        let address = instance.http;
        let process = instance.process.clone();
        let started = Started { launch: Launch::Ours(instance), process, running: None, data };
        Self { kind: Kind::Started(Box::new(started)), address, read }.started()
    }

    /// Starts the server of a command, or uses the one that runs.
    fn of(url: &TargetUrl, options: &TargetOptions) -> Result<Self> {
        let address = url.resolve()?;
        let read = match &options.http {
            Some(other) => TargetUrl::parse(other, &ASKED).map_err(Error::Options)?,
            None => url.clone(),
        };
        let Some(command) = options.command.clone() else {
            return Ok(Self { kind: Kind::Running { data: options.data.clone() }, address, read });
        };
        let addresses = vec![address, read.resolve()?];
        let launch = Launch::Command { command, addresses };
        let data = DataDirectory::new(None)?;
        let started = Started { launch, process: ServerProcess::default(), running: None, data };
        Self { kind: Kind::Started(Box::new(started)), address, read }.started()
    }

    fn started(mut self) -> Result<Self> {
        if let Kind::Started(started) = &mut self.kind {
            started.start()?;
        }
        Ok(self)
    }

    /// Whether the run has started it.
    pub(crate) fn is_started(&self) -> bool {
        matches!(self.kind, Kind::Started(_))
    }

    /// Whether it is a server of ours.
    pub(crate) fn is_ours(&self) -> bool {
        matches!(&self.kind, Kind::Started(started) if matches!(started.launch, Launch::Ours(_)))
    }

    /// The processes of a server that the run starts.
    pub(crate) fn process(&self) -> Option<ServerProcess> {
        match &self.kind {
            Kind::Running { .. } => None,
            Kind::Started(started) => Some(started.process.clone()),
        }
    }

    /// The process of a server that runs, if it is on this machine.
    pub(crate) fn running_pid(&self) -> Option<u32> {
        match &self.kind {
            Kind::Running { .. } => server_pid(self.address, &PROCESS_NAMES),
            Kind::Started(_) => None,
        }
    }

    /// The value of the header `Authorization` for a server of ours, whose password its first start has made.
    pub(crate) fn own_login(&self) -> Result<Option<String>> {
        let Kind::Started(started) = &self.kind else { return Ok(None) };
        let Launch::Ours(instance) = &started.launch else { return Ok(None) };
        Ok(Some(basic(ADMIN, &instance.admin_password()?)))
    }

    /// Starts it again on an empty directory, if the run has started it. Returns whether it has.
    pub(crate) fn wipe(&mut self) -> Result<bool> {
        let Kind::Started(started) = &mut self.kind else { return Ok(false) };
        started.stop()?;
        started.data = DataDirectory::new(None)?;
        started.start()?;
        Ok(true)
    }

    /// Stops a server that the run has started, in order. It starts again with the next [`Self::wipe`].
    pub(crate) fn stop(&mut self) -> Result<()> {
        match &mut self.kind {
            Kind::Running { .. } => Ok(()),
            Kind::Started(started) => started.stop(),
        }
    }

    /// The bytes that the files of the server take on the disk; `None` if its directory is not known.
    pub(crate) fn disk_bytes(&self) -> Option<u64> {
        match &self.kind {
            Kind::Running { data } => data.as_deref().map(disk_bytes),
            Kind::Started(started) => Some(disk_bytes(started.data.path())),
        }
    }
}

impl Started {
    fn start(&mut self) -> Result<()> {
        let path = self.data.path();
        let running = match &mut self.launch {
            Launch::Ours(instance) => {
                path.clone_into(&mut instance.data);
                Process::start(instance)?
            }
            Launch::Command { command, addresses } => {
                // The shell is replaced by the server, so that its process is the one to sample and to stop.
                let line = format!("exec {}", command.replace("{data}", &path.display().to_string()));
                let mut shell = Command::new("sh");
                shell.args(["-c", &line]);
                let mut process = Process::spawn_command(shell, &self.process)?;
                process.wait_listening(addresses)?;
                process
            }
        };
        self.running = Some(running);
        Ok(())
    }

    fn stop(&mut self) -> Result<()> {
        let Some(mut running) = self.running.take() else { return Ok(()) };
        if let Some(status) = running.ended()? {
            return Err(running.failed(format!("ended during the run ({status})")));
        }
        match self.launch {
            Launch::Ours(_) => running.stop(),
            // The status of other servers after SIGTERM means nothing to us.
            Launch::Command { .. } => running.terminate().map(drop),
        }
    }
}

/// The value of the header `Authorization` for a server that is not ours.
pub(crate) fn login(url: &TargetUrl, options: &TargetOptions, door: Door) -> Option<String> {
    if let Some(token) = &options.token {
        // InfluxDB 2 knows no other word.
        let word = if door == Door::Influx { "Token" } else { "Bearer" };
        return Some(format!("{word} {token}"));
    }
    let password = || options.password.clone().or_else(|| url.password()).unwrap_or_default();
    match &options.user {
        Some(user) => Some(basic(user, &password())),
        None => url.basic_login(),
    }
}

/// The value of the header `Authorization` for a user.
pub(crate) fn basic(user: &str, password: &str) -> String {
    format!("Basic {}", STANDARD.encode(format!("{user}:{password}")))
}

/// The bytes that the files below a directory take on the disk.
fn disk_bytes(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt as _;
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let of = |entry: std::fs::DirEntry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => disk_bytes(&entry.path()),
        // The unit of `st_blocks`, whatever the size of the file system's blocks.
        Ok(metadata) => metadata.blocks() * 512,
        // A file that has just been removed.
        Err(_) => 0,
    };
    entries.map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_a_directory_is_that_of_all_files_below_it() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(disk_bytes(&directory.path().join("none")), 0);
        std::fs::create_dir(directory.path().join("a")).unwrap();
        std::fs::write(directory.path().join("a/b"), vec![1; 100_000]).unwrap();
        std::fs::write(directory.path().join("c"), vec![1; 50_000]).unwrap();
        let bytes = disk_bytes(directory.path());
        assert!((150_000..250_000).contains(&bytes), "{bytes}");
    }

    #[test]
    fn a_token_goes_before_user_and_password_and_these_before_the_address() {
        let url = TargetUrl::parse("http://me:secret@h:1", &HTTP).unwrap();
        let options = |token: Option<&str>, user: Option<&str>| TargetOptions {
            token: token.map(str::to_owned),
            user: user.map(str::to_owned),
            password: user.map(|_| "other".to_owned()),
            ..TargetOptions::default()
        };
        assert_eq!(login(&url, &options(Some("t"), None), Door::Influx), Some("Token t".to_owned()));
        assert_eq!(login(&url, &options(Some("t"), None), Door::OpenTsdb), Some("Bearer t".to_owned()));
        assert_eq!(login(&url, &options(None, Some("you")), Door::Influx), Some(basic("you", "other")));
        assert_eq!(login(&url, &options(None, None), Door::Influx), Some(basic("me", "secret")));
    }
}
