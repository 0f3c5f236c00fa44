//! `Webhook`: the address that rows are sent to. GSN does not have the class.

use crate::virtual_sensors::fault::Fault;
use crate::virtual_sensors::plan::params::Params;
use crate::virtual_sensors::plan::secret::{Secret, shown_url};

/// An HTTP address that rows are sent to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookExport {
    /// The address. Its query may hold a secret.
    pub url: Secret,
    pub method: Method,
    /// Headers of each request. Their values may be secrets.
    pub headers: Vec<(String, Secret)>,
    /// A PEM file with the authorities that may sign the certificate of the server; those of the system without it.
    pub cafile: Option<String>,
}

/// The method of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// `POST`.
    Post,
    /// `PUT`.
    Put,
    /// `PATCH`.
    Patch,
}

impl WebhookExport {
    pub(super) fn target(&self) -> String {
        shown_url(self.url.reveal())
    }
}

pub(super) fn read(params: &mut Params<'_>) -> Result<WebhookExport, Fault> {
    let url = &params.needed("url")?.value;
    let place = url.value.strip_prefix("http://").or_else(|| url.value.strip_prefix("https://"));
    let is_address =
        |place: &str| !place.is_empty() && !place.contains(|c: char| c.is_whitespace() || c.is_control());
    if !place.is_some_and(is_address) {
        let reason = format!("url is {:?}; it begins with http:// or https://", shown_url(&url.value));
        return Err(Fault::invalid(url.place, reason));
    }
    let method = match params.take("method").map(|pair| &pair.value) {
        None => Method::Post,
        Some(said) => match said.value.to_uppercase().as_str() {
            "POST" => Method::Post,
            "PUT" => Method::Put,
            "PATCH" => Method::Patch,
            _ => {
                let reason = format!("method is {:?}; it is POST, PUT or PATCH", said.value);
                return Err(Fault::invalid(said.place, reason));
            }
        },
    };
    let cafile = match params.take("cafile").filter(|pair| !pair.value.value.is_empty()) {
        Some(pair) if !url.value.starts_with("https://") => {
            let reason = "cafile needs an encrypted address, https://HOST";
            return Err(Fault::invalid(pair.key.place, reason));
        }
        pair => pair.map(|pair| pair.value.value.clone()),
    };
    Ok(WebhookExport { url: Secret::new(url.value.as_str()), method, headers: headers(params)?, cafile })
}

/// One header in each line: `Name: value`.
fn headers(params: &mut Params<'_>) -> Result<Vec<(String, Secret)>, Fault> {
    let Some(pair) = params.take("headers") else { return Ok(Vec::new()) };
    let lines = pair.value.value.lines().map(str::trim).filter(|line| !line.is_empty());
    let header = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let is_token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        let is_name = !name.is_empty() && name.chars().all(is_token);
        let is_value = value.chars().all(|c| c == '\t' || (' '..='~').contains(&c));
        (is_name && is_value).then(|| (name.to_owned(), Secret::new(value.trim())))
    };
    lines
        .map(|line| {
            header(line).ok_or_else(|| {
                let reason = "headers has a line that is not a header; a line is Name: value";
                Fault::invalid(pair.value.place, reason)
            })
        })
        .collect()
}
