//! Bounds of virtual sensors.

/// Bytes of one descriptor, or of one `gsn.xml`.
pub const DESCRIPTOR_BYTES_MAX: usize = 256 * 1024;
/// Elements and attributes of one descriptor.
pub const DESCRIPTOR_NODES_MAX: usize = 8 * 1024;
/// Depth of elements in a descriptor; GSN's own words need seven.
pub const DESCRIPTOR_DEPTH_MAX: usize = 16;
/// Bytes of a name: of a sensor, a stream, an alias or a field.
pub const NAME_BYTES_MAX: usize = 128;
/// Streams of one sensor.
pub const STREAMS_MAX: usize = 16;
/// Sources of one stream.
pub const SOURCES_PER_STREAM_MAX: usize = 16;
/// Addresses of one source.
pub const ADDRESSES_PER_SOURCE_MAX: usize = 16;
/// Fields of an output structure, and of a source.
pub const FIELDS_MAX: usize = 512;
/// Parameters of a processing class, and predicates of an address or a sensor.
pub const PAIRS_MAX: usize = 128;
/// Rows that a `history-size` counts. The server reads that many to find the oldest one that stays.
pub const HISTORY_ROWS_MAX: usize = 1_000_000;
/// Connections to the database of a storage.
pub const DATABASE_CONNECTIONS_MAX: i64 = 64;
/// Bytes of one SQL statement.
pub const SQL_BYTES_MAX: usize = 32 * 1024;
/// Words and signs of one SQL statement.
pub const SQL_TOKENS_MAX: usize = 8192;
/// Operators and key words but `AS` of one SQL statement. A chain of operators is as deep as it is long.
pub const SQL_OPERATORS_MAX: usize = 512;
/// Parentheses within parentheses, and other nesting that the parser follows.
pub const SQL_NESTING_MAX: usize = 50;
/// Depth of expressions within expressions, chains of operators included.
pub const SQL_DEPTH_MAX: usize = 200;
/// Elements of a window.
pub const WINDOW_ELEMENTS_MAX: usize = 1_000_000;
/// Bytes of the elements of a window.
pub const WINDOW_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Length of a window or a slide in milliseconds: 366 days.
pub const WINDOW_MILLIS_MAX: i64 = 366 * 24 * 3_600_000;
/// Elements that wait for late ones in event time.
pub const LATENESS_ELEMENTS_MAX: usize = 65_536;
/// Combinations of rows that one join may look at.
pub const JOIN_COMBINATIONS_MAX: usize = 1_000_000;
/// Steps of one execution: the parts of expressions that it computes, and the operations of scripts for its rows, 16 steps each. About a
/// second, at most a few.
pub const EXECUTION_STEPS_MAX: u64 = 50_000_000;
/// Steps of one operation of a script.
pub(super) const SCRIPT_OPERATION_STEPS: u64 = 16;
/// Groups of one `GROUP BY`.
pub const GROUPS_MAX: usize = 10_000;
/// Bytes of a text that an expression makes.
pub const TEXT_BYTES_MAX: usize = 64 * 1024;
/// Times of output rows that `unique-timestamps` remembers.
pub const UNIQUE_TIMES_MAX: usize = 65_536;
/// Turns of a clock that one call makes up for; the others are left out and counted.
pub const TICKS_PER_CALL_MAX: usize = 10_000;
/// The latest time of an element, and its negative the earliest, in milliseconds: the year 275760, the last of JavaScript.
pub const TIMED_MAX: i64 = 8_640_000_000_000_000;
/// Rows that the class ClockedBridge holds until its next turn; then the oldest continue before it, and are counted.
pub const CLOCKED_ROWS_MAX: usize = 1_000;
/// Rows that a chart has.
pub const CHART_POINTS_MAX: usize = 1_000;
/// Fields that a chart draws as lines; further ones are not drawn.
pub const CHART_LINES_MAX: usize = 16;
/// Width and height of a chart in pixels.
pub const CHART_PIXELS_MAX: u32 = 4_096;
/// Bytes of a script.
pub const SCRIPT_BYTES_MAX: usize = 32 * 1024;
/// Operations of one run of a script: statements, expressions, and calls of functions.
pub const SCRIPT_OPERATIONS_MAX: u64 = 20_000;
/// Functions of a script that have called each other.
pub const SCRIPT_CALLS_MAX: usize = 8;
/// Expressions within expressions of a script. A chain of operators is as deep as it is long.
pub const SCRIPT_DEPTH_MAX: usize = 64;
/// Expressions within expressions of a function of a script.
pub const SCRIPT_FUNCTION_DEPTH_MAX: usize = 32;
/// Functions that a script defines.
pub const SCRIPT_FUNCTIONS_MAX: usize = 64;
/// Variables of a script, with those of the fields, which have at most half of them.
pub const SCRIPT_VARIABLES_MAX: usize = 128;
/// Bytes of a text that a script gets or makes, and of all texts within an array or a map.
pub const SCRIPT_TEXT_BYTES_MAX: usize = 16 * 1024;
/// Items of an array, and of a map, that a script makes, with those within them.
pub const SCRIPT_ITEMS_MAX: usize = 1_024;
/// Bytes of the state that a script keeps. It is stored with each checkpoint.
pub const SCRIPT_STATE_BYTES_MAX: usize = 16 * 1024;
/// Arrays and maps within each other in the state of a script.
pub const SCRIPT_STATE_DEPTH_MAX: usize = 16;
/// Runs of a script that are left out after it was stopped at a limit many times in succession.
pub const SCRIPT_PAUSE_RUNS_MAX: u32 = 1_023;
