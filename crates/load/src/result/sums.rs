//! Values that follow from counts and histograms: sums over classes of operation, rates and quantiles.

use std::collections::{BTreeMap, BTreeSet};

use super::log::{Clock, Histograms, Key};
use super::{ALL, Bundle, Phase, SecondLine, Summary};

impl Bundle {
    /// Computes all derived values, after building and after merging.
    pub(crate) fn summarise(&mut self) {
        self.add_sums();
        for phase in &mut self.result.phases {
            for operation in phase.operations.iter_mut().chain([&mut phase.total]) {
                let counts = &operation.counts;
                let completed =
                    if counts.completed_in_time > 0 { counts.completed_in_time } else { counts.completed };
                operation.completed_per_s = completed as f64 / phase.duration_s.max(1e-9);
                for clock in Clock::ALL {
                    let Some(timeline) = self.histograms.get(&phase.name, &operation.name, clock) else {
                        continue;
                    };
                    *operation.clock_mut(clock) = Summary::of(&timeline.total);
                }
            }
        }
        for line in &mut self.seconds {
            for clock in Clock::ALL {
                let seconds = self.histograms.get(&line.phase, &line.operation, clock);
                if let Some(distribution) = seconds.and_then(|timeline| timeline.seconds.get(&line.second)) {
                    line.set(clock, distribution);
                }
            }
        }
    }

    /// Computes the histograms and lines of `all` from those of the classes. Values of `all` that a runner gave stay.
    fn add_sums(&mut self) {
        let given =
            |phase: &str| self.histograms.iter().any(|(key, _)| key.phase == phase && key.operation == ALL);
        let missing: Vec<&Phase> = self.result.phases.iter().filter(|phase| !given(&phase.name)).collect();
        let mut sums = Histograms::default();
        for (key, timeline) in self.histograms.iter() {
            if missing.iter().any(|phase| phase.name == key.phase) {
                let all = Key { operation: ALL.to_owned(), ..key.clone() };
                sums.add_total(all.clone(), &timeline.total);
                for (second, distribution) in &timeline.seconds {
                    sums.add_second(all.clone(), *second, distribution);
                }
            }
        }
        self.histograms.merge(&sums);
        let given: BTreeSet<&str> = self
            .seconds
            .iter()
            .filter(|line| line.operation == ALL)
            .map(|line| line.phase.as_str())
            .collect();
        let mut lines: BTreeMap<(u64, String), SecondLine> = BTreeMap::new();
        for line in self.seconds.iter().filter(|line| !given.contains(line.phase.as_str())) {
            let place = (line.second, line.phase.clone());
            match lines.get_mut(&place) {
                Some(sum) => sum.add_counts(line),
                None => {
                    lines.insert(place, SecondLine { operation: ALL.to_owned(), ..line.clone() });
                }
            }
        }
        self.seconds.extend(lines.into_values());
        self.seconds
            .sort_by(|a, b| (a.second, &a.phase, &a.operation).cmp(&(b.second, &b.phase, &b.operation)));
    }
}
