//! Topic names and topic filters [MQTT5 4.7].

use crate::limits::TOPIC_LEVELS_MAX;

/// The levels of a topic name or filter.
pub fn levels(topic: &str) -> std::str::Split<'_, char> {
    topic.split('/')
}

/// Whether a topic has more than [`TOPIC_LEVELS_MAX`] levels. The server refuses such a topic.
pub fn is_too_deep(topic: &str) -> bool {
    levels(topic).nth(TOPIC_LEVELS_MAX).is_some()
}

/// Divides a shared filter `$share/GROUP/FILTER` into group and filter [MQTT5 4.8.2]. The filter is valid.
pub fn group_of(filter: &str) -> (Option<&str>, &str) {
    let shared = filter.strip_prefix("$share/").and_then(|rest| rest.split_once('/'));
    shared.map_or((None, filter), |(group, filter)| (Some(group), filter))
}

/// Whether a topic name matches a filter without a group.
pub fn matches(filter: &str, topic: &str) -> bool {
    // A wildcard at the beginning matches no topic of the server [MQTT-4.7.2-1].
    if topic.starts_with('$') && filter.starts_with(['+', '#']) {
        return false;
    }
    covers_levels(filter, topic)
}

/// The part of a filter before its first wildcard: all topics that it matches begin with it, apart from a final `/`.
pub fn literal_prefix(filter: &str) -> &str {
    let wildcard = filter.find(['+', '#']).unwrap_or(filter.len());
    let prefix = &filter[..wildcard];
    // `a/#` matches `a` too.
    if filter[wildcard..].starts_with('#') { prefix.strip_suffix('/').unwrap_or(prefix) } else { prefix }
}

/// Whether a filter matches only topics that `allowed`, a filter without a group, matches too. A topic name is such a filter.
pub fn covers(allowed: &str, filter: &str) -> bool {
    let (_, filter) = group_of(filter);
    // A wildcard at the beginning matches no topic of the server [MQTT-4.7.2-1].
    if filter.starts_with('$') && allowed.starts_with(['+', '#']) {
        return false;
    }
    covers_levels(allowed, filter)
}

fn covers_levels(pattern: &str, filter: &str) -> bool {
    let (mut patterns, mut filters) = (levels(pattern), levels(filter));
    loop {
        match (patterns.next(), filters.next()) {
            (Some("#"), _) => return true,
            // The filter stands for more levels than the pattern.
            (Some(_), Some("#")) => return false,
            (Some("+"), Some(_)) => {}
            (Some(pattern), Some(level)) if pattern == level => {}
            (None, None) => return true,
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_match_as_the_specification_says() {
        for (filter, topic) in [
            ("sport/tennis/player1/#", "sport/tennis/player1"),
            ("sport/tennis/player1/#", "sport/tennis/player1/ranking"),
            ("sport/#", "sport"),
            ("#", "a/b"),
            ("sport/tennis/+", "sport/tennis/player1"),
            ("sport/+", "sport/"),
            ("+/+", "/finance"),
            ("/+", "/finance"),
            ("$SYS/#", "$SYS/broker/uptime"),
        ] {
            assert!(matches(filter, topic), "{filter} {topic}");
        }
        for (filter, topic) in [
            ("sport/tennis/+", "sport/tennis/player1/ranking"),
            ("sport/+", "sport"),
            ("+", "/finance"),
            ("#", "$SYS/broker/uptime"),
            ("+/broker", "$SYS/broker"),
            ("a/b", "a"),
            ("a", "a/b"),
        ] {
            assert!(!matches(filter, topic), "{filter} {topic}");
        }
    }

    #[test]
    fn a_filter_covers_what_matches_no_other_topics() {
        for (allowed, filter) in [
            ("devices/truck-1/#", "devices/truck-1/#"),
            ("devices/truck-1/#", "devices/truck-1"),
            ("devices/truck-1/#", "devices/truck-1/a/+/b"),
            ("devices/truck-1/#", "$share/g/devices/truck-1/a"),
            ("+/acme/a", "x/acme/a"),
            ("+/a", "+/a"),
            ("#", "a/#"),
            ("$SYS/#", "$SYS/broker/+"),
            ("$SYS/broker/uptime", "$share/g/$SYS/broker/uptime"),
        ] {
            assert!(covers(allowed, filter), "{allowed} {filter}");
        }
        for (allowed, filter) in [
            ("devices/truck-1/#", "devices/+/a"),
            ("devices/truck-1/#", "devices/#"),
            ("devices/truck-1/#", "devices/truck-2/a"),
            ("devices/+/a", "devices/#"),
            ("+/a", "#"),
            ("#", "$SYS/#"),
            ("+/broker/#", "$SYS/broker/uptime"),
            ("#", "$share/g/$SYS/#"),
            ("$SYS/broker/+", "$SYS/#"),
            ("a/b", "a/+"),
        ] {
            assert!(!covers(allowed, filter), "{allowed} {filter}");
        }
    }

    #[test]
    fn the_literal_prefix_begins_every_match() {
        let cases = [("a/b/+/c", "a/b/"), ("a/#", "a"), ("#", ""), ("+/a", ""), ("a/b", "a/b")];
        for (filter, prefix) in cases {
            assert_eq!(literal_prefix(filter), prefix);
        }
    }
}
