//! Topics.

use std::fmt;

use super::super::names::Names;

/// A topic of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Topic {
    /// The device publishes client attributes, or gets changes of shared ones.
    Attributes(Names),
    /// The device asks for attributes.
    Request {
        /// The names of the topic.
        names: Names,
        /// The number that the answer repeats.
        id: i32,
    },
    /// The device gets attributes.
    Response {
        /// The names of the topic.
        names: Names,
        /// The number of the request.
        id: i32,
    },
}

impl Topic {
    /// Reads a topic. `None` if it is not one of attributes, or has no number that fits into 31 bits.
    pub fn parse(topic: &str) -> Option<Self> {
        Names::ALL.into_iter().find_map(|names| {
            let [base, request, response] = parts(names);
            if topic == base {
                return Some(Self::Attributes(names));
            }
            let id = |prefix| topic.strip_prefix(prefix)?.parse().ok().filter(|id: &i32| *id >= 0);
            let request = id(request).map(|id| Self::Request { names, id });
            request.or_else(|| id(response).map(|id| Self::Response { names, id }))
        })
    }
}

impl fmt::Display for Topic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attributes(names) => f.write_str(parts(*names)[0]),
            Self::Request { names, id } => write!(f, "{}{id}", parts(*names)[1]),
            Self::Response { names, id } => write!(f, "{}{id}", parts(*names)[2]),
        }
    }
}

/// Base, and what is before the number of a request and of a response.
const fn parts(names: Names) -> [&'static str; 3] {
    match names {
        Names::Long => [
            "v1/devices/me/attributes",
            "v1/devices/me/attributes/request/",
            "v1/devices/me/attributes/response/",
        ],
        Names::Short => ["v2/a", "v2/a/req/", "v2/a/res/"],
        Names::ShortJson => ["v2/a/j", "v2/a/req/j/", "v2/a/res/j/"],
        Names::ShortProtobuf => ["v2/a/p", "v2/a/req/p/", "v2/a/res/p/"],
    }
}
