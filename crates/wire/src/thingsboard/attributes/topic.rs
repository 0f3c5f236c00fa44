//! Topics.

use std::fmt;

/// The names of topics that a device uses. An answer goes to the names of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Names {
    /// `v1/devices/me/attributes`
    Long,
    /// `v2/a`
    Short,
    /// `v2/a/j`, which says that the payload is JSON.
    ShortJson,
}

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

impl Names {
    const ALL: [Self; 3] = [Self::Long, Self::Short, Self::ShortJson];

    /// Base, and what stands before the number of a request and of a response.
    const fn parts(self) -> [&'static str; 3] {
        match self {
            Self::Long => [
                "v1/devices/me/attributes",
                "v1/devices/me/attributes/request/",
                "v1/devices/me/attributes/response/",
            ],
            Self::Short => ["v2/a", "v2/a/req/", "v2/a/res/"],
            Self::ShortJson => ["v2/a/j", "v2/a/req/j/", "v2/a/res/j/"],
        }
    }
}

impl Topic {
    /// Reads a topic. `None` if it is not one of attributes, or has no number that fits into 31 bits.
    pub fn parse(topic: &str) -> Option<Self> {
        Names::ALL.into_iter().find_map(|names| {
            let [base, request, response] = names.parts();
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
            Self::Attributes(names) => f.write_str(names.parts()[0]),
            Self::Request { names, id } => write!(f, "{}{id}", names.parts()[1]),
            Self::Response { names, id } => write!(f, "{}{id}", names.parts()[2]),
        }
    }
}
