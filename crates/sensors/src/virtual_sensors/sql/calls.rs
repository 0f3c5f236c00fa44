//! Calls of functions: aggregates, functions of a row, and the clock.

use sqlparser::ast::{
    DuplicateTreatment, Function as Call, FunctionArg, FunctionArgExpr, FunctionArguments, Spanned,
};

use super::aggregates::AggregateKind;
use super::compile::{Compiler, Mode};
use super::expr::Expr;
use super::functions::Function;
use super::grouping::Aggregate;
use crate::virtual_sensors::fault::Fault;

fn name(call: &Call) -> String {
    call.name.to_string().to_lowercase()
}

impl Compiler<'_> {
    pub(super) fn call(&mut self, call: &Call) -> Result<Expr, Fault> {
        let name = name(call);
        if call.over.is_some() || call.filter.is_some() || call.null_treatment.is_some() {
            let reason = format!("{name} with OVER, FILTER or NULLS is not compiled");
            return Err(self.not_compiled(call.span(), &reason));
        }
        let (arguments, distinct) = self.arguments(call, &name)?;
        if let Some(kind) = AggregateKind::named(&name, distinct) {
            return self.aggregate(call, kind, &arguments);
        }
        if distinct {
            return Err(self.not_compiled(call.span(), &format!("{name}(DISTINCT …) is not compiled")));
        }
        let divisor = match name.as_str() {
            "now_millis" => Some(1),
            "unix_timestamp" => Some(1000),
            _ => None,
        };
        if let Some(divisor) = divisor.filter(|_| arguments.is_empty()) {
            return Ok(Expr::Now { divisor });
        }
        if name == "pi" && arguments.is_empty() {
            return Ok(Expr::Literal(super::datum::Datum::Float(std::f64::consts::PI)));
        }
        let Some((function, least, most)) = Function::named(&name) else {
            let reason = format!("the function {name} is not compiled; docs/sensors.md lists those that are");
            return Err(self.not_compiled(call.span(), &reason));
        };
        if !(least..=most).contains(&arguments.len()) {
            let wanted = if least == most { least.to_string() } else { format!("{least} to {most}") };
            let reason = format!("{name} has {} arguments; it takes {wanted}", arguments.len());
            return Err(Fault::invalid(self.place(call.span()), reason));
        }
        let mut values = Vec::new();
        for argument in arguments {
            values.push(self.argument(call, &name, argument)?);
        }
        Ok(Expr::Call(function, values))
    }

    fn arguments<'c>(&self, call: &'c Call, name: &str) -> Result<(Vec<&'c FunctionArgExpr>, bool), Fault> {
        let list = match &call.args {
            FunctionArguments::None => return Ok((Vec::new(), false)),
            FunctionArguments::List(list) if list.clauses.is_empty() => list,
            _ => {
                return Err(
                    self.not_compiled(call.span(), &format!("{name} with these arguments is not compiled"))
                );
            }
        };
        let mut arguments = Vec::new();
        for argument in &list.args {
            let FunctionArg::Unnamed(argument) = argument else {
                let reason = format!("{name} has an argument with a name, which is not compiled");
                return Err(self.not_compiled(call.span(), &reason));
            };
            arguments.push(argument);
        }
        Ok((arguments, list.duplicate_treatment == Some(DuplicateTreatment::Distinct)))
    }

    fn argument(&mut self, call: &Call, name: &str, argument: &FunctionArgExpr) -> Result<Expr, Fault> {
        match argument {
            FunctionArgExpr::Expr(expr) => self.expr(expr),
            _ => Err(Fault::invalid(self.place(call.span()), format!("{name} does not accept *"))),
        }
    }

    fn aggregate(
        &mut self,
        call: &Call,
        kind: AggregateKind,
        arguments: &[&FunctionArgExpr],
    ) -> Result<Expr, Fault> {
        let name = name(call);
        if self.mode != Mode::Groups {
            let reason = format!(
                "{name} is not allowed here: no aggregate can be in WHERE, ON, GROUP BY or an aggregate"
            );
            return Err(Fault::invalid(self.place(call.span()), reason));
        }
        let [argument] = arguments else {
            return Err(Fault::invalid(self.place(call.span()), format!("{name} takes one argument")));
        };
        let (kind, argument) = match (kind, argument) {
            (AggregateKind::Count, FunctionArgExpr::Wildcard) => (AggregateKind::CountRows, None),
            (kind, argument) => {
                self.mode = Mode::Argument;
                let argument = self.argument(call, &name, argument);
                self.mode = Mode::Groups;
                (kind, Some(argument?))
            }
        };
        let aggregate = Aggregate { kind, argument };
        let known = self.aggregates.iter().position(|other| *other == aggregate);
        let at = known.unwrap_or_else(|| {
            self.aggregates.push(aggregate);
            self.aggregates.len() - 1
        });
        Ok(Expr::Aggregate(at))
    }
}
