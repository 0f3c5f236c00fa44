//! Binds a checked statement to tables: opens them, gives references their types, and expands wildcards.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use model::FieldType;

use super::answer::Error;
use super::ast::{DataType, Expr, Field, From, Measurement};
use super::check::Checked;
use super::value::{Value, is_math, operate};
use crate::{Source, Table};

/// A statement that can run.
pub(super) struct Plan<'a> {
    pub checked: Checked,
    /// The fields; every reference in them has its type.
    pub fields: Vec<Field>,
    /// The names of all columns, without the time.
    pub columns: Vec<String>,
    /// The tags of GROUP BY, sorted.
    pub tags: Vec<String>,
    pub inputs: Vec<Input<'a>>,
    /// Returns whether the statement may continue.
    pub source: &'a dyn Source,
}

/// The data that a statement reads.
pub(super) enum Input<'a> {
    Table { name: String, table: Rc<dyn Table + 'a> },
    Query(Box<Plan<'a>>),
}

impl Input<'_> {
    /// The type of a field or a tag of the input.
    fn type_of(&self, name: &str) -> DataType {
        match self {
            Self::Table { table, .. } => table_type(&**table, name),
            Self::Query(plan) => {
                let field = plan.fields.iter().find(|field| field_name(field) == name);
                match field.map(|field| type_of(&field.expr).unwrap_or_default()) {
                    Some(kind) if kind != DataType::Unknown => kind,
                    _ if plan.top_tag(name) || plan.tags.iter().any(|tag| tag == name) => DataType::Tag,
                    _ => DataType::Unknown,
                }
            }
        }
    }

    fn names(&self, fields: &mut BTreeMap<String, DataType>, tags: &mut BTreeSet<String>) {
        let mut add = |name: &str, kind: DataType| {
            let own = fields.entry(name.to_owned()).or_insert(kind);
            if better(kind, *own) {
                *own = kind;
            }
        };
        match self {
            Self::Table { table, .. } => {
                let columns = table.columns();
                for field in &columns.fields {
                    add(&field.key, table_type(&**table, &field.key));
                }
                tags.extend(columns.tags.iter().map(|tag| tag.tag.to_string()));
            }
            Self::Query(plan) => {
                for field in &plan.fields {
                    let kind = type_of(&field.expr).unwrap_or_default();
                    match kind {
                        DataType::Tag => add(&field_name(field), DataType::Tag),
                        _ => add(&field_name(field), kind),
                    }
                }
                tags.extend(plan.tags.iter().cloned());
            }
        }
    }
}

/// Whether a type wins over another one where a name has both.
fn better(new: DataType, old: DataType) -> bool {
    old == DataType::Unknown || (new != DataType::Unknown && new < old)
}

fn table_type(table: &dyn Table, name: &str) -> DataType {
    let columns = table.columns();
    let fields = columns.fields.iter().filter(|field| &*field.key == name);
    let kind = fields.map(|field| data_type(field.field_type)).min();
    match kind {
        Some(kind) => kind,
        None if columns.tags.iter().any(|tag| &*tag.tag == name) => DataType::Tag,
        None => DataType::Unknown,
    }
}

/// The type that InfluxQL has for a type of the store.
pub(super) fn data_type(field_type: FieldType) -> DataType {
    match field_type {
        FieldType::F64 => DataType::Float,
        FieldType::I64 => DataType::Integer,
        FieldType::Bool => DataType::Boolean,
        FieldType::String | FieldType::Json => DataType::String,
    }
}

