//! Runs the binary.

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, ExitStatus, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

/// A command with an environment in which only `PATH` and the given variables are set.
pub(crate) fn command(arguments: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tacho"));
    command.args(arguments).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.envs(environment.iter().copied()).stdin(Stdio::null());
    command
}

/// Runs a command to its end.
pub(crate) fn run(arguments: &[&str]) -> Done {
    run_with(arguments, &[])
}

/// Runs a command to its end, with variables.
pub(crate) fn run_with(arguments: &[&str], environment: &[(&str, &str)]) -> Done {
    Done::new(command(arguments, environment).output().unwrap())
}

/// How a command ended.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Done {
    fn new(output: Output) -> Self {
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: output.status.code(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// The result of a command that must have succeeded.
    pub(crate) fn ok(self) -> String {
        assert_eq!(self.code, Some(0), "{}{}", self.stdout, self.stderr);
        self.stdout
    }

    /// The error text of a command that must have failed with this code.
    pub(crate) fn failed(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{}{}", self.stdout, self.stderr);
        self.stderr
    }
}

/// A running `tacho serve` (or `demo`) on free ports. Dropping it kills it.
pub(crate) struct Server {
    child: Child,
    stdout: BufReader<ChildStdout>,
    /// Its output up to `ready`.
    pub(crate) lines: Vec<String>,
    pub(crate) data: PathBuf,
}

impl Server {
    /// Starts `tacho serve` on a directory and waits until it is ready.
    pub(crate) fn start(data: &Path) -> Self {
        Self::launch(&["serve", "--data", text(data)], data)
    }

    /// Starts a command that serves and waits until it is ready.
    pub(crate) fn launch(arguments: &[&str], data: &Path) -> Self {
        let ports = ["--mqtt", "127.0.0.1:0", "--http", "127.0.0.1:0"];
        let arguments: Vec<_> = arguments.iter().chain(&ports).copied().collect();
        let mut command = command(&arguments, &[("TACHO_LOG", "warn")]);
        let mut server = Self::of(command.stdout(Stdio::piped()).spawn().unwrap(), data);
        server.wait_ready();
        server
    }

    /// A process that was started with its standard output piped.
    pub(crate) fn of(mut child: Child, data: &Path) -> Self {
        let stdout = BufReader::new(child.stdout.take().unwrap());
        Self { child, stdout, lines: Vec::new(), data: data.into() }
    }

    pub(crate) fn wait_ready(&mut self) {
        while self.lines.last().is_none_or(|line| line != "ready") {
            let line = self.line();
            self.lines.push(line);
        }
    }

    /// The next line that it prints.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        let read = self.stdout.read_line(&mut line).unwrap();
        assert!(read > 0, "ended before it was ready: {:?}", self.lines);
        line.trim_end().into()
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Address of the HTTP door.
    pub(crate) fn url(&self) -> String {
        let address = self.lines.iter().find_map(|line| line.strip_prefix("listening http "));
        format!("http://{}", address.expect("a line for the HTTP door"))
    }

    /// SIGTERM, then what it still printed and how it ended.
    pub(crate) fn terminate(mut self) -> (ExitStatus, String) {
        kill_process(Pid::from_child(&self.child), Signal::TERM).unwrap();
        let mut rest = String::new();
        self.stdout.read_to_string(&mut rest).unwrap();
        (self.child.wait().unwrap(), rest)
    }

    /// The REST interface, logged in as the administrator.
    pub(crate) fn api(&self) -> Api {
        let password = std::fs::read_to_string(self.data.join("admin-password")).unwrap();
        let body = json!({ "username": "admin@tachograph.local", "password": password.trim() });
        let answer = ureq::post(format!("{}/api/auth/login", self.url())).send_json(body).unwrap();
        let answer: Value = answer.into_body().read_json().unwrap();
        Api { base: self.url(), bearer: format!("Bearer {}", answer["token"].as_str().unwrap()) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // This fails if the process has ended, which does not matter.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A logged-in client.
pub(crate) struct Api {
    base: String,
    bearer: String,
}

impl Api {
    pub(crate) fn get(&self, path: &str) -> Value {
        let request = ureq::get(format!("{}{path}", self.base)).header("X-Authorization", &self.bearer);
        request.call().unwrap().into_body().read_json().unwrap()
    }

    /// All values of a key of a device as (milliseconds, value), oldest first.
    pub(crate) fn history(&self, device: &str, key: &str) -> Vec<(i64, Value)> {
        let found = self.get(&format!("/api/tenant/devices?deviceName={device}"));
        let id = found["id"]["id"].as_str().unwrap();
        let path = format!(
            "/api/plugins/telemetry/DEVICE/{id}/values/timeseries?keys={key}&startTs=0&endTs=4102444800000\
             &limit=100000&orderBy=ASC&agg=NONE&useStrictDataTypes=true"
        );
        let points = self.get(&path)[key].as_array().cloned().unwrap_or_default();
        points.into_iter().map(|point| (point["ts"].as_i64().unwrap(), point["value"].clone())).collect()
    }
}

/// A path as an argument.
pub(crate) fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
