//! Local addresses to connect from. The ports limit the number of connections between one source and one target.

use std::net::{IpAddr, Ipv4Addr};

use serde::Deserialize;

use crate::limits::SOURCES_MAX;

/// `sources` of a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "`sources` is \"auto\", a number, an address or \"FIRST-LAST\"")]
pub(crate) enum Sources {
    /// This number of loopback addresses of this machine, from 127.0.0.2 on.
    Count(u32),
    /// `"auto"`, one address, or a first and a last one: `"127.0.0.2-127.0.0.40"`.
    Text(String),
}

impl Default for Sources {
    fn default() -> Self {
        Self::Text("auto".to_owned())
    }
}

impl Sources {
    /// The addresses. For `auto`, they are `needed` loopback addresses if the target is on loopback, and otherwise
    /// none: the kernel chooses.
    pub(crate) fn addresses(&self, target: IpAddr, needed: u32) -> Result<Vec<IpAddr>, String> {
        let on_loopback = target.is_ipv4() && target.is_loopback();
        let addresses = match self {
            Self::Text(text) if text == "auto" && !on_loopback => Vec::new(),
            Self::Text(text) if text == "auto" && needed <= 1 => Vec::new(),
            Self::Text(text) if text == "auto" => loopback(needed)?,
            Self::Count(_) if !on_loopback => {
                return Err(format!(
                    "sources = {self}: only loopback has addresses of itself; name those of this machine, first and last: \
                     sources = \"10.0.0.10-10.0.0.40\""
                ));
            }
            Self::Count(count) => loopback(*count)?,
            Self::Text(text) => range(text)?,
        };
        match addresses.iter().find(|source| source.is_ipv4() != target.is_ipv4()) {
            Some(source) => Err(format!("sources: {source} and the target {target} are not of one family")),
            None => Ok(addresses),
        }
    }
}

impl std::fmt::Display for Sources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Count(count) => write!(f, "{count}"),
            Self::Text(text) => f.write_str(text),
        }
    }
}

fn loopback(count: u32) -> Result<Vec<IpAddr>, String> {
    let first = u32::from(Ipv4Addr::new(127, 0, 0, 2));
    between(first, first.saturating_add(count.saturating_sub(1)))
}

fn range(text: &str) -> Result<Vec<IpAddr>, String> {
    let address = |part: &str| {
        part.trim().parse::<IpAddr>().map_err(|_| {
            format!("sources: `{part}` is not an address; write \"127.0.0.2-127.0.0.40\", a number of them, or \"auto\"")
        })
    };
    match text.split_once('-') {
        None => Ok(vec![address(text)?]),
        Some((first, last)) => match (address(first)?, address(last)?) {
            (IpAddr::V4(first), IpAddr::V4(last)) => between(first.into(), last.into()),
            _ => Err("sources: only addresses of IPv4 can be a range".to_owned()),
        },
    }
}

fn between(first: u32, last: u32) -> Result<Vec<IpAddr>, String> {
    if last < first {
        return Err("sources: the last address is before the first".to_owned());
    }
    if last - first >= SOURCES_MAX {
        return Err(format!(
            "sources: {} addresses are more than {SOURCES_MAX}",
            u64::from(last - first) + 1
        ));
    }
    Ok((first..=last).map(|address| Ipv4Addr::from(address).into()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
    const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));

    fn of(sources: Sources, target: IpAddr, needed: u32) -> Result<Vec<String>, String> {
        let addresses = sources.addresses(target, needed)?;
        Ok(addresses.iter().map(ToString::to_string).collect())
    }

    fn text(text: &str) -> Sources {
        Sources::Text(text.to_owned())
    }

    #[test]
    fn ranges_counts_and_single_addresses_are_read() {
        assert_eq!(
            of(text("127.0.0.2-127.0.0.4"), HERE, 1).unwrap(),
            ["127.0.0.2", "127.0.0.3", "127.0.0.4"]
        );
        assert_eq!(of(text("10.0.0.7"), THERE, 9).unwrap(), ["10.0.0.7"]);
        assert_eq!(of(Sources::Count(2), HERE, 9).unwrap(), ["127.0.0.2", "127.0.0.3"]);
        assert_eq!(of(text("127.0.0.255-127.0.1.0"), HERE, 1).unwrap().len(), 2);
    }

    #[test]
    fn auto_takes_what_is_needed_on_loopback_and_leaves_the_rest_to_the_kernel() {
        assert_eq!(of(Sources::default(), HERE, 1).unwrap(), Vec::<String>::new());
        assert_eq!(of(Sources::default(), HERE, 71).unwrap().len(), 71);
        assert_eq!(of(Sources::default(), THERE, 71).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn what_cannot_be_is_said() {
        for (sources, target, expected) in [
            (text("127.0.0.9-127.0.0.2"), HERE, "before the first"),
            (text("127.0.0.x"), HERE, "`127.0.0.x` is not an address"),
            (text("127.0.0.2-128.0.0.2"), HERE, "more than"),
            (text("::1-::2"), HERE, "only addresses of IPv4"),
            (text("::1"), HERE, "not of one family"),
            (Sources::Count(3), THERE, "name those of this machine"),
        ] {
            let error = of(sources, target, 1).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }
}
