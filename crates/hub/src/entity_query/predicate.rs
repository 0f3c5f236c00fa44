//! Predicates on values of keys (ThingsBoard's `KeyFilterPredicate`).

use std::borrow::Cow;

use model::{Value, ValueRef};
use sensors::predicate::{Mode, Operands};
use serde::Deserialize;

use super::error::{EntityQueryError, within};
use super::limits::{QUERY_PREDICATE_DEPTH_MAX, QUERY_TEXT_BYTES_MAX};

/// A predicate on one value.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(transparent)]
pub struct Predicate(Shape);

type Shape = sensors::predicate::Predicate<Operand<f64>, Operand<String>, Operand<bool>>;

/// The second operand of a comparison: the user's value, else the value of an attribute, else the default.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Operand<T> {
    /// The default.
    default_value: Option<T>,
    /// What the user of a dashboard has chosen.
    user_value: Option<T>,
    /// The attribute.
    dynamic_value: Option<DynamicValue>,
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
trait OperandType: Clone {
    /// The operand in the value of an attribute, if it has the type.
    fn of(value: &Value) -> Option<Self>;
}

impl OperandType for String {
    fn of(value: &Value) -> Option<Self> {
        Some(Mode::Query.text(value.as_ref()).into_owned())
    }
}

impl OperandType for f64 {
    fn of(value: &Value) -> Option<Self> {
        Mode::Query.number(value.as_ref())
    }
}

impl OperandType for bool {
    fn of(value: &Value) -> Option<Self> {
        Mode::Query.bool(value.as_ref())
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
        check(&self.0, depth)
    }

    /// Replaces operands that name an attribute by its value.
    pub(crate) fn resolve(&mut self, find: &mut Resolve<'_>) -> Result<(), EntityQueryError> {
        resolve(&mut self.0, find)
    }

    /// Whether it holds for a value.
    pub fn holds(&self, value: Option<ValueRef<'_>>) -> bool {
        self.0.holds(value, Mode::Query, &Resolved, &mut 0)
    }
}

fn check(predicate: &Shape, depth: usize) -> Result<usize, EntityQueryError> {
    let limit = ("QUERY_PREDICATE_DEPTH_MAX", QUERY_PREDICATE_DEPTH_MAX);
    within("the depth of predicates", depth, limit, "nest fewer predicates")?;
    match predicate {
        Shape::String { value, .. } => {
            value.check()?;
            for text in value.default_value.iter().chain(&value.user_value) {
                let limit = ("QUERY_TEXT_BYTES_MAX", QUERY_TEXT_BYTES_MAX);
                let what = "the bytes of a predicate's text";
                within(what, text.len(), limit, "compare with a shorter text")?;
            }
        }
        Shape::Numeric { value, .. } => value.check()?,
        Shape::Boolean { value, .. } => value.check()?,
        Shape::Complex { predicates, .. } => {
            return predicates.iter().try_fold(1, |count, one| Ok(count + check(one, depth + 1)?));
        }
    }
    Ok(1)
}

fn resolve(predicate: &mut Shape, find: &mut Resolve<'_>) -> Result<(), EntityQueryError> {
    match predicate {
        Shape::String { value, .. } => value.resolve(find),
        Shape::Numeric { value, .. } => value.resolve(find),
        Shape::Boolean { value, .. } => value.resolve(find),
        Shape::Complex { predicates, .. } => predicates.iter_mut().try_for_each(|one| resolve(one, find)),
    }
}

/// Operands whose attributes are looked up already.
struct Resolved;

impl Operands<Operand<f64>, Operand<String>, Operand<bool>> for Resolved {
    fn number(&self, operand: &Operand<f64>) -> Option<f64> {
        operand.get().copied()
    }

    fn text<'a>(&'a self, operand: &'a Operand<String>) -> Option<Cow<'a, str>> {
        operand.get().map(Into::into)
    }

    fn bool(&self, operand: &Operand<bool>) -> Option<bool> {
        operand.get().copied()
    }
}
