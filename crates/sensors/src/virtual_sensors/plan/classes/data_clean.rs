//! `DataClean`: the model, and how far a value may be from it.

use crate::virtual_sensors::fault::{Fault, Note};
use crate::virtual_sensors::limits::WINDOW_ELEMENTS_MAX;
use crate::virtual_sensors::plan::params::Params;

/// How the class cleans.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DataCleanPlan {
    /// What is fitted.
    pub model: Model,
    /// The greatest difference of a value that is not marked.
    pub error_bound: f64,
    /// Values that are fitted at once.
    pub window_size: usize,
}

/// What is fitted to the values of a window. The number is the degree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Model {
    /// A polynomial with the least sum of squares.
    Polynomial(usize),
    /// The polynomial through the values nearest to the Chebyshev nodes of the window.
    Chebyshev(usize),
}

impl Model {
    pub fn degree(self) -> usize {
        match self {
            Self::Polynomial(degree) | Self::Chebyshev(degree) => degree,
        }
    }
}

/// GSN's names, in the order of its numbers. GSN spells the name of Chebyshev so.
const MODELS: &[(&str, Model)] = &[
    ("constant", Model::Chebyshev(0)),
    ("linear", Model::Polynomial(1)),
    ("quadratic", Model::Polynomial(2)),
    ("chebyschev_deg1", Model::Chebyshev(1)),
    ("chebyschev_deg2", Model::Chebyshev(2)),
    ("chebyschev_deg3", Model::Chebyshev(3)),
];

/// Where GSN sends what it has marked.
const METADATA: [&str; 7] =
    ["metadata_server_url", "user", "password", "operator", "deployment", "station", "sensor"];

pub(super) fn plan(params: &mut Params<'_>, notes: &mut Vec<Note>) -> Result<DataCleanPlan, Fault> {
    let model = model(params)?;
    let least = model.degree() as i64 + 1;
    let window_size = params.number("window_size", least, WINDOW_ELEMENTS_MAX as i64)? as usize;
    let error_bound = params.share("error_bound")?;
    for key in METADATA {
        params.note(notes, key, "nothing is sent to a server of metadata; read dirtiness from the output");
    }
    params.note(notes, "logging-interval", "the sensor is counted in the metrics");
    Ok(DataCleanPlan { model, error_bound, window_size })
}

fn model(params: &mut Params<'_>) -> Result<Model, Fault> {
    let said = &params.needed("model")?.value;
    let text = said.value.to_lowercase().replace("chebyshev", "chebyschev");
    let named = MODELS.iter().find(|(name, _)| *name == text);
    if let Some((_, model)) = named.or_else(|| MODELS.get(text.parse::<usize>().ok()?)) {
        return Ok(*model);
    }
    if matches!(text.as_str(), "arma_garch" | "6") {
        let reason =
            "the model arma_garch needs a program in R, which is not run; use constant, linear or quadratic";
        return Err(Fault::unsupported(said.place, reason));
    }
    let names: Vec<_> = MODELS.iter().map(|(name, _)| *name).collect();
    let reason = format!("model is {:?}; it is one of {}", said.value, names.join(", "));
    Err(Fault::invalid(said.place, reason))
}
