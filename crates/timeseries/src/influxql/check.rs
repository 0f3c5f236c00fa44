//! Checks a SELECT statement before its tables are opened. The messages are InfluxDB's.

use super::ast::{Expr, Fill, From, Op, Select};
use super::duration;
use super::reduce::{Constants, TIME_MAX, TIME_MIN, Times, reduce, split_condition};
use super::time;
use super::value::is_math;
use super::window::Buckets;

/// A statement that is sound as far as its text tells.
#[derive(Debug, Clone)]
pub(super) struct Checked {
    /// The statement. Its fields are reduced and `time` is not among them; its subqueries are in `inner`.
    pub select: Select,
    /// The condition without the time.
    pub condition: Option<Expr>,
    /// First and last time, in nanoseconds.
    pub start: i64,
    pub end: i64,
    pub buckets: Buckets,
    pub ascending: bool,
    /// The name of the column of times.
    pub time_column: String,
    /// For each source, the subquery that it is.
    pub inner: Vec<Option<Checked>>,
}

/// Checks a statement that is not a subquery.
///
/// # Errors
/// In the words of InfluxDB.
pub(super) fn check(select: &Select, now: i64) -> Result<Checked, String> {
    let mut checker = Checker::prepare(select, now)?;
    checker.times = limits(checker.times, &checker.buckets, now);
    checker.finish(now)
}

/// The range of a query: what it says, or everything; up to now where it is grouped by time.
fn limits(times: Times, buckets: &Buckets, now: i64) -> Times {
    let last = if buckets.is_none() { TIME_MAX } else { now };
    Times { min: times.min.or(Some(TIME_MIN)), max: times.max.or(Some(last)) }
}

struct Checker {
    select: Select,
    condition: Option<Expr>,
    times: Times,
    buckets: Buckets,
    inherited_buckets: bool,
    ascending: bool,
    time_column: String,
    calls: usize,
    only_selectors: bool,
    has_fields: bool,
    has_distinct: bool,
    top_or_bottom: Option<String>,
}

impl Checker {
    fn prepare(select: &Select, now: i64) -> Result<Self, String> {
        let constants = Constants { now, zone: select.zone };
        let (condition, times) = split_condition(select.condition.as_ref(), &constants)?;
        if let Some(condition) = &condition {
            check_condition(condition)?;
        }
        let mut select = select.clone();
        let buckets = dimensions(&mut select, &constants)?;
        Ok(Self {
            ascending: select.order.unwrap_or(true),
            select,
            condition,
            times,
            buckets,
            inherited_buckets: false,
            time_column: "time".to_owned(),
            calls: 0,
            only_selectors: true,
            has_fields: false,
            has_distinct: false,
            top_or_bottom: None,
        })
    }

    fn finish(mut self, now: i64) -> Result<Checked, String> {
        self.fields(now)?;
        let mut inner = Vec::new();
        for from in &self.select.from {
            inner.push(match from {
                From::Measurement(_) => None,
                From::Query(query) => Some(self.subquery(query, now)?),
            });
        }
        Ok(Checked {
            condition: self.condition,
            start: self.times.min.unwrap_or(TIME_MIN),
            end: self.times.max.unwrap_or(TIME_MAX),
            buckets: self.buckets,
            ascending: self.ascending,
            time_column: self.time_column,
            inner,
            select: self.select,
        })
    }

    fn subquery(&self, query: &Select, now: i64) -> Result<Checked, String> {
        if query.into.is_some() {
            return Err("INTO is not supported in a subquery".to_owned());
        }
        let mut inner = Checker::prepare(query, now)?;
        if query.order.is_some() && inner.ascending != self.ascending {
            return Err("subqueries must be ordered in the same direction as the query itself".to_owned());
        }
        inner.ascending = self.ascending;
        inner.times = limits(inner.times, &inner.buckets, now).intersect(self.times);
        if !self.buckets.is_none() && inner.buckets.is_none() {
            inner.buckets = self.buckets;
            inner.inherited_buckets = true;
        }
        if !inner.buckets.is_none() && inner.select.fill == Fill::Null {
            inner.select.fill = Fill::None;
        }
        inner.finish(now)
    }

    fn fields(&mut self, now: i64) -> Result<(), String> {
        let constants = Constants { now, zone: None };
        let fields = std::mem::take(&mut self.select.fields);
        let mut kept = Vec::new();
        for mut field in fields {
            if matches!(&field.expr, Expr::Ref(name, _) if name == "time") {
                if !field.alias.is_empty() {
                    self.time_column = field.alias;
                }
                continue;
            }
            field.expr = without_distinct(reduce(&field.expr, Some(&constants)));
            self.expr(&field.expr, &mut true)?;
            kept.push(field);
        }
        if kept.is_empty() {
            return Err("at least 1 non-time field must be queried".to_owned());
        }
        self.select.fields = kept;
        self.mix()
    }

