//! Values from clients that are not taken.

/// Why a value cannot be taken.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(super) enum ValueError {
    #[error("this is not a value of the type")]
    Invalid,
    #[error("values of this type cannot be bound in binary form; cast the parameter, such as $1::text")]
    Type,
    #[error("arrays here have one dimension and begin at 1")]
    Shape,
}

impl ValueError {
    pub(super) fn code(&self) -> &'static str {
        match self {
            Self::Invalid => "22P02",
            Self::Type | Self::Shape => "0A000",
        }
    }
}
