//! Conditions on rows: comparisons that are joined by `and` and `or`, where `and` binds closer, as in SQL.

use model::{TimeRange, Timestamp};

use super::limits::CONDITIONS_MAX;
use super::refusal::Refusal;
use super::value::Value;

/// The data that a condition compares.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Operand {
    /// The time of the row, in milliseconds.
    Time,
    /// A field, in lower case.
    Field(String),
}

/// A comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operator {
    Below,
    AtMost,
    Above,
    AtLeast,
    Equal,
}

/// How a condition is joined with the next one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Join {
    And,
    Or,
}

/// A condition on one row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Condition {
    pub(super) operand: Operand,
    pub(super) operator: Operator,
    pub(super) number: f64,
    pub(super) next: Join,
}

impl Operator {
    /// The operator as SQL has it.
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Below => "<",
            Self::AtMost => "<=",
            Self::Above => ">",
            Self::AtLeast => ">=",
            Self::Equal => "=",
        }
    }

    fn holds(self, one: f64, other: f64) -> bool {
        match self {
            Self::Below => one < other,
            Self::AtMost => one <= other,
            Self::Above => one > other,
            Self::AtLeast => one >= other,
            Self::Equal => one == other,
        }
    }
}

impl Join {
    /// `and` or `or`, in any letter case.
    pub(super) fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            text if text.eq_ignore_ascii_case("and") => Some(Self::And),
            text if text.eq_ignore_ascii_case("or") => Some(Self::Or),
            _ => None,
        }
    }

    pub(super) fn text(self) -> &'static str {
        match self {
            Self::And => "and",
            Self::Or => "or",
        }
    }
}

impl Condition {
    /// A condition that is joined with the next one by `and`.
    pub(super) fn new(operand: Operand, operator: Operator, number: f64) -> Self {
        Self { operand, operator, number, next: Join::And }
    }

    /// Reads `temperature>20`. The word `timed` is the time.
    pub(super) fn parse(text: &str) -> Result<Self, Refusal> {
        let wrong = || {
            Refusal::argument(format!(
                "{text:?} is not a condition; write a field, one of < <= > >= =, and a number, such as temperature>20"
            ))
        };
        let at = text.find(['<', '>', '=']).ok_or_else(wrong)?;
        let (name, rest) = (text[..at].trim(), &text[at..]);
        let (operator, rest) = match rest.as_bytes() {
            [b'<', b'=', ..] => (Operator::AtMost, &rest[2..]),
            [b'>', b'=', ..] => (Operator::AtLeast, &rest[2..]),
            [b'<', ..] => (Operator::Below, &rest[1..]),
            [b'>', ..] => (Operator::Above, &rest[1..]),
            _ => (Operator::Equal, &rest[1..]),
        };
        let number: f64 = rest.trim().parse().map_err(|_| wrong())?;
        let is_name =
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name || !number.is_finite() {
            return Err(wrong());
        }
        Ok(Self::new(Operand::of(name), operator, number))
    }
}

impl Operand {
    /// The operand with a name.
    pub(super) fn of(name: &str) -> Self {
        match name.trim() {
            name if name.eq_ignore_ascii_case("timed") => Self::Time,
            name => Self::Field(name.to_ascii_lowercase()),
        }
    }

    pub(super) fn text(&self) -> &str {
        match self {
            Self::Time => "timed",
            Self::Field(name) => name,
        }
    }
}

/// Reads comparisons that are joined by `and` and `or`. An empty text has none.
pub(super) fn parse_joined(text: &str) -> Result<Vec<Condition>, Refusal> {
    let mut conditions = Vec::new();
    let mut words: Vec<&str> = Vec::new();
    let mut take = |words: &mut Vec<&str>, next: Join| -> Result<(), Refusal> {
        let condition = Condition::parse(&std::mem::take(words).join(" "))?;
        conditions.push(Condition { next, ..condition });
        Ok(())
    };
    for word in text.split_whitespace() {
        match Join::parse(word) {
            Some(join) => take(&mut words, join)?,
            None => words.push(word),
        }
    }
    if !words.is_empty() {
        take(&mut words, Join::And)?;
    } else if !text.trim().is_empty() {
        return Err(Refusal::argument(format!("the condition {text:?} ends with and or or")));
    }
    check_count(&conditions)?;
    Ok(conditions)
}

/// Refuses more conditions than a request may have.
pub(super) fn check_count(conditions: &[Condition]) -> Result<(), Refusal> {
    match conditions.len() > CONDITIONS_MAX {
        true => Err(Refusal::argument(format!(
            "the request has {} conditions for one sensor, the limit is {CONDITIONS_MAX}",
            conditions.len()
        ))),
        false => Ok(()),
    }
}

/// The test of a row.
#[derive(Debug, Default)]
pub(super) struct Filter {
    /// A row passes if it satisfies all tests of one of these lists, or if there is no list.
    any_of: Vec<Vec<Test>>,
}

#[derive(Debug)]
struct Test {
    /// The number of the field among those that are read; `None` is the time.
    field: Option<usize>,
    operator: Operator,
    number: f64,
}

