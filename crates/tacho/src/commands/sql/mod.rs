//! `tacho sql`: queries in SQL, to a running server or to a data directory without one.

mod completion;
mod form;
mod interrupt;
mod output;
mod pager;
mod prompt;
mod source;
mod table;
mod terminal;
mod typed_ahead;

use std::io::{IsTerminal, Read};
use std::path::PathBuf;

use anyhow::{Context, bail, ensure};
use clap::Args;
use gateway::statements::statements;
use tokio::runtime::{Builder, Runtime};

use crate::client::ServerArgs;
use crate::data_args::DataArgs;
use form::Form;
use interrupt::unless_interrupted;
use output::Output;
use source::Source;
use table::Expanded;

/// Runs SQL queries
///
/// Without a query the command opens a prompt. Statements end with a semicolon and may take several lines, \? shows the
/// commands of the prompt, and Ctrl-C ends a running query. If standard input is not a terminal, the command reads the queries
/// from it.
///
/// On a terminal, a table that is too wide is shown row by row, and a long answer is shown in $PAGER (`less -S` if it is not
/// set, no pager if it is empty).
///
/// The command sends the queries to the server that runs on the data directory, or to the server of --url. Without a server it
/// opens the store itself. Each device profile has a table (`telemetry` is that of the default profile), and `dead_letter` has
/// the refused messages with the reasons.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tacho sql
  tacho sql \"SELECT * FROM telemetry ORDER BY ts DESC LIMIT 10\"
  tacho sql --format csv --out week.csv \"SELECT * FROM telemetry WHERE ts > now() - INTERVAL '7 days'\"
  tacho sql --out telemetry.parquet \"SELECT * FROM telemetry\"
  tacho sql \"SELECT ts, device, reason, payload FROM dead_letter ORDER BY ts DESC LIMIT 5\"
  echo \"SELECT count(*) FROM telemetry\" | tacho sql")]
pub(crate) struct SqlArgs {
    /// The query, or several queries with semicolons between them
    query: Option<String>,
    /// Database whose tables the queries read [default: tacho, the tables of the devices]
    #[arg(long, value_name = "NAME")]
    database: Option<String>,
    /// Form of the answer [default: table, or the form that the extension of --out names]
    #[arg(long, value_enum, value_name = "FORM")]
    format: Option<Form>,
    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
    /// When to show a table row by row, with a line for each column
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    expanded: Expanded,
    /// Does not use a pager
    #[arg(long)]
    no_pager: bool,
    /// Writes the answer into FILE, which must not exist
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    server: ServerArgs,
    #[command(flatten)]
    data: DataArgs,
}

pub(crate) fn run(args: &SqlArgs) -> anyhow::Result<()> {
    let form = form(args)?;
    let text = match &args.query {
        Some(text) if text != "-" => Some(text.clone()),
        None if std::io::stdin().is_terminal() => None,
        _ => Some(read_input()?),
    };
    let config = args.data.load()?;
    let runtime = runtime()?;
    let source = Source::find(&args.server, args.database.as_deref(), &config, &runtime)?;
    let asked = match text {
        Some(text) => ask_all(&text, form, args, &source, &runtime),
        None => {
            ensure!(
                args.out.is_none() && form == Form::Table,
                "--out and --format need a query; the prompt shows tables"
            );
            prompt::run(&source, &runtime, args.expanded, !args.no_pager)
        }
    };
    let closed = source.close();
    asked.and(closed)
}

fn form(args: &SqlArgs) -> anyhow::Result<Form> {
    if args.json {
        return Ok(Form::Json);
    }
    if let Some(form) = args.format {
        let to_terminal = args.out.is_none() && std::io::stdout().is_terminal();
        ensure!(
            !(form.is_binary() && to_terminal),
            "this form is for programs; name a file with --out, or pipe it"
        );
        return Ok(form);
    }
    let Some(out) = &args.out else { return Ok(Form::Table) };
    Ok(match out.extension().and_then(|ending| ending.to_str()) {
        Some("csv") => Form::Csv,
        Some("json") => Form::Json,
        Some("arrow" | "arrows") => Form::Arrow,
        Some("parquet") => Form::Parquet,
        Some("txt") => Form::Table,
        _ => bail!("{}: the ending names no form; say --format csv, json, arrow or parquet", out.display()),
    })
}

fn read_input() -> anyhow::Result<String> {
    let mut text = String::new();
    let limit = model::limits::SQL_BYTES_MAX as u64 * 16;
    std::io::stdin()
        .take(limit)
        .read_to_string(&mut text)
        .context("cannot read the query from standard input")?;
    ensure!((text.len() as u64) < limit, "standard input has more than {limit} bytes of queries");
    Ok(text)
}

fn runtime() -> anyhow::Result<Runtime> {
    let runtime = Builder::new_multi_thread().worker_threads(1).thread_name("sql").enable_all().build();
    runtime.context("cannot start a thread")
}

fn ask_all(text: &str, form: Form, args: &SqlArgs, source: &Source, runtime: &Runtime) -> anyhow::Result<()> {
    let all = statements(text);
    ensure!(!all.is_empty(), "there is no query; write one, or run `tacho sql` for a prompt");
    let one_answer = args.out.is_some() || form.is_binary();
    ensure!(!one_answer || all.len() == 1, "{} queries, but one file; ask one by one", all.len());
    let mut output = Output::open(args.out.as_deref(), form, args.expanded, !args.no_pager)?;
    for one in all {
        runtime.block_on(unless_interrupted(output.answer(source, one)))?;
    }
    output.close()
}
