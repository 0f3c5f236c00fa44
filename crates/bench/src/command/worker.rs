//! Several generator processes for one run. Each is told its part by one line on standard input, says `ready` before every
//! phase and waits for `go`, and at last writes its bundle as one line. Merging is lossless.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write, stdin, stdout};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::options::Context;
use crate::result::{Bundle, merge};
use crate::runner;
use crate::scenario::Scenario;

/// What a worker is told.
#[derive(Debug, Serialize, Deserialize)]
struct Task {
    /// The effective scenario as TOML.
    scenario: String,
    phases: Vec<String>,
    part: u32,
    of: u32,
    quiet: bool,
    command_line: Vec<String>,
    commit: Option<String>,
}

/// What a worker says, one JSON value a line.
#[derive(Debug, Serialize, Deserialize)]
enum Said {
    /// Waits for `go` before this phase.
    Ready(String),
    /// The files of its bundle, base64.
    Bundle(BTreeMap<String, String>),
    /// It could not run.
    Failed(String),
}

/// Generator processes: so many of this program on this machine, and one for each command, wherever that starts it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Processes<'a> {
    pub(super) here: u32,
    pub(super) commands: &'a [String],
}

impl Processes<'_> {
    fn count(&self) -> u32 {
        self.here + self.commands.len() as u32
    }

    fn command(&self, part: u32, context: &Context) -> Command {
        let Some(text) = part.checked_sub(self.here).and_then(|index| self.commands.get(index as usize))
        else {
            let mut own = Command::new(&context.server_binary);
            own.args(&context.worker_arguments);
            return own;
        };
        let mut shell = Command::new("sh");
        // Without a shell between, it is the program itself that is ended when something goes wrong here.
        shell.args(["-c", &format!("exec {text}")]);
        shell
    }
}

struct Worker {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
    part: u32,
}

