//! Errors of entity queries.

use store::StoreError;

use crate::attributes::AttributeError;
use crate::caller::Forbidden;
use crate::error::Error;
use crate::registry::RegistryError;

/// A query that was refused, or that failed.
#[derive(Debug, thiserror::Error)]
pub enum EntityQueryError {
    /// A limit is exceeded.
    #[error("{what} is {actual}, the limit is {limit} ({name}); {remedy}")]
    OverLimit {
        /// The counted quantity.
        what: &'static str,
        /// Its value.
        actual: usize,
        limit: usize,
        /// Name of the limit.
        name: &'static str,
        /// The remedy for the caller.
        remedy: &'static str,
    },
    /// Something in the query is wrong.
    #[error("{0}")]
    Invalid(String),
    /// ThingsBoard has it, this server does not.
    #[error("{0} is not there on this server")]
    Absent(String),
    /// A read failed, or the caller lacks a permission.
    #[error(transparent)]
    Hub(#[from] Error),
}

impl From<Forbidden> for EntityQueryError {
    fn from(error: Forbidden) -> Self {
        Self::Hub(error.into())
    }
}

impl From<RegistryError> for EntityQueryError {
    fn from(error: RegistryError) -> Self {
        Self::Hub(error.into())
    }
}

impl From<StoreError> for EntityQueryError {
    fn from(error: StoreError) -> Self {
        Self::Hub(error.into())
    }
}

impl From<AttributeError> for EntityQueryError {
    fn from(error: AttributeError) -> Self {
        Self::Hub(error.into())
    }
}

/// Refuses a quantity above its limit.
pub(crate) fn within(
    what: &'static str,
    actual: usize,
    (name, limit): (&'static str, usize),
    remedy: &'static str,
) -> Result<(), EntityQueryError> {
    match actual > limit {
        true => Err(EntityQueryError::OverLimit { what, actual, limit, name, remedy }),
        false => Ok(()),
    }
}
