//! Errors of requests in ThingsBoard's terms: a status, an error number, and a message with the remedy.
//!
//! HTTP answers have them as status and body, and JSON answers of queries and WebSocket messages have them as members.

use axum::http::StatusCode;
use hub::annotations::AnnotationError;
use hub::bulk::BulkError;
use hub::caller::Forbidden;
use hub::claims::ClaimError;
use hub::entity_query::EntityQueryError;
use hub::history::HistoryError;
use hub::logins::LoginRefused;
use hub::ota::OtaError;
use hub::registry::RegistryError;
use hub::session_token::TokenError;
use hub::sql::SqlError;
use hub::tenant_loads::TenantLimitExceeded;
use hub::{AttributeError, Blame, IngestError, KvError};
use model::MemoryShortage;

use crate::blocking::PoolError;
use crate::budget::OverBudget;

/// `Retry-After` in seconds when the store or a queue is busy.
pub(crate) const RETRY_BUSY_S: u32 = 1;
/// `Retry-After` in seconds when an operator must act first.
const RETRY_OPERATOR_S: u32 = 30;

/// ThingsBoard's error numbers (`ThingsboardErrorCode`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub(crate) enum ErrorCode {
    General = 2,
    Authentication = 10,
    TokenExpired = 11,
    Permission = 20,
    InvalidArguments = 30,
    BadRequest = 31,
    NotFound = 32,
    TooManyRequests = 33,
    VersionConflict = 35,
}

/// A refused request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ApiError {
    pub(crate) status: StatusCode,
    pub(crate) code: ErrorCode,
    /// The fault and the remedy, for the client.
    pub(crate) message: String,
    /// A short, stable name for metrics.
    pub(crate) label: &'static str,
    /// Seconds after which the same request may succeed.
    pub(crate) retry_after_s: Option<u32>,
}

impl ApiError {
    pub(crate) fn new(
        status: StatusCode,
        code: ErrorCode,
        label: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self { status, code, message: message.into(), label, retry_after_s: None }
    }

    /// 400: an argument has a wrong form or value.
    pub(crate) fn argument(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorCode::InvalidArguments, "argument", message)
    }

    /// 400: the request as a whole cannot be parsed or done.
    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, ErrorCode::BadRequest, "request", message)
    }

    /// 401: no session, or an invalid one.
    pub(crate) fn unauthenticated(label: &'static str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::UNAUTHORIZED, ErrorCode::Authentication, label, message)
    }

    /// 403: the session may not do this.
    pub(crate) fn forbidden(message: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, ErrorCode::Permission, "permission", message)
    }

    /// 404.
    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, ErrorCode::NotFound, "not_found", message)
    }

    /// 413.
    pub(crate) fn too_large(what: &str, limit: usize, setting: &str) -> Self {
        let message = format!("{what} is larger than {limit} bytes; send smaller pieces{setting}");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, ErrorCode::InvalidArguments, "too_large", message)
    }

    /// 429: the server is busy; the same request will succeed later.
    pub(crate) fn busy(message: impl Into<String>) -> Self {
        let (status, code) = (StatusCode::TOO_MANY_REQUESTS, ErrorCode::TooManyRequests);
        let mut error = Self::new(status, code, "busy", message);
        error.retry_after_s = Some(RETRY_BUSY_S);
        error
    }

    /// 503: the operator must act.
    pub(crate) fn unavailable(label: &'static str, message: impl Into<String>) -> Self {
        let mut error = Self::new(StatusCode::SERVICE_UNAVAILABLE, ErrorCode::General, label, message);
        error.retry_after_s = Some(RETRY_OPERATOR_S);
        error
    }

    /// 500.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, ErrorCode::General, "internal", message)
    }
}

impl From<TenantLimitExceeded> for ApiError {
    fn from(above: TenantLimitExceeded) -> Self {
        let seconds = above.wait.as_millis().div_ceil(1_000).max(1);
        let retry_after_s = Some(u32::try_from(seconds).unwrap_or(u32::MAX));
        Self { label: "tenant_limit", retry_after_s, ..Self::busy(above.to_string()) }
    }
}

impl From<MemoryShortage> for ApiError {
    fn from(shortage: MemoryShortage) -> Self {
        Self { label: "memory_pressure", ..Self::busy(shortage.to_string()) }
    }
}

impl From<PoolError> for ApiError {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Full { .. } => Self::busy(error.to_string()),
            PoolError::Memory(shortage) => shortage.into(),
            PoolError::Panicked => Self::internal(error.to_string()),
        }
    }
}

