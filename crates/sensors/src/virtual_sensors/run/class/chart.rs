//! The class Chart: the newest rows as lines.

use std::collections::VecDeque;

use chrono::DateTime;
use plotters::prelude::*;

use super::super::named_row::NamedRow;
use crate::virtual_sensors::descriptor::DataType;
use crate::virtual_sensors::limits::CHART_LINES_MAX;
use crate::virtual_sensors::plan::{ChartPlan, Plan};
use crate::virtual_sensors::sql::datum::Number;

/// The rows that are drawn.
#[derive(Debug)]
pub(in crate::virtual_sensors::run) struct Points {
    plan: ChartPlan,
    rows: VecDeque<NamedRow>,
    /// Whether the output has a field that is not the chart.
    gives_rows: bool,
}

/// A chart of lines over time.
#[derive(Debug, Clone, PartialEq)]
pub struct Chart {
    /// How it is drawn.
    pub plan: ChartPlan,
    /// The lines, by the names of their fields: times in milliseconds since 1970, with values.
    pub lines: Vec<(String, Vec<(i64, f64)>)>,
}

impl Points {
    pub(super) fn new(chart: ChartPlan, plan: &Plan) -> Self {
        let gives_rows = plan.output.iter().any(|field| !matches!(field.data_type, DataType::Binary(_)));
        Self { plan: chart, rows: VecDeque::new(), gives_rows }
    }

    pub(super) fn rows(&self) -> impl Iterator<Item = &NamedRow> {
        self.rows.iter()
    }

    pub(super) fn add(&mut self, row: NamedRow) {
        if self.rows.len() == self.plan.history_size {
            self.rows.pop_front();
        }
        self.rows.push_back(row);
    }

    /// A row comes. It is the output, too, if the output has its fields.
    pub(super) fn row(&mut self, stream: &str, row: NamedRow) -> Option<NamedRow> {
        if self.plan.input_stream.as_ref().is_some_and(|wanted| wanted != stream) {
            return None;
        }
        let given = self.gives_rows.then(|| row.clone());
        self.add(row);
        given
    }

    pub(super) fn chart(&self) -> Chart {
        let mut lines: Vec<(String, Vec<(i64, f64)>)> = Vec::new();
        for row in &self.rows {
            for (name, datum) in &row.fields {
                let number = datum.number().ok().flatten().map(Number::as_f64);
                let Some(value) = number.filter(|value| value.abs() <= VALUE_MAX) else { continue };
                match lines.iter().position(|(known, _)| known == name) {
                    Some(at) => lines[at].1.push((row.timed, value)),
                    None if lines.len() < CHART_LINES_MAX => {
                        lines.push((name.clone(), vec![(row.timed, value)]));
                    }
                    None => {}
                }
            }
        }
        Chart { plan: self.plan.clone(), lines }
    }
}

impl Chart {
    /// The chart as a document of SVG.
    pub fn svg(&self) -> String {
        let mut text = String::new();
        let backend = SVGBackend::with_string(&mut text, (self.plan.width, self.plan.height));
        // Writing to a string cannot fail.
        let drawn = self.draw(&backend.into_drawing_area());
        debug_assert!(drawn.is_ok(), "{drawn:?}");
        text
    }

    fn draw(&self, area: &DrawingArea<SVGBackend<'_>, plotters::coord::Shift>) -> Drawn {
        area.fill(&WHITE)?;
        let (times, values) = (self.times(), self.values());
        let mut chart = ChartBuilder::on(area)
            .caption(&self.plan.title, ("sans-serif", 20))
            .margin(8)
            .x_label_area_size(32)
            .y_label_area_size(64)
            .build_cartesian_2d(times.clone(), values)?;
        let is_long = times.end - times.start > DAY_MS;
        chart
            .configure_mesh()
            .x_labels(5)
            .x_label_formatter(&|ms| time_text(*ms, is_long))
            .x_desc("Time (UTC)")
            .y_desc(&self.plan.vertical_axis)
            .draw()?;
        for (at, (name, points)) in self.lines.iter().enumerate() {
            let colour = Palette99::pick(at).to_rgba();
            let mut points: Vec<_> = points.iter().map(|(ms, value)| (*ms as f64, *value)).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            chart
                .draw_series(LineSeries::new(points, &colour).point_size(2))?
                .label(name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], colour));
        }
        if !self.lines.is_empty() {
            chart.configure_series_labels().background_style(WHITE.mix(0.8)).border_style(BLACK).draw()?;
        }
        area.present()
    }

    fn times(&self) -> std::ops::Range<f64> {
        range(self.lines.iter().flat_map(|(_, points)| points).map(|(ms, _)| *ms as f64), 1_000.0)
    }

    fn values(&self) -> std::ops::Range<f64> {
        range(self.lines.iter().flat_map(|(_, points)| points).map(|(_, value)| *value), 1.0)
    }
}

/// Larger values have no place on an axis with readable labels.
const VALUE_MAX: f64 = 1e15;

const DAY_MS: f64 = 86_400_000.0;

type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// The range of numbers with some room around it.
fn range(numbers: impl Iterator<Item = f64>, room: f64) -> std::ops::Range<f64> {
    let (least, most) =
        numbers.fold((f64::MAX, f64::MIN), |(least, most), number| (least.min(number), most.max(number)));
    if least > most {
        return 0.0..room;
    }
    let room = if most > least { (most - least) * 0.05 } else { room };
    // Steps of the axis must be larger than the distance of neighbouring numbers.
    let room = room.max(most.abs().max(least.abs()) * 1e-12);
    (least - room)..(most + room)
}

fn time_text(ms: f64, is_long: bool) -> String {
    let format = if is_long { "%Y-%m-%d %H:%M" } else { "%H:%M:%S" };
    DateTime::from_timestamp_millis(ms as i64)
        .map_or_else(String::new, |time| time.format(format).to_string())
}
