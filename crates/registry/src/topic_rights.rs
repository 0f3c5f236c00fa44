//! Topics that devices may use: patterns of the server's settings and of device profiles.
//!
//! A pattern is a topic filter whose levels may be names such as `${device}`. [`fill`] makes a filter of it for one client, and
//! [`covers`](model::topic::covers) compares this filter with what the client asks for.

use serde_json::Value as Json;

use super::limits::{TOPIC_PATTERN_BYTES_MAX, TOPIC_PATTERNS_MAX};
use model::topic::{is_too_deep, levels};

/// The member of `profileData` that lists the topics of a profile's devices.
pub const TOPICS_MEMBER: &str = "tachoTopics";

/// The names that a pattern may have as levels.
const NAMES: [&str; 5] = ["${device}", "${tenant}", "${client}", "${clientId}", "${username}"];

/// The values of the names in a pattern.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    /// The value of `${device}`.
    pub device: &'a str,
    /// The value of `${tenant}`.
    pub tenant: &'a str,
    /// The value of `${client}` and of `${clientId}`.
    pub client: &'a str,
    /// The value of `${username}`; `None` if the client has none.
    pub username: Option<&'a str>,
}

/// The topics that devices of a profile may use. Where it has no list, that of the server's settings holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TopicRights {
    /// Patterns of topics to publish to.
    pub publish: Option<Box<[Box<str>]>>,
    /// Patterns of topic filters to subscribe to.
    pub subscribe: Option<Box<[Box<str>]>>,
}

impl TopicRights {
    /// Reads the topics of `profileData`, JSON text. Without the member there are none. The counters under `$SYS` are those of all
    /// tenants, so only profiles of the default tenant, whose administrators administer the installation, may have them.
    ///
    /// # Errors
    /// The place in the JSON and the fault.
    pub fn of_profile_data(profile_data: Option<&str>, of_installation: bool) -> Result<Self, String> {
        // Most profiles have no such member, and data may be long.
        let Some(text) = profile_data.filter(|text| text.contains(TOPICS_MEMBER)) else {
            return Ok(Self::default());
        };
        let json: Json = serde_json::from_str(text).map_err(|error| format!("is not JSON: {error}"))?;
        match json.get(TOPICS_MEMBER) {
            None | Some(Json::Null) => Ok(Self::default()),
            Some(Json::Object(lists)) => Self::of_lists(lists, of_installation),
            Some(_) => Err(format!("{TOPICS_MEMBER} must be an object with the lists publish and subscribe")),
        }
    }

    fn of_lists(lists: &serde_json::Map<String, Json>, of_installation: bool) -> Result<Self, String> {
        if let Some(other) = lists.keys().find(|name| !["publish", "subscribe"].contains(&name.as_str())) {
            return Err(format!(
                "{TOPICS_MEMBER} has the member {other:?}; it may have publish and subscribe"
            ));
        }
        let publish = patterns("publish", lists.get("publish"))?;
        let subscribe = patterns("subscribe", lists.get("subscribe"))?;
        let is_of_server = |pattern: &str| pattern.starts_with('$') && !pattern.starts_with("${");
        if let Some(at) = publish.iter().flatten().position(|pattern| is_of_server(pattern)) {
            return Err(format!(
                "{TOPICS_MEMBER}.publish[{at}]: topics that begin with $ are the server's; no device publishes there"
            ));
        }
        let counters =
            subscribe.iter().flatten().position(|pattern| is_of_server(pattern)).filter(|_| !of_installation);
        if let Some(at) = counters {
            return Err(format!(
                "{TOPICS_MEMBER}.subscribe[{at}]: the counters under $SYS are those of all tenants; only profiles of \
                 the default tenant may have them"
            ));
        }
        Ok(Self { publish, subscribe })
    }
}

