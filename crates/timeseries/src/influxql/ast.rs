//! The syntax tree of a query.

use std::fmt;

use super::duration;

/// The type of a value, or of a reference before its type is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, PartialOrd, Ord)]
pub enum DataType {
    /// Not known yet.
    #[default]
    Unknown,
    Float,
    /// A signed integer.
    Integer,
    /// A text.
    String,
    Boolean,
    Time,
    Tag,
    /// A field of any type.
    AnyField,
    /// An unsigned integer.
    Unsigned,
}

impl DataType {
    /// The name in a query, as in `value::float`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Float => "float",
            Self::Integer => "integer",
            Self::Unsigned => "unsigned",
            Self::String => "string",
            Self::Boolean => "boolean",
            Self::Time => "time",
            Self::Tag => "tag",
            Self::AnyField => "field",
            Self::Unknown => "unknown",
        }
    }
}

/// A regular expression and its text.
#[derive(Debug, Clone)]
pub struct Pattern(pub regex::Regex);

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

/// An operator between two expressions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// `+`
    Add,
    /// `-`
    Sub,
    /// `*`
    Mul,
    /// `/`
    Div,
    /// `%`
    Mod,
    /// `&`
    BitAnd,
    /// `|`
    BitOr,
    /// `^`
    BitXor,
    /// `AND`
    And,
    /// `OR`
    Or,
    /// `=`
    Eq,
    /// `!=`
    Neq,
    /// `=~`
    Match,
    /// `!~`
    NotMatch,
    /// `<`
    Lt,
    /// `<=`
    Lte,
    /// `>`
    Gt,
    /// `>=`
    Gte,
}

impl Op {
    /// All operators and how a query writes them.
    pub const ALL: [(&'static str, Op); 18] = [
        ("+", Op::Add),
        ("-", Op::Sub),
        ("*", Op::Mul),
        ("/", Op::Div),
        ("%", Op::Mod),
        ("&", Op::BitAnd),
        ("|", Op::BitOr),
        ("^", Op::BitXor),
        ("AND", Op::And),
        ("OR", Op::Or),
        ("=", Op::Eq),
        ("!=", Op::Neq),
        ("=~", Op::Match),
        ("!~", Op::NotMatch),
        ("<", Op::Lt),
        ("<=", Op::Lte),
        (">", Op::Gt),
        (">=", Op::Gte),
    ];

    /// The operator as a query writes it.
    pub fn text(self) -> &'static str {
        Self::ALL.iter().find(|(_, op)| *op == self).map_or("", |(text, _)| text)
    }

    /// How strongly the operator binds; a larger number binds more.
    pub fn precedence(self) -> u8 {
        match self {
            Self::Or => 1,
            Self::And => 2,
            Self::Eq
            | Self::Neq
            | Self::Match
            | Self::NotMatch
            | Self::Lt
            | Self::Lte
            | Self::Gt
            | Self::Gte => 3,
            Self::Add | Self::Sub | Self::BitOr | Self::BitXor => 4,
            Self::Mul | Self::Div | Self::Mod | Self::BitAnd => 5,
        }
    }

    /// Whether the operator compares or connects conditions.
    pub fn is_condition(self) -> bool {
        self.precedence() <= 3
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// A field or a tag, by name.
    Ref(String, DataType),
    /// A text.
    Str(String),
    /// A float.
    Num(f64),
    /// An integer.
    Int(i64),
    /// An integer beyond the signed ones.
    Uint(u64),
    Bool(bool),
    /// A duration in nanoseconds.
    Dur(i64),
    /// A time in nanoseconds.
    Time(i64),
    /// A regular expression.
    Regex(Pattern),
    /// `*`, `*::field` or `*::tag`.
    Wildcard(DataType),
    /// A function and its arguments.
    Call(String, Vec<Expr>),
    /// An operator between two expressions.
    Binary(Op, Box<Expr>, Box<Expr>),
    /// An expression in parentheses.
    Paren(Box<Expr>),
    /// `distinct field`, without parentheses.
    Distinct(String),
    /// The value that arithmetic has where it is not defined.
    Nil,
}

impl Expr {
    /// An operator between two expressions.
    pub fn binary(op: Op, left: Expr, right: Expr) -> Expr {
        Expr::Binary(op, Box::new(left), Box::new(right))
    }

    /// Whether this is a value and not computed.
    pub fn is_literal(&self) -> bool {
        !matches!(
            self,
            Self::Ref(..)
                | Self::Wildcard(_)
                | Self::Call(..)
                | Self::Binary(..)
                | Self::Paren(_)
                | Self::Distinct(_)
        )
    }

