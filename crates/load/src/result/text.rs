//! The result as text for a terminal. The first line states whether it may be quoted.

use std::fmt;

use super::{Bundle, Cost, OWN_TOOL, Operation, Phase, Summary};

const MIB: f64 = 1_048_576.0;

impl fmt::Display for Bundle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let result = &self.result;
        let validity = result.validity();
        writeln!(f, "{} {}", validity.word(), result.scenario.name)?;
        for reason in validity.reasons() {
            writeln!(f, "  ! {reason}")?;
        }
        if !result.scenario.about.is_empty() {
            writeln!(f, "{}", result.scenario.about)?;
        }
        write!(f, "target      {}", result.target.address)?;
        if let Some(product) = &result.target.product {
            write!(f, " ({product})")?;
        }
        if let Some(tls) = &result.target.tls {
            write!(f, " over TLS, certificate {tls}")?;
        }
        writeln!(f)?;
        if result.tool.name != OWN_TOOL {
            writeln!(f, "measured by {} {}, imported", result.tool.name, result.tool.version)?;
        }
        for phase in &result.phases {
            phase_text(f, phase)?;
        }
        for check in &result.verification {
            let word = if check.passed { "ok   " } else { "WRONG" };
            writeln!(f, "{word} {}: {} expected, {} found", check.what, check.expected, check.found)?;
        }
        for sentence in &result.findings {
            writeln!(f, "finding     {sentence}")?;
        }
        for sentence in &result.hides {
            writeln!(f, "not shown   {sentence}")?;
        }
        write!(f, "{}", validity.word())
    }
}

fn phase_text(f: &mut fmt::Formatter<'_>, phase: &Phase) -> fmt::Result {
    let load = phase.arrival.text();
    let role = if phase.measured { "" } else { ", not measured" };
    writeln!(
        f,
        "\nphase {} ({}{role}): {:.0} s, {load}, {} connections",
        phase.name, phase.kind, phase.duration_s, phase.connections
    )?;
    let counts = &phase.total.counts;
    writeln!(
        f,
        "  {} planned, {} sent, {} completed ({:.1}/s), {} errors",
        counts.planned,
        counts.sent,
        counts.completed,
        phase.total.completed_per_s,
        counts.errors_total()
    )?;
    for (what, count) in &counts.errors {
        writeln!(f, "  error {count} x {what}")?;
    }
    if counts.hits + counts.misses > 0 {
        let share = 100.0 * counts.hits as f64 / (counts.hits + counts.misses) as f64;
        writeln!(f, "  {} hits, {} misses: {share:.2} % hit", counts.hits, counts.misses)?;
    }
    for (what, count) in &counts.extra {
        writeln!(f, "  {what} {count}")?;
    }
    times(f, phase)?;
    cost(f, &phase.cost)?;
    if let Some(uncertainty) = &phase.uncertainty {
        let rate = uncertainty.completed_per_s;
        write!(f, "  95 % interval within this run: {:.1} to {:.1}/s", rate.low, rate.high)?;
        if let Some(p99) = uncertainty.response_p99_us {
            write!(f, ", p99 {:.3} to {:.3} ms", p99.low / 1e3, p99.high / 1e3)?;
        }
        writeln!(f)?;
    }
    match &phase.steady {
        Some(steady) => writeln!(f, "  {}", steady.sentence),
        None => Ok(()),
    }
}

fn times(f: &mut fmt::Formatter<'_>, phase: &Phase) -> fmt::Result {
    let several = phase.operations.len() > 1;
    let classes = phase.operations.iter().filter(|_| several).chain([&phase.total]);
    let lines: Vec<(String, &Summary)> = classes.flat_map(summaries).collect();
    if lines.is_empty() {
        return Ok(());
    }
    writeln!(
        f,
        "  milliseconds                     p50        p90        p99      p99.9     p99.99        max   samples"
    )?;
    for (name, summary) in lines {
        line(f, &name, summary)?;
    }
    Ok(())
}

fn summaries(operation: &Operation) -> Vec<(String, &Summary)> {
    [("response", &operation.response), ("service", &operation.service), ("lag", &operation.lag)]
        .into_iter()
        .filter_map(|(clock, summary)| Some((format!("{} {clock}", operation.name), summary.as_ref()?)))
        .collect()
}

/// Writes one line. A quantile with too few samples is marked, because it is hardly more than the maximum.
fn line(f: &mut fmt::Formatter<'_>, name: &str, summary: &Summary) -> fmt::Result {
    write!(f, "  {name:<25}")?;
    for wanted in super::QUANTILES {
        match summary.quantiles.iter().find(|q| (q.quantile - wanted).abs() < 1e-9) {
            Some(q) => write!(f, " {:>9.3}{}", q.value_us / 1e3, if q.quotable { ' ' } else { '?' })?,
            None => write!(f, " {:>9} ", "-")?,
        }
    }
    match summary.max_us {
        Some(max) => write!(f, " {:>9.3}", max / 1e3)?,
        None => write!(f, " {:>9}", "-")?,
    }
    writeln!(f, " {:>10}", summary.samples)?;
    let other = summary
        .quantiles
        .iter()
        .filter(|q| q.quantile > 0.9 && !super::QUANTILES.iter().any(|w| (w - q.quantile).abs() < 1e-9));
    for q in other {
        writeln!(f, "  {:<25} {} {:.3} ms", "", super::percentile(q.quantile), q.value_us / 1e3)?;
    }
    Ok(())
}

fn cost(f: &mut fmt::Formatter<'_>, cost: &Cost) -> fmt::Result {
    let parts = [
        ("target", cost.target_cpu_us_per_operation, cost.target_cpu_percent),
        ("generator", cost.generator_cpu_us_per_operation, cost.generator_cpu_percent),
    ];
    for (who, us, percent) in parts {
        if let (Some(us), Some(percent)) = (us, percent) {
            writeln!(f, "  {who:<10} {us:.2} us of CPU per operation ({percent:.0} % of a core)")?;
        }
    }
    if let Some(percent) = cost.generator_polling_percent {
        writeln!(f, "  generator  {percent:.0} % of a core more went to polling instead of sleeping")?;
    }
    match cost.target_rss_bytes_max {
        Some(rss) => write!(f, "  target     {:.1} MiB resident at most", rss as f64 / MIB)?,
        None => return Ok(()),
    }
    match cost.target_rss_bytes_per_connection {
        Some(bytes) if bytes > 0.0 => {
            writeln!(f, ", {:.1} KiB per connection before the load", bytes / 1024.0)
        }
        _ => writeln!(f),
    }
}
