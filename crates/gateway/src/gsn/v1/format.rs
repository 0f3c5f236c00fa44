//! The forms of answers.

use hub::clock::system_now;

use super::super::time::{TimeFormat, time_text};
use crate::http::tools::request::Params;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    GeoJson,
    Json,
    Csv,
}

impl Format {
    /// The parameter `format`; anything but `json` and `csv` is GeoJSON, as in GSN.
    pub(super) fn read(params: &Params) -> Self {
        match params.text("format") {
            Some("json") => Self::Json,
            Some("csv") => Self::Csv,
            _ => Self::GeoJson,
        }
    }

    pub(super) fn content_type(self) -> &'static str {
        match self {
            Self::GeoJson | Self::Json => "application/json;charset=utf-8",
            Self::Csv => "text/csv;charset=utf-8",
        }
    }

    /// The header that names the file of a CSV answer.
    pub(super) fn disposition(self, name: &str) -> Option<String> {
        let time = time_text(system_now().millis(), TimeFormat::Blank).replace(' ', "_").replace(':', "-");
        (self == Self::Csv).then(|| format!("attachment;filename=\"{name}_{time}.csv\""))
    }
}
