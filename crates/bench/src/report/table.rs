//! The result as text for a terminal.

use std::fmt;

use super::{Cost, Report, Verdict, Verification};
use crate::recorder::Quantiles;

const MIB: f64 = 1_048_576.0;

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.load)?;
        let status = if self.target.started_by_run { ", started by this run" } else { "" };
        writeln!(f, "server      {}, durability {}{status}", self.target.mqtt, self.target.durability)?;
        writeln!(f, "connections {} at {:.0}/s", self.connections, self.connect_per_s)?;
        writeln!(
            f,
            "messages    {} planned, {} sent, {} acked, {} errors; measured {:.0} s: {:.0} acked/s",
            self.counts.planned,
            self.counts.sent,
            self.counts.completed,
            self.counts.errors_total(),
            self.measured_s,
            self.acked_per_s
        )?;
        if self.latency.samples > 0 {
            writeln!(
                f,
                "\n  milliseconds         p50        p90        p99      p99.9     p99.99        max   samples"
            )?;
            let from = if self.open_loop { "ack - intended" } else { "ack - sent" };
            line(f, from, &self.latency)?;
            if self.open_loop {
                line(f, "ack - sent", &self.service)?;
                line(f, "generator lag", &self.lag)?;
            }
            writeln!(f)?;
        }
        cost(f, &self.cost)?;
        if let Some(verification) = &self.verification {
            verified(f, verification)?;
        }
        verdict(f, &self.verdict)
    }
}

/// A quantile with too few samples behind it is marked: it is hardly more than the maximum.
fn line(f: &mut fmt::Formatter<'_>, name: &str, q: &Quantiles) -> fmt::Result {
    write!(f, "  {name:<14}")?;
    for (us, quantile) in
        [(q.p50_us, 0.5), (q.p90_us, 0.9), (q.p99_us, 0.99), (q.p99_9_us, 0.999), (q.p99_99_us, 0.9999)]
    {
        let mark = if q.is_quotable(quantile) { ' ' } else { '?' };
        write!(f, " {:>9.3}{mark}", us as f64 / 1e3)?;
    }
    writeln!(f, " {:>9.3} {:>10}", q.max_us as f64 / 1e3, q.samples)
}

fn cost(f: &mut fmt::Formatter<'_>, cost: &Cost) -> fmt::Result {
    if let (Some(us), Some(percent)) = (cost.server_cpu_us_per_message, cost.server_cpu_percent) {
        writeln!(f, "server      {us:.2} us of CPU per message ({percent:.0} % of a core)")?;
    }
    if let (Some(us), Some(percent)) = (cost.generator_cpu_us_per_message, cost.generator_cpu_percent) {
        writeln!(f, "generator   {us:.2} us of CPU per message ({percent:.0} % of a core)")?;
    }
    if let (Some(before), Some(connected), Some(max)) =
        (cost.server_rss_before_bytes, cost.server_rss_connected_bytes, cost.server_rss_max_bytes)
    {
        let each = cost.server_rss_per_connection_bytes.unwrap_or_default() / 1_024.0;
        writeln!(
            f,
            "server RSS  {:.1} MiB before, {:.1} MiB connected ({each:.2} KiB a connection), {:.1} MiB at most",
            before as f64 / MIB,
            connected as f64 / MIB,
            max as f64 / MIB
        )?;
    }
    Ok(())
}

fn verified(f: &mut fmt::Formatter<'_>, v: &Verification) -> fmt::Result {
    writeln!(
        f,
        "read back   {} stored of {} acked on {} devices, {} missing, {} never sent; \
         {} rows of {} devices compared, {} wrong ({:.1} s)",
        v.stored,
        v.acked,
        v.devices,
        v.missing,
        v.surplus,
        v.sampled_rows,
        v.sampled_devices,
        v.wrong_rows,
        v.took_s
    )
}

fn verdict(f: &mut fmt::Formatter<'_>, verdict: &Verdict) -> fmt::Result {
    write!(f, "{}", if verdict.valid { "VALID" } else { "INVALID" })?;
    for reason in &verdict.reasons {
        write!(f, "\n  - {reason}")?;
    }
    for note in &verdict.notes {
        write!(f, "\n  note: {note}")?;
    }
    Ok(())
}
