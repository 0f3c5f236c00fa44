//! Numbers as text.

/// `p99.9` for 0.999.
pub fn percentile(quantile: f64) -> String {
    format!("p{}", (quantile * 1e8).round() / 1e6)
}

/// A number with as many digits as a reader needs.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    if value.fract() == 0.0 && size < 1e15 {
        format!("{value:.0}")
    } else if size >= 100.0 {
        format!("{value:.1}")
    } else if size >= 1.0 {
        format!("{value:.2}")
    } else {
        format!("{value:.4}")
    }
}
