//! The parts of a descriptor.

use super::data_type::DataType;
use super::located::Located;
use crate::virtual_sensors::fault::TextPosition;

/// One virtual sensor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptor {
    /// The name, in lower case and without blanks.
    pub name: Located<String>,
    /// `priority`: 0 to 100.
    pub priority: Option<Located<i64>>,
    /// Whether the sensor asks for access control.
    pub protected: Option<Located<bool>>,
    /// `time-zone`.
    pub time_zone: Option<Located<String>>,
    /// `publish-to-microsoft-research-sensor-map` of 1.1.
    pub sensor_map: Option<Located<bool>>,
    /// How late elements may be in event time: a time. GSN does not have the word.
    pub lateness: Option<Located<String>>,
    /// The text for people.
    pub description: String,
    /// `life-cycle pool-size`.
    pub pool_size: Option<Located<i64>>,
    /// Where the sensor is, and other properties. Keys are in lower case.
    pub addressing: Vec<Pair>,
    /// What is stored.
    pub storage: Storage,
    /// What is done with the rows of the streams.
    pub processing: Processing,
    /// What the sensor reads.
    pub streams: Vec<Stream>,
}

/// A parameter or a predicate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The key, in lower case.
    pub key: Located<String>,
    /// The value, without blanks around it.
    pub value: Located<String>,
}

/// `<storage>`.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Storage {
    /// `history-size`: a count or a time.
    pub history_size: Option<Located<String>>,
    /// `driver`: a class of Java.
    pub driver: Option<Located<String>>,
    /// `url`: a JDBC URL.
    pub url: Option<Located<String>>,
    /// `user` of the database.
    pub user: Option<Located<String>>,
    /// `password` of the user.
    pub password: Option<Located<String>>,
    /// `max-db-connections`, which GSN has in its build.xml.
    pub connections_max: Option<Located<i64>>,
    /// `max-sliding-db-connections`, which GSN has in its build.xml.
    pub sliding_connections_max: Option<Located<i64>>,
    /// The names of other words, which have no effect.
    pub unused: Vec<Located<&'static str>>,
}

impl std::fmt::Debug for Storage {
    /// Without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { history_size, driver, url, user, connections_max, .. } = self;
        f.debug_struct("Storage")
            .field("history_size", history_size)
            .field("driver", driver)
            .field("url", url)
            .field("user", user)
            .field("connections_max", connections_max)
            .finish_non_exhaustive()
    }
}

/// `<processing-class>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Processing {
    /// The Java class.
    pub class_name: Located<String>,
    /// Whether a second row of the same time is dropped.
    pub unique_timestamps: bool,
    /// `init-params`.
    pub params: Vec<Pair>,
    /// `output-specification rate`: least milliseconds between rows.
    pub rate: Option<Located<i64>>,
    /// `partition-field` of the output structure.
    pub partition_field: Option<Located<String>>,
    /// The fields of the output.
    pub output: Vec<Field>,
    /// The names of the commands of `web-input`.
    pub web_input: Vec<Located<String>>,
    /// Where the element begins.
    pub place: TextPosition,
}

/// `<stream>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// The name, in lower case.
    pub name: Located<String>,
    /// Least milliseconds between two executions of the query; 0 is not a bound.
    pub rate: Option<Located<i64>>,
    /// Most executions that give rows; 0 is not a bound.
    pub count: Option<Located<i64>>,
    /// The SQL over the aliases of the sources.
    pub query: Located<String>,
    pub sources: Vec<Source>,
}

/// `<source>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Source {
    /// The name under which the stream reads it, in lower case.
    pub alias: Located<String>,
    /// The window: a count or a time.
    pub storage_size: Option<Located<String>>,
    /// When the window moves: a count or a time.
    pub slide: Option<Located<String>>,
    /// The share of elements that are kept, as text.
    pub sampling_rate: Option<Located<String>>,
    /// `disconnect-buffer-size` of 1.1, `disconnected-buffer-size` of 2.0.
    pub disconnect_buffer_size: Option<Located<i64>>,
    /// Where elements come from; the first one that works is taken.
    pub addresses: Vec<Address>,
    /// The SQL over `wrapper`.
    pub query: Located<String>,
}

/// `<address>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// The name of the wrapper, in lower case.
    pub wrapper: Located<String>,
    /// `partial-order-key`.
    pub partial_order_key: Option<Located<String>>,
    /// The parameters of the wrapper.
    pub predicates: Vec<Pair>,
    /// The fields of the elements, if the address names them.
    pub output: Vec<Field>,
}

/// A field of a structure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Field {
    /// The name, in lower case.
    pub name: Located<String>,
    pub data_type: DataType,
    /// The unit, if it has one.
    pub unit: Option<String>,
    /// The text for people.
    pub description: String,
}
