//! Predicates on values of keys (ThingsBoard's `KeyFilterPredicate`).

use model::{Value, ValueRef};
use serde::Deserialize;

use super::error::{EntityQueryError, within};
use super::limits::{QUERY_PREDICATE_DEPTH_MAX, QUERY_TEXT_BYTES_MAX};
use super::text::text_of;

/// A predicate on one value.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Predicate {
    /// Compares text. An absent value counts as empty text.
    String(StringPredicate),
    /// Compares numbers. It holds for no other value.
    Numeric(NumericPredicate),
    /// Compares booleans. It holds for no other value.
    Boolean(BooleanPredicate),
    /// Joins predicates.
    Complex(ComplexPredicate),
}

/// A predicate on text.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct StringPredicate {
    pub operation: StringOperation,
    /// What the value is compared with.
    pub value: Operand<String>,
    /// Whether upper and lower case are the same.
    #[serde(default)]
    pub ignore_case: bool,
}

/// A comparison of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum StringOperation {
    /// The same text.
    Equal,
    /// Another text.
    NotEqual,
    /// It begins so.
    StartsWith,
    /// It ends so.
    EndsWith,
    /// It has this part.
    Contains,
    /// It does not have this part.
    NotContains,
    /// One of a list, separated by commas.
    In,
    /// None of a list, separated by commas.
    NotIn,
}

/// A predicate on numbers.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct NumericPredicate {
    pub operation: NumericOperation,
    /// What the value is compared with.
    pub value: Operand<f64>,
}

/// A comparison of numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum NumericOperation {
    /// The same number.
    Equal,
    /// Another number.
    NotEqual,
    /// A larger number.
    Greater,
    /// A smaller number.
    Less,
    /// No smaller number.
    GreaterOrEqual,
    /// No larger number.
    LessOrEqual,
}

/// A predicate on booleans.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct BooleanPredicate {
    pub operation: BooleanOperation,
    /// What the value is compared with.
    pub value: Operand<bool>,
}

/// A comparison of booleans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum BooleanOperation {
    /// The same.
    Equal,
    /// The other.
    NotEqual,
}

/// Predicates on the same value.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct ComplexPredicate {
    /// How they are joined.
    pub operation: ComplexOperation,
    /// The predicates. Without any, all values fit.
    pub predicates: Vec<Predicate>,
}

/// How predicates are joined.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum ComplexOperation {
    /// All must hold.
    And,
    /// One must hold.
    Or,
}

/// The second operand of a comparison: the user's value, else the value of an attribute, else the default.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operand<T> {
    pub default_value: Option<T>,
    /// What the user of a dashboard has chosen.
    pub user_value: Option<T>,
    /// The attribute.
    pub dynamic_value: Option<DynamicValue>,
}

/// An attribute whose value is an operand.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct DynamicValue {
    /// The entity with the attribute.
    pub source_type: DynamicSource,
    /// The key of its server attribute.
    pub source_attribute: String,
    /// Whether an absent attribute of a user is looked up at the customer, and one of a customer at the tenant.
    #[serde(default)]
    pub inherit: bool,
}

/// An entity that the caller determines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum DynamicSource {
    /// The tenant of the caller.
    CurrentTenant,
    /// The customer of the caller.
    CurrentCustomer,
    /// The caller itself.
    CurrentUser,
    /// The device of an alarm rule.
    CurrentDevice,
}

/// A type of operands.
pub trait OperandType: Clone {
    /// The operand in the value of an attribute, if it has the type.
    fn of(value: &Value) -> Option<Self>;
}

impl OperandType for String {
    fn of(value: &Value) -> Option<Self> {
        Some(text_of(value.as_ref()).into_owned())
    }
}

impl OperandType for f64 {
    fn of(value: &Value) -> Option<Self> {
        number_of(value.as_ref())
    }
}

impl OperandType for bool {
    fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(value) => Some(*value),
            _ => None,
        }
    }
}

/// Finds the value of an attribute that an operand names.
pub(super) type Resolve<'a> = dyn FnMut(&DynamicValue) -> Result<Option<Value>, EntityQueryError> + 'a;

impl<T: OperandType> Operand<T> {
    fn resolve(&mut self, resolve: &mut Resolve<'_>) -> Result<(), EntityQueryError> {
        if self.user_value.is_none()
            && let Some(source) = self.dynamic_value.take()
            && let Some(found) = resolve(&source)?
            && let Some(found) = T::of(&found)
        {
            self.default_value = Some(found);
        }
        Ok(())
    }

    fn get(&self) -> Option<&T> {
        self.user_value.as_ref().or(self.default_value.as_ref())
    }

    fn check(&self) -> Result<(), EntityQueryError> {
        match self.get() {
            None if self.dynamic_value.is_none() => Err(EntityQueryError::Invalid(
                "the value of a predicate is missing; give defaultValue".to_owned(),
            )),
            _ => Ok(()),
        }
    }
}