impl Filter {
    /// The test of conditions. `fields` are the names of the fields that are read.
    pub(super) fn new(conditions: &[Condition], fields: &[String]) -> Self {
        let mut any_of: Vec<Vec<Test>> = Vec::new();
        let mut begins_list = true;
        for condition in conditions {
            let field = match &condition.operand {
                Operand::Time => None,
                // The caller reads the fields of all conditions.
                Operand::Field(name) => fields.iter().position(|field| field == name),
            };
            let test = Test { field, operator: condition.operator, number: condition.number };
            match any_of.last_mut().filter(|_| !begins_list) {
                Some(list) => list.push(test),
                None => any_of.push(vec![test]),
            }
            begins_list = condition.next == Join::Or;
        }
        Self { any_of }
    }

    /// Whether every row passes.
    pub(super) fn is_empty(&self) -> bool {
        self.any_of.is_empty()
    }

    /// Whether a row passes.
    pub(super) fn passes(&self, millis: i64, values: &[Option<Value<'_>>]) -> bool {
        let holds = |test: &Test| {
            let number = match test.field {
                None => Some(millis as f64),
                Some(field) => values[field].and_then(Value::number),
            };
            number.is_some_and(|number| test.operator.holds(number, test.number))
        };
        self.any_of.is_empty() || self.any_of.iter().any(|list| list.iter().all(holds))
    }
}

/// The range of time outside of which no row passes, and the conditions that remain to be tested within it.
pub(super) fn split_time(conditions: Vec<Condition>) -> (TimeRange, Vec<Condition>) {
    let count = conditions.len();
    let has_or = conditions.iter().take(count.saturating_sub(1)).any(|condition| condition.next == Join::Or);
    if has_or {
        return (TimeRange::ALL, conditions);
    }
    let mut range = TimeRange::ALL;
    let mut rest = Vec::new();
    for condition in conditions {
        match condition.operand {
            Operand::Time => narrow(&mut range, condition.operator, condition.number),
            Operand::Field(_) => rest.push(condition),
        }
    }
    (range, rest)
}

/// Narrows a range to the rows whose time in whole milliseconds satisfies a comparison.
fn narrow(range: &mut TimeRange, operator: Operator, millis: f64) {
    // The first millisecond at or above the number, and the first one above it.
    let (at_least, above) = (micros(millis.ceil()), micros(millis.floor() + 1.0));
    let (start, end) = match operator {
        Operator::Below => (None, Some(at_least)),
        Operator::AtMost => (None, Some(above)),
        Operator::Above => (Some(above), None),
        Operator::AtLeast => (Some(at_least), None),
        Operator::Equal => (Some(at_least), Some(above)),
    };
    range.start = start.map_or(range.start, |start| range.start.max(start));
    range.end = end.map_or(range.end, |end| range.end.min(end));
}

/// Whole milliseconds as a time. Those beyond the representable ones become the nearest time.
fn micros(millis: f64) -> Timestamp {
    Timestamp::from_micros((millis as i64).saturating_mul(1_000))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Condition {
        Condition::parse(text).unwrap()
    }

    #[test]
    fn conditions_are_read() {
        let of = |name: &str, operator, number| Condition::new(Operand::of(name), operator, number);
        assert_eq!(parsed("Temperature > 20"), of("temperature", Operator::Above, 20.0));
        assert_eq!(parsed("a<=-1.5e3"), of("a", Operator::AtMost, -1500.0));
        assert_eq!(parsed("timed>=7"), Condition::new(Operand::Time, Operator::AtLeast, 7.0));
        assert_eq!((parsed("a=1").operator, parsed("a<1").operator), (Operator::Equal, Operator::Below));
        for text in ["", "a", ">1", "a>", "a>b", "a>1 or b>2", "a>inf", "a b>1"] {
            assert_eq!(Condition::parse(text).unwrap_err().0.status, 400, "{text}");
        }
    }

    #[test]
    fn and_binds_closer_than_or() {
        let fields = ["a".to_owned(), "b".to_owned()];
        let mut conditions = vec![parsed("a>1"), parsed("b>1"), parsed("a<-5")];
        conditions[1].next = Join::Or;
        let filter = Filter::new(&conditions, &fields);
        let passes = |a: f64, b: Option<f64>| filter.passes(0, &[Some(Value::F64(a)), b.map(Value::F64)]);
        assert!(passes(2.0, Some(2.0)));
        assert!(!passes(2.0, Some(0.0)));
        assert!(!passes(2.0, None), "null satisfies no condition");
        assert!(passes(-6.0, None));
        assert!(Filter::new(&[], &fields).passes(0, &[None, None]));
    }

    #[test]
    fn times_become_a_range_if_all_conditions_must_hold() {
        let (range, rest) = split_time(vec![parsed("timed>1000"), parsed("timed<=2000"), parsed("a>1")]);
        assert_eq!(
            range,
            TimeRange::new(Timestamp::from_micros(1_001_000), Timestamp::from_micros(2_001_000))
        );
        assert_eq!(rest, [parsed("a>1")]);
        let (range, _) = split_time(vec![parsed("timed>=1000.5"), parsed("timed<1e300")]);
        assert_eq!(range, TimeRange::new(Timestamp::from_micros(1_001_000), Timestamp::MAX));
        let mut either = vec![parsed("timed>1000"), parsed("a>1")];
        either[0].next = Join::Or;
        let (range, rest) = split_time(either);
        assert_eq!((range, rest.len()), (TimeRange::ALL, 2));
        let filter = Filter::new(&rest, &["a".to_owned()]);
        assert!(filter.passes(1_001, &[None]) && !filter.passes(1_000, &[None]));
    }
}
