//! Keys of a scenario.

use load::scenario::{Arrival, Mix, Phase, Scenario, TARGET_KEYS, typed};
use serde::Deserialize;

use crate::limits::{GSN_FIELDS_MAX, GSN_QUERIES_MAX, GSN_ROWS_MAX, GSN_STREAMS_MAX, GSN_UPLOAD_ROWS_MAX};
use crate::timeseries::options::TargetOptions as Login;

/// The operation that asks for rows.
pub(super) const ROWS: &str = "rows";
/// The operation that writes rows.
pub(super) const UPLOAD: &str = "upload";

/// Keys of `[dataset]`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DatasetOptions {
    /// The sensors that are read; all of the server if empty.
    #[serde(default)]
    pub(super) sensors: Vec<String>,
    /// Whether sensors get rows during the run from somewhere else.
    #[serde(default)]
    pub(super) growing: bool,
    /// Whether the findings have the block that GSN's tool prints.
    #[serde(default)]
    pub(super) gsn_compat: bool,
    /// The number of sensors that are written, before the scale.
    #[serde(default = "article_streams")]
    pub(super) streams: u64,
    /// Their fields.
    #[serde(default = "ten")]
    pub(super) fields: u32,
    /// What the names of these sensors begin with; a number follows.
    #[serde(default = "prefix")]
    pub(super) prefix: String,
    /// The time of the first rows, milliseconds since the epoch; `None` for the beginning of yesterday (UTC).
    pub(super) start_ms: Option<i64>,
}

fn article_streams() -> u64 {
    178
}

fn ten() -> u32 {
    10
}

fn prefix() -> String {
    "insertion_".to_owned()
}

/// How many rows a question asks for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Sizes {
    /// Always `size`, as GSN's tool does.
    #[default]
    Most,
    /// From one to `size`.
    Random,
}

/// Keys of a phase.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PhaseOptions {
    /// The largest number of rows that a question asks for.
    size: Option<u64>,
    sizes: Option<Sizes>,
    /// The number of questions at which the phase ends.
    queries: Option<u64>,
    /// The rows of an upload.
    rows_per_request: Option<u64>,
    /// The rows of each sensor at which the phase ends.
    rows: Option<u64>,
}

/// What the clients of a phase do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Work {
    /// They ask for rows.
    Ask { size: u64, sizes: Sizes, queries: Option<u64> },
    /// They write rows.
    Upload { rows_per_request: u64, rows: Option<u64> },
}

/// Keys of `[target]` besides the address.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawLogin {
    token: Option<String>,
    user: Option<String>,
    password: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OperationOptions {
    #[serde(rename = "about")]
    _about: Option<String>,
}

impl DatasetOptions {
    pub(super) fn read(scenario: &Scenario) -> Result<Self, String> {
        let options: Self = typed(scenario.dataset.clone(), "[dataset]", &[])?;
        let wrong = |what: String| Err(format!("[dataset]: {what}"));
        if !(1..=GSN_STREAMS_MAX).contains(&options.streams) {
            return wrong(format!("streams = {}; use 1 to {GSN_STREAMS_MAX}", options.streams));
        }
        if !(1..=GSN_FIELDS_MAX).contains(&options.fields) {
            return wrong(format!("fields = {}; use 1 to {GSN_FIELDS_MAX}", options.fields));
        }
        let is_word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
        let begins = options.prefix.bytes().next().is_some_and(|byte| byte.is_ascii_lowercase());
        if !begins || !options.prefix.bytes().all(is_word) {
            return wrong(format!(
                "prefix = {:?}; it must begin with a small letter and have small letters, digits and _",
                options.prefix
            ));
        }
        if options.start_ms.is_some_and(|start| start < 0) {
            return wrong("`start_ms` must not be before 1970".to_owned());
        }
        Ok(options)
    }
}

