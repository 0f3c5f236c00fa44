//! Reads SELECT statements.

use super::ast::{Expr, Field, Fill, From, Measurement, Op, Select, Target};
use super::parse::{Parser, at, found};
use super::token::TokenKind;

impl Parser<'_> {
    /// A SELECT statement after its first word.
    pub(super) fn select(&mut self) -> Result<Select, String> {
        let mut select = Select { fields: self.fields()?, ..Select::default() };
        if self.take("INTO") {
            select.into = Some(self.target()?);
        }
        self.expect("FROM")?;
        select.from = self.sources()?;
        select.condition = self.condition()?;
        select.dimensions = self.dimensions()?;
        select.fill = self.fill()?;
        select.order = self.order()?;
        select.limit = self.optional_number("LIMIT")?;
        select.offset = self.optional_number("OFFSET")?;
        select.series_limit = self.optional_number("SLIMIT")?;
        select.series_offset = self.optional_number("SOFFSET")?;
        select.zone = self.zone()?;
        Ok(select)
    }

    /// The part after INTO: a measurement, or `:MEASUREMENT` in place of its name.
    fn target(&mut self) -> Result<Target, String> {
        let mut names = self.segments()?;
        let name = match self.peek_char() {
            Some(':') => {
                self.expect(":")?;
                self.expect("MEASUREMENT")?;
                None
            }
            _ => names.pop(),
        };
        let mut names = names.into_iter().rev();
        let mut last = || names.next().unwrap_or_default();
        let policy = last();
        let database = last();
        Ok(Target { database, policy, name })
    }

    fn fields(&mut self) -> Result<Vec<Field>, String> {
        let mut fields = Vec::new();
        loop {
            fields.push(self.field()?);
            if !self.raw().is(",") {
                self.back();
                return Ok(fields);
            }
        }
    }

    fn field(&mut self) -> Result<Field, String> {
        let expr = match self.regex()? {
            Some(pattern) => Expr::Regex(pattern),
            None => {
                let place = self.next().place;
                self.back();
                let expr = self.expr()?;
                if let Some(op) = condition_in(&expr) {
                    return Err(format!(
                        "invalid operator {} in SELECT clause{}; operator is intended for WHERE clause",
                        op.text(),
                        at(place)
                    ));
                }
                expr
            }
        };
        let alias = if self.take("AS") { self.ident()? } else { String::new() };
        self.skip_space();
        Ok(Field { expr, alias })
    }

    fn sources(&mut self) -> Result<Vec<From>, String> {
        let mut sources = Vec::new();
        loop {
            sources.push(self.source()?);
            if !self.take(",") {
                return Ok(sources);
            }
        }
    }

    fn source(&mut self) -> Result<From, String> {
        if let Some(pattern) = self.regex()? {
            return Ok(From::Measurement(Measurement { pattern: Some(pattern), ..Measurement::default() }));
        }
        if self.take("(") {
            self.expect("SELECT")?;
            let inner = self.nested(Self::select)?;
            self.expect(")")?;
            return Ok(From::Query(Box::new(inner)));
        }
        self.measurement().map(From::Measurement)
    }

    /// The measurements after FROM in a statement that does not accept subqueries.
    pub(super) fn measurements(&mut self) -> Result<Vec<Measurement>, String> {
        let mut measurements = Vec::new();
        loop {
            measurements.push(self.measurement()?);
            if !self.take(",") {
                return Ok(measurements);
            }
        }
    }

    /// The name of a measurement, or a regular expression.
    pub(super) fn measurement(&mut self) -> Result<Measurement, String> {
        if let Some(pattern) = self.regex()? {
            return Ok(Measurement { pattern: Some(pattern), ..Measurement::default() });
        }
        let names = self.segments()?;
        let pattern = if names.len() < 3 { self.regex()? } else { None };
        let mut names = names.into_iter().rev();
        let mut last = || names.next().unwrap_or_default();
        let name = if pattern.is_some() { String::new() } else { last() };
        let policy = last();
        let database = last();
        Ok(Measurement { database, policy, name, pattern })
    }

    /// The expression after WHERE, if there is one.
    pub(super) fn condition(&mut self) -> Result<Option<Expr>, String> {
        if self.take("WHERE") { self.expr().map(Some) } else { Ok(None) }
    }

    /// The part after GROUP BY.
    pub(super) fn dimensions(&mut self) -> Result<Vec<Expr>, String> {
        let mut dimensions = Vec::new();
        if !self.take("GROUP") {
            return Ok(dimensions);
        }
        self.expect("BY")?;
        loop {
            match self.regex()? {
                Some(pattern) => dimensions.push(Expr::Regex(pattern)),
                None => {
                    dimensions.push(self.expr()?);
                    self.skip_space();
                }
            }
            if !self.raw().is(",") {
                self.back();
                return Ok(dimensions);
            }
        }
    }

    /// Whether a call of this function is next.
    fn next_is(&mut self, name: &str) -> bool {
        let token = self.next();
        self.back();
        token.kind == TokenKind::Ident && token.text.eq_ignore_ascii_case(name)
    }

    fn fill(&mut self) -> Result<Fill, String> {
        if !self.next_is("fill") {
            return Ok(Fill::Null);
        }
        let Expr::Call(_, args) = self.expr()? else { return Err("fill must be a function call".to_owned()) };
        let [arg] = &args[..] else {
            return Err("fill requires an argument, e.g.: 0, null, none, previous, linear".to_owned());
        };
        match (arg.to_string().as_str(), arg) {
            ("null", _) => Ok(Fill::Null),
            ("none", _) => Ok(Fill::None),
            ("previous", _) => Ok(Fill::Previous),
            ("linear", _) => Ok(Fill::Linear),
            (_, Expr::Int(value)) => Ok(Fill::Int(*value)),
            (_, Expr::Num(value)) => Ok(Fill::Num(*value)),
            _ => Err("expected number argument in fill()".to_owned()),
        }
    }

    /// Whether the order is ascending, if the query says it.
    pub(super) fn order(&mut self) -> Result<Option<bool>, String> {
        if !self.take("ORDER") {
            return Ok(None);
        }
        self.expect("BY")?;
        let token = self.next();
        let ascending = match token.kind {
            TokenKind::Word("ASC") => true,
            TokenKind::Word("DESC") => false,
            TokenKind::Ident => {
                let ascending = !self.take("DESC");
                if ascending {
                    self.take("ASC");
                }
                if token.text != "time" {
                    return Err("only ORDER BY time supported at this time".to_owned());
                }
                ascending
            }
            _ => return Err(found(&token, &["identifier", "ASC", "DESC"])),
        };
        if self.take(",") {
            self.ident()?;
            return Err("only ORDER BY time supported at this time".to_owned());
        }
        Ok(Some(ascending))
    }

    fn zone(&mut self) -> Result<Option<chrono_tz::Tz>, String> {
        if !self.next_is("tz") {
            return Ok(None);
        }
        let Expr::Call(_, args) = self.expr()? else { return Err("tz must be a function call".to_owned()) };
        let [arg] = &args[..] else { return Err("tz requires exactly one argument".to_owned()) };
        let Expr::Str(name) = arg else { return Err("expected string argument in tz()".to_owned()) };
        let zone = if name.is_empty() { "UTC" } else { name };
        zone.parse().map(Some).map_err(|_| format!("unable to find time zone {name}"))
    }
}

/// An operator of conditions in an expression that gives a value.
fn condition_in(expr: &Expr) -> Option<Op> {
    let mut found = None;
    expr.walk(&mut |expr| {
        if let Expr::Binary(op, ..) = expr
            && op.is_condition()
            && found.is_none()
        {
            found = Some(*op);
        }
    });
    found
}
