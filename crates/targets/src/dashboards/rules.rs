//! Device profiles with a threshold rule each, their devices, and the alarms of all of them.

use std::collections::{BTreeMap, HashMap};

use clients::http::escaped;
use load::progress::Progress;
use load::{Error, Result};
use serde_json::{Value, json};

use super::message::{SPEED_KEY, SPEED_LIMIT};
use super::watch::raising_number;
use crate::devices::Client;
use crate::limits::READ_BACK_ALARMS;
use crate::mqtt::Fleet;

/// The device and the raising message of an alarm; `None` where the alarm names none of this run.
pub(super) type AlarmKey = (Option<u32>, Option<u64>);

/// How many alarms there are of each.
pub(super) type FoundAlarms = BTreeMap<AlarmKey, u64>;

/// Creates profiles with rules for alarms of this type, and the devices of a fleet, spread over them. Returns the ids of the
/// devices by number.
pub(super) fn provision(
    client: &Client,
    fleet: &Fleet,
    profiles: u32,
    alarm_type: &str,
    progress: &Progress,
) -> Result<Vec<String>> {
    let profiles = profiles.min(fleet.devices);
    progress.step(format!("creating {profiles} device profiles with a rule, and {} devices", fleet.devices));
    let mut start = 0;
    for index in 0..profiles {
        let name = profile_name(fleet, index);
        save_profile(client, &name, alarm_type)?;
        let end = u64::from(fleet.devices) * u64::from(index + 1) / u64::from(profiles);
        let count = end as u32 - start;
        let provisioned =
            client.provision_in(&name, (start, count), &fleet.device_prefix, &fleet.token_prefix);
        provisioned.map_err(|error| {
            Error::Options(format!(
                "{error}. Devices that another run has put into other profiles cannot be used: set another dataset.device_prefix and \
                 dataset.token_prefix, or delete them"
            ))
        })?;
        start += count;
    }
    client.device_ids(&fleet.device_prefix, fleet.devices)
}

fn profile_name(fleet: &Fleet, index: u32) -> String {
    format!("{}profile-{index}", fleet.device_prefix)
}

/// Creates a profile, or gives an existing one this rule alone.
fn save_profile(client: &Client, name: &str, alarm_type: &str) -> Result<()> {
    let path = format!("/api/deviceProfiles?pageSize=100&page=0&textSearch={}", escaped(name));
    let page = client.rest().get(&path)?;
    let known = page["data"].as_array().into_iter().flatten().find(|profile| profile["name"] == name);
    let mut profile = known.cloned().unwrap_or_else(|| {
        json!({
            "name": name, "type": "DEFAULT", "transportType": "DEFAULT", "provisionType": "DISABLED",
            "profileData": {
                "configuration": { "type": "DEFAULT" },
                "transportConfiguration": { "type": "DEFAULT" },
                "provisionConfiguration": { "type": "DISABLED", "provisionDeviceSecret": null },
            },
        })
    });
    profile["profileData"]["alarms"] = json!([rule(alarm_type)]);
    client.rest().post("/api/deviceProfile", &profile)?;
    Ok(())
}

/// An alarm above the limit, which ends below it. Its details are the value that raised it.
fn rule(alarm_type: &str) -> Value {
    let condition = |operation: &str| {
        json!({
            "condition": [{
                "key": { "type": "TIME_SERIES", "key": SPEED_KEY }, "valueType": "NUMERIC", "value": null,
                "predicate": {
                    "type": "NUMERIC", "operation": operation,
                    "value": { "defaultValue": SPEED_LIMIT, "userValue": null, "dynamicValue": null },
                },
            }],
            "spec": { "type": "SIMPLE" },
        })
    };
    json!({
        "id": "bench", "alarmType": alarm_type,
        "createRules": { "CRITICAL": {
            "condition": condition("GREATER"), "schedule": null, "alarmDetails": "${speed}", "dashboardId": null,
        }},
        "clearRule": { "condition": condition("LESS"), "schedule": null, "alarmDetails": null, "dashboardId": null },
        "propagate": false,
    })
}

/// The alarms of this type that the server has: how many of each device and raising message.
pub(super) fn read_back(client: &Client, ids: &[String], alarm_type: &str) -> Result<FoundAlarms> {
    let numbers: HashMap<&str, u32> = (0..).zip(ids).map(|(number, id)| (id.as_str(), number)).collect();
    let mut found = FoundAlarms::new();
    for page in 0.. {
        let path = format!(
            "/api/v2/alarms?typeList={}&pageSize={READ_BACK_ALARMS}&page={page}&sortProperty=createdTime&sortOrder=ASC",
            escaped(alarm_type)
        );
        let answer = client.rest().get(&path)?;
        let alarms = answer["data"]
            .as_array()
            .ok_or_else(|| client.rest().unexpected("GET", "/api/v2/alarms", "no page of alarms"))?;
        for alarm in alarms {
            let device = alarm["originator"]["id"].as_str().and_then(|id| numbers.get(id)).copied();
            *found.entry((device, raising_number(alarm))).or_default() += 1;
        }
        if answer["hasNext"] != Value::Bool(true) {
            break;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rule_has_the_value_that_raised_the_alarm_as_details() {
        let rule = rule("hot");
        assert_eq!(rule["createRules"]["CRITICAL"]["alarmDetails"], format!("${{{SPEED_KEY}}}"));
    }
}
