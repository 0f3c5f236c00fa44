//! Changes of a running target: plan, undo file, carrying out, verification.

mod apply;
mod error;
mod parameter;
mod plan;
mod text;
mod undo_file;
mod verify;

pub use apply::{Carried, carry_out, undo};
pub use error::{ChangeError, PlanError, UndoFileError};
pub use parameter::ParameterChange;
pub use plan::{Plan, Wanted, plan_all, plan_rules, present_values, rule_for, wanted};
pub(crate) use text::lines_of;
pub use text::{plan_text, undo_text};
pub use undo_file::UndoFile;
pub use verify::Outcome;
pub(crate) use verify::{found_in, is_same};
