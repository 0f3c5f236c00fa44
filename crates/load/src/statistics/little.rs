//! Little's law: the mean number in flight equals rate times time (Little, "A proof for the queuing formula L = lambda
//! W", Operations Research 1961). Figures that violate it were not measured at the same place.

/// The largest difference that is not reported, as a share.
const TOLERANCE: f64 = 0.1;
/// Below this share of operations at the target, most of the response time is waiting.
const WAITING_SHARE: f64 = 0.5;

/// The mean number of operations in flight.
pub fn in_flight(completed_per_s: f64, mean_us: f64) -> f64 {
    completed_per_s * mean_us / 1e6
}

/// Checks a closed loop with `concurrency` operations in flight or in the pause of `pause_us` after each. Returns a
/// sentence if rate times service time and pause does not equal that number.
pub fn closed(completed_per_s: f64, mean_service_us: f64, pause_us: f64, concurrency: u64) -> Option<String> {
    let found = in_flight(completed_per_s, mean_service_us + pause_us);
    let (time_ms, paused) =
        ((mean_service_us + pause_us) / 1e3, if pause_us > 0.0 { " or in a pause" } else { "" });
    let share = found / concurrency.max(1) as f64;
    if share < 1.0 - TOLERANCE {
        Some(format!(
            "Little's law: {completed_per_s:.0}/s x {time_ms:.3} ms = {found:.1} operations in flight{paused}, not {concurrency}: for the \
             other {:.0} % of the time connections waited for the generator itself",
            (1.0 - share) * 100.0
        ))
    } else if share > 1.0 + TOLERANCE {
        Some(format!(
            "Little's law: {completed_per_s:.0}/s x {time_ms:.3} ms = {found:.1} operations in flight{paused}, but there were only \
             {concurrency}: rate or latency is wrong"
        ))
    } else {
        None
    }
}

/// Checks an open loop. Returns a sentence if most operations wait to be sent and are not at the target.
pub fn open(completed_per_s: f64, mean_response_us: f64, mean_service_us: f64) -> Option<String> {
    let (all, at_target) =
        (in_flight(completed_per_s, mean_response_us), in_flight(completed_per_s, mean_service_us));
    // Less than one operation in flight is a fraction of the time, not a queue.
    (all >= 1.0 && at_target < all * WAITING_SHARE).then(|| {
        format!(
            "Little's law: {completed_per_s:.0}/s x {:.3} ms = {all:.1} operations under way on average, but only \
             {at_target:.1} of them at the target ({:.3} ms): the others waited to be sent, for the generator or for a \
             connection that could take one more",
            mean_response_us / 1e3,
            mean_service_us / 1e3
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
        assert_eq!(closed(20_126.0, 6_360.0, 0.0, 128), None);
    }

    #[test]
    fn a_pause_is_not_waiting_for_the_generator() {
        // 1,000 devices that pause for half a second after each answer.
        assert_eq!(closed(1_996.0, 900.0, 500_000.0, 1_000), None);
        let slow = closed(1_000.0, 900.0, 500_000.0, 1_000).unwrap();
        assert!(slow.contains("500.9 operations in flight or in a pause, not 1000"), "{slow}");
    }

    #[test]
    fn both_ways_of_breaking_it_are_said() {
        assert!(
            closed(10_000.0, 500.0, 0.0, 50)
                .unwrap()
                .contains("90 % of the time connections waited for the generator")
        );
        assert!(closed(100_000.0, 1_000.0, 0.0, 50).unwrap().contains("rate or latency is wrong"));
        let waiting = open(1_000.0, 500_000.0, 2_000.0).unwrap();
        assert!(waiting.contains("500.0 operations") && waiting.contains("only 2.0 of them"), "{waiting}");
        assert_eq!(open(1_000.0, 5_000.0, 4_800.0), None);
        assert_eq!(open(1_000.0, 200.0, 20.0), None, "a fifth of an operation is not a queue");
    }
}
