//! Converts the recorder of an engine into parts of a bundle.

use super::{ALL, Builder, OperationCounts, SecondLine, Times};
use crate::recorder::{Class, ClassSecond, Clocks, Counts, Recorder, Second};

impl Builder {
    /// Adds the measurements of a recorder as the operations of a phase; `classes` names them by number.
    pub fn recorder(&mut self, phase: &str, classes: &[String], recorder: &Recorder) -> &mut Self {
        let used = |class: &&Class| class.counts != Counts::default();
        for (name, class) in classes.iter().zip(recorder.classes()).filter(|(_, class)| used(class)) {
            self.operation(phase, name, &counts(&class.counts), times(&class.clocks));
        }
        // Operations that came due or failed are known only in total.
        self.operation(phase, ALL, &counts(&recorder.total().counts), Times::default())
    }

    /// Adds a second of a phase that began `offset_s` seconds after the run. Failures without a class count for all.
    pub fn recorded_second(
        &mut self,
        phase: &str,
        classes: &[String],
        second: &Second,
        offset_s: u64,
    ) -> &mut Self {
        let line = |operation: &str, class: &ClassSecond| SecondLine {
            phase: phase.to_owned(),
            operation: operation.to_owned(),
            second: offset_s + second.index,
            length_s: 1.0,
            sent: class.sent,
            completed: class.completed,
            errors: class.failed,
            hits: class.hits,
            misses: class.misses,
            ..SecondLine::default()
        };
        let used = |class: &&ClassSecond| class.sent + class.completed + class.failed > 0;
        for (name, class) in classes.iter().zip(&second.classes).filter(|(_, class)| used(class)) {
            self.second(&line(name, class), times(&class.clocks));
        }
        let total = SecondLine { errors: second.errors, ..line(ALL, &second.total()) };
        self.add_line(&total)
    }
}

fn times(clocks: &Clocks) -> Times<'_> {
    Times { response: Some(&clocks.response), service: Some(&clocks.service), lag: Some(&clocks.lag) }
}

fn counts(counts: &Counts) -> OperationCounts {
    OperationCounts {
        planned: counts.measured_planned,
        sent: counts.measured_sent,
        completed: counts.measured_completed,
        completed_in_time: counts.completed_within_window,
        errors: counts.errors.clone(),
        hits: counts.hits,
        misses: counts.misses,
        bytes_sent: counts.bytes_out,
        bytes_received: counts.bytes_in,
        extra: counts.extra.clone(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::super::{Arrival, Clock, PhaseFacts, ScenarioAsRun};
    use super::*;
    use crate::recorder::{Operation, Window};

    const MS: u64 = 1_000_000;

    #[test]
    fn a_recorder_becomes_a_phase_with_its_total() {
        let mut recorder = Recorder::new(Window { from_ns: 0, until_ns: 2_000 * MS }, 2);
        let classes = ["get".to_owned(), "set".to_owned()];
        let mut builder = Builder::new(ScenarioAsRun::default(), 1, UNIX_EPOCH);
        builder.phase(&PhaseFacts {
            name: "run".to_owned(),
            kind: "run".to_owned(),
            measured: true,
            starts: Duration::from_secs(5),
            warmup: Duration::ZERO,
            duration: Duration::from_secs(2),
            arrival: Arrival::Open { process: "fixed".to_owned(), timer_us: 0, rate_per_s: 5.0 },
            connections: 1,
        });
        for second in 0..2 {
            for i in 0..5 {
                let intended_ns = (second * 1_000 + i * 200) * MS;
                let operation =
                    Operation { class: u16::from(i == 4), intended_ns, sent_ns: intended_ns + MS };
                recorder.planned(intended_ns);
                recorder.sent(&operation, 30);
                if i == 3 {
                    recorder.failed(0, "refused");
                } else {
                    recorder.completed(&operation, intended_ns + 3 * MS, 60);
                }
            }
            builder.recorded_second("run", &classes, &recorder.take_second(second), 5);
        }
        builder.recorder("run", &classes, &recorder);
        let bundle = builder.finish(Duration::from_secs(7));
        let phase = &bundle.result.phases[0];
        let total = &phase.total;
        assert_eq!((total.counts.planned, total.counts.sent, total.counts.completed), (10, 10, 8));
        assert_eq!((total.counts.errors_total(), total.completed_per_s), (2, 4.0));
        assert_eq!(phase.operations.len(), 2);
        assert_eq!(phase.operations[0].counts.completed, 6);
        let response = total.response.as_ref().unwrap();
        assert_eq!(
            (response.samples, response.quantile_us(0.5)),
            (8, Some(3_001.0)),
            "the end of its bucket: {response:?}"
        );
        let lines: Vec<(u64, &str, u64, u64)> = bundle
            .seconds
            .iter()
            .map(|line| (line.second, line.operation.as_str(), line.completed, line.errors))
            .collect();
        assert_eq!(lines[..3], [(5, "all", 4, 1), (5, "get", 3, 1), (5, "set", 1, 0)]);
        assert!(bundle.seconds[0].response_p99_us.is_some(), "the total of a second has its quantiles too");
        let all = bundle.histograms.get("run", ALL, Clock::Response).unwrap();
        assert_eq!(all.seconds.keys().copied().collect::<Vec<_>>(), [5, 6]);
    }
}
