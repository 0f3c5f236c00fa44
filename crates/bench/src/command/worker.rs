//! Several generator processes for one run. Each is told its part by one line on standard input. Where processes wait for each
//! other it says what it brings, and goes on when it is told what all have brought, or ends when one of them has; at last it
//! writes its bundle as one line.
//! `stop`, or the end of its input, ends its part in order. Merging is lossless.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write, stdin, stdout};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::options::Context;
use crate::passwords;
use crate::result::{Bundle, merge};
use crate::runner::{self, Counts};
use crate::scenario::{Origin, Scenario};

/// How often is looked whether the run is to end.
const STOP_POLL: Duration = Duration::from_millis(50);
const STOP: &str = "stop";
/// Instead of what all have brought, when one of them has ended.
const OVER: &str = "over";

/// What a worker is told.
#[derive(Debug, Serialize, Deserialize)]
struct Task {
    /// The effective scenario as TOML.
    scenario: String,
    /// What it was loaded from. An older build does not say, and is told below that it is another one.
    #[serde(default)]
    origin: Origin,
    phases: Vec<String>,
    part: u32,
    of: u32,
    quiet: bool,
    label: Option<String>,
    command_line: Vec<String>,
    /// Build of the program that asks. Another one may make the load in another way.
    commit: Option<String>,
    /// Those that the environment of the program that asks has, by name.
    passwords: BTreeMap<String, String>,
}

/// What a worker says, one JSON value a line.
#[derive(Debug, Serialize, Deserialize)]
enum WorkerMessage {
    /// Waits for the others, with what it brings.
    Waits(Counts),
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
        // Ctrl-C and the like are for this process, which tells the others: ssh would end with the result still on the other host.
        shell.args(["-c", &format!("trap '' INT TERM HUP; {text}")]);
        shell
    }
}

struct Worker {
    child: Child,
    to: WorkerInput,
    from: BufReader<ChildStdout>,
    part: u32,
}

/// Where a worker listens. Whoever waits for it and whoever passes a stop on both speak.
#[derive(Clone)]
struct WorkerInput(Arc<Mutex<ChildStdin>>);

impl WorkerInput {
    fn send_line(&self, line: &str) -> std::io::Result<()> {
        // A line is written whole or the worker is lost.
        writeln!(self.0.lock().unwrap_or_else(PoisonError::into_inner), "{line}")
    }
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
    let workers = (0..processes.count())
        .map(|part| Worker::start(scenario, options, part, processes, context))
        .collect::<Result<Vec<_>>>()?;
    let inputs: Vec<WorkerInput> = workers.iter().map(|worker| worker.to.clone()).collect();
    let over = AtomicBool::new(false);
    let bundles = std::thread::scope(|scope| {
        scope.spawn(|| forward_stop(&options.stop, &inputs, &over));
        let bundles = collect_bundles(workers);
        over.store(true, Ordering::Relaxed);
        bundles
    })?;
    let mut bundle = merge(bundles).map_err(Error::Answer)?;
    runner::conclude(scenario, &mut bundle).map_err(Error::Options)?;
    Ok(bundle)
}

/// Lets them all go on where they wait for each other, until each has brought its bundle.
fn collect_bundles(mut workers: Vec<Worker>) -> Result<Vec<Bundle>> {
    let mut bundles = Vec::new();
    while !workers.is_empty() {
        let (mut waiting, mut all) = (Vec::new(), Counts::new());
        for mut worker in workers {
            match worker.receive()? {
                WorkerMessage::Waits(counts) => {
                    counts.into_iter().for_each(|(name, count)| *all.entry(name).or_default() += count);
                    waiting.push(worker);
                }
                WorkerMessage::Bundle(files) => bundles.push((worker.part, unpack(&files)?)),
                WorkerMessage::Failed(what) => {
                    return Err(Error::Options(format!("generator process {}: {what}", worker.part + 1)));
                }
            }
        }
        let line = match bundles.is_empty() {
            true => serde_json::to_string(&all).expect("BUG: counts have text keys"),
            false => OVER.to_owned(),
        };
        for worker in &waiting {
            // Who was stopped may have ended; whether it did in order is heard next.
            let _ = worker.to.send_line(&line);
        }
        workers = waiting;
    }
    // The first looked at the server for all.
    bundles.sort_by_key(|(part, _)| *part);
    Ok(bundles.into_iter().map(|(_, bundle)| bundle).collect())
}

