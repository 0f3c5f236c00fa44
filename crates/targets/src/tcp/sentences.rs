//! The findings of phases of driver `tcp` as sentences. Pure functions.

use std::fmt::Write as _;

use load::engine::event::{
    CONNECTS_REPEATED, GIVEN_UP, NO_PORT, NOT_OPENED_IN_TIME, NOT_SENT, REFUSED, RESET, SYNS_REPEATED,
};
use load::result::OperationCounts;

const KIB: f64 = 1_024.0;
/// The names of the memory growth while connections were opened and held.
pub(super) const GENERATOR_GREW: &str = "bytes of generator memory grown";
/// See [`GENERATOR_GREW`].
pub(super) const TARGET_GREW: &str = "bytes of target memory grown";
/// See [`GENERATOR_GREW`].
pub(super) const KERNEL_GREW: &str = "bytes of kernel memory grown";

/// The results of connection attempts.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Attempts {
    pub(super) established: u64,
    pub(super) refused: u64,
    pub(super) reset: u64,
    pub(super) timed_out: u64,
    /// Attempts for which this machine had no port.
    pub(super) no_port: u64,
    pub(super) other: u64,
    /// The number of SYNs that the kernel sent again, and of the connects that needed it.
    pub(super) repeated: (u64, u64),
    pub(super) not_tried: u64,
    /// Attempts that were due and not begun at the end.
    pub(super) not_begun: u64,
}

impl Attempts {
    /// Reads the counts of all classes together.
    pub(super) fn of(established: u64, counts: &OperationCounts) -> Self {
        let mut attempts = Self { established, ..Self::default() };
        for (what, count) in &counts.errors {
            let Some(cause) = what.strip_prefix("not opened: ") else { continue };
            let place = match cause {
                REFUSED => &mut attempts.refused,
                RESET => &mut attempts.reset,
                NO_PORT => &mut attempts.no_port,
                _ if cause.starts_with("no answer to the handshake") || cause.contains("timed out") => {
                    &mut attempts.timed_out
                }
                _ => &mut attempts.other,
            };
            *place += count;
        }
        let errors = |name: &str| counts.errors.get(name).copied().unwrap_or(0);
        attempts.timed_out += errors(NOT_OPENED_IN_TIME);
        attempts.not_begun = errors(NOT_SENT);
        let extra = |name: &str| counts.extra.get(name).copied().unwrap_or(0);
        attempts.repeated = (extra(SYNS_REPEATED), extra(CONNECTS_REPEATED));
        attempts.not_tried = extra(GIVEN_UP);
        attempts
    }

    fn failed(&self) -> u64 {
        self.refused + self.reset + self.timed_out + self.no_port + self.other
    }

    /// `refused 1, reset 0, ...`, and the SYNs that were sent again.
    fn causes(&self) -> String {
        let mut text =
            format!("{} refused, {} reset, {} timed out", self.refused, self.reset, self.timed_out);
        if self.no_port > 0 {
            let _ = write!(text, ", {} without a local port", self.no_port);
        }
        if self.other > 0 {
            let _ = write!(text, ", {} failed otherwise", self.other);
        }
        if self.not_begun > 0 {
            let _ = write!(text, ", {} were due and never begun", self.not_begun);
        }
        match self.repeated {
            (0, _) => text.push_str("; no SYN was sent again"),
            (syns, connects) => {
                let _ = write!(text, "; {syns} SYNs of {connects} connects were sent again");
            }
        }
        text
    }
}

/// The sentence about the number of connections.
pub(super) fn connections(
    phase: &str,
    asked: u64,
    attempts: &Attempts,
    held: Option<(u64, f64)>,
    probe: Option<(u64, u64)>,
) -> String {
    let Attempts { established, not_tried, .. } = *attempts;
    let lost = held.map_or(0, |(held, _)| established.saturating_sub(held));
    let word = if established == asked && lost == 0 { "reached" } else { "NOT reached" };
    let mut text = format!(
        "{phase}: {asked} connections were asked for: {word}. {established} were established, {}",
        attempts.causes()
    );
    if not_tried > 0 {
        let _ = write!(text, "; {not_tried} were not tried any more, because failures were sustained");
    }
    text.push('.');
    if let Some((held, seconds)) = held {
        let _ = write!(text, " After {seconds:.0} s {held} of them were still open.");
    }
    if let Some((asked, answered)) = probe {
        let _ = write!(text, " Of a sample of {asked} asked then, {answered} answered.");
    }
    text
}

/// The sentence about the memory of connections, from the growth in bytes; `None` without samples.
pub(super) fn memory(phase: &str, counts: &OperationCounts, connections: u64) -> Option<String> {
    let each = |name: &str| Some(*counts.extra.get(name)? as f64 / connections.max(1) as f64 / KIB);
    let mut text = format!(
        "{phase}: memory per connection, with everything else that grew meanwhile: generator {:.2} KiB",
        each(GENERATOR_GREW)?
    );
    if let Some(target) = each(TARGET_GREW) {
        let _ = write!(text, ", target {target:.2} KiB resident");
    }
    if let Some(kernel) = each(KERNEL_GREW) {
        let _ = write!(text, ", kernel {kernel:.2} KiB (slab of this machine; both ends, if both are here)");
    }
    text.push('.');
    Some(text)
}

