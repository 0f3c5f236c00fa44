//! `ScriptletProcessor`: the script for rows, and that of a clock.

use std::sync::Arc;

use crate::virtual_sensors::descriptor::{Descriptor, Pair};
use crate::virtual_sensors::fault::{Fault, Findings};
use crate::virtual_sensors::plan::params::{Params, RATE_MAX};
use crate::virtual_sensors::script::{STATE, Script, is_variable};

/// The scripts of a sensor. It has at least one.
#[derive(Debug, Clone, PartialEq)]
pub struct ScriptletPlan {
    /// It runs for each row of a stream.
    pub(crate) for_rows: Option<Arc<Script>>,
    /// Milliseconds between turns of a clock, and the script that runs at each.
    pub(crate) periodic: Option<(i64, Arc<Script>)>,
    /// Whether the script for rows gives rows.
    pub gives_rows: bool,
}

impl ScriptletPlan {
    /// Milliseconds between turns of the clock, if it has one.
    pub fn period(&self) -> Option<i64> {
        self.periodic.as_ref().map(|(period, _)| *period)
    }

    /// What the scripts do, in words.
    pub(in crate::virtual_sensors::plan) fn describe(&self) -> String {
        let mut text = "ScriptletProcessor".to_owned();
        if let Some(script) = &self.for_rows {
            let rows = if self.gives_rows { "" } else { ", which makes no rows" };
            text += &format!(", a script of {} for each row{rows}", lines(script));
        }
        if let Some((period, script)) = &self.periodic {
            text += &format!(", a script of {} every {period} ms", lines(script));
        }
        text
    }

    /// Checks the variables of the scripts: they have those of the fields of the streams and of the output.
    pub(in crate::virtual_sensors::plan) fn check(
        &self,
        descriptor: &Descriptor,
        of_streams: &[&str],
        findings: &mut Findings,
    ) {
        let processing = &descriptor.processing;
        for field in processing.output.iter().filter(|field| !is_variable(&field.name.value)) {
            let reason = format!(
                "the field {:?} cannot be a variable of a script; a name has letters of English, digits and _, and is not a word \
                 of Rhai and not {STATE}",
                field.name.value
            );
            findings.keep::<()>(Err(Fault::invalid(field.name.place, reason)));
        }
        if of_streams.contains(&STATE) {
            let reason = format!(
                "a stream has the field {STATE:?}, and the script has another variable of this name; rename the field in the query, \
                 as in `select {STATE} as position from …`"
            );
            findings.keep::<()>(Err(Fault::invalid(processing.place, reason)));
        }
        let outputs = processing.output.iter().map(|field| field.name.value.as_str());
        let periodic = self.periodic.as_ref().map(|(_, script)| script);
        for script in self.for_rows.iter().chain(periodic) {
            findings.keep(script.check_names(of_streams.iter().copied().chain(outputs.clone())));
        }
    }
}

pub(super) fn plan(params: &mut Params<'_>) -> Result<ScriptletPlan, Fault> {
    let compile = |pair: &Pair| Script::compile(&pair.value).map(Arc::new);
    let for_rows = params.take("scriptlet").map(compile).transpose()?;
    // GSN spells the word without its second t.
    let periodic = params.take("scriptlet-periodic").or_else(|| params.take("scriplet-periodic"));
    let periodic = match (periodic, params.take("period")) {
        (Some(pair), _) => Some((params.number("period", 1, RATE_MAX)?, compile(pair)?)),
        (None, Some(period)) => {
            let reason = "period is the time between runs of scriptlet-periodic, which is missing";
            return Err(Fault::invalid(period.key.place, reason));
        }
        (None, None) => None,
    };
    if periodic.is_none() && for_rows.is_none() {
        params.needed("scriptlet")?;
    }
    // GSN spells the word so.
    let gives_rows = params.flag("persistant", true)?;
    Ok(ScriptletPlan { for_rows, periodic, gives_rows })
}

fn lines(script: &Script) -> String {
    match script.lines() {
        1 => "1 line".to_owned(),
        lines => format!("{lines} lines"),
    }
}
