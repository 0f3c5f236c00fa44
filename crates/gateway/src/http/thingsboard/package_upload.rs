//! The upload of a package: a form with a file, which is stored while it comes.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use http_body_util::BodyExt;
use hub::ota::{ChecksumAlgorithm, Package};
use uuid::Uuid;
use wire::multipart::{Event, Multipart, PartHead, boundary};

use crate::error::{ApiError, ErrorCode};
use crate::http::limits::{BODY_TIMEOUT, FORM_TEXT_BYTES_MAX};
use crate::http::shapes::packages::package_json;
use crate::http::tools::error_response::Answer;
use crate::http::tools::json::Json;
use crate::http::tools::request::{Params, PathOf, parse_id};
use crate::http::tools::session::Session;
use crate::http::tools::state::HttpState;

/// `POST /api/otaPackage/{id}?checksum=&checksumAlgorithm=`: a form whose part `file` has the bytes. The parameters may also be parts
/// of the form, in front of the file.
pub(crate) async fn upload(
    State(state): State<Arc<HttpState>>,
    session: Session,
    PathOf(id): PathOf<String>,
    params: Params,
    request: Request,
) -> Answer {
    let (asked, reader) = begin(&state, &session, &id, &params, &request)?;
    let mut form = Form { reader, body: request.into_body() };
    let package = asked.store(&state, &session, &mut form).await?;
    Ok(Json(package_json(&package)).into_response())
}

/// What the request says besides its form, and the reader of the form.
fn begin(
    state: &HttpState,
    session: &Session,
    id: &str,
    params: &Params,
    request: &Request,
) -> Result<(UploadParams, Multipart), ApiError> {
    let text = |name| params.text(name).map(str::to_owned);
    let (checksum, algorithm) = (text("checksum"), text("checksumAlgorithm"));
    let package = state.hub.package(session.caller(), parse_id(id)?)?.id;
    let kind = request.headers().get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
    let wrong = "the body is not a form with a file; send multipart/form-data with a part file";
    let boundary = kind.and_then(boundary).ok_or_else(|| ApiError::bad_request(wrong))?;
    Ok((UploadParams { package, checksum, algorithm }, Multipart::new(boundary)))
}

/// What a request says besides its file.
struct UploadParams {
    package: Uuid,
    checksum: Option<String>,
    algorithm: Option<String>,
}

impl UploadParams {
    async fn store(
        mut self,
        state: &HttpState,
        session: &Session,
        form: &mut Form,
    ) -> Result<Arc<Package>, ApiError> {
        let mut next = form.next().await?;
        while let Event::Part(part) = next {
            match part.name.as_str() {
                "file" => return self.store_file(state, session, &part, form).await,
                "checksum" | "checksumAlgorithm" => {
                    let (text, after) = form.text().await?;
                    match part.name.as_str() {
                        "checksum" => self.checksum = Some(text).filter(|text| !text.is_empty()),
                        _ => self.algorithm = Some(text),
                    }
                    next = after;
                }
                name => {
                    return Err(ApiError::argument(format!(
                        "the form has a part {name:?}; it may have checksum, checksumAlgorithm and file"
                    )));
                }
            }
        }
        Err(ApiError::argument("the form has no part file; it holds the bytes of the package"))
    }

    async fn store_file(
        self,
        state: &HttpState,
        session: &Session,
        part: &PartHead,
        form: &mut Form,
    ) -> Result<Arc<Package>, ApiError> {
        let missing =
            "checksumAlgorithm is missing; name it in the query string, or in the form in front of the file";
        let algorithm = self.algorithm.as_deref().ok_or_else(|| ApiError::argument(missing))?;
        let algorithm = algorithm
            .parse::<ChecksumAlgorithm>()
            .map_err(|reason| ApiError::argument(format!("checksumAlgorithm is {reason}")))?;
        let name = part.file_name.as_deref().unwrap_or("package");
        let content_type = part.content_type.as_deref().unwrap_or("application/octet-stream");
        let mut upload = state.hub.upload_package(session.caller(), self.package, algorithm)?;
        while let Event::Data(bytes) = form.next().await? {
            upload.add(&bytes).await?;
        }
        Ok(upload.finish(self.checksum.as_deref(), name, content_type).await?)
    }
}

/// A form that is being read.
struct Form {
    reader: Multipart,
    body: Body,
}

impl Form {
    /// The next item, if it comes in time.
    async fn next(&mut self) -> Result<Event, ApiError> {
        loop {
            let event = self.reader.next_event().map_err(|wrong| ApiError::bad_request(wrong.to_string()))?;
            if let Some(event) = event {
                return Ok(event);
            }
            let Ok(frame) = tokio::time::timeout(BODY_TIMEOUT, self.body.frame()).await else {
                let seconds = BODY_TIMEOUT.as_secs();
                let message = format!("nothing of the body arrived within {seconds} s; send it faster");
                let (status, code) = (StatusCode::REQUEST_TIMEOUT, ErrorCode::BadRequest);
                return Err(ApiError::new(status, code, "slow_body", message));
            };
            let frame = frame.ok_or_else(|| ApiError::bad_request("the form has no end; send all of it"))?;
            let frame =
                frame.map_err(|error| ApiError::bad_request(format!("the body ended early: {error}")))?;
            if let Ok(bytes) = frame.into_data() {
                self.reader.push(&bytes);
            }
        }
    }

    /// The text of a short part, and what comes behind it.
    async fn text(&mut self) -> Result<(String, Event), ApiError> {
        let mut text = Vec::new();
        loop {
            match self.next().await? {
                Event::Data(bytes) => text.extend_from_slice(&bytes),
                after => {
                    let text = String::from_utf8(text);
                    let wrong = |_| ApiError::argument("a text in the form is not UTF-8");
                    return Ok((text.map_err(wrong)?, after));
                }
            }
            if text.len() > FORM_TEXT_BYTES_MAX {
                return Err(ApiError::too_large("a text in the form", FORM_TEXT_BYTES_MAX, ""));
            }
        }
    }
}
