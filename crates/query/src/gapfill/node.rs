//! The node of gap filling in a logical plan.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use arrow_schema::DataType;
use datafusion::common::{DFSchema, DFSchemaRef, DataFusionError, Result};
use datafusion::logical_expr::{Expr, LogicalPlan, UserDefinedLogicalNodeCore};

use super::shape::Shape;

/// Adds the rows of missing buckets to the rows of an aggregation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct GapFill {
    input: LogicalPlan,
    pub(crate) shape: Shape,
    pub(crate) schema: DFSchemaRef,
}

impl GapFill {
    /// The node has the columns of its input. All but the keys and the time may be NULL in added rows.
    pub(super) fn new(input: LogicalPlan, shape: Shape) -> Result<Self> {
        let types = input.schema().fields().iter().map(|field| field.data_type().clone()).collect();
        Self::with_types(input, shape, types)
    }

    fn with_types(input: LogicalPlan, shape: Shape, types: Vec<DataType>) -> Result<Self> {
        let keeps = |index: usize| shape.keys.contains(&index) || index == shape.time;
        let fields =
            input.schema().iter().zip(types).enumerate().map(|(index, ((table, field), data_type))| {
                let nullable = field.is_nullable() || !keeps(index);
                let field = field.as_ref().clone().with_data_type(data_type).with_nullable(nullable);
                (table.cloned(), Arc::new(field))
            });
        let schema = DFSchema::new_with_metadata(fields.collect(), input.schema().metadata().clone())?;
        Ok(Self { input, shape, schema: Arc::new(schema) })
    }
}

impl PartialOrd for GapFill {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let order = self.input.partial_cmp(&other.input)?.then(self.shape.partial_cmp(&other.shape)?);
        (order != Ordering::Equal || self == other).then_some(order)
    }
}

impl UserDefinedLogicalNodeCore for GapFill {
    fn name(&self) -> &str {
        "GapFill"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    /// None: the shape names columns by their index.
    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    /// Only a condition on a key may move below: it keeps or drops all buckets of the key. A condition on another column must also
    /// see the rows that the operator adds.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        let fields = self.schema.fields().iter().enumerate();
        let others = fields.filter(|(index, _)| !self.shape.keys.contains(index));
        others.map(|(_, field)| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GapFill: ")?;
        self.shape.describe(self.schema.as_arrow(), f)
    }

    fn with_exprs_and_inputs(&self, _exprs: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Self> {
        let input = inputs.into_iter().next();
        let input = input.ok_or_else(|| DataFusionError::Internal("gap filling of nothing".into()))?;
        // When the optimiser puts `date_bin` in place of the key, it gives the key nanoseconds. The node keeps its own types.
        let types = self.schema.fields().iter().map(|field| field.data_type().clone()).collect();
        Self::with_types(input, self.shape.clone(), types)
    }
}
