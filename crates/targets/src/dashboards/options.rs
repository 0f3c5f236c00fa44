//! Keys of a scenario: `[dataset]`, and the overrides of a phase or a mix.

use load::scenario::{Arrival, Mix, Phase, Scenario, typed};
use serde::Deserialize;

use crate::limits::{
    PAGE_ENTITIES_MAX, RULE_PROFILES_MAX, SOCKET_DEVICES_MAX, SOCKET_FOLLOWS_MAX, SOCKETS_UNREAD_MAX,
    WATCHERS_MAX,
};
use crate::mqtt::{Version, defaults};

/// What the scenario measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Application {
    /// Dashboards that follow devices.
    Live,
    /// Dashboards that ask for pages.
    Page,
    /// Clients that create devices.
    Create,
    /// Alarms that rules raise.
    Alarms,
}

/// What the connections of a mix are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Role {
    /// Devices, over MQTT.
    Device,
    /// Dashboards, over WebSocket.
    Socket,
    /// Clients, over HTTP.
    Client,
}

/// How a dashboard subscribes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Subscription {
    /// One `ENTITY_DATA` with all devices.
    EntityData,
    /// One command of the older kind for each device.
    Timeseries,
}

/// Keys of the connections of one mix.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct DashboardOptions {
    pub(super) application: Application,
    role: Option<Role>,
    subscription: Option<Subscription>,
    devices_each: Option<u32>,
    unread_sockets: Option<u32>,
    page_size: Option<u32>,
    profiles: Option<u32>,
    raise_every: Option<u32>,
    watchers: Option<u32>,
    #[serde(default = "defaults::version")]
    version: String,
    #[serde(default = "defaults::token_prefix")]
    pub(super) token_prefix: String,
    #[serde(default = "defaults::device_prefix")]
    pub(super) device_prefix: String,
    #[serde(default = "defaults::keep_alive_s")]
    pub(super) keep_alive_s: u16,
}

/// The connections of one mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) role: Role,
    pub(super) connections: u32,
    /// The class of its operations.
    pub(super) class: u16,
    /// The class of what arrives because of them: the last one of its operations.
    pub(super) arriving: u16,
}

/// The mixes of a phase.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PhaseClients {
    pub(super) options: DashboardOptions,
    pub(super) groups: Vec<Group>,
}

impl PhaseClients {
    pub(super) fn read(scenario: &Scenario, phase: &Phase) -> Result<Self, String> {
        // A separate check of `[dataset]` gives better suggestions.
        typed::<DashboardOptions>(scenario.dataset.clone(), "[dataset]", &[])?;
        Self::of(scenario, phase, &phase.place()).map_err(|what| phase.error(what))
    }

    fn of(scenario: &Scenario, phase: &Phase, place: &str) -> Result<Self, String> {
        if phase.duration.is_none() {
            return Err("it has no `duration` and would never end".to_owned());
        }
        if scenario.operations.is_empty() {
            return Err("the file has no [[operation]]".to_owned());
        }
        let mut all: Vec<DashboardOptions> = Vec::new();
        let mut groups = Vec::new();
        for mix in &phase.mixes {
            let options: DashboardOptions = mix.options(&scenario.dataset, place)?;
            options.check()?;
            groups.push(options.group(scenario, mix)?);
            all.push(DashboardOptions { role: None, ..options });
        }
        if all.windows(2).any(|two| two[0] != two[1]) {
            return Err(
                "its mixes differ in more than their role: set all other keys in [dataset]".to_owned()
            );
        }
        let clients = Self { options: all.swap_remove(0), groups };
        clients.check_roles()?;
        Ok(clients)
    }

    /// The mix of a role.
    pub(super) fn with(&self, role: Role) -> Option<Group> {
        self.groups.iter().copied().find(|group| group.role == role)
    }

    /// The number of connections of a role.
    pub(super) fn count(&self, role: Role) -> u32 {
        self.with(role).map_or(0, |group| group.connections)
    }

