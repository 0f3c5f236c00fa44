//! The server under test: one that runs, or one of ours that the run starts with a sensor for each stream.

use std::net::SocketAddr;
use std::time::Instant;

use clients::http::{HttpClient, HttpLimits};
use clients::target_url::TargetUrl;
use load::server_process::ServerProcess;
use load::{Error, Result};

use super::sensors::list;
use super::streams::Streams;
use crate::Context;
use crate::limits::{GSN_ANSWER_BYTES_MAX, GSN_ANSWER_TIMEOUT, GSN_SENSORS_TIMEOUT};
use crate::server::{ADMIN, DataDirectory, Server as Process, ServerInstance};
use crate::timeseries::options::{Door, TargetOptions as Login};
use crate::timeseries::server::{basic, login};

const LIMITS: HttpLimits = HttpLimits { timeout: GSN_ANSWER_TIMEOUT, body_bytes_max: GSN_ANSWER_BYTES_MAX };
const POLL: std::time::Duration = std::time::Duration::from_millis(50);

/// The open server.
pub(super) struct Server {
    pub(super) http: HttpClient,
    pub(super) address: SocketAddr,
    /// Its address for people, without a login.
    pub(super) url: String,
    started: Option<Started>,
}

struct Started {
    running: Process,
    process: ServerProcess,
    /// Declared after the process, so that it is dropped after it.
    _data: DataDirectory,
}

impl Server {
    /// A server that runs.
    pub(super) fn running(url: &TargetUrl, options: &Login) -> Result<Self> {
        let (base, login) = (url.base(), login(url, options, Door::OpenTsdb));
        let base = base.trim_end_matches('/');
        let http =
            HttpClient::new(base, LIMITS).with_header("Authorization", login).with_tls(url.tls_config()?);
        Ok(Self { http, address: url.resolve()?, url: base.to_owned(), started: None })
    }

    /// A server of ours on an empty directory, with a sensor for each stream.
    pub(super) fn ours(context: &Context, streams: &Streams) -> Result<Self> {
        let data = DataDirectory::new(None)?;
        let directory = data.path().join("sensors");
        std::fs::create_dir_all(&directory).map_err(Error::file(&directory))?;
        for stream in 0..streams.count {
            let file = directory.join(format!("{}.xml", streams.name(stream)));
            std::fs::write(&file, streams.descriptor(stream)).map_err(Error::file(&file))?;
        }
        let instance = ServerInstance::new(&context.server_binary, data.path())?;
        let running = Process::start(&instance)?;
        let login = basic(ADMIN, &instance.admin_password()?);
        let http = HttpClient::new(instance.http_url(), LIMITS).with_header("Authorization", Some(login));
        let started = Started { running, process: instance.process.clone(), _data: data };
        let server = Self { http, address: instance.http, url: instance.http_url(), started: Some(started) };
        server.wait_for(streams)?;
        Ok(server)
    }

    fn wait_for(&self, streams: &Streams) -> Result<()> {
        let deadline = Instant::now() + GSN_SENSORS_TIMEOUT;
        loop {
            let listed = list(&self.http, "&omit_latest_values=true")?.len() as u64;
            if listed >= streams.count {
                return Ok(());
            }
            if Instant::now() > deadline {
                let (wanted, seconds) = (streams.count, GSN_SENSORS_TIMEOUT.as_secs());
                return Err(Error::Answer(format!(
                    "the server lists {listed} of {wanted} sensors after {seconds} s"
                )));
            }
            std::thread::sleep(POLL);
        }
    }

    pub(super) fn is_started(&self) -> bool {
        self.started.is_some()
    }

    /// The process of a server that the run has started.
    pub(super) fn process(&self) -> Option<ServerProcess> {
        self.started.as_ref().map(|started| started.process.clone())
    }

    /// Stops a server that the run has started.
    pub(super) fn stop(self) -> Result<()> {
        let Some(Started { mut running, .. }) = self.started else { return Ok(()) };
        match running.ended()? {
            Some(status) => Err(running.failed(format!("ended during the run ({status})"))),
            None => running.stop(),
        }
    }
}
