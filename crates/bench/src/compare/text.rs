//! A comparison as text for a terminal.

use std::fmt;

use super::{Comparison, Figure};

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} run(s) of A, {} of B", self.scenario, self.runs.0, self.runs.1)?;
        for warning in &self.warnings {
            writeln!(f, "  ! {warning}")?;
        }
        if self.differences.is_empty() {
            writeln!(f, "nothing differs in how they were run")?;
        }
        for (path, a, b) in &self.differences {
            writeln!(f, "differs     {path}: {a} -> {b}")?;
        }
        self.tables(f)?;
        if self.figures.iter().any(|figure| !figure.is_quotable) {
            writeln!(f, "\n? too few samples behind it to be quoted, and no verdict")?;
        }
        let told =
            self.figures.iter().filter(|figure| figure.interval.is_some() && figure.is_quotable).count();
        if self.has_several_parts() && told > 0 {
            writeln!(
                f,
                "\nEach of these {told} intervals holds by itself, in 19 of 20 cases: among that many, some are called better or worse by chance."
            )?;
        }
        Ok(())
    }
}

impl Comparison {
    fn has_several_parts(&self) -> bool {
        self.figures.iter().any(|figure| figure.part != self.figures[0].part)
    }

    /// Writes one table of all figures, or one table for each kind if there are several phases or classes.
    fn tables(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let several = self.has_several_parts();
        let row_name = |figure: &Figure| if several { figure.part.clone() } else { figure.name.clone() };
        let width =
            self.figures.iter().map(|figure| row_name(figure).chars().count()).max().unwrap_or(0).max(20);
        let mut heading = None;
        for figure in &self.figures {
            let wanted = if several { figure.name.as_str() } else { "" };
            if heading.replace(wanted) != Some(wanted) {
                writeln!(
                    f,
                    "\n  {wanted:<width$} {:>13} {:>13} {:>9}  {:<22} verdict on B",
                    "A ", "B ", "B/A", "95 % interval"
                )?;
            }
            writeln!(f, "  {:<width$} {figure}", row_name(figure))?;
        }
        Ok(())
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.is_quotable { ' ' } else { '?' };
        let interval = self
            .interval
            .map_or_else(|| "not known".to_owned(), |i| format!("{:.4} to {:.4}", i.low, i.high));
        write!(
            f,
            "{:>12.3}{mark} {:>12.3}{mark} {:>9.4}  {interval:<22} {} (margin {} %)",
            self.a,
            self.b,
            self.ratio,
            self.verdict,
            self.margin * 100.0
        )
    }
}