impl From<IngestError> for ApiError {
    fn from(error: IngestError) -> Self {
        let message = error.to_string();
        match error.blame() {
            Blame::Caller => Self::argument(message),
            Blame::Busy => Self::busy(message),
            Blame::Operator => match error {
                IngestError::Sealed { .. } | IngestError::Closed => Self::unavailable("sealed", message),
                // The sender may send the same request again.
                IngestError::Lost { .. } => Self::busy(message),
                _ => Self::internal(format!("{message}; the server's log has more, its operator must act")),
            },
        }
    }
}

impl From<KvError> for ApiError {
    fn from(error: KvError) -> Self {
        let message = error.to_string();
        match (error.blame(), error) {
            (Blame::Caller, _) => Self::argument(message),
            (Blame::Busy, _) => Self::busy(message),
            (Blame::Operator, KvError::Sealed { .. } | KvError::Closed) => {
                Self::unavailable("sealed", message)
            }
            (Blame::Operator, _) => {
                Self::internal(format!("{message}; the server's log has more, its operator must act"))
            }
        }
    }
}

impl From<HistoryError> for ApiError {
    fn from(error: HistoryError) -> Self {
        match error {
            HistoryError::OverLimit { .. } | HistoryError::NoCalendar => Self::argument(error.to_string()),
            HistoryError::Store(error) => error.into(),
        }
    }
}

impl From<hub::Error> for ApiError {
    fn from(error: hub::Error) -> Self {
        match error {
            hub::Error::Forbidden(error) => error.into(),
            hub::Error::Store(error) => error.into(),
            hub::Error::Kv(error) => error.into(),
            hub::Error::Attributes(error) => error.into(),
            hub::Error::Registry(error) => error.into(),
            hub::Error::Ota(error) => error.into(),
            hub::Error::History(error) => error.into(),
            hub::Error::Bulk(error) => error.into(),
        }
    }
}

impl From<AttributeError> for ApiError {
    fn from(error: AttributeError) -> Self {
        let message = error.to_string();
        match (error.blame(), error) {
            (_, AttributeError::Forbidden(error)) => error.into(),
            (_, AttributeError::Registry(error)) => error.into(),
            (_, AttributeError::Kv(error)) => error.into(),
            (Blame::Caller, error) => Self { label: error.label(), ..Self::argument(message) },
            (Blame::Busy, _) => Self::busy(message),
            (Blame::Operator, _) => Self::internal(message),
        }
    }
}

impl From<AnnotationError> for ApiError {
    fn from(error: AnnotationError) -> Self {
        let message = error.to_string();
        match error {
            AnnotationError::Forbidden(error) => error.into(),
            AnnotationError::Kv(error) => error.into(),
            AnnotationError::Invalid(_) => Self::argument(message),
            AnnotationError::OverLimit { .. } => {
                Self { label: "annotation_limit", ..Self::argument(message) }
            }
        }
    }
}

impl From<EntityQueryError> for ApiError {
    fn from(error: EntityQueryError) -> Self {
        match error {
            EntityQueryError::Hub(error) => error.into(),
            EntityQueryError::Absent(_) => Self::bad_request(error.to_string()),
            EntityQueryError::OverLimit { .. } => {
                Self { label: "query_limit", ..Self::argument(error.to_string()) }
            }
            EntityQueryError::Invalid(_) => Self::argument(error.to_string()),
        }
    }
}

impl From<BulkError> for ApiError {
    fn from(error: BulkError) -> Self {
        let message = error.to_string();
        match error {
            BulkError::Store(error) => error.into(),
            BulkError::NoTable { .. } | BulkError::NoKey { .. } => Self::not_found(message),
            BulkError::Asked(_) | BulkError::Data(_) => Self::argument(message),
            BulkError::Write(_) => Self::internal(message),
        }
    }
}

impl From<SqlError> for ApiError {
    fn from(error: SqlError) -> Self {
        let message = error.to_string();
        match (error.blame(), &error) {
            // Valid SQL that exceeds a limit of the operator.
            (_, SqlError::OverLimit { .. } | SqlError::Timeout { .. }) => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, ErrorCode::BadRequest, "query_limit", message)
            }
            (Blame::Caller, _) => {
                Self::new(StatusCode::BAD_REQUEST, ErrorCode::InvalidArguments, "query", message)
            }
            (_, SqlError::Memory(_)) => Self { label: "memory_pressure", ..Self::busy(message) },
            (Blame::Busy, _) => Self::busy(message),
            (Blame::Operator, _) => Self::internal(message),
        }
    }
}