impl<'a> Plan<'a> {
    /// Binds a statement to the tables of a source.
    ///
    /// # Errors
    /// A table cannot be opened, or the types do not go together.
    pub(super) fn bind(mut checked: Checked, source: &'a dyn Source) -> Result<Plan<'a>, Error> {
        let mut inputs = Vec::new();
        let inner = std::mem::take(&mut checked.inner);
        for (from, inner) in checked.select.from.iter().zip(inner) {
            match (from, inner) {
                (From::Measurement(measurement), _) => open(source, measurement, &mut inputs)?,
                (From::Query(_), Some(inner)) => {
                    inputs.push(Input::Query(Box::new(Plan::bind(inner, source)?)))
                }
                (From::Query(_), None) => {}
            }
        }
        let (fields, columns, tags) = Default::default();
        let mut plan = Plan { checked, fields, columns, tags, inputs, source };
        plan.expand().map_err(Error::Statement)?;
        for field in &plan.fields {
            type_of(&field.expr).map_err(Error::Statement)?;
        }
        plan.columns = plan.column_names();
        Ok(plan)
    }

    fn typed(&self, expr: &mut Expr) {
        expr.walk_mut(&mut |expr| {
            if let Expr::Ref(name, kind) = expr
                && matches!(kind, DataType::Unknown | DataType::AnyField)
            {
                let mut found = DataType::Unknown;
                for input in &self.inputs {
                    let own = input.type_of(name);
                    if better(own, found) {
                        found = own;
                    }
                }
                if !(found == DataType::Tag && *kind == DataType::AnyField) {
                    *kind = found;
                }
            }
        });
    }

    /// The type of every reference, and a field for each name that a wildcard stands for.
    fn expand(&mut self) -> Result<(), String> {
        let mut fields = self.checked.select.fields.clone();
        fields.iter_mut().for_each(|field| self.typed(&mut field.expr));
        if let Some(mut condition) = self.checked.condition.take() {
            self.typed(&mut condition);
            self.checked.condition = Some(condition);
        }
        let dimensions = &self.checked.select.dimensions;
        let any_dimension = dimensions.iter().any(|dim| matches!(dim, Expr::Wildcard(_) | Expr::Regex(_)));
        let (mut names, mut tags) = (BTreeMap::new(), BTreeSet::new());
        self.inputs.iter().for_each(|input| input.names(&mut names, &mut tags));
        let mut grouped = BTreeSet::new();
        for dimension in dimensions {
            match dimension {
                Expr::Ref(name, _) => drop(grouped.insert(name.clone())),
                Expr::Wildcard(_) => grouped.extend(tags.iter().cloned()),
                Expr::Regex(pattern) => {
                    grouped.extend(tags.iter().filter(|tag| pattern.0.is_match(tag)).cloned())
                }
                _ => {}
            }
        }
        let mut all: Vec<(String, DataType)> = names.into_iter().collect();
        if !any_dimension && !all.is_empty() {
            tags.retain(|tag| !grouped.contains(tag));
            all.extend(tags.into_iter().map(|tag| (tag, DataType::Tag)));
        }
        all.sort();
        self.tags = grouped.into_iter().collect();
        for field in fields {
            expand_field(field, &all, &mut self.fields)?;
        }
        Ok(())
    }

    /// Whether a name is a tag argument of top() or bottom().
    fn top_tag(&self, name: &str) -> bool {
        self.fields.iter().any(|field| top_tags(&field.expr).iter().any(|(own, _)| own == name))
    }

    /// The fields and the further columns that top() and bottom() have.
    pub(super) fn outputs(&self) -> Vec<Field> {
        let mut outputs = Vec::new();
        for field in &self.fields {
            outputs.push(field.clone());
            for (name, kind) in top_tags(&field.expr) {
                outputs.push(Field { expr: Expr::Ref(name, kind), alias: String::new() });
            }
        }
        outputs
    }

    fn column_names(&self) -> Vec<String> {
        let outputs = self.outputs();
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        for field in outputs.iter().filter(|field| !field.alias.is_empty()) {
            counts.insert(field.alias.clone(), 1);
        }
        let mut names = Vec::new();
        for field in &outputs {
            let mut name = field_name(field);
            if field.alias.is_empty() {
                if let Some(first) = counts.get(&name).copied() {
                    let taken = |count: &usize| counts.contains_key(&format!("{name}_{count}"));
                    let count = (first..).find(|count| !taken(count)).unwrap_or(first);
                    counts.insert(name.clone(), count + 1);
                    name = format!("{name}_{count}");
                }
                counts.insert(name.clone(), 1);
            }
            names.push(name);
        }
        names
    }
}

/// The tags among the arguments of top() and bottom().
fn top_tags(expr: &Expr) -> Vec<(String, DataType)> {
    let Expr::Call(name, args) = expr else { return Vec::new() };
    if name != "top" && name != "bottom" {
        return Vec::new();
    }
    let refs = args.iter().skip(1).filter_map(|arg| match arg {
        Expr::Ref(name, kind) => Some((name.clone(), *kind)),
        _ => None,
    });
    refs.collect()
}

fn open<'a>(
    source: &'a dyn Source,
    measurement: &Measurement,
    inputs: &mut Vec<Input<'a>>,
) -> Result<(), Error> {
    for name in measurement_names(source, measurement)? {
        if let Some(table) = source.open(&name)? {
            inputs.push(Input::Table { name, table: table.into() });
        }
    }
    Ok(())
}

