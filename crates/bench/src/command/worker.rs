//! Several worker processes for one run. Each gets its task as one line on standard input. At a barrier a worker sends
//! its counts, and continues when it receives the sum of all counts, or ends when another worker has ended. Finally it
//! sends its bundle as one line. `stop`, or the end of its input, ends its run in order. The bundles are merged without
//! loss.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write, stdin, stdout};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clients::passwords;
use load::result::{Bundle, merge};
use load::scenario::{Origin, Scenario};
use load::{Error, Result};
use serde::{Deserialize, Serialize};
use targets::Context;
use targets::Counts;

use crate::runner;

/// The interval at which the stop flag is checked.
const STOP_POLL: Duration = Duration::from_millis(50);
const STOP: &str = "stop";
/// Sent instead of the sum when a worker has ended.
const OVER: &str = "over";

/// The task of a worker.
#[derive(Debug, Serialize, Deserialize)]
struct Task {
    /// The effective scenario as TOML.
    scenario: String,
    /// The origin of the scenario. An older build does not send it; the check of the build refuses it below.
    #[serde(default)]
    origin: Origin,
    phases: Vec<String>,
    part: u32,
    of: u32,
    quiet: bool,
    label: Option<String>,
    command_line: Vec<String>,
    /// The build of the main process. Another build may generate another load.
    commit: Option<String>,
    /// The passwords in the environment of the main process, by name.
    passwords: BTreeMap<String, String>,
}

/// A message of a worker, one JSON value per line.
#[derive(Debug, Serialize, Deserialize)]
enum WorkerMessage {
    /// The worker waits at a barrier, with its counts.
    Waits(Counts),
    /// The files of its bundle, in base64.
    Bundle(BTreeMap<String, String>),
    /// The worker could not run.
    Failed(String),
}

/// The workers: a number of local processes, and one process for each command, wherever that starts it.
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
        // Signals of the terminal are for the main process, which forwards the stop. ssh would end while the result is
        // still on the other host.
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

/// The standard input of a worker. The barrier and the forwarding of a stop share it.
#[derive(Clone)]
struct WorkerInput(Arc<Mutex<ChildStdin>>);

impl WorkerInput {
    fn send_line(&self, line: &str) -> std::io::Result<()> {
        // A line is written completely, or the worker is lost.
        writeln!(self.0.lock().unwrap_or_else(PoisonError::into_inner), "{line}")
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // The worker has ended by itself, except after an error here.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a scenario in several processes and merges their bundles.
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

/// Serves the barriers of all workers until each has sent its bundle.
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
            // A stopped worker may have ended. Its next message tells whether it ended in order.
            let _ = worker.to.send_line(&line);
        }
        workers = waiting;
    }
    // The first worker sampled the server for all.
    bundles.sort_by_key(|(part, _)| *part);
    Ok(bundles.into_iter().map(|(_, bundle)| bundle).collect())
}

fn forward_stop(stop: &AtomicBool, inputs: &[WorkerInput], over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        if stop.load(Ordering::Relaxed) {
            // A worker that has ended needs no stop.
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
            passwords: passwords::for_workers(),
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
        // A worker may have ended already. Its message or exit status follows.
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
                // The worker may wait for an answer and would never end by itself.
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

/// Runs as a worker.
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
    passwords::receive(task.passwords);
    // Ctrl-C reaches all processes of a terminal: each ends its run in order.
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
        // After a stop no sum follows.
        let Some(line) = lines.recv().ok().filter(|line| line.trim() != OVER) else { return Ok(None) };
        let counts = serde_json::from_str(&line);
        counts.map(Some).map_err(|error| Error::Answer(format!("what all processes did: {error}")))
    })
}

/// Receives the lines of the main process until it sends a stop or closes the input.
fn listen(stop: Arc<AtomicBool>) -> Receiver<String> {
    // Each wait has one answer.
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
        // The names come from our own process, but must not contain a path.
        let path = home.path().join(name.replace('/', "_"));
        std::fs::write(&path, bytes).map_err(Error::file(&path))?;
    }
    Bundle::read(home.path()).map_err(|error| Error::Answer(error.to_string()))
}
