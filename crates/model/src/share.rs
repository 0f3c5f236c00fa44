//! How tenants share what an installation has once.

/// The most that one tenant may use of `max` while the other tenants use `others` of it: half of what they leave. So one tenant can
/// take half, two can take a third each, and there is always room for another one. The only tenant of an installation may use all.
///
/// Switches with shared buffers divide them in this way: A. K. Choudhury and E. L. Hahne, "Dynamic Queue Length Thresholds for
/// Shared-Memory Packet Switches", IEEE/ACM Transactions on Networking 6(2), 1998, with α = 1.
pub const fn share_of(max: u64, others: u64, tenants: usize) -> u64 {
    let left = max.saturating_sub(others);
    if tenants <= 1 { left } else { left / 2 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greedy_tenants_get_equal_shares_and_leave_one_share() {
        assert_eq!((share_of(900, 0, 1), share_of(900, 0, 2)), (900, 450));
        let mut used = [0_u64; 2];
        for _ in 0..1_000 {
            for tenant in 0..used.len() {
                let others = used.iter().sum::<u64>() - used[tenant];
                used[tenant] += u64::from(used[tenant] < share_of(900, others, 3));
            }
        }
        assert!(used.iter().all(|used| (299..=301).contains(used)), "{used:?}");
        assert!(share_of(900, used.iter().sum(), 3) >= 149, "a third tenant has room");
        assert_eq!(share_of(10, 20, 2), 0);
    }
}
