//! The division of the connections between the workers.

use std::ops::Range;

use crate::engine::Plan;

/// The connection numbers of one worker, by group.
pub(super) type Share = Vec<Range<u32>>;

/// Splits every group evenly over the workers of all processes; each process has the same number of workers. No worker
/// is without a connection. No process is without one if there are as many connections as processes.
pub(super) fn shares(plan: &Plan) -> Vec<Share> {
    let largest = plan.groups.iter().copied().max().unwrap_or(0);
    let (part, parts) = plan.part;
    let each = plan.threads.min(largest / parts).max(1);
    let threads = each * parts;
    let share_of = |worker: u32| -> Share {
        let mut first = 0;
        let share = plan.groups.iter().map(|&count| {
            let at = |index: u32| first + (u64::from(count) * u64::from(index) / u64::from(threads)) as u32;
            let range = at(worker)..at(worker + 1);
            first += count;
            range
        });
        share.collect()
    };
    let own = part * each..(part + 1) * each;
    own.map(share_of).filter(|share| share.iter().any(|range| !range.is_empty())).collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::engine::Connect;

    fn plan(groups: &[u32], threads: u32) -> Plan {
        Plan {
            target: std::net::SocketAddr::from(([127, 0, 0, 1], 1)),
            elsewhere: Vec::new(),
            tls: None,
            sources: Vec::new(),
            groups: groups.to_vec(),
            classes: vec!["one".to_owned()],
            threads,
            part: (0, 1),
            open_rate: None,
            connect: Connect::default(),
            tick_us: 0,
            busy_poll_us: 0,
            silence: Duration::from_secs(1),
            segments: Vec::new(),
        }
    }

    #[test]
    fn every_connection_belongs_to_exactly_one_worker() {
        let cases: [(&[u32], u32); 6] =
            [(&[1], 1), (&[1], 4), (&[10], 3), (&[19_900], 2), (&[7], 7), (&[600, 2_100, 300], 2)];
        for (groups, threads) in cases {
            let plan = plan(groups, threads);
            let shares = shares(&plan);
            let mut numbers: Vec<u32> = shares.iter().flatten().cloned().flatten().collect();
            numbers.sort_unstable();
            assert_eq!(numbers, (0..plan.connections()).collect::<Vec<_>>());
            assert!(shares.iter().all(|share| share.iter().any(|range| !range.is_empty())));
            for share in &shares {
                let mut first = 0;
                for (range, count) in share.iter().zip(groups) {
                    assert!(range.start >= first && range.end <= first + count, "{share:?} of {groups:?}");
                    first += count;
                }
            }
        }
    }

    #[test]
    fn parts_of_several_processes_make_up_the_whole() {
        for (connections, threads, parts) in
            [(10, 1, 3), (10, 2, 3), (2, 1, 4), (1_000, 4, 2), (100, 4, 51), (51, 2, 51)]
        {
            let mut numbers = Vec::new();
            for part in 0..parts {
                let plan = Plan { part: (part, parts), ..plan(&[connections], threads) };
                let own: Vec<u32> = shares(&plan).into_iter().flatten().flatten().collect();
                assert!(
                    !own.is_empty() || connections < parts,
                    "process {part} of {parts} has something to do"
                );
                numbers.extend(own);
            }
            assert_eq!(numbers, (0..connections).collect::<Vec<_>>());
        }
    }
}