impl From<RegistryError> for ApiError {
    fn from(error: RegistryError) -> Self {
        let message = error.to_string();
        match (error.blame(), error) {
            (_, RegistryError::Unknown { .. }) => Self::not_found(message),
            (_, RegistryError::Forbidden(_)) => Self::forbidden(message),
            (_, RegistryError::VersionConflict { .. }) => {
                Self::new(StatusCode::CONFLICT, ErrorCode::VersionConflict, "version", message)
            }
            (Blame::Caller, _) => Self::bad_request(message),
            (Blame::Busy, _) => Self::busy(message),
            (Blame::Operator, _) => Self::internal(message),
        }
    }
}

impl From<Forbidden> for ApiError {
    fn from(error: Forbidden) -> Self {
        Self::forbidden(error.to_string())
    }
}

impl ApiError {
    /// A profile has given credentials to many devices in this second.
    pub(crate) fn busy_provisioning(message: String) -> Self {
        let status = StatusCode::TOO_MANY_REQUESTS;
        let refusal = Self::new(status, ErrorCode::TooManyRequests, "provision_rate", message);
        Self { retry_after_s: Some(1), ..refusal }
    }
}

impl From<LoginRefused> for ApiError {
    fn from(error: LoginRefused) -> Self {
        let status = StatusCode::TOO_MANY_REQUESTS;
        let refusal = Self::new(status, ErrorCode::TooManyRequests, "logins", error.to_string());
        Self { retry_after_s: Some(error.retry_after_s()), ..refusal }
    }
}

impl From<TokenError> for ApiError {
    fn from(error: TokenError) -> Self {
        let mut refusal = Self::unauthenticated("session", error.to_string());
        if error == TokenError::Expired {
            refusal.code = ErrorCode::TokenExpired;
        }
        refusal
    }
}

impl From<OverBudget> for ApiError {
    fn from(over: OverBudget) -> Self {
        Self {
            label: "held_bytes",
            ..Self::busy(format!("{over}; read or end what there is, then try again"))
        }
    }
}

impl From<OtaError> for ApiError {
    fn from(error: OtaError) -> Self {
        let message = error.to_string();
        match (error.blame(), error) {
            (_, OtaError::Forbidden(error)) => error.into(),
            (_, OtaError::Registry(error)) => error.into(),
            (_, OtaError::Attributes(error)) => error.into(),
            (_, OtaError::Kv(error)) => error.into(),
            (_, OtaError::NotFound(_)) => Self::not_found(message),
            (Blame::Operator, _) => Self::internal(message),
            (Blame::Busy, _) => Self::busy(message),
            (Blame::Caller, _) => Self { label: "package", ..Self::argument(message) },
        }
    }
}

impl From<ClaimError> for ApiError {
    fn from(error: ClaimError) -> Self {
        let message = error.to_string();
        match (error.blame(), error) {
            (_, ClaimError::Forbidden(error)) => error.into(),
            (_, ClaimError::NoCustomer { .. }) => Self::forbidden(message),
            (_, ClaimError::Registry(error)) => error.into(),
            (_, ClaimError::TooManyGuesses(wait)) => wait.into(),
            (_, ClaimError::Attributes(error)) => error.into(),
            (_, ClaimError::Kv(error)) => error.into(),
            (Blame::Busy, _) => Self::busy(message),
            (Blame::Caller | Blame::Operator, _) => Self { label: "claim", ..Self::argument(message) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_an_error_determines_its_status() {
        let busy = ApiError::from(IngestError::Busy { reason: "memtable full".into() });
        assert_eq!((busy.status.as_u16(), busy.code as u16, busy.retry_after_s), (429, 33, Some(1)));
        let sealed = ApiError::from(IngestError::Sealed { cause: "disk gone".into() });
        assert_eq!((sealed.status.as_u16(), sealed.retry_after_s), (503, Some(30)));
        assert!(sealed.message.contains("disk gone"));
        let unknown = ApiError::from(RegistryError::Unknown { what: "device", name: "x".into() });
        assert_eq!((unknown.status.as_u16(), unknown.code as u16), (404, 32));
        let full = ApiError::from(PoolError::Full { what: "reads", waiting: 1, limit: 1 });
        assert_eq!((full.status.as_u16(), full.retry_after_s), (429, Some(1)));
        assert_eq!(ApiError::from(PoolError::Panicked).status.as_u16(), 500);
        let expired = ApiError::from(TokenError::Expired);
        assert_eq!((expired.status.as_u16(), expired.code as u16), (401, 11));
    }
}