    /// The name that InfluxDB's messages have for this kind of expression.
    pub fn kind_name(&self) -> &'static str {
        match self {
            Self::Ref(..) => "*influxql.VarRef",
            Self::Str(_) => "*influxql.StringLiteral",
            Self::Num(_) => "*influxql.NumberLiteral",
            Self::Int(_) => "*influxql.IntegerLiteral",
            Self::Uint(_) => "*influxql.UnsignedLiteral",
            Self::Bool(_) => "*influxql.BooleanLiteral",
            Self::Dur(_) => "*influxql.DurationLiteral",
            Self::Time(_) => "*influxql.TimeLiteral",
            Self::Regex(_) => "*influxql.RegexLiteral",
            Self::Wildcard(_) => "*influxql.Wildcard",
            Self::Call(..) => "*influxql.Call",
            Self::Binary(..) => "*influxql.BinaryExpr",
            Self::Paren(_) => "*influxql.ParenExpr",
            Self::Distinct(_) => "*influxql.Distinct",
            Self::Nil => "*influxql.NilLiteral",
        }
    }

    /// Visits this expression and those inside, from the outermost to the innermost.
    pub fn walk(&self, visit: &mut dyn FnMut(&Expr)) {
        visit(self);
        match self {
            Self::Call(_, args) => args.iter().for_each(|arg| arg.walk(visit)),
            Self::Binary(_, left, right) => {
                left.walk(visit);
                right.walk(visit);
            }
            Self::Paren(inner) => inner.walk(visit),
            _ => {}
        }
    }

    /// Changes this expression and those inside, from the outermost to the innermost.
    pub fn walk_mut(&mut self, visit: &mut dyn FnMut(&mut Expr)) {
        visit(self);
        match self {
            Self::Call(_, args) => args.iter_mut().for_each(|arg| arg.walk_mut(visit)),
            Self::Binary(_, left, right) => {
                left.walk_mut(visit);
                right.walk_mut(visit);
            }
            Self::Paren(inner) => inner.walk_mut(visit),
            _ => {}
        }
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ref(name, DataType::Unknown) => f.write_str(&quoted_ident(name)),
            Self::Ref(name, kind) => write!(f, "{}::{}", quoted_ident(name), kind.name()),
            Self::Str(text) => {
                write!(f, "'{}'", text.replace('\\', "\\\\").replace('\n', "\\n").replace('\'', "\\'"))
            }
            Self::Num(number) => write!(f, "{number:.3}"),
            Self::Int(number) => write!(f, "{number}"),
            Self::Uint(number) => write!(f, "{number}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Dur(nanos) => f.write_str(&duration::shown(*nanos)),
            Self::Time(nanos) => write!(f, "'{}'", super::time::rfc3339(*nanos, None)),
            Self::Regex(pattern) => write!(f, "/{}/", pattern.0.as_str().replace('/', "\\/")),
            Self::Wildcard(DataType::AnyField) => f.write_str("*::field"),
            Self::Wildcard(DataType::Tag) => f.write_str("*::tag"),
            Self::Wildcard(_) => f.write_str("*"),
            Self::Call(name, args) => {
                write!(f, "{name}(")?;
                for (index, arg) in args.iter().enumerate() {
                    write!(f, "{}{arg}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str(")")
            }
            Self::Binary(op, left, right) => write!(f, "{left} {} {right}", op.text()),
            Self::Paren(inner) => write!(f, "({inner})"),
            Self::Distinct(name) => write!(f, "DISTINCT {name}"),
            Self::Nil => f.write_str("nil"),
        }
    }
}

/// A name as a query must write it: in quotes where it is not a plain word.
pub fn quoted_ident(name: &str) -> String {
    let plain = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|next| next.is_ascii_alphanumeric() || next == '_')
        && super::token::keyword(name).is_none();
    match plain {
        true => name.to_owned(),
        false => format!("\"{}\"", name.replace('\\', "\\\\").replace('\n', "\\n").replace('"', "\\\"")),
    }
}

/// The name of a measurement or a pattern of names, in a database.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Measurement {
    /// Empty: the database of the request.
    pub database: String,
    /// Empty: the database's default.
    pub policy: String,
    pub name: String,
    /// The pattern, in place of a name.
    pub pattern: Option<Pattern>,
}

/// The input of a SELECT statement.
#[derive(Debug, Clone, PartialEq)]
pub enum From {
    Measurement(Measurement),
    /// A subquery.
    Query(Box<Select>),
}

