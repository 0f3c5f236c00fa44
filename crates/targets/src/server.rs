//! Starts the server under test as a separate process on free loopback ports, and stops it by its id.

use std::collections::VecDeque;
use std::fs;
use std::io::{BufRead as _, BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use load::process::SampledProcess;
use load::server_process::ServerProcess;
use load::{Error, Result};
use parking_lot::Mutex;
use rustix::process::Signal;
use tempfile::TempDir;

use crate::limits::{SERVER_OUTPUT_LINES, SERVER_READY_TIMEOUT_S, SERVER_STOP_TIMEOUT_S};

const READY: &str = "ready";
const POLL: Duration = Duration::from_millis(2);
/// The administrator that the first start of a server creates.
pub(crate) const ADMIN: &str = "admin@tachograph.local";

/// The addresses and the data directory of a server that the run starts.
#[derive(Debug, Clone)]
pub(crate) struct ServerInstance {
    pub(crate) binary: PathBuf,
    pub(crate) data: PathBuf,
    pub(crate) mqtt: SocketAddr,
    pub(crate) http: SocketAddr,
    /// Settings other than the defaults, as variables of its environment.
    pub(crate) settings: &'static [(&'static str, &'static str)],
    /// The processes of the server, one after the other.
    pub(crate) process: ServerProcess,
}

impl ServerInstance {
    /// Chooses free loopback ports. Every restart uses them again.
    pub(crate) fn new(binary: &Path, data: &Path) -> Result<Self> {
        // Both listeners stay open until both ports are known, so that they differ.
        let bind = || TcpListener::bind("127.0.0.1:0").map_err(Error::io("looking for a free port"));
        let address = |l: &TcpListener| l.local_addr().map_err(Error::io("looking for a free port"));
        let (mqtt, http) = (bind()?, bind()?);
        Ok(Self {
            binary: binary.to_owned(),
            data: data.to_owned(),
            mqtt: address(&mqtt)?,
            http: address(&http)?,
            settings: &[],
            process: ServerProcess::default(),
        })
    }

    pub(crate) fn http_url(&self) -> String {
        format!("http://{}", self.http)
    }

    /// The administrator's password, which the first start writes into the data directory.
    pub(crate) fn admin_password(&self) -> Result<String> {
        let path = self.data.join("admin-password");
        let text = fs::read_to_string(&path).map_err(Error::file(path))?;
        Ok(text.trim().to_owned())
    }
}

/// The data directory of a server that a run starts.
#[derive(Debug)]
pub(crate) struct DataDirectory {
    path: PathBuf,
    /// Removed when it is dropped, after the server.
    temporary: Option<TempDir>,
}

impl DataDirectory {
    /// The given directory, or a temporary one in the working directory. It is not in /tmp, which may be memory, where
    /// a sync costs nothing and proves nothing.
    pub(crate) fn new(named: Option<&Path>) -> Result<Self> {
        if let Some(path) = named {
            return Ok(Self { path: path.to_owned(), temporary: None });
        }
        let temporary = tempfile::Builder::new().prefix("tacho-bench-").tempdir_in(".");
        let temporary = temporary.map_err(Error::io("making a data directory"))?;
        Ok(Self { path: temporary.path().to_owned(), temporary: Some(temporary) })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Keeps a temporary directory.
    pub(crate) fn keep(&mut self) {
        if let Some(temporary) = self.temporary.take() {
            let _ = temporary.keep();
        }
    }
}

/// A running server process. Dropping it kills the process.
#[derive(Debug)]
pub(crate) struct Server {
    child: Child,
    sampled: SampledProcess,
    process: ServerProcess,
    lines: mpsc::Receiver<String>,
    output: Arc<Mutex<VecDeque<String>>>,
    stderr: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts the process and returns at once.
    pub(crate) fn spawn(instance: &ServerInstance) -> Result<Self> {
        let mut command = Command::new(&instance.binary);
        command
            .arg("serve")
            .arg("--data")
            .arg(&instance.data)
            .env("TACHO_MQTT_LISTEN", instance.mqtt.to_string())
            .env("TACHO_HTTP_LISTEN", instance.http.to_string())
            .envs(instance.settings.iter().copied());
        Self::spawn_command(command, &instance.process)
    }

    /// Starts the process of any server and returns at once.
    pub(crate) fn spawn_command(mut command: Command, process: &ServerProcess) -> Result<Self> {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(Error::io(format!("starting {}", command.get_program().display())))?;
        let sampled = SampledProcess::new(child.id())?;
        let process = process.clone();
        process.begin(sampled);
        let output = Arc::new(Mutex::new(VecDeque::new()));
        let (to_us, lines) = mpsc::channel();
        let stdout = child.stdout.take().expect("BUG: stdout is piped");
        let stderr = child.stderr.take().expect("BUG: stderr is piped");
        follow(stdout, Arc::clone(&output), Some(to_us));
        let stderr = Some(follow(stderr, Arc::clone(&output), None));
        Ok(Self { child, sampled, process, lines, output, stderr })
    }

    /// Starts the process and waits until it is ready.
    pub(crate) fn start(instance: &ServerInstance) -> Result<Self> {
        let mut server = Self::spawn(instance)?;
        server.wait_ready()?;
        Ok(server)
    }

    /// Waits for the line `ready`.
    pub(crate) fn wait_ready(&mut self) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(SERVER_READY_TIMEOUT_S);
        loop {
            match self.lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
                Ok(line) if line.trim() == READY => return Ok(()),
                Ok(_) => {}
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    return Err(
                        self.failed(format!("did not print `{READY}` within {SERVER_READY_TIMEOUT_S} s"))
                    );
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    let status = self.child.wait().map_err(Error::io("waiting for the server"))?;
                    // Its last output often gives the reason.
                    self.stderr.take().map(JoinHandle::join);
                    return Err(self.failed(format!("ended before it was ready ({status})")));
                }
            }
        }
    }

    /// Waits until all addresses accept connections.
    pub(crate) fn wait_listening(&mut self, addresses: &[SocketAddr]) -> Result<()> {
        let deadline = Instant::now() + Duration::from_secs(SERVER_READY_TIMEOUT_S);
        for address in addresses {
            while TcpStream::connect(address).is_err() {
                if let Some(status) = self.ended()? {
                    self.stderr.take().map(JoinHandle::join);
                    return Err(self.failed(format!("ended before it accepted connections ({status})")));
                }
                if Instant::now() > deadline {
                    let what =
                        format!("does not accept connections on {address} after {SERVER_READY_TIMEOUT_S} s");
                    return Err(self.failed(what));
                }
                thread::sleep(POLL);
            }
        }
        Ok(())
    }

    /// The process, for sampling.
    pub(crate) fn sampled(&self) -> SampledProcess {
        self.sampled
    }

    /// The exit status, if the process has ended.
    pub(crate) fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().map_err(Error::io("looking at the server"))
    }

    /// An error about this server with its last output.
    pub(crate) fn failed(&self, what: String) -> Error {
        Error::Server { what, output: self.output.lock().iter().cloned().collect() }
    }

    /// Sends SIGKILL and waits until the process is gone.
    pub(crate) fn kill(mut self) -> Result<()> {
        self.process.end(self.sampled);
        self.child.kill().map_err(Error::io("killing the server"))?;
        self.child.wait().map_err(Error::io("waiting for the server"))?;
        Ok(())
    }

    /// Sends SIGTERM and waits until the server has drained. Any exit status but 0 is an error.
    pub(crate) fn stop(mut self) -> Result<()> {
        match self.ended_after_sigterm()? {
            status if status.success() => Ok(()),
            status => Err(self.failed(format!("ended with {status} after SIGTERM"))),
        }
    }

    /// Sends SIGTERM and waits until the process has ended, with any status.
    pub(crate) fn terminate(mut self) -> Result<ExitStatus> {
        self.ended_after_sigterm()
    }

    fn ended_after_sigterm(&mut self) -> Result<ExitStatus> {
        self.process.end(self.sampled);
        self.sampled.signal(Signal::TERM)?;
        let deadline = Instant::now() + Duration::from_secs(SERVER_STOP_TIMEOUT_S);
        while Instant::now() < deadline {
            match self.ended()? {
                Some(status) => return Ok(status),
                None => thread::sleep(POLL),
            }
        }
        Err(self.failed(format!("did not end within {SERVER_STOP_TIMEOUT_S} s after SIGTERM")))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // After `stop` or `kill` all calls do nothing or fail harmlessly.
        self.process.end(self.sampled);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Keeps the latest lines of a stream and forwards them to a receiver. It reads to the end, so that the server never
/// blocks on a full pipe.
fn follow(
    stream: impl Read + Send + 'static,
    output: Arc<Mutex<VecDeque<String>>>,
    to: Option<mpsc::Sender<String>>,
) -> JoinHandle<()> {
    thread::spawn(move || {
        for line in BufReader::new(stream).lines().map_while(std::result::Result::ok) {
            let mut output = output.lock();
            if output.len() == SERVER_OUTPUT_LINES {
                output.pop_front();
            }
            output.push_back(line.clone());
            drop(output);
            if let Some(to) = &to {
                let _ = to.send(line);
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn script(directory: &Path, body: &str) -> ServerInstance {
        let binary = directory.join("server.sh");
        fs::write(&binary, format!("#!/bin/sh\n{body}\n")).unwrap();
        fs::set_permissions(&binary, fs::Permissions::from_mode(0o755)).unwrap();
        ServerInstance::new(&binary, directory).unwrap()
    }

    #[test]
    fn a_server_is_started_where_it_is_told_and_stopped_by_sigterm() {
        let directory = tempfile::tempdir().unwrap();
        let body = "trap 'exit 0' TERM\necho \"$1 $2 $3 $TACHO_MQTT_LISTEN\" > $3/args\necho secret > $3/admin-password\n\
                    echo mqtt $TACHO_MQTT_LISTEN\necho ready\nwhile true; do sleep 0.01; done";
        let instance = script(directory.path(), body);
        let server = Server::start(&instance).unwrap();
        let args = fs::read_to_string(directory.path().join("args")).unwrap();
        assert_eq!(args.trim(), format!("serve --data {} {}", directory.path().display(), instance.mqtt));
        assert_eq!(instance.admin_password().unwrap(), "secret");
        assert_ne!(instance.mqtt, instance.http);
        assert!(server.sampled().rss_bytes().unwrap() > 0);
        server.stop().unwrap();
    }

    #[test]
    fn a_server_that_ends_early_is_reported_with_its_words() {
        let directory = tempfile::tempdir().unwrap();
        let instance = script(directory.path(), "echo 'the directory is in use'\nexit 3");
        let error = Server::start(&instance).unwrap_err().to_string();
        assert!(error.contains("ended before it was ready"), "{error}");
        assert!(error.contains("exit status: 3") && error.contains("the directory is in use"), "{error}");
    }

    #[test]
    fn a_bad_end_after_sigterm_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let body = "trap 'echo could not sync; exit 9' TERM\necho ready\nwhile true; do sleep 0.01; done";
        let server = Server::start(&script(directory.path(), body)).unwrap();
        let error = server.stop().unwrap_err().to_string();
        assert!(error.contains("exit status: 9"), "{error}");
    }
}
