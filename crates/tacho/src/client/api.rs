//! The client of the REST API: that of the load generator, with the limits of commands.

use std::time::Duration;

use clients::http::HttpLimits;
pub(crate) use clients::http::{RestClient as Api, RestError as ApiError, escaped, message_of};

use crate::limits::ANSWER_BYTES_MAX;

/// A client of the server at `base`, such as `http://127.0.0.1:8080`. It sends nothing yet.
pub(crate) fn client_of(base: &str, timeout: Duration) -> Api {
    Api::new(base, HttpLimits { timeout, body_bytes_max: ANSWER_BYTES_MAX })
}