    fn check_roles(&self) -> Result<(), String> {
        let roles: Vec<Role> = self.groups.iter().map(|group| group.role).collect();
        let (fits, needs) = match self.options.application {
            Application::Live => (
                matches!(
                    roles[..],
                    [Role::Device] | [Role::Device, Role::Socket] | [Role::Socket, Role::Device]
                ),
                "\"live\" needs a mix with role = \"device\", and may have one with role = \"socket\"",
            ),
            Application::Page => (
                matches!(roles[..], [Role::Device] | [Role::Socket]),
                "\"page\" needs one mix, with role = \"device\" in a phase that writes and \"socket\" in one that asks",
            ),
            Application::Create => {
                (roles[..] == [Role::Client], "\"create\" needs one mix with role = \"client\"")
            }
            Application::Alarms => {
                (roles[..] == [Role::Device], "\"alarms\" needs one mix with role = \"device\"")
            }
        };
        if !fits {
            return Err(format!("application = {needs}"));
        }
        let (sockets, each) = (self.count(Role::Socket), self.options.devices_each());
        let follows = u64::from(sockets + self.options.unread_sockets()) * u64::from(each);
        if self.options.application == Application::Live && follows > SOCKET_FOLLOWS_MAX {
            return Err(format!(
                "{sockets} sockets with {each} devices each follow {follows}; use at most {SOCKET_FOLLOWS_MAX}"
            ));
        }
        if self.options.application == Application::Live && sockets > 0 && each > self.count(Role::Device) {
            let devices = self.count(Role::Device);
            return Err(format!("devices_each = {each}, but there are {devices} devices to follow"));
        }
        Ok(())
    }
}

impl DashboardOptions {
    /// The protocol version of the devices.
    pub(super) fn version(&self) -> Result<Version, String> {
        self.version.parse()
    }

    pub(super) fn subscription(&self) -> Subscription {
        self.subscription.unwrap_or(Subscription::EntityData)
    }

    /// The number of devices that a socket follows.
    pub(super) fn devices_each(&self) -> u32 {
        self.devices_each.unwrap_or(100)
    }

    /// The number of sockets that subscribe and never read.
    pub(super) fn unread_sockets(&self) -> u32 {
        self.unread_sockets.unwrap_or(0)
    }

    /// The most devices of a page.
    pub(super) fn page_size(&self) -> u32 {
        self.page_size.unwrap_or(5_000)
    }

    /// The number of device profiles with a rule.
    pub(super) fn profiles(&self) -> u32 {
        self.profiles.unwrap_or(10)
    }

    /// One message of a device in this many raises an alarm; `None` without rules.
    pub(super) fn raise_every(&self) -> Option<u64> {
        (self.application == Application::Alarms).then(|| self.raise_every.unwrap_or(100).into())
    }

    /// The number of threads that look for alarms.
    pub(super) fn watchers(&self) -> u32 {
        self.watchers.unwrap_or(4)
    }

    /// Refuses values out of their range, and keys that have no effect.
    fn check(&self) -> Result<(), String> {
        self.version()?;
        let of = |application, keys: &[(&str, Option<u32>)]| {
            let given = keys.iter().find(|(_, value)| value.is_some() && self.application != application);
            given.map_or(Ok(()), |(key, _)| {
                Err(format!("{key} has no effect with this application: leave it out"))
            })
        };
        let subscription = self.subscription.map(|_| 0);
        let live = [
            ("devices_each", self.devices_each),
            ("unread_sockets", self.unread_sockets),
            ("subscription", subscription),
        ];
        of(Application::Live, &live)?;
        of(Application::Page, &[("page_size", self.page_size)])?;
        let alarms =
            [("profiles", self.profiles), ("raise_every", self.raise_every), ("watchers", self.watchers)];
        of(Application::Alarms, &alarms)?;
        for (key, value, range) in [
            ("devices_each", self.devices_each(), 1..=SOCKET_DEVICES_MAX),
            ("unread_sockets", self.unread_sockets(), 0..=SOCKETS_UNREAD_MAX),
            ("page_size", self.page_size(), 1..=PAGE_ENTITIES_MAX),
            ("profiles", self.profiles(), 1..=RULE_PROFILES_MAX),
            // The message after it clears the alarm.
            ("raise_every", self.raise_every.unwrap_or(100), 2..=u32::MAX),
            ("watchers", self.watchers(), 1..=WATCHERS_MAX),
        ] {
            if !range.contains(&value) {
                return Err(format!("{key} = {value}; use {} to {}", range.start(), range.end()));
            }
        }
        Ok(())
    }