fn forward_stop(stop: &AtomicBool, inputs: &[WorkerInput], over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        if stop.load(Ordering::Relaxed) {
            // Who hears it no more has ended.
            inputs.iter().for_each(|input| drop(input.send_line(STOP)));
            return;
        }
        std::thread::sleep(STOP_POLL);
    }
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
            origin: scenario.origin.clone(),
            phases: options.phases.clone(),
            part,
            of: processes.count(),
            quiet: options.quiet || part > 0,
            label: options.label.clone(),
            command_line: context.command_line.clone(),
            commit: context.commit.clone(),
            passwords: passwords::to_tell(),
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
        let worker = Self { child, to: WorkerInput(Arc::new(Mutex::new(to))), from, part };
        // Who has ended already is heard: what it said, or how it ended.
        let _ = worker.to.send_line(&serde_json::to_string(&task).expect("BUG: a task has only text keys"));
        Ok(worker)
    }

    fn receive(&mut self) -> Result<WorkerMessage> {
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
    let message = match run_task(context) {
        Ok(bundle) => WorkerMessage::Bundle(pack(&bundle)?),
        Err(error) => WorkerMessage::Failed(error.to_string()),
    };
    send(&message)
}

fn send(message: &WorkerMessage) -> Result<()> {
    let line = serde_json::to_string(message).expect("BUG: it has only text keys");
    writeln!(stdout(), "{line}").map_err(Error::io("speaking to the process that started this one"))
}

fn read_line() -> Result<String> {
    let mut line = String::new();
    stdin().read_line(&mut line).map_err(Error::io("listening to the process that started this one"))?;
    Ok(line)
}

fn run_task(context: &Context) -> Result<Bundle> {
    let task: Task = serde_json::from_str(&read_line()?).map_err(|error| {
        Error::Options(format!("`worker` is started by `--workers` of run, capacity and ab: {error}"))
    })?;
    let wrong = |what: String| Error::Scenario { path: "scenario".into(), what };
    if context.commit != task.commit {
        let build = |commit: &Option<String>| commit.clone().unwrap_or_else(|| "unknown".to_owned());
        return Err(Error::Options(format!(
            "it is of build {} and the program that asks is of build {}: use one build for all",
            build(&context.commit),
            build(&task.commit)
        )));
    }
    let mut scenario = Scenario::parse(&task.scenario, &[]).map_err(wrong)?;
    scenario.origin = task.origin;
    passwords::told(task.passwords);
    // Ctrl-C goes to all processes of a terminal: each ends its part in order.
    let stop = super::signals::stop_on_signals()?;
    let lines = listen(Arc::clone(&stop));
    let options = runner::Options {
        phases: task.phases,
        part: Some((task.part, task.of)),
        quiet: task.quiet,
        label: task.label,
        stop: Arc::clone(&stop),
    };
    let context = Context { command_line: task.command_line, ..context.clone() };
    runner::run(&scenario, &options, &context, &mut |counts| {
        send(&WorkerMessage::Waits(counts))?;
        // After a stop nobody says what all have brought.
        let Some(line) = lines.recv().ok().filter(|line| line.trim() != OVER) else { return Ok(None) };
        let counts = serde_json::from_str(&line);
        counts.map(Some).map_err(|error| Error::Answer(format!("what all processes did: {error}")))
    })
}

/// Lines that the program which asks says, until it says that the run is to end or says nothing any more.
fn listen(stop: Arc<AtomicBool>) -> Receiver<String> {
    // One answer to each wait.
    let (to, from) = sync_channel(1);
    std::thread::spawn(move || {
        while let Some(line) = read_line().ok().filter(|line| !line.is_empty() && line.trim() != STOP) {
            if to.send(line).is_err() {
                return;
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    from
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
