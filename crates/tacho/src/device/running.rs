//! Devices of a running server, through its REST interface.

use anyhow::Context;
use serde_json::{Value, json};

use super::registrar::{Listed, Many, ManyAdded, NewDevice, Registrar, created};
use crate::client::{Api, escaped};
use crate::limits::PAGE_DEVICES;

/// A logged-in client.
#[derive(Debug)]
pub(super) struct Running {
    api: Api,
}

impl Running {
    pub(super) fn new(api: Api) -> Self {
        Self { api }
    }

    fn token_of(&self, device: &Value) -> anyhow::Result<String> {
        let id = device["id"]["id"].as_str();
        let id = id.ok_or_else(|| self.api.unexpected("GET", "/api/device", "a device without an id"))?;
        let path = format!("/api/device/{id}/credentials");
        let answer = self.api.get(&path)?;
        let token = answer["credentialsId"].as_str();
        Ok(token
            .ok_or_else(|| self.api.unexpected("GET", &path, "no credentialsId in the answer"))?
            .to_owned())
    }
}

impl Registrar for Running {
    fn add(&mut self, new: &NewDevice<'_>) -> anyhow::Result<String> {
        let mut body = json!({ "name": new.name });
        if let Some(profile) = new.profile {
            body["type"] = profile.into();
        }
        let query = new.token.map(|token| format!("?accessToken={}", escaped(token))).unwrap_or_default();
        let device = self.api.post(&format!("/api/device{query}"), &body);
        let device = device.with_context(|| format!("cannot add the device \"{}\"", new.name))?;
        self.token_of(&device)
    }

    fn add_many(&mut self, many: &Many<'_>) -> anyhow::Result<ManyAdded> {
        let mut body = json!({
            "count": many.count,
            "prefix": many.prefix,
            "existingOk": many.existing_ok,
            "list": many.list,
        });
        for (key, value) in [("tokenPrefix", many.token_prefix), ("profile", many.profile)] {
            if let Some(value) = value {
                body[key] = value.into();
            }
        }
        let path = "/api/tacho/devices";
        let answer =
            self.api.post(path, &body).with_context(|| format!("cannot add {} devices", many.count))?;
        let number = |key: &str| {
            let missing = || self.api.unexpected("POST", path, &format!("no {key} in the answer"));
            answer[key].as_u64().ok_or_else(missing)
        };
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let devices = answer["devices"].as_array().map(Vec::as_slice).unwrap_or_default();
        let tokens = devices.iter().map(|device| Some((text(&device["name"])?, text(&device["token"])?)));
        let tokens = tokens.collect::<Option<Vec<_>>>();
        let tokens =
            tokens.ok_or_else(|| self.api.unexpected("POST", path, "a device without name or token"))?;
        Ok(ManyAdded { created: number("created")?, existing: number("existing")?, tokens })
    }

    fn list(&mut self, filter: Option<&str>, with_tokens: bool) -> anyhow::Result<Vec<Listed>> {
        let search = filter.map(|filter| format!("&textSearch={}", escaped(filter))).unwrap_or_default();
        let mut all = Vec::new();
        for page in 0.. {
            let path = format!("/api/tenant/devices?pageSize={PAGE_DEVICES}&page={page}{search}");
            let answer = self.api.get(&path)?;
            let devices = answer["data"].as_array();
            for device in devices.ok_or_else(|| self.api.unexpected("GET", &path, "no page of devices"))? {
                all.push(Listed {
                    name: device["name"].as_str().unwrap_or_default().into(),
                    profile: device["type"].as_str().unwrap_or_default().into(),
                    created: created(device["createdTime"].as_i64().unwrap_or_default()),
                    token: with_tokens.then(|| self.token_of(device)).transpose()?,
                });
            }
            if answer["hasNext"] != Value::Bool(true) {
                break;
            }
        }
        Ok(all)
    }
}
