//! A plan in words.

use std::fmt::{self, Write};

use super::classes::{Class, DataCleanPlan, Model};
use super::form::{Plan, SourcePlan, StreamPlan};
use super::storage::StoragePlace;
use super::windows::Extent;
use crate::virtual_sensors::sql::query::Query;

impl Plan {
    /// Lines for people: what is read, how windows move, and how queries are computed.
    pub fn explain(&self) -> String {
        let mut text = String::new();
        // Writing to a string cannot fail.
        let _ = self.write(&mut text);
        text
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "virtual sensor {}", self.name)?;
        for stream in &self.streams {
            stream.write(out)?;
        }
        writeln!(out, "  class {}", self.class.describe())?;
        if let Some(export) = &self.export {
            writeln!(out, "    rows go to {}", export.target())?;
        }
        write!(out, "  output")?;
        for (at, field) in self.output.iter().enumerate() {
            write!(out, "{} {} {}", if at == 0 { "" } else { "," }, field.name.value, field.data_type)?;
            if let Some(unit) = &field.unit {
                write!(out, " [{unit}]")?;
            }
        }
        writeln!(out)?;
        if self.output_rate > 0 {
            writeln!(out, "    at most one row in {} ms", self.output_rate)?;
        }
        if self.unique_timestamps {
            writeln!(out, "    one row for each time")?;
        }
        if let Some(lateness) = self.lateness {
            writeln!(out, "    event time: elements may be late by {}", Extent::Millis(lateness))?;
        }
        match &self.history {
            Some(history) => writeln!(out, "    keeps {history}")?,
            None => writeln!(out, "    keeps everything")?,
        }
        match &self.storage {
            Some(StoragePlace::Database(database)) => {
                writeln!(out, "    copied to a table of {}", database.address)
            }
            Some(StoragePlace::Own) | None => Ok(()),
        }
    }
}

impl StreamPlan {
    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "  stream {}", self.name)?;
        for source in &self.sources {
            source.write(out)?;
        }
        let joins = self.query.incremental().is_some()
            && self.query.tables.iter().all(|table| self.sources[*table].query.is_row_wise());
        let how = if joins {
            "rows join and leave the groups as the window moves"
        } else {
            how(&self.query, false)
        };
        writeln!(out, "    query: {how}")?;
        if self.rate > 0 {
            writeln!(out, "    at most one execution in {} ms", self.rate)?;
        }
        if let Some(count) = self.count {
            writeln!(out, "    ends after {count} executions with rows")?;
        }
        Ok(())
    }
}

impl SourcePlan {
    fn write(&self, out: &mut String) -> fmt::Result {
        writeln!(out, "    source {}: {}", self.alias, self.wrapper.describe())?;
        writeln!(out, "      window: {}", self.window)?;
        writeln!(out, "      fields: {}", self.columns.join(", "))?;
        writeln!(out, "      query: {}", how(&self.query, true))
    }
}

fn how(query: &Query, over_window: bool) -> &'static str {
    if over_window && query.is_row_wise() {
        "computed once for each element"
    } else if over_window && query.incremental().is_some() {
        "rows join and leave the groups as the window moves"
    } else {
        "computed over all rows at each execution"
    }
}

impl Class {
    fn describe(&self) -> String {
        match self {
            Self::Bridge { allow_nulls: true } => "Bridge".into(),
            Self::Bridge { allow_nulls: false } => "Bridge, without rows that lack a value".into(),
            Self::Scheduled { rate, .. } => format!("ScheduledBridge, every {rate} ms"),
            Self::Counter => "Counter".into(),
            Self::MovingAverage { size, threshold } => {
                format!("SMACleaner over {size} values, threshold {threshold}")
            }
            Self::Clocked { rate } => format!("ClockedBridge, every {rate} ms"),
            Self::DataClean(plan) => {
                let DataCleanPlan { model, error_bound, window_size } = plan;
                let model = match model {
                    Model::Polynomial(degree) => format!("least squares of degree {degree}"),
                    Model::Chebyshev(degree) => format!("Chebyshev of degree {degree}"),
                };
                format!("DataClean over {window_size} values, {model}, error bound {error_bound}")
            }
            Self::Nmea => "GPSNMEA".into(),
            Self::Scriptlet(plan) => plan.describe(),
            Self::Chart(plan) => {
                format!(
                    "Chart of the newest {} rows, {} x {} pixels",
                    plan.history_size, plan.width, plan.height
                )
            }
        }
    }
}
