//! Functions of numbers that fail or round like PostgreSQL's.

use std::sync::Arc;

use datafusion::logical_expr::ScalarUDF;

use super::by_value::{ArgumentKind, Form, Value, function};
use crate::QueryError;
use crate::error::DIVISION_BY_ZERO;

use ArgumentKind::{Float, Int};

/// SQLSTATE invalid_argument_for_logarithm.
const NO_LOGARITHM: &str = "2201E";
/// SQLSTATE invalid_argument_for_power_function.
const NO_POWER: &str = "2201F";
/// SQLSTATE invalid_argument_for_width_bucket_function.
const NO_BUCKET: &str = "2201G";

const fn form(
    takes: &'static [ArgumentKind],
    gives: ArgumentKind,
    compute: fn(&[Value<'_>]) -> Result<Value<'static>, QueryError>,
) -> Form {
    Form { takes, gives, compute }
}

const LN: &[Form] = &[form(&[Float], Float, |args| logarithm(args[0].float(), f64::ln))];
const LOG10: &[Form] = &[form(&[Float], Float, |args| logarithm(args[0].float(), f64::log10))];
const LOG2: &[Form] = &[form(&[Float], Float, |args| logarithm(args[0].float(), f64::log2))];
const LOG: &[Form] = &[
    form(&[Float], Float, |args| logarithm(args[0].float(), f64::log10)),
    form(&[Float, Float], Float, |args| {
        let Value::Float(base) = logarithm(args[0].float(), f64::ln)? else { return Ok(Value::Null) };
        let Value::Float(number) = logarithm(args[1].float(), f64::ln)? else { return Ok(Value::Null) };
        if base == 0.0 {
            return Err(QueryError::value(DIVISION_BY_ZERO, "division by zero"));
        }
        let (base_number, argument) = (args[0].float(), args[1].float());
        // DataFusion computes these powers of the base exactly.
        let exact = if base_number == 2.0 {
            argument.log2()
        } else if base_number == 10.0 {
            argument.log10()
        } else {
            number / base
        };
        Ok(Value::Float(exact))
    }),
];
const EXP: &[Form] = &[form(&[Float], Float, |args| {
    let argument = args[0].float();
    bounded(argument.exp(), argument.is_infinite(), false)
})];
const POWER: &[Form] = &[form(&[Float, Float], Float, |args| power(args[0].float(), args[1].float()))];
const ACOS: &[Form] = &[form(&[Float], Float, |args| inverse(args[0].float(), f64::acos))];
const ASIN: &[Form] = &[form(&[Float], Float, |args| inverse(args[0].float(), f64::asin))];
const ATANH: &[Form] = &[form(&[Float], Float, |args| inverse(args[0].float(), f64::atanh))];
const ACOSH: &[Form] = &[form(&[Float], Float, |args| {
    let argument = args[0].float();
    if argument < 1.0 {
        return Err(QueryError::out_of_range("input is out of range"));
    }
    Ok(Value::Float(argument.acosh()))
})];
const SIGN: &[Form] = &[form(&[Float], Float, |args| {
    let number = args[0].float();
    Ok(Value::Float(if number == 0.0 || number.is_nan() { number } else { number.signum() }))
})];
const ROUND: &[Form] = &[form(&[Float], Float, |args| Ok(Value::Float(args[0].float().round_ties_even())))];
const DIV: &[Form] = &[form(&[Int, Int], Int, |args| match args[1].int() {
    0 => Err(QueryError::value(DIVISION_BY_ZERO, "division by zero")),
    divisor => {
        let quotient = args[0].int().checked_div(divisor);
        quotient.map(Value::Int).ok_or_else(|| QueryError::out_of_range("bigint out of range"))
    }
})];
const MOD: &[Form] = &[form(&[Int, Int], Int, |args| match args[1].int() {
    0 => Err(QueryError::value(DIVISION_BY_ZERO, "division by zero")),
    divisor => Ok(Value::Int(args[0].int().wrapping_rem(divisor))),
})];
const WIDTH_BUCKET: &[Form] = &[form(&[Float, Float, Float, Int], Int, |args| {
    let (operand, low, high, count) = (args[0].float(), args[1].float(), args[2].float(), args[3].int());
    let wrong = |message: &str| Err(QueryError::value(NO_BUCKET, message));
    if count <= 0 {
        return wrong("count must be greater than zero");
    }
    if operand.is_nan() || low.is_nan() || high.is_nan() {
        return wrong("operand, lower bound, and upper bound cannot be NaN");
    }
    if low.is_infinite() || high.is_infinite() {
        return wrong("lower and upper bounds must be finite");
    }
    if low == high {
        return wrong("lower bound cannot equal upper bound");
    }
    let (is_before, is_behind, share) = if low < high {
        (operand < low, operand >= high, (operand - low) / (high - low))
    } else {
        (operand > low, operand <= high, (low - operand) / (low - high))
    };
    Ok(Value::Int(if is_before {
        0
    } else if is_behind {
        count.checked_add(1).ok_or_else(|| QueryError::out_of_range("integer out of range"))?
    } else {
        ((count as f64 * share) as i64 + 1).min(count)
    }))
})];

/// All functions of this file.
pub(super) fn functions() -> Vec<Arc<ScalarUDF>> {
    [
        ("ln", LN),
        ("log10", LOG10),
        ("log2", LOG2),
        ("log", LOG),
        ("exp", EXP),
        ("power", POWER),
        ("pow", POWER),
        ("acos", ACOS),
        ("asin", ASIN),
        ("atanh", ATANH),
        ("acosh", ACOSH),
        ("sign", SIGN),
        ("signum", SIGN),
        ("div", DIV),
        ("mod", MOD),
        ("width_bucket", WIDTH_BUCKET),
    ]
    .map(|(name, forms)| function(name, forms))
    .into()
}

/// Returns `round` of a double precision number: halves go to the even neighbour, as in the processor.
pub(crate) fn round_half_even() -> Arc<ScalarUDF> {
    function("round", ROUND)
}

fn logarithm(number: f64, of: fn(f64) -> f64) -> Result<Value<'static>, QueryError> {
    if number == 0.0 {
        return Err(QueryError::value(NO_LOGARITHM, "cannot take logarithm of zero"));
    }
    if number < 0.0 {
        return Err(QueryError::value(NO_LOGARITHM, "cannot take logarithm of a negative number"));
    }
    Ok(Value::Float(of(number)))
}

fn power(base: f64, exponent: f64) -> Result<Value<'static>, QueryError> {
    if base == 0.0 && exponent < 0.0 {
        return Err(QueryError::value(NO_POWER, "zero raised to a negative power is undefined"));
    }
    if base < 0.0 && exponent.is_finite() && exponent.fract() != 0.0 {
        let message = "a negative number raised to a non-integer power yields a complex result";
        return Err(QueryError::value(NO_POWER, message));
    }
    let is_boundless = base.is_infinite() || exponent.is_infinite();
    bounded(base.powf(exponent), is_boundless, base == 0.0)
}

/// Checks that a result neither overflows nor underflows. `is_boundless` and `is_nothing` allow it.
fn bounded(result: f64, is_boundless: bool, is_nothing: bool) -> Result<Value<'static>, QueryError> {
    if result.is_infinite() && !is_boundless {
        return Err(QueryError::out_of_range("value out of range: overflow"));
    }
    if result == 0.0 && !is_boundless && !is_nothing {
        return Err(QueryError::out_of_range("value out of range: underflow"));
    }
    Ok(Value::Float(result))
}

fn inverse(number: f64, of: fn(f64) -> f64) -> Result<Value<'static>, QueryError> {
    if !number.is_nan() && number.abs() > 1.0 {
        return Err(QueryError::out_of_range("input is out of range"));
    }
    Ok(Value::Float(of(number)))
}
