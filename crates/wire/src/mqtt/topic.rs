//! Topic names and topic filters [MQTT5 4.7].

/// Whether `topic` may be published to: not empty, no wildcard [MQTT-3.3.2-2], [MQTT-4.7.3-1].
pub fn is_valid_name(topic: &str) -> bool {
    // A loop over all bytes without an early exit lets the compiler compare many bytes at a time.
    !topic.is_empty() && !topic.bytes().fold(false, |found, byte| found | matches!(byte, b'+' | b'#' | 0))
}

/// Whether `filter` may be subscribed to in MQTT 5: `#` only as the whole last level [MQTT-4.7.1-1], `+` only as a whole level
/// [MQTT-4.7.1-2], a shared subscription with a share name and a filter [MQTT-4.8.2-1].
pub fn is_valid_filter(filter: &str) -> bool {
    if let Some(shared) = filter.strip_prefix("$share/") {
        let Some((name, rest)) = shared.split_once('/') else { return false };
        return !name.is_empty() && !name.contains(['+', '#']) && is_valid_levels(rest);
    }
    is_valid_levels(filter)
}

/// MQTT 3.1.1 has no shared subscriptions: `$share` is an ordinary level there.
pub(super) fn is_valid_filter_of(filter: &str, v5: bool) -> bool {
    if v5 { is_valid_filter(filter) } else { is_valid_levels(filter) }
}

fn is_valid_levels(filter: &str) -> bool {
    if filter.is_empty() || filter.as_bytes().contains(&0) {
        return false;
    }
    let mut levels = filter.split('/').peekable();
    while let Some(level) = levels.next() {
        let valid = match level {
            "#" => levels.peek().is_none(),
            "+" => true,
            other => !other.contains(['+', '#']),
        };
        if !valid {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_no_wildcards() {
        assert!(is_valid_name("v1/devices/me/telemetry") && is_valid_name("/") && is_valid_name("$SYS/a"));
        assert!(!is_valid_name("") && !is_valid_name("a/#") && !is_valid_name("a/+/b"));
    }

    #[test]
    fn wildcards_of_filters_stand_for_whole_levels() {
        for filter in ["#", "+", "a/#", "+/b/#", "/+", "a//b", "$share/g/a/#"] {
            assert!(is_valid_filter(filter), "{filter}");
        }
        for filter in ["", "a#", "#/a", "a/b+", "a/#/b", "$share/g", "$share//a", "$share/g+/a", "$share/g/"]
        {
            assert!(!is_valid_filter(filter), "{filter}");
        }
    }

    #[test]
    fn shares_are_plain_levels_in_3_1_1() {
        assert!(is_valid_filter_of("$share/g", false) && is_valid_filter_of("$share//a", false));
        assert!(!is_valid_filter_of("$share/g+/a", false) && !is_valid_filter_of("", false));
    }
}