    /// Whether the fields go together.
    fn mix(&self) -> Result<(), String> {
        if let (Some(name), true) = (&self.top_or_bottom, self.calls > 1) {
            return Err(format!("selector function {name}() cannot be combined with other functions"));
        }
        if self.calls == 0 {
            match self.select.fill {
                Fill::None if !self.inherited_buckets => {
                    return Err("fill(none) must be used with a function".to_owned());
                }
                Fill::Linear => return Err("fill(linear) must be used with a function".to_owned()),
                _ => {}
            }
            if !self.buckets.is_none() && !self.inherited_buckets {
                return Err("GROUP BY requires at least one aggregate function".to_owned());
            }
        }
        if self.has_distinct && (self.calls != 1 || self.has_fields) {
            return Err(
                "aggregate function distinct() cannot be combined with other functions or fields".to_owned()
            );
        }
        if self.has_fields && !self.only_selectors {
            return Err("mixing aggregate and non-aggregate queries is not supported".to_owned());
        }
        if self.has_fields && self.calls > 1 {
            return Err("mixing multiple selector functions with tags or fields is not supported".to_owned());
        }
        Ok(())
    }

    /// Checks an expression of the SELECT clause. `wildcard` indicates whether a wildcard may be there.
    fn expr(&mut self, expr: &Expr, wildcard: &mut bool) -> Result<(), String> {
        match expr {
            Expr::Ref(..) => self.has_fields = true,
            Expr::Wildcard(_) | Expr::Regex(_) => {
                self.has_fields = true;
                if !*wildcard {
                    let what = if matches!(expr, Expr::Regex(_)) { "regex" } else { "wildcard" };
                    return Err(format!("unable to use {what} in a binary expression"));
                }
            }
            Expr::Call(name, args) if is_math(name) => return self.math(name, args, wildcard),
            Expr::Call(name, args) => {
                self.calls += 1;
                return self.call(name, args, *wildcard);
            }
            Expr::Binary(_, left, right) => {
                *wildcard = false;
                match (left.is_literal(), right.is_literal()) {
                    (true, true) => {
                        return Err("cannot perform a binary expression on two literals".to_owned());
                    }
                    (true, false) => return self.expr(right, wildcard),
                    (false, true) => return self.expr(left, wildcard),
                    (false, false) => {
                        self.expr(left, wildcard)?;
                        return self.expr(right, wildcard);
                    }
                }
            }
            Expr::Paren(inner) => return self.expr(inner, wildcard),
            _ => return Err("field must contain at least one variable".to_owned()),
        }
        Ok(())
    }

    fn math(&mut self, name: &str, args: &[Expr], wildcard: &mut bool) -> Result<(), String> {
        let wanted = if matches!(name, "atan2" | "pow" | "log") { 2 } else { 1 };
        if args.len() != wanted {
            return Err(arguments(name, &wanted.to_string(), args.len()));
        }
        for arg in args.iter().filter(|arg| !arg.is_literal()) {
            self.expr(arg, wildcard)?;
        }
        Ok(())
    }