/// The names that a measurement of FROM stands for.
pub(super) fn measurement_names(
    source: &dyn Source,
    measurement: &Measurement,
) -> Result<Vec<String>, Error> {
    Ok(match &measurement.pattern {
        None => vec![measurement.name.clone()],
        Some(pattern) => {
            let mut names = source.tables()?;
            names.retain(|name| pattern.0.is_match(name));
            names
        }
    })
}

fn expand_field(field: Field, all: &[(String, DataType)], out: &mut Vec<Field>) -> Result<(), String> {
    let plain = |(name, kind): &(String, DataType)| Field {
        expr: Expr::Ref(name.clone(), *kind),
        alias: String::new(),
    };
    match &field.expr {
        Expr::Wildcard(wanted) => out.extend(
            all.iter()
                .filter(|(_, kind)| match wanted {
                    DataType::AnyField => *kind != DataType::Tag,
                    DataType::Tag => *kind == DataType::Tag,
                    _ => true,
                })
                .map(plain),
        ),
        Expr::Regex(pattern) => {
            out.extend(all.iter().filter(|(name, _)| pattern.0.is_match(name)).map(plain))
        }
        Expr::Call(..) => expand_call(&field, all, out)?,
        _ => out.push(field),
    }
    Ok(())
}

fn expand_call(field: &Field, all: &[(String, DataType)], out: &mut Vec<Field>) -> Result<(), String> {
    let Some((function, inner)) = innermost(&field.expr) else {
        out.push(field.clone());
        return Ok(());
    };
    let pattern = match inner {
        Expr::Wildcard(DataType::Tag) => return Err(format!("unable to use tag wildcard in {function}()")),
        Expr::Wildcard(_) => None,
        Expr::Regex(pattern) => Some(&pattern.0),
        _ => {
            out.push(field.clone());
            return Ok(());
        }
    };
    for (name, kind) in all {
        let supported = match kind {
            DataType::Float | DataType::Integer => true,
            DataType::String => {
                matches!(function, "count" | "first" | "last" | "distinct" | "elapsed" | "mode" | "sample")
            }
            DataType::Boolean => matches!(
                function,
                "count" | "first" | "last" | "distinct" | "elapsed" | "mode" | "sample" | "min" | "max"
            ),
            _ => false,
        };
        if !supported || pattern.is_some_and(|pattern| !pattern.is_match(name)) {
            continue;
        }
        let mut expr = field.expr.clone();
        replace_innermost(&mut expr, Expr::Ref(name.clone(), *kind));
        out.push(Field { expr, alias: format!("{}_{name}", field_name(field)) });
    }
    Ok(())
}