fn patterns(list: &str, json: Option<&Json>) -> Result<Option<Box<[Box<str>]>>, String> {
    let json = match json {
        None | Some(Json::Null) => return Ok(None),
        Some(Json::Array(json)) => json,
        Some(_) => return Err(format!("{TOPICS_MEMBER}.{list} must be a list of patterns")),
    };
    if json.len() > TOPIC_PATTERNS_MAX {
        let count = json.len();
        return Err(format!(
            "{TOPICS_MEMBER}.{list} has {count} patterns, the limit is {TOPIC_PATTERNS_MAX} (TOPIC_PATTERNS_MAX)"
        ));
    }
    let pattern = |(at, json): (usize, &Json)| {
        let text = json.as_str().ok_or_else(|| "must be a text".to_owned());
        let checked = text.and_then(|text| check_pattern(text).map(|()| text.into()));
        checked.map_err(|fault| format!("{TOPICS_MEMBER}.{list}[{at}]: {fault}"))
    };
    json.iter().enumerate().map(pattern).collect::<Result<_, _>>().map(Some)
}

/// Checks a pattern: a topic filter whose names in `${}` are known.
///
/// # Errors
/// The fault, for the operator.
pub fn check_pattern(pattern: &str) -> Result<(), String> {
    let bytes = pattern.len();
    if bytes > TOPIC_PATTERN_BYTES_MAX {
        return Err(format!(
            "it has {bytes} bytes, the limit is {TOPIC_PATTERN_BYTES_MAX} (TOPIC_PATTERN_BYTES_MAX)"
        ));
    }
    if is_too_deep(pattern) {
        let limit = model::limits::TOPIC_LEVELS_MAX;
        return Err(format!("{pattern:?} has more than {limit} levels (TOPIC_LEVELS_MAX)"));
    }
    if !is_filter(pattern) {
        return Err(format!(
            "{pattern:?} is not a topic filter: + and # must be alone between slashes, # only at the end"
        ));
    }
    if pattern.starts_with("$share/") {
        return Err(format!(
            "{pattern:?}: leave out $share and the group; a pattern allows shared subscriptions too"
        ));
    }
    match levels(pattern).find(|level| level.contains("${") && !is_name(level)) {
        None => Ok(()),
        Some(level) => Err(format!("{level:?} is not one of the levels {}", NAMES.join(", "))),
    }
}

fn is_name(level: &str) -> bool {
    NAMES.contains(&level)
}

fn is_filter(pattern: &str) -> bool {
    let last = levels(pattern).count() - 1;
    let fits = |(at, level): (usize, &str)| match level {
        "+" => true,
        "#" => at == last,
        other => !other.contains(['+', '#', '\0']),
    };
    !pattern.is_empty() && levels(pattern).enumerate().all(fits)
}