    fn call(&mut self, name: &str, args: &[Expr], wildcard: bool) -> Result<(), String> {
        match name {
            "distinct" => self.distinct(args, false),
            "top" | "bottom" => self.top(name, args),
            "percentile" => {
                counted(name, args, 2)?;
                if !matches!(args[1], Expr::Int(_) | Expr::Num(_)) {
                    return Err("expected float argument in percentile()".to_owned());
                }
                self.symbol(name, &args[0], wildcard)
            }
            "sample" => {
                counted(name, args, 2)?;
                match &args[1] {
                    Expr::Int(size) if *size <= 0 => {
                        return Err(format!("sample window must be greater than 1, got {size}"));
                    }
                    Expr::Int(_) => {}
                    other => return Err(format!("expected integer argument in sample(), found {other}")),
                }
                self.symbol(name, &args[0], wildcard)
            }
            "derivative" | "non_negative_derivative" | "elapsed" => {
                between(name, args, 1, 2)?;
                if let Some(unit) = args.get(1) {
                    unit_of(
                        unit,
                        &format!("second argument to {name} must be a duration, got {}", unit.kind_name()),
                    )?;
                }
                self.transform(name, &args[0], wildcard)
            }
            "difference" | "non_negative_difference" | "cumulative_sum" => {
                counted(name, args, 1)?;
                self.transform(name, &args[0], wildcard)
            }
            "moving_average" => {
                counted(name, args, 2)?;
                match &args[1] {
                    Expr::Int(size) if *size <= 1 => {
                        return Err(format!("moving_average window must be greater than 1, got {size}"));
                    }
                    Expr::Int(_) => {}
                    other => {
                        let kind = other.kind_name();
                        return Err(format!(
                            "second argument for moving_average must be an integer, got {kind}"
                        ));
                    }
                }
                self.transform(name, &args[0], wildcard)
            }
            "integral" => {
                between(name, args, 1, 2)?;
                if let Some(unit) = args.get(1) {
                    unit_of(unit, "second argument must be a duration")?;
                }
                self.only_selectors = false;
                self.symbol(name, &args[0], wildcard)
            }
            "max" | "min" | "first" | "last" => {
                counted(name, args, 1)?;
                self.symbol(name, &args[0], wildcard)
            }
            "count" | "sum" | "mean" | "median" | "mode" | "stddev" | "spread" => {
                self.only_selectors = false;
                counted(name, args, 1)?;
                match (&args[0], name) {
                    (Expr::Call(inner, args), "count") if inner == "distinct" => self.distinct(args, true),
                    (arg, _) => self.symbol(name, arg, wildcard),
                }
            }
            _ => Err(format!("undefined function {name}()")),
        }
    }

    /// A function of successive points. Its argument is a field, or an aggregate per bucket.
    fn transform(&mut self, name: &str, arg: &Expr, wildcard: bool) -> Result<(), String> {
        self.only_selectors = false;
        match arg {
            Expr::Call(..) if self.buckets.is_none() => {
                Err(format!("{name} aggregate requires a GROUP BY interval"))
            }
            Expr::Call(inner, args) if inner == "distinct" => self.distinct(args, true),
            Expr::Call(..) => {
                let mut wildcard = wildcard;
                self.expr(arg, &mut wildcard)
            }
            _ if !self.buckets.is_none() && !self.inherited_buckets => {
                Err(format!("aggregate function required inside the call to {name}"))
            }
            _ => self.symbol(name, arg, wildcard),
        }
    }

    fn symbol(&mut self, name: &str, arg: &Expr, wildcard: bool) -> Result<(), String> {
        match arg {
            Expr::Ref(..) => Ok(()),
            Expr::Wildcard(_) | Expr::Regex(_) if wildcard => {
                self.only_selectors = false;
                Ok(())
            }
            Expr::Wildcard(_) => Err(format!("unsupported expression with wildcard: {name}()")),
            Expr::Regex(_) => Err(format!("unsupported expression with regex field: {name}()")),
            _ => Err(format!("expected field argument in {name}()")),
        }
    }

    fn distinct(&mut self, args: &[Expr], nested: bool) -> Result<(), String> {
        match args {
            [] => return Err("distinct function requires at least one argument".to_owned()),
            [Expr::Ref(..)] => {}
            [_] => return Err("expected field argument in distinct()".to_owned()),
            _ => return Err("distinct function can only have one argument".to_owned()),
        }
        self.has_distinct |= !nested;
        self.only_selectors = false;
        Ok(())
    }

    fn top(&mut self, name: &str, args: &[Expr]) -> Result<(), String> {
        if let Some(other) = &self.top_or_bottom {
            return Err(format!("selector function {other}() cannot be combined with other functions"));
        }
        let [first, tags @ .., last] = args else {
            return Err(format!(
                "invalid number of arguments for {name}, expected at least 2, got {}",
                args.len()
            ));
        };
        let limit = self.select.limit;
        match last {
            Expr::Int(count) if *count <= 0 => {
                return Err(format!("limit ({count}) in {name} function must be at least 1"));
            }
            Expr::Int(count) if limit > 0 && *count > limit as i64 => {
                return Err(format!(
                    "limit ({count}) in {name} function can not be larger than the LIMIT ({limit}) in the select statement"
                ));
            }
            Expr::Int(_) => {}
            other => return Err(format!("expected integer as last argument in {name}(), found {other}")),
        }
        if !matches!(first, Expr::Ref(..)) {
            return Err(format!("expected first argument to be a field in {name}(), found {first}"));
        }
        for tag in tags {
            if !matches!(tag, Expr::Ref(..)) {
                return Err(format!("only fields or tags are allowed in {name}(), found {tag}"));
            }
            self.has_fields = true;
        }
        self.top_or_bottom = Some(name.to_owned());
        Ok(())
    }
}

