//! The probe of Redis and Valkey.

use std::collections::BTreeMap;

use clients::redis::{RedisAddress, RedisClient, RedisError};

use super::contract::{Identity, Probe, Sample, Start};
use super::convert::{number, setting};
use super::error::{ProbeError, StatementError};
use super::redis_keys;
use crate::observation::Hidden;
use crate::rules::Product;
use crate::statement::Statement;
use crate::value::Value;

const EXPECTED: &str = "Redis or Valkey";
const GRANT: &str = "Grant it: ACL SETUSER <user> +info +config|get";
const NO_CONFIG: &str = "grant it with ACL SETUSER <user> +config|get; if the command is renamed or forbidden, the console of the service has the values";
const NOT_SHOWN: &str = "CONFIG GET does not have it; a managed service can hide it";
const NO_KEYS: &str =
    "grant it with ACL SETUSER <user> ~* +scan +type +hlen +llen +scard +zcard +xlen +hscan";
const NOT_COUNTED: &str = "INFO does not have it in this version";

#[derive(Debug)]
pub(super) struct RedisProbe {
    client: RedisClient,
    identity: Identity,
    product: &'static Product,
    target: String,
    is_testing: bool,
}

impl RedisProbe {
    /// Connects, logs in and asks for the version.
    pub(super) fn connect(address: &RedisAddress, is_testing: bool) -> Result<Self, ProbeError> {
        let target = address.to_string();
        let product = Product::named("redis").expect("BUG: there are no rules of Redis");
        let mut client = connected(address, &target)?;
        let server = client.info("server").map_err(|error| failure(error, &target))?;
        let (variant, version) = variant(&server);
        let identity = Identity {
            product: "redis",
            title: format!("The server {target}"),
            variant: variant.to_owned(),
            version: version.cloned(),
            role: None,
        };
        Ok(Self { client, identity, product, target, is_testing })
    }

    fn information(&mut self, sample: &mut Sample) -> Result<(), ProbeError> {
        let fields = self.client.info("all").map_err(|error| failure(error, &self.target))?;
        let value = |name: &str| fields.get(name).and_then(|text| number(text));
        sample.uptime_s = value("uptime_in_seconds");
        let names = self.product.counters.keys();
        sample.counters.extend(names.filter_map(|name| Some((name.clone(), value(name)?))));
        let main_thread = value("used_cpu_sys_main_thread").zip(value("used_cpu_user_main_thread"));
        let name = "used_cpu_main_thread_s".to_owned();
        match main_thread {
            Some((system, user)) => {
                sample.counters.insert(name, system + user);
            }
            None => sample.hidden.push(Hidden::new(name, NOT_COUNTED)),
        }
        let names = self.product.facts.keys();
        sample.facts.extend(names.filter_map(|name| Some((name.clone(), Value::Number(value(name)?)))));
        sample.facts.insert("testing".to_owned(), Value::Boolean(self.is_testing));
        Ok(())
    }

    fn settings(&mut self, sample: &mut Sample) -> Result<(), ProbeError> {
        let known = self.product.parameters_in(&self.identity.variant, self.identity.version.as_deref());
        // The other parameters are those of the host.
        let host = Product::named("linux").expect("BUG: there are no rules of Linux");
        let own = |name: &str| !host.parameters.contains_key(name) && !name.contains('.');
        let known = known.filter(|(name, _)| own(name));
        let texts = match self.client.list(&["CONFIG", "GET", "*"]) {
            Ok(texts) => texts,
            Err(RedisError::Answer(refusal)) => {
                let reason = format!("{refusal}; {NO_CONFIG}");
                sample.hidden.extend(known.map(|(name, _)| Hidden::new(name, &reason)));
                return Ok(());
            }
            Err(error) => return Err(failure(error, &self.target)),
        };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let values: BTreeMap<String, String> =
            texts.chunks_exact(2).map(|pair| (text(&pair[0]), text(&pair[1]))).collect();
        for (name, parameter) in known {
            match values.get(name).and_then(|text| setting(text, parameter.unit)) {
                Some(value) => {
                    sample.settings.insert(name.clone(), value);
                }
                None => sample.hidden.push(Hidden::new(name, NOT_SHOWN)),
            }
        }
        Ok(())
    }

    fn keys(&mut self, sample: &mut Sample) -> Result<(), ProbeError> {
        match redis_keys::sample(&mut self.client) {
            Ok(found) => sample.facts.extend(found.facts()),
            Err(RedisError::Answer(refusal)) => {
                let reason = format!("{refusal}; {NO_KEYS}");
                sample.hidden.extend(redis_keys::FACTS.map(|name| Hidden::new(name, &reason)));
            }
            Err(error) => return Err(failure(error, &self.target)),
        }
        Ok(())
    }
}

