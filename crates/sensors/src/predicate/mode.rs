//! What alarm rules and queries of entities have apart.

use std::borrow::Cow;

use model::ValueRef;

use super::java_double::text_of_double;

/// Where a predicate is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// In an alarm rule: a value counts as another type if it can be read as one, as in ThingsBoard. Joined predicates without any hold if
    /// all must hold.
    Rule,
    /// In a query of entities: a value counts as its own type only. Joined predicates without any always hold.
    Query,
}

impl Mode {
    /// The number of a value. A large integer becomes the nearest double, as in ThingsBoard. In a rule a boolean is 0 or 1, and a text
    /// counts if it is a number.
    pub fn number(self, value: ValueRef<'_>) -> Option<f64> {
        match (value, self) {
            (ValueRef::I64(value), _) => Some(value as f64),
            (ValueRef::F64(value), _) => Some(value),
            (_, Self::Query) => None,
            (ValueRef::Bool(value), Self::Rule) => Some(f64::from(u8::from(value))),
            (ValueRef::String(text) | ValueRef::Json(text), Self::Rule) => {
                text.trim().parse().ok().filter(|number: &f64| number.is_finite())
            }
        }
    }

    /// The truth of a value. In a rule a number is true above 0, and a text if it is `true`.
    pub fn bool(self, value: ValueRef<'_>) -> Option<bool> {
        match (value, self) {
            (ValueRef::Bool(value), _) => Some(value),
            (ValueRef::Json(_), _) | (_, Self::Query) => None,
            (ValueRef::I64(value), Self::Rule) => Some(value > 0),
            (ValueRef::F64(value), Self::Rule) => Some(value > 0.0),
            (ValueRef::String(text), Self::Rule) => Some(text.eq_ignore_ascii_case("true")),
        }
    }

    /// The text of a value: in a rule as ThingsBoard writes it, in a query with the same digits as in answers.
    pub fn text(self, value: ValueRef<'_>) -> Cow<'_, str> {
        match (value, self) {
            (ValueRef::Bool(value), _) => Cow::Borrowed(if value { "true" } else { "false" }),
            (ValueRef::I64(value), _) => Cow::Owned(value.to_string()),
            (ValueRef::F64(value), Self::Rule) => Cow::Owned(text_of_double(value)),
            (ValueRef::F64(value), Self::Query) => {
                Cow::Owned(serde_json::to_string(&value).unwrap_or_default())
            }
            (ValueRef::String(text) | ValueRef::Json(text), _) => Cow::Borrowed(text),
        }
    }

    /// Whether a list `a, b` has the value. The quotes of a rule's list are left out if all its parts have the same.
    pub(super) fn is_in(self, value: &str, list: &str) -> bool {
        let parts = || list.split(',').map(str::trim);
        let quoted_by = |quote: char| {
            parts().all(|part| part.len() >= 2 && part.starts_with(quote) && part.ends_with(quote))
        };
        match self == Self::Rule && (quoted_by('"') || quoted_by('\'')) {
            true => parts().any(|part| &part[1..part.len() - 1] == value),
            false => parts().any(|part| part == value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_of_answers_or_of_java() {
        assert_eq!(Mode::Query.text(ValueRef::F64(5.0)), "5.0");
        assert_eq!(
            (Mode::Query.text(ValueRef::F64(1e21)), Mode::Rule.text(ValueRef::F64(1e21))),
            ("1e+21".into(), "1.0E21".into())
        );
        for mode in [Mode::Rule, Mode::Query] {
            assert_eq!(mode.text(ValueRef::I64(-5)), "-5");
            assert_eq!(mode.text(ValueRef::Bool(true)), "true");
        }
    }

    #[test]
    fn a_rule_reads_values_of_other_types_and_a_query_does_not() {
        let text = ValueRef::String(" 1.5 ");
        assert_eq!((Mode::Rule.number(text), Mode::Query.number(text)), (Some(1.5), None));
        let one = ValueRef::I64(1);
        assert_eq!((Mode::Rule.bool(one), Mode::Query.bool(one)), (Some(true), None));
        assert!(Mode::Rule.is_in("a", "'a', 'b'") && !Mode::Query.is_in("a", "'a', 'b'"));
        assert!(Mode::Query.is_in("'a'", "'a', 'b'"));
    }
}
