//! The files of the dashboard, which the binary hands over, and the answer to every unknown path.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

use crate::error::{ApiError, ErrorCode};
use crate::http::page::Page;
use crate::http::tools::state::HttpState;

/// Allows scripts, styles and connections only of this origin, and no framing of the page.
const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; connect-src 'self' ws: wss:; object-src 'none'; \
                                       base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// The page of a binary without the dashboard.
const NOT_BUILT: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Tachograph</title></head>\n\
    <body><h1>Tachograph is running</h1>\n\
    <p>This binary was built without the dashboard. Run <code>npm ci &amp;&amp; npm run build</code> in the directory \
    <code>dashboard</code> and build the server again (<code>make run</code> does both).</p>\n\
    <p>The interfaces work without it: <a href=\"/api/status\">/api/status</a>, <a href=\"/metrics\">/metrics</a>, \
    <a href=\"/readyz\">/readyz</a>.</p></body></html>\n";

/// `GET /` and the dashboard's files; 404 for everything else.
pub(crate) async fn file(
    State(state): State<Arc<HttpState>>,
    method: Method,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    answer(state.options.page, &method, &uri, &headers)
}

fn answer(files: Page, method: &Method, uri: &Uri, headers: &HeaderMap) -> Response {
    let name = match uri.path().trim_start_matches('/') {
        "" => "index.html",
        name => name,
    };
    let found = files(name);
    if found.is_none() && name != "index.html" {
        let message = format!("nothing is served at {}; check the path", uri.path());
        return ApiError::not_found(message).into_response();
    }
    if !matches!(*method, Method::GET | Method::HEAD) {
        let message = format!("{} takes GET only", uri.path());
        let error = ApiError::new(StatusCode::METHOD_NOT_ALLOWED, ErrorCode::BadRequest, "method", message);
        return ([(header::ALLOW, "GET,HEAD")], error).into_response();
    }
    let Some(file) = found else {
        return page(NOT_BUILT.as_bytes().to_vec(), "text/html; charset=utf-8", "no-cache");
    };
    let cache = if file.immutable { "public, max-age=31536000, immutable" } else { "no-cache" };
    let tag = entity_tag(&file.sha256);
    let mut response = if is_known(headers, &tag) {
        (StatusCode::NOT_MODIFIED, [(header::CACHE_CONTROL, cache)]).into_response()
    } else {
        page(file.bytes.into_owned(), file.content_type, cache)
    };
    response.headers_mut().insert(header::ETAG, tag);
    response
}

fn page(bytes: Vec<u8>, content_type: &'static str, cache: &'static str) -> Response {
    let headers: [(HeaderName, &'static str); 4] = [
        (header::CONTENT_TYPE, content_type),
        (header::CACHE_CONTROL, cache),
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, bytes).into_response()
}

fn entity_tag(hash: &[u8; 32]) -> HeaderValue {
    let digits: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::from_str(&format!("\"{digits}\"")).expect("BUG: digits and quotes are allowed in a header")
}

fn is_known(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    headers.get_all(header::IF_NONE_MATCH).iter().any(|known| known == tag)
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;
    use crate::http::page::PageFile;

    fn built(name: &str) -> Option<PageFile> {
        let (content_type, immutable) = match name {
            "index.html" => ("text/html; charset=utf-8", false),
            "assets/a-1.js" => ("text/javascript; charset=utf-8", true),
            _ => return None,
        };
        Some(PageFile { bytes: Cow::Borrowed(b"content"), content_type, sha256: [7; 32], immutable })
    }

    fn get(files: Page, path: &'static str, headers: &HeaderMap) -> Response {
        answer(files, &Method::GET, &Uri::from_static(path), headers)
    }

    #[test]
    fn the_first_page_is_always_there_and_protected() {
        for files in [built as Page, |_| None] {
            let response = get(files, "/", &HeaderMap::new());
            assert_eq!(response.status(), StatusCode::OK);
            assert_eq!(response.headers()["content-type"], "text/html; charset=utf-8");
            assert_eq!(response.headers()["cache-control"], "no-cache");
            let policy = response.headers()["content-security-policy"].to_str().unwrap();
            assert!(policy.starts_with("default-src 'self'; connect-src 'self' ws: wss:;"), "{policy}");
            assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
        }
    }

    #[test]
    fn a_file_has_its_type_and_a_tag_that_is_recognised() {
        for path in ["/index.html", "/assets/a-1.js"] {
            let file = built(&path[1..]).unwrap();
            let response = get(built, path, &HeaderMap::new());
            assert_eq!(response.status(), StatusCode::OK, "{path}");
            assert_eq!(response.headers()["content-type"], file.content_type, "{path}");
            let immutable = response.headers()["cache-control"].to_str().unwrap().contains("immutable");
            assert_eq!(immutable, file.immutable, "{path}");
            let known = HeaderMap::from_iter([(header::IF_NONE_MATCH, response.headers()["etag"].clone())]);
            assert_eq!(get(built, path, &known).status(), StatusCode::NOT_MODIFIED, "{path}");
        }
    }

    #[test]
    fn other_paths_and_methods_are_refused() {
        for path in ["/fleet", "/index.htm", "/../Cargo.toml", "/assets/"] {
            assert_eq!(get(built, path, &HeaderMap::new()).status(), StatusCode::NOT_FOUND, "{path}");
        }
        let posted = answer(built, &Method::POST, &Uri::from_static("/"), &HeaderMap::new());
        assert_eq!(posted.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(posted.headers()["allow"], "GET,HEAD");
    }
}
