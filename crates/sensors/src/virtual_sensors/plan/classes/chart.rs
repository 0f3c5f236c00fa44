//! `Chart`: what is drawn, and how large.

use crate::virtual_sensors::fault::{Fault, Note};
use crate::virtual_sensors::limits::{CHART_PIXELS_MAX, CHART_POINTS_MAX};
use crate::virtual_sensors::plan::params::Params;

/// How the chart is drawn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChartPlan {
    /// The text above it.
    pub title: String,
    /// The text beside the axis of the values.
    pub vertical_axis: String,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// Rows that are drawn: the newest ones.
    pub history_size: usize,
    /// The stream whose rows are drawn, in lower case; all without it.
    pub input_stream: Option<String>,
}

/// The least width and height in pixels: axes and texts need them.
const PIXELS_MIN: i64 = 100;

pub(super) fn plan(params: &mut Params<'_>, notes: &mut Vec<Note>) -> Result<ChartPlan, Fault> {
    let pixels = |params: &mut Params<'_>, key, default| {
        params.number_or(key, default, PIXELS_MIN, i64::from(CHART_PIXELS_MAX)).map(|pixels| pixels as u32)
    };
    let (width, height) = (pixels(params, "width", 640)?, pixels(params, "height", 480)?);
    let history_size = params.number_or("history-size", 10, 1, CHART_POINTS_MAX as i64)? as usize;
    if let Some(pair) = params.take("type").filter(|pair| !pair.value.value.eq_ignore_ascii_case("line")) {
        let text = format!("type {:?} has no effect: lines are drawn, as GSN does", pair.value.value);
        notes.push(Note { place: pair.value.place, text });
    }
    let mut text = |key| params.take(key).map(|pair| pair.value.value.clone());
    Ok(ChartPlan {
        title: text("title").unwrap_or_default(),
        vertical_axis: text("vertical-axis").unwrap_or_default(),
        width,
        height,
        history_size,
        input_stream: text("input-stream").map(|name| name.to_lowercase()),
    })
}