/// The login of `[target]`.
pub(super) fn login(scenario: &Scenario) -> Result<Login, String> {
    let RawLogin { token, user, password } =
        typed(scenario.target.driver_keys.clone(), "[target]", TARGET_KEYS)?;
    let has_any = token.is_some() || user.is_some() || password.is_some();
    if token.is_some() && (user.is_some() || password.is_some()) {
        return Err("[target]: give a token, or user and password".to_owned());
    }
    if password.is_some() && user.is_none() {
        return Err("[target]: a password needs a user".to_owned());
    }
    if has_any && scenario.target.url.is_empty() {
        return Err("[target]: a login is for a server that runs; give target.url too".to_owned());
    }
    Ok(Login { token, user, password, ..Login::default() })
}

/// Checks operations and phases.
pub(super) fn check(scenario: &Scenario) -> Result<(), String> {
    for operation in &scenario.operations {
        operation.options::<OperationOptions>()?;
        if ![ROWS, UPLOAD].contains(&operation.name.as_str()) {
            return Err(format!("{}: use {ROWS} or {UPLOAD}", operation.place()));
        }
    }
    scenario.check_phases(Work::of)?;
    let asks = |phase: &Phase| matches!(Work::of(phase), Ok(Work::Ask { .. }));
    if scenario.target.url.is_empty() && scenario.phases.iter().any(asks) {
        return Err("the questions need a server with sensors: give its address with --target".to_owned());
    }
    Ok(())
}

/// The only mix of a phase.
fn mix(phase: &Phase) -> Result<&Mix, String> {
    match &phase.mixes[..] {
        [mix] => Ok(mix),
        _ => Err("all clients do the same: leave out the mixes".to_owned()),
    }
}

impl Work {
    pub(super) fn of(phase: &Phase) -> Result<Self, String> {
        let mix = mix(phase)?;
        if !matches!(mix.arrival, Arrival::Closed | Arrival::Poisson | Arrival::Fixed) {
            return Err("arrival must be \"closed\", \"poisson\" or \"fixed\"".to_owned());
        }
        let options: PhaseOptions = mix.options(&toml::Table::new(), "its options")?;
        match &mix.operations[..] {
            [one] if one == ROWS => options.ask(phase),
            [one] if one == UPLOAD => options.upload(phase),
            _ => Err(format!("it needs one kind of operation: operations = [\"{ROWS}\"] or [\"{UPLOAD}\"]")),
        }
    }

    /// The name of the operation.
    pub(super) const fn operation(&self) -> &'static str {
        match self {
            Self::Ask { .. } => ROWS,
            Self::Upload { .. } => UPLOAD,
        }
    }
}

impl PhaseOptions {
    fn ask(self, phase: &Phase) -> Result<Work, String> {
        if self.rows_per_request.is_some() || self.rows.is_some() {
            return Err(format!("`rows_per_request` and `rows` are for operation `{UPLOAD}`"));
        }
        let size = self.size.ok_or("`size` is missing: the rows that a question asks for")?;
        if !(1..=GSN_ROWS_MAX).contains(&size) {
            return Err(format!("size = {size}; use 1 to {GSN_ROWS_MAX}"));
        }
        if let Some(queries) = self.queries.filter(|queries| !(1..=GSN_QUERIES_MAX).contains(queries)) {
            return Err(format!("queries = {queries}; use 1 to {GSN_QUERIES_MAX}"));
        }
        if phase.duration.is_none() && self.queries.is_none() {
            return Err("it has neither `duration` nor `queries` and would never end".to_owned());
        }
        Ok(Work::Ask { size, sizes: self.sizes.unwrap_or_default(), queries: self.queries })
    }

    fn upload(self, phase: &Phase) -> Result<Work, String> {
        if self.size.is_some() || self.sizes.is_some() || self.queries.is_some() {
            return Err(format!("`size`, `sizes` and `queries` are for operation `{ROWS}`"));
        }
        let rows_per_request = self.rows_per_request.unwrap_or(1);
        if !(1..=GSN_UPLOAD_ROWS_MAX).contains(&rows_per_request) {
            return Err(format!("rows_per_request = {rows_per_request}; use 1 to {GSN_UPLOAD_ROWS_MAX}"));
        }
        if self.rows == Some(0) {
            return Err("`rows` must be above zero".to_owned());
        }
        if phase.duration.is_none() && self.rows.is_none() {
            return Err("it has neither `duration` nor `rows` and would never end".to_owned());
        }
        Ok(Work::Upload { rows_per_request, rows: self.rows })
    }
}
