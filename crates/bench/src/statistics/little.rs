//! Little's law: what is in flight on average equals rate times time (Little, "A proof for the queuing formula
//! L = lambda W", Operations Research 1961). Figures that break it were not measured in the same place.

/// Largest difference that is not worth a word, as a share.
const TOLERANCE: f64 = 0.1;

/// Mean number of operations in flight.
pub fn in_flight(completed_per_s: f64, mean_us: f64) -> f64 {
    completed_per_s * mean_us / 1e6
}

/// A closed loop with `concurrency` operations always in flight: a sentence if rate times service time does not give
/// that number.
pub fn closed(completed_per_s: f64, mean_service_us: f64, concurrency: u64) -> Option<String> {
    let found = in_flight(completed_per_s, mean_service_us);
    let share = found / concurrency.max(1) as f64;
    if share < 1.0 - TOLERANCE {
        Some(format!(
            "Little's law: {completed_per_s:.0}/s x {:.3} ms = {found:.1} operations in flight, not {concurrency}: for the \
             other {:.0} % of the time connections waited for the generator itself",
            mean_service_us / 1e3,
            (1.0 - share) * 100.0
        ))
    } else if share > 1.0 + TOLERANCE {
        Some(format!(
            "Little's law: {completed_per_s:.0}/s x {:.3} ms = {found:.1} operations in flight, but there were only \
             {concurrency}: rate or latency is wrong",
            mean_service_us / 1e3
        ))
    } else {
        None
    }
}

/// An open loop over `connections` of one operation at a time: a sentence if more is in flight than they can carry,
/// which means that operations waited for a connection.
pub fn open(completed_per_s: f64, mean_response_us: f64, connections: u32) -> Option<String> {
    let found = in_flight(completed_per_s, mean_response_us);
    (found > f64::from(connections) * (1.0 + TOLERANCE)).then(|| {
        format!(
            "Little's law: {completed_per_s:.0}/s x {:.3} ms = {found:.0} operations waiting or in flight on {connections} \
             connections: most of the response time is waiting for the target to take the next one",
            mean_response_us / 1e3
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_with_128_in_flight_obeys() {
        // fio: 20,126 operations/s at 6.36 ms mean with a queue depth of 128.
        assert!((in_flight(20_126.0, 6_360.0) - 128.0).abs() < 0.1);
        assert_eq!(closed(20_126.0, 6_360.0, 128), None);
    }

    #[test]
    fn both_ways_of_breaking_it_are_said() {
        assert!(
            closed(10_000.0, 500.0, 50)
                .unwrap()
                .contains("90 % of the time connections waited for the generator")
        );
        assert!(closed(100_000.0, 1_000.0, 50).unwrap().contains("rate or latency is wrong"));
        assert!(open(1_000.0, 500_000.0, 50).unwrap().contains("500 operations"));
        assert_eq!(open(1_000.0, 5_000.0, 50), None);
    }
}
