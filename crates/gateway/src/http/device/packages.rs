//! Firmware and software over the device API.

use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use hub::ota::PackageRequest;
use hub::registry::PackageKind;

use super::login::device_of;
use crate::error::ApiError;
use crate::http::tools::connection::Peer;
use crate::http::tools::error_response::Answer;
use crate::http::tools::package_file::{file_answer, file_headers};
use crate::http::tools::request::{Params, PathOf};
use crate::http::tools::route_list::Routes;
use crate::http::tools::state::HttpState;

/// The routes of packages for devices.
pub(crate) fn routes() -> Routes {
    Routes::default().get("/api/v1/{token}/firmware", firmware).get("/api/v1/{token}/software", software)
}

/// `GET /api/v1/{token}/firmware?title=&version=&size=&chunk=`: a chunk, or without a size the whole package.
async fn firmware(
    State(state): State<Arc<HttpState>>,
    PathOf(token): PathOf<String>,
    Peer(peer): Peer,
    params: Params,
) -> Answer {
    send(&state, &token, peer, &params, PackageKind::Firmware).await
}

/// `GET /api/v1/{token}/software?title=&version=&size=&chunk=`: the same for software.
async fn software(
    State(state): State<Arc<HttpState>>,
    PathOf(token): PathOf<String>,
    Peer(peer): Peer,
    params: Params,
) -> Answer {
    send(&state, &token, peer, &params, PackageKind::Software).await
}

async fn send(
    state: &HttpState,
    token: &str,
    peer: Option<std::net::SocketAddr>,
    params: &Params,
    kind: PackageKind,
) -> Answer {
    let device = device_of(state, token, peer)?;
    let asked = |name: &str| {
        params
            .text(name)
            .ok_or_else(|| ApiError::argument(format!("{name} is missing; name that of the package")))
    };
    let (title, version) = (asked("title")?, asked("version")?);
    let chunk_bytes: u32 = params.number("size")?.unwrap_or(0);
    let chunk: u32 = params.number("chunk")?.unwrap_or(0);
    let package = state.hub.package_of(&device, kind)?;
    if (package.title.as_str(), package.version.as_str()) != (title, version) {
        let message = format!(
            "the device has {:?} {:?} and not {title:?} {version:?}; read its shared attributes again",
            package.title, package.version
        );
        return Err(ApiError::argument(message));
    }
    let hub = Arc::clone(&state.hub);
    if chunk_bytes == 0 {
        if chunk > 0 {
            return Err(ApiError::argument("chunk does not apply without a size"));
        }
        let whole = Arc::clone(&package);
        return file_answer(&package, move |begin, bytes| hub.bytes_of_package(&whole, begin, bytes));
    }
    let request = PackageRequest { kind, chunk_bytes: chunk_bytes as usize, chunk: chunk.into() };
    let bytes = state.reads.run(move || hub.package_chunk(&device, request)).await??;
    let headers = package.file.as_ref().map(file_headers);
    Ok((headers.into_iter().flatten().collect::<axum::http::HeaderMap>(), bytes).into_response())
}