/// `distinct field` as a call.
fn without_distinct(mut expr: Expr) -> Expr {
    expr.walk_mut(&mut |expr| {
        if let Expr::Distinct(name) = expr {
            *expr = Expr::Call("distinct".to_owned(), vec![Expr::Ref(name.clone(), Default::default())]);
        }
    });
    expr
}

fn arguments(name: &str, wanted: &str, got: usize) -> String {
    format!("invalid number of arguments for {name}, expected {wanted}, got {got}")
}

fn counted(name: &str, args: &[Expr], wanted: usize) -> Result<(), String> {
    if args.len() == wanted { Ok(()) } else { Err(arguments(name, &wanted.to_string(), args.len())) }
}

fn between(name: &str, args: &[Expr], min: usize, max: usize) -> Result<(), String> {
    match args.len() < min || args.len() > max {
        true => Err(arguments(name, &format!("at least {min} but no more than {max}"), args.len())),
        false => Ok(()),
    }
}

fn unit_of(unit: &Expr, otherwise: &str) -> Result<(), String> {
    match unit {
        Expr::Dur(nanos) if *nanos <= 0 => {
            Err(format!("duration argument must be positive, got {}", duration::shown(*nanos)))
        }
        Expr::Dur(_) => Ok(()),
        _ => Err(otherwise.to_owned()),
    }
}

fn check_condition(condition: &Expr) -> Result<(), String> {
    match condition {
        Expr::Binary(_, left, right) => {
            check_condition(left)?;
            check_condition(right)
        }
        Expr::Call(name, args) => {
            if !is_math(name) {
                return Err(format!("invalid function call in condition: {condition}"));
            }
            counted(name, args, if matches!(name.as_str(), "atan2" | "pow") { 2 } else { 1 })?;
            args.iter().try_for_each(check_condition)
        }
        _ => Ok(()),
    }
}

/// Checks what follows GROUP BY, and finds the buckets.
fn dimensions(select: &mut Select, constants: &Constants) -> Result<Buckets, String> {
    let mut buckets = Buckets { zone: select.zone, ..Buckets::default() };
    for dimension in &mut select.dimensions {
        let reduced = reduce(dimension, None);
        match &reduced {
            Expr::Ref(name, _) if name.eq_ignore_ascii_case("time") => {
                return Err("time() is a function and expects at least one argument".to_owned());
            }
            Expr::Ref(..) | Expr::Wildcard(_) | Expr::Regex(_) => {}
            Expr::Call(name, args) => {
                if name != "time" {
                    return Err("only time() calls allowed in dimensions".to_owned());
                }
                let (every, offset) = match &args[..] {
                    [every] => (every, None),
                    [every, offset] => (every, Some(offset)),
                    _ => return Err("time dimension expected 1 or 2 arguments".to_owned()),
                };
                let Expr::Dur(every) = every else {
                    return Err("time dimension must have duration argument".to_owned());
                };
                if buckets.every != 0 {
                    return Err("multiple time dimensions not allowed".to_owned());
                }
                buckets.every = (*every).max(0);
                if let (Some(offset), true) = (offset, buckets.every > 0) {
                    buckets.offset = bucket_offset(offset, buckets.every, constants)?;
                }
            }
            _ => return Err("only time and tag dimensions allowed".to_owned()),
        }
        *dimension = reduced;
    }
    Ok(buckets)
}

fn bucket_offset(offset: &Expr, every: i64, constants: &Constants) -> Result<i64, String> {
    const REFUSED: &str = "time dimension offset must be duration or now()";
    match offset {
        Expr::Dur(nanos) => Ok(nanos % every),
        Expr::Time(nanos) => Ok(nanos.rem_euclid(every)),
        Expr::Call(name, _) if name != "now" => {
            Err("time dimension offset function must be now()".to_owned())
        }
        Expr::Call(_, args) if !args.is_empty() => {
            Err("time dimension offset now() function requires no arguments".to_owned())
        }
        Expr::Call(..) => Ok(constants.now.rem_euclid(every)),
        Expr::Str(text) if time::looks_like(text) => Ok(time::parse(text, constants.zone)?.rem_euclid(every)),
        Expr::Binary(Op::Mul, sign, inner) => match (&**sign, &**inner) {
            (Expr::Int(-1), Expr::Dur(nanos)) => Ok(-nanos % every),
            _ => Err(REFUSED.to_owned()),
        },
        _ => Err(REFUSED.to_owned()),
    }
}