/// The filter of a pattern for one client. `None` if the client lacks a name or has one that is not a level: it is empty, has `/`,
/// `+` or `#`, or it would make a topic of the server.
pub fn fill(pattern: &str, names: Names<'_>) -> Option<String> {
    if !pattern.contains("${") {
        return Some(pattern.to_owned());
    }
    let mut filter = String::with_capacity(pattern.len() + 16);
    for (at, level) in levels(pattern).enumerate() {
        if at > 0 {
            filter.push('/');
        }
        let name = match level {
            "${device}" => names.device,
            "${tenant}" => names.tenant,
            "${client}" | "${clientId}" => names.client,
            "${username}" => names.username?,
            level => {
                filter.push_str(level);
                continue;
            }
        };
        if name.is_empty() || name.contains(['/', '+', '#']) || at == 0 && name.starts_with('$') {
            return None;
        }
        filter.push_str(name);
    }
    Some(filter)
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: Names<'_> = Names { device: "truck-1", tenant: "acme", client: "c", username: Some("u") };

    #[test]
    fn names_stand_for_levels_that_they_can_be() {
        let filled = |pattern, names| fill(pattern, names);
        let all = "${device}/${tenant}/${client}/${clientId}/${username}/+/#";
        assert_eq!(filled(all, CLIENT).as_deref(), Some("truck-1/acme/c/c/u/+/#"));
        assert_eq!(filled("a/b", CLIENT).as_deref(), Some("a/b"));
        for odd in ["", "a/b", "+", "x#"] {
            assert_eq!(filled("d/${device}/#", Names { device: odd, ..CLIENT }), None, "{odd:?}");
        }
        assert_eq!(filled("d/${username}", Names { username: None, ..CLIENT }), None);
        // A device named like the topics of the server does not get them.
        let odd = Names { device: "$SYS", ..CLIENT };
        assert_eq!(filled("${device}/#", odd), None);
        assert_eq!(filled("d/${device}", odd).as_deref(), Some("d/$SYS"));
    }

    #[test]
    fn a_pattern_must_be_a_filter_with_known_names() {
        for good in ["#", "+/a/#", "devices/${device}/#", "$SYS/broker/+", "/", "${username}/${clientId}"] {
            assert_eq!(check_pattern(good), Ok(()), "{good}");
        }
        let long = "a".repeat(TOPIC_PATTERN_BYTES_MAX + 1);
        for (bad, part) in [
            ("", "not a topic filter"),
            ("a/#/b", "not a topic filter"),
            ("a+", "not a topic filter"),
            ("a\0", "not a topic filter"),
            ("$share/g/a", "leave out $share"),
            ("a/${decice}", "not one of the levels"),
            ("a/x${device}", "not one of the levels"),
            (&long, "TOPIC_PATTERN_BYTES_MAX"),
            (&"/".repeat(128), "TOPIC_LEVELS_MAX"),
        ] {
            let fault = check_pattern(bad).unwrap_err();
            assert!(fault.contains(part), "{bad:?}: {fault}");
        }
    }

    #[test]
    fn profile_data_lists_the_topics_of_its_devices() {
        let read = |json: &str| TopicRights::of_profile_data(Some(json), true);
        let list = |patterns: &[&str]| Some(patterns.iter().map(|pattern| (*pattern).into()).collect());
        let both =
            r#"{"alarms":null,"tachoTopics":{"publish":["a/${device}"],"subscribe":["a/#","$SYS/#"]}}"#;
        let rights = TopicRights { publish: list(&["a/${device}"]), subscribe: list(&["a/#", "$SYS/#"]) };
        assert_eq!(read(both), Ok(rights));
        let fault = TopicRights::of_profile_data(Some(both), false).unwrap_err();
        assert!(fault.contains("tachoTopics.subscribe[1]: the counters under $SYS"), "{fault}");
        let none = r#"{"tachoTopics":{"publish":[],"subscribe":null}}"#;
        assert_eq!(read(none), Ok(TopicRights { publish: list(&[]), subscribe: None }));
        for without in [r#"{"alarms":null}"#, r#"{"tachoTopics":null}"#, r#"{"alarms":"tachoTopics"}"#] {
            assert_eq!(read(without), Ok(TopicRights::default()));
        }
        let many =
            format!(r#"{{"tachoTopics":{{"publish":[{}"a"]}}}}"#, r#""a","#.repeat(TOPIC_PATTERNS_MAX));
        for (bad, part) in [
            (r#"{"tachoTopics":[]}"#, "tachoTopics must be an object"),
            (r#"{"tachoTopics":{"pubish":[]}}"#, "\"pubish\"; it may have publish and subscribe"),
            (r#"{"tachoTopics":{"publish":"a"}}"#, "tachoTopics.publish must be a list"),
            (r#"{"tachoTopics":{"publish":[1]}}"#, "tachoTopics.publish[0]: must be a text"),
            (
                r#"{"tachoTopics":{"subscribe":["a","b+"]}}"#,
                "tachoTopics.subscribe[1]: \"b+\" is not a topic filter",
            ),
            (
                r#"{"tachoTopics":{"publish":["a","$SYS/a"]}}"#,
                "tachoTopics.publish[1]: topics that begin with $",
            ),
            (&many, "tachoTopics.publish has 65 patterns, the limit is 64"),
        ] {
            let fault = read(bad).unwrap_err();
            assert!(fault.contains(part), "{bad}: {fault}");
        }
    }
}