impl Predicate {
    /// Checks the limits of a predicate at a depth. Returns the number of predicates in it.
    pub(super) fn check(&self, depth: usize) -> Result<usize, EntityQueryError> {
        let limit = ("QUERY_PREDICATE_DEPTH_MAX", QUERY_PREDICATE_DEPTH_MAX);
        within("the depth of predicates", depth, limit, "nest fewer predicates")?;
        match self {
            Self::String(StringPredicate { value, .. }) => {
                value.check()?;
                for text in value.default_value.iter().chain(&value.user_value) {
                    let limit = ("QUERY_TEXT_BYTES_MAX", QUERY_TEXT_BYTES_MAX);
                    within(
                        "the bytes of a predicate's text",
                        text.len(),
                        limit,
                        "compare with a shorter text",
                    )?;
                }
            }
            Self::Numeric(NumericPredicate { value, .. }) => value.check()?,
            Self::Boolean(BooleanPredicate { value, .. }) => value.check()?,
            Self::Complex(ComplexPredicate { predicates, .. }) => {
                return predicates.iter().try_fold(1, |count, one| Ok(count + one.check(depth + 1)?));
            }
        }
        Ok(1)
    }

    /// Replaces operands that name an attribute by its value.
    pub(crate) fn resolve(&mut self, resolve: &mut Resolve<'_>) -> Result<(), EntityQueryError> {
        match self {
            Self::String(one) => one.value.resolve(resolve),
            Self::Numeric(one) => one.value.resolve(resolve),
            Self::Boolean(one) => one.value.resolve(resolve),
            Self::Complex(all) => all.predicates.iter_mut().try_for_each(|one| one.resolve(resolve)),
        }
    }

    /// Whether it holds for a value.
    pub fn holds(&self, value: Option<ValueRef<'_>>) -> bool {
        match self {
            Self::String(one) => one.holds(value),
            Self::Numeric(one) => one.holds(value),
            Self::Boolean(one) => one.holds(value),
            Self::Complex(ComplexPredicate { predicates, .. }) if predicates.is_empty() => true,
            Self::Complex(ComplexPredicate { operation: ComplexOperation::And, predicates }) => {
                predicates.iter().all(|one| one.holds(value))
            }
            Self::Complex(ComplexPredicate { operation: ComplexOperation::Or, predicates }) => {
                predicates.iter().any(|one| one.holds(value))
            }
        }
    }
}

impl StringPredicate {
    fn holds(&self, value: Option<ValueRef<'_>>) -> bool {
        let text = value.map(text_of).unwrap_or_default();
        let Some(operand) = self.value.get() else { return false };
        match self.ignore_case {
            false => compare(self.operation, &text, operand),
            true => compare(self.operation, &text.to_lowercase(), &operand.to_lowercase()),
        }
    }
}

fn compare(operation: StringOperation, text: &str, operand: &str) -> bool {
    let listed = || operand.split(',').any(|one| one.trim() == text);
    match operation {
        StringOperation::Equal => text == operand,
        StringOperation::NotEqual => text != operand,
        StringOperation::StartsWith => text.starts_with(operand),
        StringOperation::EndsWith => text.ends_with(operand),
        StringOperation::Contains => text.contains(operand),
        StringOperation::NotContains => !text.contains(operand),
        StringOperation::In => listed(),
        StringOperation::NotIn => !listed(),
    }
}

impl NumericPredicate {
    fn holds(&self, value: Option<ValueRef<'_>>) -> bool {
        let (Some(number), Some(operand)) = (value.and_then(number_of), self.value.get()) else {
            return false;
        };
        match self.operation {
            NumericOperation::Equal => number == *operand,
            NumericOperation::NotEqual => number != *operand,
            NumericOperation::Greater => number > *operand,
            NumericOperation::Less => number < *operand,
            NumericOperation::GreaterOrEqual => number >= *operand,
            NumericOperation::LessOrEqual => number <= *operand,
        }
    }
}

impl BooleanPredicate {
    fn holds(&self, value: Option<ValueRef<'_>>) -> bool {
        let (Some(ValueRef::Bool(value)), Some(operand)) = (value, self.value.get()) else { return false };
        match self.operation {
            BooleanOperation::Equal => value == *operand,
            BooleanOperation::NotEqual => value != *operand,
        }
    }
}

/// The number of a value, if it is one. A large integer becomes the nearest double, as in ThingsBoard.
pub(super) fn number_of(value: ValueRef<'_>) -> Option<f64> {
    match value {
        ValueRef::I64(value) => Some(value as f64),
        ValueRef::F64(value) => Some(value),
        ValueRef::Bool(_) | ValueRef::String(_) | ValueRef::Json(_) => None,
    }
}