/// What a bucket without rows gets.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub enum Fill {
    #[default]
    Null,
    /// No row.
    None,
    /// The value of the bucket before.
    Previous,
    /// A value on the line between the neighbours.
    Linear,
    /// An integer.
    Int(i64),
    /// A float.
    Num(f64),
}

/// A column of an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Field {
    /// The computation.
    pub expr: Expr,
    /// Empty: none.
    pub alias: String,
}

/// The part after INTO.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Target {
    /// Empty: the database of the request.
    pub database: String,
    /// Empty: the database's default.
    pub policy: String,
    /// The measurement; `None` for that of each row.
    pub name: Option<String>,
}

/// A SELECT statement.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Select {
    /// The columns.
    pub fields: Vec<Field>,
    /// Where the rows are written, in place of the answer.
    pub into: Option<Target>,
    /// The measurements of FROM; empty if there is none.
    pub from: Vec<From>,
    /// The condition of WHERE.
    pub condition: Option<Expr>,
    /// The dimensions of GROUP BY.
    pub dimensions: Vec<Expr>,
    /// What an empty bucket gets.
    pub fill: Fill,
    /// `Some(true)` is ascending.
    pub order: Option<bool>,
    /// LIMIT; 0 is none.
    pub limit: usize,
    pub offset: usize,
    /// SLIMIT; 0 is none.
    pub series_limit: usize,
    /// SOFFSET.
    pub series_offset: usize,
    /// The zone of `tz(...)`.
    pub zone: Option<chrono_tz::Tz>,
}

/// The kind of list of a SHOW statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Listing {
    Databases,
    /// Retention policies of a database.
    RetentionPolicies,
    Measurements,
    /// Tag keys by measurement.
    TagKeys,
    /// Tag values by measurement.
    TagValues,
    /// Fields and their types by measurement.
    FieldKeys,
    Series,
    /// How many series there are.
    SeriesCardinality,
    /// How many measurements there are.
    MeasurementCardinality,
    /// How many tag keys there are.
    TagKeyCardinality,
    /// How many tag values there are.
    TagValuesCardinality,
    /// How many fields there are.
    FieldKeyCardinality,
    /// Facts about the server.
    Diagnostics,
    /// Counters of the server.
    Stats,
    Users,
    /// Queries that run.
    Queries,
    Subscriptions,
    ContinuousQueries,
    Shards,
    ShardGroups,
}

/// Which tag keys SHOW TAG VALUES lists.
#[derive(Debug, Clone, PartialEq)]
pub enum Keys {
    /// The key of this name.
    Is(String),
    /// All keys but this.
    IsNot(String),
    /// The keys of these names.
    OneOf(Vec<String>),
    /// The keys that match.
    Matches(Pattern),
    /// The keys that do not match.
    MatchesNot(Pattern),
}

/// A SHOW statement.
#[derive(Debug, Clone, PartialEq)]
pub struct Show {
    /// The listed kind.
    pub listing: Listing,
    /// Empty: the database of the request.
    pub database: String,
    /// The measurements of FROM; empty if there is none.
    pub from: Vec<Measurement>,
    /// The keys of SHOW TAG VALUES.
    pub keys: Option<Keys>,
    /// The condition of WHERE.
    pub condition: Option<Expr>,
    /// Whether a cardinality is to be exact.
    pub exact: bool,
    /// LIMIT; 0 is none.
    pub limit: usize,
    pub offset: usize,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    Select(Box<Select>),
    Show(Box<Show>),
    CreateDatabase {
        name: String,
        /// How long its rows are kept, in nanoseconds; 0 is forever.
        duration: Option<i64>,
        /// The name of its retention policy.
        policy: Option<String>,
    },
    DropDatabase {
        name: String,
    },
    DropMeasurement {
        name: String,
    },
    DropSeries {
        /// The measurements of FROM; empty if there is none.
        from: Vec<Measurement>,
        /// The condition of WHERE.
        condition: Option<Expr>,
    },
    Delete {
        /// The measurements of FROM; empty if there is none.
        from: Vec<Measurement>,
        /// The condition of WHERE.
        condition: Option<Expr>,
    },
    /// CREATE or ALTER RETENTION POLICY.
    RetentionPolicy(RetentionPolicy),
    /// A statement that this server does not have: its first words.
    Refused(&'static str),
}

/// CREATE or ALTER RETENTION POLICY.
#[derive(Debug, Clone, PartialEq)]
pub struct RetentionPolicy {
    /// Whether the policy is new.
    pub create: bool,
    pub name: String,
    pub database: String,
    /// In nanoseconds; 0 is infinite.
    pub duration: Option<i64>,
}