impl Probe for RedisProbe {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn sample(&mut self) -> Result<Sample, ProbeError> {
        let mut sample = Sample::default();
        self.information(&mut sample)?;
        self.settings(&mut sample)?;
        self.keys(&mut sample)?;
        Ok(sample)
    }

    fn sample_settings(&mut self) -> Result<Sample, ProbeError> {
        let mut sample = Sample::default();
        self.settings(&mut sample)?;
        Ok(sample)
    }

    fn carry_out(&mut self, statement: &Statement) -> Result<(), StatementError> {
        let Statement::Command(words) = statement else {
            return Err(StatementError::Other(statement.clone()));
        };
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match self.client.text(&words) {
            Ok(_) => Ok(()),
            Err(RedisError::Answer(reason)) if reason.contains("NOPERM") => {
                Err(StatementError::Permission(reason))
            }
            Err(RedisError::Answer(reason)) => Err(StatementError::Refused(reason)),
            Err(error) => Err(StatementError::Lost(error.to_string())),
        }
    }

    fn start(&mut self) -> Result<Option<Start>, ProbeError> {
        let mut fields = self.client.info("all").map_err(|error| failure(error, &self.target))?;
        // A server that has started answers INFO at once, and everything else when its data is in memory.
        if fields.get("loading").is_some_and(|loading| loading == "1") {
            let reason = "it is loading its data into memory".to_owned();
            return Err(ProbeError::Connect { target: self.target.clone(), reason });
        }
        Ok(fields.remove("run_id").map(Start::Id))
    }
}

fn connected(address: &RedisAddress, target: &str) -> Result<RedisClient, ProbeError> {
    let unreachable = |reason: String| ProbeError::Connect { target: target.to_owned(), reason };
    let tls = address.tls_client().map_err(|error| unreachable(error.to_string()))?;
    let mut last = "it has no address".to_owned();
    for socket in address.resolve().map_err(unreachable)? {
        match RedisClient::connect(socket, tls.as_ref(), &address.login) {
            Ok(client) => return Ok(client),
            Err(RedisError::Io { what, source }) => last = format!("{what}: {source}"),
            Err(error) => return Err(failure(error, target)),
        }
    }
    Err(unreachable(last))
}

/// The meaning of a client's error.
fn failure(error: RedisError, target: &str) -> ProbeError {
    let (target, reason) = (target.to_owned(), error.to_string());
    match error {
        RedisError::OtherProtocol(_) => ProbeError::OtherProduct { target, expected: EXPECTED, reason },
        RedisError::Login(_) => ProbeError::Login { target, reason },
        RedisError::Answer(_) if reason.contains("NOAUTH") || reason.contains("WRONGPASS") => {
            ProbeError::Login { target, reason }
        }
        RedisError::Answer(_) if reason.contains("NOPERM") => {
            ProbeError::Permission { target, what: "INFO", reason, remedy: GRANT }
        }
        // It has just started and reads its file.
        RedisError::Answer(_) if reason.contains("LOADING") => ProbeError::Connect { target, reason },
        RedisError::Answer(_) => ProbeError::OtherProduct { target, expected: EXPECTED, reason },
        _ => ProbeError::Protocol { target, what: "its state", reason },
    }
}

/// The variant and the version, by the fields of `INFO server`.
fn variant(server: &BTreeMap<String, String>) -> (&'static str, Option<&String>) {
    for (field, variant) in [("valkey_version", "valkey"), ("dragonfly_version", "dragonfly")] {
        if let Some(version) = server.get(field) {
            return (variant, Some(version));
        }
    }
    ("redis", server.get("redis_version"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forks_name_themselves() {
        let fields = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let valkey = fields(&[("redis_version", "7.2.4"), ("valkey_version", "8.0.1")]);
        assert_eq!(variant(&valkey), ("valkey", Some(&"8.0.1".to_owned())));
        assert_eq!(variant(&fields(&[("redis_version", "7.0.15")])), ("redis", Some(&"7.0.15".to_owned())));
    }

    #[test]
    fn errors_say_whose_fault_it_is() {
        let answer = |text: &str| failure(RedisError::Answer(text.to_owned()), "t");
        assert!(matches!(answer("INFO: NOAUTH Authentication required."), ProbeError::Login { .. }));
        assert!(matches!(answer("INFO: NOPERM this user"), ProbeError::Permission { .. }));
        assert!(matches!(answer("INFO: LOADING Redis is loading"), ProbeError::Connect { .. }));
        assert!(matches!(answer("INFO: ERR unknown command"), ProbeError::OtherProduct { .. }));
        let other = failure(RedisError::OtherProtocol("INFO: no RESP: x".to_owned()), "t");
        assert!(matches!(other, ProbeError::OtherProduct { .. }));
        let login =
            failure(RedisError::Login(Box::new(RedisError::Answer("AUTH: WRONGPASS".to_owned()))), "t");
        assert!(matches!(login, ProbeError::Login { .. }));
    }
}