impl Drop for Worker {
    fn drop(&mut self) {
        // It has ended by itself unless something went wrong here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a scenario in several processes and merges what they bring.
pub(super) fn run(
    scenario: &Scenario,
    options: &runner::Options,
    processes: Processes<'_>,
    context: &Context,
) -> Result<Bundle> {
    let mut workers = (0..processes.count())
        .map(|part| Worker::start(scenario, options, part, processes, context))
        .collect::<Result<Vec<_>>>()?;
    let mut bundles = Vec::new();
    while !workers.is_empty() {
        let mut waiting = Vec::new();
        for mut worker in workers {
            match worker.hear()? {
                Said::Ready(_) => waiting.push(worker),
                Said::Bundle(files) => bundles.push(unpack(&files)?),
                Said::Failed(what) => {
                    return Err(Error::Options(format!("generator process {}: {what}", worker.part + 1)));
                }
            }
        }
        let stop = options.stop.load(Ordering::Relaxed);
        for worker in &mut waiting {
            worker.tell(if stop { "stop" } else { "go" })?;
        }
        workers = waiting;
    }
    let mut bundle = merge(bundles).map_err(Error::Answer)?;
    runner::conclude(scenario, &mut bundle).map_err(Error::Options)?;
    Ok(bundle)
}

impl Worker {
    fn start(
        scenario: &Scenario,
        options: &runner::Options,
        part: u32,
        processes: Processes<'_>,
        context: &Context,
    ) -> Result<Self> {
        let task = Task {
            scenario: toml::to_string(&scenario.effective).expect("BUG: it was read from TOML"),
            phases: options.phases.clone(),
            part,
            of: processes.count(),
            quiet: options.quiet || part > 0,
            command_line: context.command_line.clone(),
            commit: context.commit.clone(),
        };
        let starting = || Error::io(format!("starting generator process {}", part + 1));
        let mut child = processes
            .command(part, context)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(starting())?;
        let to = child.stdin.take().expect("BUG: stdin is piped");
        let from = BufReader::new(child.stdout.take().expect("BUG: stdout is piped"));
        let mut worker = Self { child, to, from, part };
        worker.tell(&serde_json::to_string(&task).expect("BUG: a task has only text keys"))?;
        Ok(worker)
    }

    fn tell(&mut self, line: &str) -> Result<()> {
        let part = self.part + 1;
        writeln!(self.to, "{line}").map_err(Error::io(format!("speaking to generator process {part}")))
    }

    fn hear(&mut self) -> Result<Said> {
        let part = self.part + 1;
        let mut line = String::new();
        self.from
            .read_line(&mut line)
            .map_err(Error::io(format!("listening to generator process {part}")))?;
        serde_json::from_str(&line).map_err(|_| {
            if !line.is_empty() {
                // It may wait for an answer and would never end by itself.
                let _ = self.child.kill();
                return Error::Answer(format!(
                    "generator process {part} said something else than a generator of this version: {}",
                    line.trim_end().chars().take(200).collect::<String>()
                ));
            }
            let status = self.child.wait().map_or_else(|e| e.to_string(), |status| status.to_string());
            Error::Answer(format!("generator process {part} ended without a result ({status})"))
        })
    }
}

/// The worker's side.
pub(super) fn serve(context: &Context) -> Result<()> {
    let said = match work(context) {
        Ok(bundle) => Said::Bundle(pack(&bundle)?),
        Err(error) => Said::Failed(error.to_string()),
    };
    say(&said)
}

fn say(said: &Said) -> Result<()> {
    let line = serde_json::to_string(said).expect("BUG: it has only text keys");
    writeln!(stdout(), "{line}").map_err(Error::io("speaking to the process that started this one"))
}

fn read_line() -> Result<String> {
    let mut line = String::new();
    stdin().read_line(&mut line).map_err(Error::io("listening to the process that started this one"))?;
    Ok(line)
}

fn work(context: &Context) -> Result<Bundle> {
    let task: Task = serde_json::from_str(&read_line()?)
        .map_err(|error| Error::Options(format!("`worker` is started by `run --workers`: {error}")))?;
    let wrong = |what: String| Error::Scenario { path: "scenario".into(), what };
    let scenario = Scenario::parse(&task.scenario, &[]).map_err(wrong)?;
    // Ctrl-C goes to all processes of a terminal: each ends its part in order.
    let stop = super::run::stop_on_signals()?;
    let options = runner::Options {
        phases: task.phases,
        part: Some((task.part, task.of)),
        quiet: task.quiet,
        stop: Arc::clone(&stop),
    };
    let context = Context { command_line: task.command_line, commit: task.commit, ..context.clone() };
    runner::run(&scenario, &options, &context, &mut |phase| {
        say(&Said::Ready(phase.to_owned()))?;
        if read_line()?.trim() != "go" {
            stop.store(true, Ordering::Relaxed);
        }
        Ok(())
    })
}

fn pack(bundle: &Bundle) -> Result<BTreeMap<String, String>> {
    let home = tempfile::tempdir().map_err(Error::io("making a temporary directory"))?;
    let directory = home.path().join("bundle");
    bundle.write(&directory).map_err(|error| Error::Answer(error.to_string()))?;
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(&directory).map_err(Error::file(&directory))? {
        let path = entry.map_err(Error::file(&directory))?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        files.insert(name, STANDARD.encode(std::fs::read(&path).map_err(Error::file(&path))?));
    }
    Ok(files)
}

fn unpack(files: &BTreeMap<String, String>) -> Result<Bundle> {
    let home = tempfile::tempdir().map_err(Error::io("making a temporary directory"))?;
    for (name, text) in files {
        let bytes = STANDARD.decode(text).map_err(|error| Error::Answer(format!("{name}: {error}")))?;
        // Names come from our own process, but a path has no place in one.
        let path = home.path().join(name.replace('/', "_"));
        std::fs::write(&path, bytes).map_err(Error::file(&path))?;
    }
    Bundle::read(home.path()).map_err(|error| Error::Answer(error.to_string()))
}