/// The innermost call along first arguments, and its first argument.
fn innermost(expr: &Expr) -> Option<(&str, &Expr)> {
    let Expr::Call(name, args) = expr else { return None };
    let first = args.first()?;
    match first {
        Expr::Call(..) => innermost(first),
        _ => Some((name, first)),
    }
}

fn replace_innermost(expr: &mut Expr, new: Expr) {
    if let Expr::Call(_, args) = expr
        && let Some(first) = args.first_mut()
    {
        match first {
            Expr::Call(..) => replace_innermost(first, new),
            _ => *first = new,
        }
    }
}

/// The name of a field's column.
pub(super) fn field_name(field: &Field) -> String {
    if !field.alias.is_empty() {
        return field.alias.clone();
    }
    fn names(expr: &Expr, out: &mut Vec<String>) {
        match expr {
            Expr::Ref(name, _) | Expr::Call(name, _) => out.push(name.clone()),
            Expr::Binary(_, left, right) => {
                names(left, out);
                names(right, out);
            }
            Expr::Paren(inner) => names(inner, out),
            _ => {}
        }
    }
    let mut found = Vec::new();
    names(&field.expr, &mut found);
    found.join("_")
}

/// The type of an expression whose references have theirs.
///
/// # Errors
/// An operator or a function does not take the types.
pub(super) fn type_of(expr: &Expr) -> Result<DataType, String> {
    Ok(match expr {
        Expr::Ref(_, kind) => *kind,
        Expr::Num(_) => DataType::Float,
        Expr::Int(_) => DataType::Integer,
        Expr::Uint(_) => DataType::Unsigned,
        Expr::Str(_) => DataType::String,
        Expr::Bool(_) => DataType::Boolean,
        Expr::Paren(inner) => type_of(inner)?,
        Expr::Binary(op, left, right) => {
            let (left, right) = (type_of(left)?, type_of(right)?);
            if left == DataType::Unknown || right == DataType::Unknown {
                return Ok(if left == DataType::Unknown { right } else { left });
            }
            let zero = operate(*op, zero(left), zero(right), true);
            if zero.is_null() {
                return Err(format!(
                    "type error: {expr}: incompatible types: {} and {}",
                    left.name(),
                    right.name()
                ));
            }
            zero.data_type()
        }
        Expr::Call(name, args) => {
            let kinds: Vec<DataType> = args.iter().map(type_of).collect::<Result<_, _>>()?;
            let first = kinds.first().copied().unwrap_or_default();
            if is_math(name) {
                return math_type(name, &kinds);
            }
            match name.as_str() {
                "mean"
                | "median"
                | "integral"
                | "stddev"
                | "derivative"
                | "non_negative_derivative"
                | "moving_average" => DataType::Float,
                "count" | "elapsed" => DataType::Integer,
                _ => first,
            }
        }
        _ => DataType::Unknown,
    })
}

fn zero(kind: DataType) -> Value {
    match kind {
        DataType::Float => Value::Num(0.0),
        DataType::Integer | DataType::Unsigned => Value::Int(0),
        DataType::String | DataType::Tag => Value::text(""),
        DataType::Boolean => Value::Bool(false),
        _ => Value::Null,
    }
}

fn math_type(name: &str, kinds: &[DataType]) -> Result<DataType, String> {
    for (index, kind) in kinds.iter().enumerate() {
        let allowed = match kind {
            DataType::Float | DataType::Unknown => true,
            DataType::Integer | DataType::Unsigned => !matches!(name, "asin" | "acos"),
            _ => false,
        };
        if !allowed {
            let which = if index == 0 { "first" } else { "second" };
            return Err(format!(
                "invalid argument type for the {which} argument in {name}(): {}",
                kind.name()
            ));
        }
    }
    Ok(match name {
        "abs" | "floor" | "ceil" | "round" => kinds.first().copied().unwrap_or_default(),
        _ => DataType::Float,
    })
}
