//! The statement of a result about stored messages, and about the points of gateways.

use load::result::{Check, Phase};

use super::verify::Verification;

/// The checks of a phase. `what` was sent: messages, or points of gateways.
pub(super) fn checks(place: &str, what: &str, verified: &Verification) -> Vec<Check> {
    let check = |what: &str, found: u64| Check::equal(format!("{what} ({place})"), 0, found);
    vec![
        check(&format!("acknowledged {what} that are not stored"), verified.missing),
        check("points stored that were never sent", verified.surplus),
        check("sampled rows with wrong values", verified.wrong_rows),
    ]
}

/// The finding besides the checks.
pub(super) fn sentence(place: &str, what: &str, verified: &Verification) -> String {
    let Verification { devices, acked, sent, stored, sampled_devices, sampled_rows, took_s, .. } = verified;
    let first = verified.first_difference.as_deref().map(|what| format!(" First difference: {what}."));
    format!(
        "{place}: {devices} devices sent {sent} {what}, {acked} were acknowledged, {stored} points are stored; {sampled_rows} rows of \
         {sampled_devices} devices were compared value by value ({took_s:.1} s).{}",
        first.unwrap_or_default()
    )
}

/// The rate and the cost of a phase whose messages have several points each.
pub(super) fn per_point(phase: &Phase, points_per_message: u32) -> String {
    let points = f64::from(points_per_message);
    let cpu = |us: Option<f64>| us.map_or("unknown".to_owned(), |us| format!("{:.3} us", us / points));
    format!(
        "{}: {:.0} points/s were acknowledged, {points_per_message} in a message; CPU of a point: client {}, server {}.",
        phase.name,
        phase.total.completed_per_s * points,
        cpu(phase.cost.generator_cpu_us_per_operation),
        cpu(phase.cost.target_cpu_us_per_operation),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use load::result::example::example;

    #[test]
    fn figures_of_messages_are_divided_by_their_points() {
        let mut phase = example().result.phases.remove(0);
        phase.name = "run".to_owned();
        phase.total.completed_per_s = 500.0;
        phase.cost.generator_cpu_us_per_operation = None;
        phase.cost.target_cpu_us_per_operation = Some(250.0);
        assert_eq!(
            per_point(&phase, 100),
            "run: 50000 points/s were acknowledged, 100 in a message; CPU of a point: client unknown, server 2.500 us."
        );
    }
}