/// The sentence about connections per second in `seconds`. `asked` is the planned rate and the number of connections
/// that came due, except in a closed loop.
pub(super) fn per_second(
    phase: &str,
    asked: Option<(f64, u64)>,
    connects: &OperationCounts,
    attempts: &Attempts,
    seconds: f64,
) -> String {
    let seconds = seconds.max(1e-9);
    let made = connects.completed_in_time as f64 / seconds;
    let goal = asked.map(|(rate, due)| {
        let is_reached = attempts.failed() == 0 && made >= 0.99 * due as f64 / seconds;
        let word = if is_reached { "reached" } else { "NOT reached" };
        format!("{rate:.0} connections a second were asked for: {word}. ")
    });
    let goal = goal.unwrap_or_default();
    format!("{phase}: {goal}{made:.1} connections a second were established; {}.", attempts.causes())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(errors: &[(&str, u64)], extra: &[(&str, u64)]) -> OperationCounts {
        let of =
            |pairs: &[(&str, u64)]| pairs.iter().map(|(what, count)| ((*what).to_owned(), *count)).collect();
        OperationCounts { errors: of(errors), extra: of(extra), ..OperationCounts::default() }
    }

    #[test]
    fn every_failure_has_a_cause() {
        let refused = format!("not opened: {REFUSED}");
        let no_port = format!("not opened: {NO_PORT}");
        let counts = counts(
            &[
                (&refused, 1),
                ("not opened: connection reset", 2),
                ("not opened: no answer to the handshake within 10 s (x)", 3),
                ("not opened: Connection timed out (os error 110)", 4),
                (&no_port, 5),
                ("not opened: No route to host (os error 113)", 6),
                ("connection lost: x", 99),
                (NOT_OPENED_IN_TIME, 1),
                (NOT_SENT, 9),
            ],
            &[(SYNS_REPEATED, 7), (CONNECTS_REPEATED, 3), (GIVEN_UP, 50)],
        );
        let attempts = Attempts::of(79, &counts);
        let expected = Attempts {
            established: 79,
            refused: 1,
            reset: 2,
            timed_out: 8,
            no_port: 5,
            other: 6,
            repeated: (7, 3),
            not_tried: 50,
            not_begun: 9,
        };
        assert_eq!(attempts, expected);
        let text = connections("c", 151, &attempts, Some((70, 30.0)), Some((1, 1)));
        for part in [
            "151 connections were asked for: NOT reached. 79 were established",
            "1 refused, 2 reset, 8 timed out, 5 without a local port, 6 failed otherwise, 9 were due and never begun",
            "7 SYNs of 3 connects were sent again",
            "50 were not tried any more",
            "After 30 s 70 of them were still open. Of a sample of 1 asked then, 1 answered.",
        ] {
            assert!(text.contains(part), "{text}");
        }
    }

    #[test]
    fn a_number_is_reached_only_if_all_were_made_and_kept() {
        let attempts = Attempts { established: 5_000, ..Attempts::default() };
        assert!(connections("c", 5_000, &attempts, Some((5_000, 1.0)), None).contains(": reached."));
        assert!(connections("c", 5_000, &attempts, Some((4_999, 1.0)), None).contains("NOT reached"));
        assert!(connections("c", 5_001, &attempts, None, None).contains("NOT reached"));
    }

    #[test]
    fn memory_is_what_grew() {
        let grown = counts(&[], &[(GENERATOR_GREW, 2_048_000), (TARGET_GREW, 1_024_000)]);
        let text = memory("c", &grown, 1_000).unwrap();
        assert!(text.contains("generator 2.00 KiB, target 1.00 KiB resident."), "{text}");
        assert_eq!(memory("c", &OperationCounts::default(), 1), None);
    }

    #[test]
    fn a_rate_is_reached_without_failures_only() {
        let mut made = counts(&[], &[]);
        made.completed_in_time = 29_900;
        let none = Attempts::default();
        let asked = Some((3_000.0, 30_000));
        let said = per_second("s", asked, &made, &none, 10.0);
        assert!(said.contains(": reached. 2990.0 connections a second were established"), "{said}");
        let refused = Attempts { refused: 1, ..none.clone() };
        assert!(per_second("s", asked, &made, &refused, 10.0).contains("NOT reached"));
        made.completed_in_time = 20_000;
        assert!(per_second("s", asked, &made, &none, 10.0).contains("NOT reached"));
        let closed = per_second("s", None, &made, &none, 10.0);
        assert_eq!(
            closed,
            "s: 2000.0 connections a second were established; 0 refused, 0 reset, 0 timed out; no SYN was sent again."
        );
    }
}
