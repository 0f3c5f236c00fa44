//! Adds what the machine of a server knows about it: memory, processors, settings of the kernel.

use super::contract::{Identity, Probe, Sample, Start};
use super::error::{ProbeError, StatementError};
use super::host::{HostFiles, HostProbe};
use crate::observation::Hidden;
use crate::rules::Product;
use crate::statement::Statement;
use crate::value::Value;

/// Facts of products with the setting of the host that they are.
const SETTINGS_AS_FACTS: [(&str, &str); 1] = [("somaxconn", "net.core.somaxconn")];
/// The limits of open files are those of a process, and a probe sees those of its own process only.
const OF_PROCESS: &str = "nofile.";
const REMOTE: &str = "the target is on another machine, whose settings the command does not see; run it there with a \
     loopback address, or tacho tune host: for the machine alone";
const SINCE_BOOT: &str =
    "it counts since the start of the machine and for all its servers; --window counts now";

/// A probe of a server, with what its machine knows.
#[derive(Debug)]
pub(super) struct WithMachineFacts<P, F> {
    server: P,
    /// `None` if the server is on another machine.
    host: Option<HostProbe<F>>,
    product: &'static Product,
    has_window: bool,
}

impl<P: Probe, F: HostFiles> WithMachineFacts<P, F> {
    /// A server on the machine of `host`, or on another one.
    pub(super) fn new(server: P, host: Option<HostProbe<F>>, has_window: bool) -> Self {
        let id = server.identity().product;
        let product = Product::named(id).unwrap_or_else(|| panic!("BUG: there are no rules for {id}"));
        Self { server, host, product, has_window }
    }

    fn with_host(&mut self, mut sample: Sample) -> Result<Sample, ProbeError> {
        match &mut self.host {
            Some(host) => {
                let of_host = host.sample_for(self.product)?;
                add(&mut sample, &of_host, self.product, self.has_window);
            }
            None => hide(&mut sample, self.product),
        }
        Ok(sample)
    }
}

impl<P: Probe, F: HostFiles> Probe for WithMachineFacts<P, F> {
    fn identity(&self) -> &Identity {
        self.server.identity()
    }

    fn sample(&mut self) -> Result<Sample, ProbeError> {
        let sample = self.server.sample()?;
        self.with_host(sample)
    }

    fn sample_settings(&mut self) -> Result<Sample, ProbeError> {
        let sample = self.server.sample_settings()?;
        self.with_host(sample)
    }

    fn carry_out(&mut self, statement: &Statement) -> Result<(), StatementError> {
        match (statement, &mut self.host) {
            (Statement::Write { .. }, Some(host)) => host.carry_out(statement),
            (Statement::Write { .. }, None) => Err(StatementError::OtherMachine),
            _ => self.server.carry_out(statement),
        }
    }

    fn start(&mut self) -> Result<Option<Start>, ProbeError> {
        self.server.start()
    }
}

/// Adds the values of the host that rules of the product read and the server does not tell.
fn add(sample: &mut Sample, host: &Sample, product: &Product, has_window: bool) {
    for name in product.parameters.keys().filter(|name| !name.starts_with(OF_PROCESS)) {
        if let (false, Some(value)) = (sample.settings.contains_key(name), host.settings.get(name)) {
            sample.settings.insert(name.clone(), value.clone());
        }
    }
    for name in product.facts.keys() {
        if let (false, Some(value)) = (sample.facts.contains_key(name), fact(host, name)) {
            sample.facts.insert(name.clone(), value);
        }
    }
    for name in product.counters.keys().filter(|name| host.counters.contains_key(*name)) {
        if sample.counters.contains_key(name) {
            continue;
        }
        if has_window {
            sample.counters.insert(name.clone(), host.counters[name]);
        } else {
            sample.hidden.push(Hidden::new(name, SINCE_BOOT));
        }
    }
}

