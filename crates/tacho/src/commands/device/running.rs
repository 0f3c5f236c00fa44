//! Devices of a running server, through its REST interface.

use anyhow::Context;
use serde_json::{Value, json};

use super::registrar::{
    Activity, Added, BulkAdd, BulkAdded, Details, Listed, NewDevice, Refused, Registrar, no_device, no_token,
};
use crate::client::{Api, ApiError, escaped};
use crate::limits::PAGE_DEVICES;
use model::calendar::seconds_of_millis;

/// ThingsBoard's name of the kind of credentials that these commands handle.
const ACCESS_TOKEN: &str = "ACCESS_TOKEN";

/// A logged-in client.
#[derive(Debug)]
pub(super) struct Running {
    api: Api,
}

impl Running {
    pub(super) fn new(api: Api) -> Self {
        Self { api }
    }

    /// The access token of a device, or the kind of the credentials that it has instead.
    fn token_of(&self, device: &Value) -> anyhow::Result<Result<String, String>> {
        let id = self.id(device)?;
        let path = format!("/api/device/{id}/credentials");
        let answer = self.api.get(&path)?;
        let text = |member: &str| {
            let missing = || self.api.unexpected("GET", &path, &format!("no {member} in the answer"));
            answer[member].as_str().map(str::to_owned).ok_or_else(missing)
        };
        let kind = text("credentialsType")?;
        Ok(if kind == ACCESS_TOKEN { Ok(text("credentialsId")?) } else { Err(kind) })
    }
}

impl Running {
    /// The device of that name, as the server describes it.
    fn device(&self, name: &str) -> anyhow::Result<Value> {
        match self.api.get(&format!("/api/tenant/devices?deviceName={}", escaped(name))) {
            Err(ApiError::Status { status: 404, .. }) => Err(no_device(name)),
            other => Ok(other?),
        }
    }

    fn id(&self, device: &Value) -> anyhow::Result<String> {
        let id = device["id"]["id"].as_str();
        Ok(id.ok_or_else(|| self.api.unexpected("GET", "/api/device", "a device without an id"))?.to_owned())
    }
}

impl Registrar for Running {
    fn add(&mut self, new: &NewDevice<'_>) -> anyhow::Result<Added> {
        let mut body = json!({ "name": new.name });
        if let Some(profile) = new.profile {
            body["type"] = profile.into();
        }
        if new.gateway {
            body["additionalInfo"] = json!({ "gateway": true });
        }
        let query = new.token.map(|token| format!("?accessToken={}", escaped(token))).unwrap_or_default();
        let device = self.api.post(&format!("/api/device{query}"), &body);
        let device = device.with_context(|| format!("cannot add the device \"{}\"", new.name))?;
        let token = self.token_of(&device)?.map_err(|kind| no_token(new.name, &kind))?;
        let activity = self.details(new.name)?.activity;
        Ok(Added { token, continues: activity.is_some_and(|activity| activity.keys > 0) })
    }

    fn add_many(&mut self, many: &BulkAdd<'_>) -> anyhow::Result<BulkAdded> {
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
        let tokens = devices.iter().map(|device| Some((text(&device["name"])?, text(&device["token"]))));
        let tokens = tokens.collect::<Option<Vec<_>>>();
        let tokens = tokens.ok_or_else(|| self.api.unexpected("POST", path, "a device without a name"))?;
        Ok(BulkAdded { created: number("created")?, existing: number("existing")?, tokens })
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
                    created: seconds_of_millis(device["createdTime"].as_i64().unwrap_or_default()),
                    token: with_tokens.then(|| self.token_of(device)).transpose()?.and_then(Result::ok),
                });
            }
            if answer["hasNext"] != Value::Bool(true) {
                break;
            }
        }
        Ok(all)
    }

    fn details(&mut self, name: &str) -> anyhow::Result<Details> {
        let id = self.id(&self.device(name)?)?;
        let path = format!("/api/tacho/devices/{id}");
        let found = self.api.get(&path)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let refused = &found["refused"];
        let refused = refused.is_object().then(|| Refused {
            messages: refused["messages"].as_u64().unwrap_or_default(),
            since_ms: refused["since"].as_i64().unwrap_or_default(),
            last_ms: refused["lastTs"].as_i64().unwrap_or_default(),
            door: text(&refused["door"]),
            reason: text(&refused["reason"]),
        });
        let keys = found["keys"].as_u64();
        let keys =
            keys.ok_or_else(|| self.api.unexpected("GET", &path, "no number of keys in the answer"))?;
        Ok(Details {
            id,
            name: text(&found["name"]),
            profile: text(&found["type"]),
            gateway: found["additionalInfo"]["gateway"] == Value::Bool(true),
            table: text(&found["table"]),
            durability: text(&found["durability"]),
            created_ms: found["createdTime"].as_i64().unwrap_or_default(),
            activity: Some(Activity { keys, last_ms: found["lastTs"].as_i64(), refused }),
        })
    }

    fn delete(&mut self, name: &str) -> anyhow::Result<Option<String>> {
        let details = self.details(name)?;
        self.api
            .delete(&format!("/api/device/{}", details.id))
            .with_context(|| format!("cannot delete the device \"{name}\""))?;
        Ok(Some(details.table))
    }

    fn rename(&mut self, name: &str, new_name: &str) -> anyhow::Result<()> {
        let id = self.id(&self.device(name)?)?;
        let body = json!({ "id": { "entityType": "DEVICE", "id": id }, "name": new_name });
        let renamed = self.api.post("/api/device", &body);
        renamed.with_context(|| format!("cannot rename the device \"{name}\""))?;
        Ok(())
    }

    fn token(&mut self, name: &str) -> anyhow::Result<String> {
        self.token_of(&self.device(name)?)?.map_err(|kind| no_token(name, &kind))
    }

    fn set_token(&mut self, name: &str, token: Option<&str>) -> anyhow::Result<String> {
        let id = self.id(&self.device(name)?)?;
        let body = json!({
            "deviceId": { "entityType": "DEVICE", "id": id },
            "credentialsType": ACCESS_TOKEN,
            "credentialsId": token,
        });
        let path = "/api/device/credentials";
        let changed = self.api.post(path, &body);
        let changed = changed.with_context(|| format!("cannot replace the access token of \"{name}\""))?;
        let token = changed["credentialsId"].as_str();
        Ok(token
            .ok_or_else(|| self.api.unexpected("POST", path, "no credentialsId in the answer"))?
            .to_owned())
    }
}
