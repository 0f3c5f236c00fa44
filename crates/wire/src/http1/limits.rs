//! Limits of HTTP/1.1, with the reason for each value.

/// Longest head of an answer, status line and headers: eight times what Apache and nginx take of a request by default.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;
/// Most headers of an answer; Apache takes 100 of a request.
pub const HEADERS_MAX: usize = 128;
/// Longest line with the size of a chunk, extensions included, and longest line of a trailer. Nobody writes extensions.
pub const CHUNK_LINE_BYTES_MAX: usize = 4 * 1024;