fn fact(host: &Sample, name: &str) -> Option<Value> {
    let disks = || host.groups.get("block device").into_iter().flatten();
    let rotates = Value::Boolean(true);
    match name {
        "disks" => Some(Value::Number(disks().count() as f64)),
        "rotational_disks" => {
            let rotating = disks().filter(|disk| disk.settings.get("rotational") == Some(&rotates));
            Some(Value::Number(rotating.count() as f64))
        }
        _ => {
            let setting =
                SETTINGS_AS_FACTS.iter().find(|(fact, _)| *fact == name).map(|(_, setting)| setting);
            host.facts.get(name).or_else(|| host.settings.get(*setting?)).cloned()
        }
    }
}

/// Names the values that only the machine of the server knows.
fn hide(sample: &mut Sample, product: &Product) {
    let host = Product::named("linux").expect("BUG: there are no rules of Linux");
    let is_of_host = |name: &&String| {
        host.parameters.contains_key(*name)
            || host.facts.contains_key(*name)
            || host.counters.contains_key(*name)
            || name.starts_with("vm.")
            || ["disks", "rotational_disks", "somaxconn"].contains(&name.as_str())
    };
    let names = product.parameters.keys().chain(product.facts.keys()).chain(product.counters.keys());
    let is_known = |sample: &Sample, name: &String| {
        sample.settings.contains_key(name)
            || sample.facts.contains_key(name)
            || sample.counters.contains_key(name)
    };
    for name in names.filter(is_of_host) {
        if !is_known(sample, name) {
            sample.hidden.push(Hidden::new(name, REMOTE));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::observation::Group;

    fn host() -> Sample {
        let disk = |rotational: bool| Group {
            name: "sda".to_owned(),
            settings: BTreeMap::from([("rotational".to_owned(), Value::Boolean(rotational))]),
        };
        Sample {
            settings: BTreeMap::from([
                ("net.core.somaxconn".to_owned(), Value::from(128.0)),
                ("transparent_hugepage".to_owned(), Value::from("always")),
            ]),
            facts: BTreeMap::from([("memory_bytes".to_owned(), Value::from(9.0))]),
            counters: BTreeMap::from([("ListenOverflows".to_owned(), 7.0)]),
            groups: BTreeMap::from([("block device".to_owned(), vec![disk(false), disk(true)])]),
            ..Sample::default()
        }
    }

    #[test]
    fn a_server_on_this_machine_gets_the_values_that_its_rules_name() {
        let mut sample = Sample::default();
        add(&mut sample, &host(), Product::named("redis").unwrap(), true);
        assert_eq!(sample.settings["transparent_hugepage"], Value::from("always"));
        assert_eq!(sample.facts["somaxconn"], Value::from(128.0));
        assert_eq!(
            (sample.facts["memory_bytes"].clone(), sample.counters["ListenOverflows"]),
            (9.0.into(), 7.0)
        );
        let mut sample = Sample::default();
        add(&mut sample, &host(), Product::named("postgresql").unwrap(), true);
        assert_eq!((&sample.facts["disks"], &sample.facts["rotational_disks"]), (&2.0.into(), &1.0.into()));
        assert!(sample.settings.is_empty() && sample.counters.is_empty());
    }

    #[test]
    fn without_a_window_the_counters_of_the_machine_are_hidden() {
        let mut sample = Sample::default();
        add(&mut sample, &host(), Product::named("mysql").unwrap(), false);
        assert!(sample.counters.is_empty());
        assert_eq!(sample.hidden, [Hidden::new("ListenOverflows", SINCE_BOOT)]);
    }

    #[test]
    fn a_server_on_another_machine_hides_them_all() {
        let mut sample = Sample::default();
        hide(&mut sample, Product::named("redis").unwrap());
        let names: Vec<&str> = sample.hidden.iter().map(|hidden| hidden.name.as_str()).collect();
        for name in ["vm.overcommit_memory", "transparent_hugepage", "cores", "memory_bytes", "somaxconn"] {
            assert!(names.contains(&name), "{name}: {names:?}");
        }
        assert!(!names.contains(&"maxmemory"));
    }
}