    fn group(&self, scenario: &Scenario, mix: &Mix) -> Result<Group, String> {
        let role = self.role.ok_or_else(|| {
            format!("mix `{}` has no role: use role = \"device\", \"socket\" or \"client\"", mix.name)
        })?;
        let is_steady = matches!(mix.arrival, Arrival::Poisson | Arrival::Fixed | Arrival::Closed);
        let (fits, needs) = match (role, self.application) {
            (Role::Socket, Application::Live) => (mix.arrival == Arrival::Idle, "\"idle\": sockets receive"),
            _ => (is_steady, "\"poisson\", \"fixed\" or \"closed\""),
        };
        if !fits {
            return Err(format!("mix `{}`: use arrival = {needs}", mix.name));
        }
        let class = |name: Option<&String>| name.map_or(0, |name| scenario.class_of(name));
        let (first, last) = (mix.operations.first(), mix.operations.last());
        if self.application == Application::Alarms && mix.operations.len() != 2 {
            return Err(format!(
                "mix `{}` needs two operations: messages, and the alarms that they raise",
                mix.name
            ));
        }
        Ok(Group { role, connections: mix.connections, class: class(first), arriving: class(last) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str, sets: &[&str]) -> Result<Vec<PhaseClients>, String> {
        let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
        let scenario = Scenario::load(name, &sets).map_err(|error| error.to_string())?;
        scenario.phases.iter().map(|phase| PhaseClients::read(&scenario, phase)).collect()
    }

    #[test]
    fn the_files_are_what_they_say() {
        let fanout = read("dashboards-fanout", &[]).unwrap();
        let [alone, followed] = &fanout[..] else { panic!("{fanout:?}") };
        assert_eq!((alone.count(Role::Socket), followed.count(Role::Socket)), (0, 1_000));
        assert_eq!(alone.count(Role::Device), followed.count(Role::Device), "the same load of messages");
        let page = read("dashboards-page", &[]).unwrap();
        assert_eq!(page.last().unwrap().options.page_size(), page[0].count(Role::Device));
        let create = read("devices-create", &[]).unwrap();
        let clients: Vec<u32> = create.iter().map(|phase| phase.count(Role::Client)).collect();
        assert_eq!(clients, [1, 4, 16]);
        assert_eq!(read("alarm-rules", &[]).unwrap()[0].count(Role::Device), 10_000);
    }

    #[test]
    fn what_would_have_no_effect_or_no_meaning_is_refused() {
        for (name, set, expected) in [
            ("dashboards-fanout", "dataset.page_size=10", "page_size has no effect"),
            ("dashboards-page", "dataset.devices_each=10", "devices_each has no effect"),
            ("devices-create", "dataset.raise_every=10", "raise_every has no effect"),
            ("alarm-rules", "dataset.subscription=timeseries", "subscription has no effect"),
            ("alarm-rules", "dataset.raise_every=1", "raise_every = 1; use 2"),
            ("alarm-rules", "phase.run.mix.devices.operations=['publish']", "needs two operations"),
            ("dashboards-fanout", "dataset.devices_each=100000", "use 1 to 10000"),
            ("dashboards-fanout", "phase.followed.mix.devices.connections=50", "there are 50 devices"),
            ("dashboards-fanout", "phase.followed.mix.sockets.arrival=closed", "arrival = \"idle\""),
            (
                "dashboards-fanout",
                "phase.alone.mix.devices.role=socket phase.alone.mix.devices.arrival=idle",
                "\"live\" needs a mix",
            ),
            (
                "dashboards-fanout",
                "phase.followed.mix.sockets.keep_alive_s=5",
                "differ in more than their role",
            ),
            ("dashboards-fanout", "dataset.applikation=live", "did you mean `application`"),
        ] {
            let sets: Vec<&str> = set.split(' ').collect();
            let error = read(name, &sets).err().unwrap_or_default();
            assert!(error.contains(expected), "{set}: {error}");
        }
    }
}
