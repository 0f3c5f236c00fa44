//! Expressions of the parser to compiled ones.

use std::sync::Arc;

use sqlparser::ast::{
    BinaryOperator, CaseWhen, CeilFloorKind, DataType as AstType, Expr as Ast, Ident, Spanned,
    TrimWhereField, UnaryOperator, Value as AstValue, ValueWithSpan,
};

use super::arithmetic::Arithmetic;
use super::compile::{Compiler, Mode};
use super::datum::{Datum, Number};
use super::expr::{Comparison, Expr};
use super::functions::Function;
use crate::virtual_sensors::descriptor::DataType;
use crate::virtual_sensors::fault::Fault;
use crate::virtual_sensors::limits::SQL_DEPTH_MAX;

impl Compiler<'_> {
    pub(super) fn expr(&mut self, expr: &Ast) -> Result<Expr, Fault> {
        if self.depth == SQL_DEPTH_MAX {
            let reason =
                format!("expressions are more than {SQL_DEPTH_MAX} deep in each other (SQL_DEPTH_MAX)");
            return Err(Fault::limit(self.place(expr.span()), reason));
        }
        self.depth += 1;
        let compiled = match self.group_key(expr) {
            Some(key) => Ok(key),
            // Chains of operators are deep, so they stay out of the large frame of the other expressions.
            None => match expr {
                Ast::BinaryOp { left, op, right } => self.binary(left, op, right, expr),
                expr => self.expr_without_key(expr),
            },
        };
        self.depth -= 1;
        compiled
    }

    /// The key of the groups that an expression is.
    fn group_key(&mut self, expr: &Ast) -> Option<Expr> {
        if self.mode != Mode::Groups || self.keys.is_empty() {
            return None;
        }
        self.mode = Mode::Rows;
        let compiled = self.expr(expr);
        self.mode = Mode::Groups;
        let compiled = compiled.ok()?;
        self.keys.iter().position(|key| *key == compiled).map(Expr::Group)
    }

    fn expr_without_key(&mut self, expr: &Ast) -> Result<Expr, Fault> {
        match expr {
            Ast::Identifier(name) => self.name(None, name),
            Ast::CompoundIdentifier(names) => match &names[..] {
                [table, name] => self.name(Some(table), name),
                _ => Err(self
                    .not_compiled(expr.span(), &format!("{expr} is not compiled; a field is TABLE.FIELD"))),
            },
            Ast::Nested(inner) => self.expr(inner),
            Ast::Value(value) => self.literal(value),
            Ast::UnaryOp { op, expr: operand } => self.unary(*op, operand, expr),
            Ast::IsNull(operand) => Ok(Expr::IsNull(self.boxed(operand)?)),
            Ast::IsNotNull(operand) => Ok(not(Expr::IsNull(self.boxed(operand)?))),
            Ast::IsTrue(operand) => Ok(Expr::IsTruth(self.boxed(operand)?, true)),
            Ast::IsFalse(operand) => Ok(Expr::IsTruth(self.boxed(operand)?, false)),
            Ast::IsNotTrue(operand) => Ok(not(Expr::IsTruth(self.boxed(operand)?, true))),
            Ast::IsNotFalse(operand) => Ok(not(Expr::IsTruth(self.boxed(operand)?, false))),
            Ast::InList { expr, list, negated } => {
                let operand = self.boxed(expr)?;
                let list = list.iter().map(|item| self.expr(item)).collect::<Result<_, _>>()?;
                Ok(negate_if(*negated, Expr::In(operand, list)))
            }
            Ast::Between { expr, negated, low, high } => {
                let least = Expr::Compare(self.boxed(expr)?, Comparison::GreaterOrEqual, self.boxed(low)?);
                let most = Expr::Compare(self.boxed(expr)?, Comparison::LessOrEqual, self.boxed(high)?);
                Ok(negate_if(*negated, Expr::And(Box::new(least), Box::new(most))))
            }
            Ast::Like { negated, any: false, expr, pattern, escape_char: None } => {
                self.like(expr, pattern, *negated, false)
            }
            Ast::ILike { negated, any: false, expr, pattern, escape_char: None } => {
                self.like(expr, pattern, *negated, true)
            }
            Ast::Case { operand, conditions, else_result, .. } => {
                self.case(operand.as_deref(), conditions, else_result.as_deref())
            }
            Ast::Cast { expr: operand, data_type, array: false, format: None, .. } => {
                self.cast(operand, data_type, expr)
            }
            Ast::Convert { expr: operand, data_type: Some(data_type), charset: None, .. } => {
                self.cast(operand, data_type, expr)
            }
            Ast::Ceil { expr: operand, field } => self.whole(Function::Ceil, operand, field, expr),
            Ast::Floor { expr: operand, field } => self.whole(Function::Floor, operand, field, expr),
            Ast::Substring { expr, substring_from: Some(from), substring_for, .. } => {
                let mut arguments = vec![self.expr(expr)?, self.expr(from)?];
                if let Some(length) = substring_for {
                    arguments.push(self.expr(length)?);
                }
                Ok(Expr::Call(Function::Substring, arguments))
            }
            Ast::Trim { trim_where, trim_what: None, expr, trim_characters: None } => {
                let function = match trim_where {
                    Some(TrimWhereField::Leading) => Function::LeftTrim,
                    Some(TrimWhereField::Trailing) => Function::RightTrim,
                    Some(TrimWhereField::Both) | None => Function::Trim,
                };
                Ok(Expr::Call(function, vec![self.expr(expr)?]))
            }
            Ast::Function(call) => self.call(call),
            Ast::Subquery(_) | Ast::Exists { .. } | Ast::InSubquery { .. } => {
                Err(self.not_compiled(expr.span(), "a query within a query is not compiled"))
            }
            _ => Err(self.not_compiled(expr.span(), &format!("{expr} is not compiled"))),
        }
    }

    fn boxed(&mut self, expr: &Ast) -> Result<Box<Expr>, Fault> {
        self.expr(expr).map(Box::new)
    }

    fn name(&mut self, table: Option<&Ident>, name: &Ident) -> Result<Expr, Fault> {
        let found = self.column(table, name);
        if self.mode == Mode::Groups && found.is_ok() {
            let field = name.value.to_lowercase();
            let reason = format!(
                "{field} is neither in an aggregate nor in GROUP BY; write max({field}) or add it to GROUP BY"
            );
            return Err(Fault::invalid(self.place(name.span), reason));
        }
        found
    }

    fn literal(&self, value: &ValueWithSpan) -> Result<Expr, Fault> {
        let datum = match &value.value {
            AstValue::Number(text, false) => match Number::parse(text) {
                Some(Number::Int(number)) => Datum::Int(number),
                Some(Number::Float(number)) => Datum::Float(number),
                None => {
                    let reason = format!("{text} is not a number of 64 bits");
                    return Err(Fault::invalid(self.place(value.span), reason));
                }
            },
            AstValue::SingleQuotedString(text) => Datum::Text(Arc::from(text.as_str())),
            AstValue::Boolean(flag) => Datum::Bool(*flag),
            AstValue::Null => Datum::Null,
            other => return Err(self.not_compiled(value.span, &format!("the value {other} is not compiled"))),
        };
        Ok(Expr::Literal(datum))
    }

    fn unary(&mut self, operator: UnaryOperator, operand: &Ast, whole: &Ast) -> Result<Expr, Fault> {
        match operator {
            UnaryOperator::Not => Ok(not(self.expr(operand)?)),
            UnaryOperator::Minus => Ok(Expr::Negative(self.boxed(operand)?)),
            UnaryOperator::Plus => self.expr(operand),
            _ => Err(self.not_compiled(whole.span(), &format!("the operator {operator} is not compiled"))),
        }
    }

    fn binary(
        &mut self,
        left: &Ast,
        operator: &BinaryOperator,
        right: &Ast,
        whole: &Ast,
    ) -> Result<Expr, Fault> {
        let comparison = match operator {
            BinaryOperator::Eq => Some(Comparison::Equal),
            BinaryOperator::NotEq => Some(Comparison::NotEqual),
            BinaryOperator::Lt => Some(Comparison::Less),
            BinaryOperator::LtEq => Some(Comparison::LessOrEqual),
            BinaryOperator::Gt => Some(Comparison::Greater),
            BinaryOperator::GtEq => Some(Comparison::GreaterOrEqual),
            BinaryOperator::Spaceship => Some(Comparison::Same),
            _ => None,
        };
        let arithmetic = match operator {
            BinaryOperator::Plus => Some(Arithmetic::Add),
            BinaryOperator::Minus => Some(Arithmetic::Subtract),
            BinaryOperator::Multiply => Some(Arithmetic::Multiply),
            BinaryOperator::Divide => Some(Arithmetic::Divide),
            BinaryOperator::Modulo => Some(Arithmetic::Modulo),
            _ => None,
        };
        let (left, right) = (self.boxed(left)?, self.boxed(right)?);
        match (comparison, arithmetic, operator) {
            (Some(comparison), _, _) => Ok(Expr::Compare(left, comparison, right)),
            (_, Some(arithmetic), _) => Ok(Expr::Arithmetic(left, arithmetic, right)),
            (_, _, BinaryOperator::And) => Ok(Expr::And(left, right)),
            (_, _, BinaryOperator::Or) => Ok(Expr::Or(left, right)),
            (_, _, BinaryOperator::StringConcat) => Ok(Expr::Concat(left, right)),
            _ => Err(self.not_compiled(whole.span(), &format!("the operator {operator} is not compiled"))),
        }
    }

    fn like(&mut self, text: &Ast, pattern: &Ast, negated: bool, any_case: bool) -> Result<Expr, Fault> {
        let (text, pattern) = (self.boxed(text)?, self.boxed(pattern)?);
        Ok(negate_if(negated, Expr::Like { text, pattern, any_case }))
    }

    /// `CASE x WHEN y` is `CASE WHEN x = y`.
    fn case(
        &mut self,
        operand: Option<&Ast>,
        conditions: &[CaseWhen],
        otherwise: Option<&Ast>,
    ) -> Result<Expr, Fault> {
        let mut branches = Vec::new();
        for branch in conditions {
            let condition = self.expr(&branch.condition)?;
            let condition = match operand {
                Some(operand) => Expr::Compare(self.boxed(operand)?, Comparison::Equal, Box::new(condition)),
                None => condition,
            };
            branches.push((condition, self.expr(&branch.result)?));
        }
        let otherwise = otherwise.map(|otherwise| self.boxed(otherwise)).transpose()?;
        Ok(Expr::Case { branches, otherwise })
    }

    fn cast(&mut self, operand: &Ast, data_type: &AstType, whole: &Ast) -> Result<Expr, Fault> {
        let name = data_type.to_string().to_lowercase();
        let target = match name.as_str() {
            // FLOAT and REAL have 64 bits in H2; only GSN's own float has 32.
            "float" | "real" | "decimal" | "double precision" => Some(DataType::Double),
            "signed" => Some(DataType::BigInt),
            "varchar" | "char" | "text" => Some(DataType::Varchar(None)),
            name => DataType::parse(name).filter(|found| !matches!(found, DataType::Binary(_))),
        };
        let Some(target) = target else {
            return Err(self.not_compiled(whole.span(), &format!("a cast to {data_type} is not compiled")));
        };
        Ok(Expr::Cast(self.boxed(operand)?, target))
    }

    /// `CEIL` and `FLOOR`, which the parser reads by itself because they can have units.
    fn whole(
        &mut self,
        function: Function,
        operand: &Ast,
        kind: &CeilFloorKind,
        whole: &Ast,
    ) -> Result<Expr, Fault> {
        match kind {
            CeilFloorKind::DateTimeField(sqlparser::ast::DateTimeField::NoDateTime) => {
                Ok(Expr::Call(function, vec![self.expr(operand)?]))
            }
            _ => Err(self.not_compiled(whole.span(), &format!("{whole} is not compiled"))),
        }
    }
}

fn not(expr: Expr) -> Expr {
    Expr::Not(Box::new(expr))
}

fn negate_if(negated: bool, expr: Expr) -> Expr {
    if negated { not(expr) } else { expr }
}
