//! Topic names, topic filters, and patterns of permissions [MQTT5 4.7].

use super::limits::TOPIC_LEVELS_MAX;

/// The levels of a topic name or filter.
pub(super) fn levels(topic: &str) -> std::str::Split<'_, char> {
    topic.split('/')
}

/// Whether a topic has more than [`TOPIC_LEVELS_MAX`] levels. The server refuses such a topic.
pub fn is_too_deep(topic: &str) -> bool {
    levels(topic).nth(TOPIC_LEVELS_MAX).is_some()
}

/// Divides a shared filter `$share/GROUP/FILTER` into group and filter [MQTT5 4.8.2]. The filter is valid.
pub(super) fn group_of(filter: &str) -> (Option<&str>, &str) {
    let shared = filter.strip_prefix("$share/").and_then(|rest| rest.split_once('/'));
    shared.map_or((None, filter), |(group, filter)| (Some(group), filter))
}

/// Whether a topic name matches a filter without a group.
pub(super) fn matches(filter: &str, topic: &str) -> bool {
    // A wildcard at the beginning matches no topic of the server [MQTT-4.7.2-1].
    if topic.starts_with('$') && filter.starts_with(['+', '#']) {
        return false;
    }
    covers_levels(filter, topic, |pattern, level| pattern == level)
}

/// The part of a filter before its first wildcard: all topics that it matches begin with it, apart from a final `/`.
pub(super) fn literal_prefix(filter: &str) -> &str {
    let wildcard = filter.find(['+', '#']).unwrap_or(filter.len());
    let prefix = &filter[..wildcard];
    // `a/#` matches `a` too.
    if filter[wildcard..].starts_with('#') { prefix.strip_suffix('/').unwrap_or(prefix) } else { prefix }
}

/// The values of the names in a pattern of a permission.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    /// The value of `${device}`.
    pub device: &'a str,
    /// The value of `${tenant}`.
    pub tenant: &'a str,
    /// The value of `${client}`.
    pub client: &'a str,
}

/// Whether a pattern allows all topics that a filter, or a topic name, matches.
///
/// A pattern is a topic filter whose levels may be `${device}`, `${tenant}` or `${client}`. A name with `/`, `+` or `#` is no
/// level, so it satisfies no pattern.
pub fn permits(pattern: &str, filter: &str, names: Names<'_>) -> bool {
    let (_, filter) = group_of(filter);
    if filter.starts_with('$') != pattern.starts_with('$') && !pattern.starts_with("${") {
        return false;
    }
    covers_levels(pattern, filter, |pattern, level| match name_of(pattern, names) {
        Some(name) => name == level && !name.contains(['/', '+', '#']),
        None => pattern == level,
    })
}

fn name_of<'a>(level: &str, names: Names<'a>) -> Option<&'a str> {
    match level {
        "${device}" => Some(names.device),
        "${tenant}" => Some(names.tenant),
        "${client}" => Some(names.client),
        _ => None,
    }
}

fn covers_levels(pattern: &str, filter: &str, same: impl Fn(&str, &str) -> bool) -> bool {
    let (mut patterns, mut filters) = (levels(pattern), levels(filter));
    loop {
        match (patterns.next(), filters.next()) {
            (Some("#"), _) => return true,
            // The filter stands for more levels than the pattern.
            (Some(_), Some("#")) => return false,
            (Some("+"), Some(_)) => {}
            (Some(pattern), Some(level)) if same(pattern, level) => {}
            (None, None) => return true,
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: Names<'_> = Names { device: "truck-1", tenant: "acme", client: "c" };

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
    fn a_pattern_permits_only_filters_that_it_covers() {
        for (pattern, filter) in [
            ("devices/${device}/#", "devices/truck-1/#"),
            ("devices/${device}/#", "devices/truck-1"),
            ("devices/${device}/#", "devices/truck-1/a/+/b"),
            ("devices/${device}/#", "$share/g/devices/truck-1/a"),
            ("+/${tenant}/a", "x/acme/a"),
            ("+/a", "+/a"),
            ("#", "a/#"),
            ("${client}/x", "c/x"),
        ] {
            assert!(permits(pattern, filter, NAMES), "{pattern} {filter}");
        }
        for (pattern, filter) in [
            ("devices/${device}/#", "devices/+/a"),
            ("devices/${device}/#", "devices/#"),
            ("devices/${device}/#", "devices/truck-2/a"),
            ("devices/+/a", "devices/#"),
            ("+/a", "#"),
            ("#", "$SYS/#"),
            ("a/b", "a/+"),
        ] {
            assert!(!permits(pattern, filter, NAMES), "{pattern} {filter}");
        }
        let odd = Names { device: "a/+", ..NAMES };
        assert!(!permits("devices/${device}/#", "devices/a/+/x", odd));
        assert!(!permits("devices/${device}", "devices/+", Names { device: "+", ..NAMES }));
    }

    #[test]
    fn the_literal_prefix_begins_every_match() {
        let cases = [("a/b/+/c", "a/b/"), ("a/#", "a"), ("#", ""), ("+/a", ""), ("a/b", "a/b")];
        for (filter, prefix) in cases {
            assert_eq!(literal_prefix(filter), prefix);
        }
    }
}
