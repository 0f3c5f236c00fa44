//! The files of the dashboard, which are part of the binary, and the answer to every unknown path.

use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use rust_embed::RustEmbed;

use crate::error::{ApiError, ErrorCode};

/// The output of `npm run build` in the dashboard's directory when the binary was built; empty if it was not run.
#[derive(RustEmbed)]
#[folder = "../../dashboard/dist"]
#[allow_missing = true]
struct Files;

/// Allows scripts, styles and connections only of this origin, and no framing of the page.
const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; connect-src 'self' ws: wss:; object-src 'none'; \
                                       base-uri 'none'; form-action 'self'; frame-ancestors 'none'";

/// Vite puts a hash of the content into the names below this directory, so the files never change.
const HASHED: &str = "assets/";

/// The page of a binary without the dashboard.
const NOT_BUILT: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Tachograph</title></head>\n\
    <body><h1>Tachograph is running</h1>\n\
    <p>This binary was built without the dashboard. Run <code>npm ci &amp;&amp; npm run build</code> in the directory \
    <code>dashboard</code> and build the server again (<code>make run</code> does both).</p>\n\
    <p>The interfaces work without it: <a href=\"/api/status\">/api/status</a>, <a href=\"/metrics\">/metrics</a>, \
    <a href=\"/readyz\">/readyz</a>.</p></body></html>\n";

/// `GET /` and the dashboard's files; 404 for everything else.
pub(crate) async fn file(method: Method, uri: Uri, headers: HeaderMap) -> Response {
    let name = match uri.path().trim_start_matches('/') {
        "" => "index.html",
        name => name,
    };
    let found = Files::get(name);
    if found.is_none() && name != "index.html" {
        let message = format!("nothing is served at {}; check the path", uri.path());
        return ApiError::not_found(message).into_response();
    }
    if !matches!(method, Method::GET | Method::HEAD) {
        let message = format!("{} takes GET only", uri.path());
        let error = ApiError::new(StatusCode::METHOD_NOT_ALLOWED, ErrorCode::BadRequest, "method", message);
        return ([(header::ALLOW, "GET,HEAD")], error).into_response();
    }
    let Some(file) = found else { return page(NOT_BUILT.as_bytes().to_vec(), "index.html", "no-cache") };
    let cache = if name.starts_with(HASHED) { "public, max-age=31536000, immutable" } else { "no-cache" };
    let tag = entity_tag(&file.metadata.sha256_hash());
    let mut response = if is_known(&headers, &tag) {
        (StatusCode::NOT_MODIFIED, [(header::CACHE_CONTROL, cache)]).into_response()
    } else {
        page(file.data.into_owned(), name, cache)
    };
    response.headers_mut().insert(header::ETAG, tag);
    response
}

fn page(bytes: Vec<u8>, name: &str, cache: &'static str) -> Response {
    let headers: [(HeaderName, &'static str); 4] = [
        (header::CONTENT_TYPE, content_type(name)),
        (header::CACHE_CONTROL, cache),
        (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
        (header::REFERRER_POLICY, "no-referrer"),
    ];
    (headers, bytes).into_response()
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit_once('.').map(|(_, ending)| ending) {
        Some("html") => "text/html; charset=utf-8",
        Some("js" | "mjs") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/x-icon",
        Some("woff2") => "font/woff2",
        Some("json" | "map" | "webmanifest") => "application/json",
        Some("txt") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

fn entity_tag(hash: &[u8; 32]) -> HeaderValue {
    let digits: String = hash.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    HeaderValue::from_str(&format!("\"{digits}\"")).expect("BUG: digits and quotes may stand in a header")
}

fn is_known(headers: &HeaderMap, tag: &HeaderValue) -> bool {
    headers.get_all(header::IF_NONE_MATCH).iter().any(|known| known == tag)
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn get(path: &'static str, headers: HeaderMap) -> Response {
        file(Method::GET, Uri::from_static(path), headers).await
    }

    #[tokio::test]
    async fn the_first_page_is_always_there_and_protected() {
        let response = get("/", HeaderMap::new()).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/html; charset=utf-8");
        assert_eq!(response.headers()["cache-control"], "no-cache");
        let policy = response.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'self'; connect-src 'self' ws: wss:;"), "{policy}");
        assert!(policy.contains("frame-ancestors 'none'"), "{policy}");
    }

    #[tokio::test]
    async fn every_built_file_has_a_type_and_a_tag_that_is_recognised() {
        for name in Files::iter() {
            let uri: Uri = format!("/{name}").parse().unwrap();
            let response = file(Method::GET, uri.clone(), HeaderMap::new()).await;
            assert_eq!(response.status(), StatusCode::OK, "{name}");
            assert_ne!(response.headers()["content-type"], "application/octet-stream", "{name}");
            let immutable = response.headers()["cache-control"].to_str().unwrap().contains("immutable");
            assert_eq!(immutable, name.starts_with(HASHED), "{name}");
            let known = HeaderMap::from_iter([(header::IF_NONE_MATCH, response.headers()["etag"].clone())]);
            assert_eq!(file(Method::GET, uri, known).await.status(), StatusCode::NOT_MODIFIED, "{name}");
        }
    }

    #[tokio::test]
    async fn other_paths_and_methods_are_refused() {
        for path in ["/fleet", "/index.htm", "/../Cargo.toml", "/assets/"] {
            assert_eq!(get(path, HeaderMap::new()).await.status(), StatusCode::NOT_FOUND, "{path}");
        }
        let posted = file(Method::POST, Uri::from_static("/"), HeaderMap::new()).await;
        assert_eq!(posted.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(posted.headers()["allow"], "GET,HEAD");
    }
}
