//! The arguments with the addresses of the doors, which `tacho serve` and `tacho demo` share.

use std::net::SocketAddr;

use clap::Args;

use crate::config::{Config, listen_address};

/// The addresses on which the doors listen.
#[derive(Debug, Clone, Args)]
pub(crate) struct ListenArgs {
    /// Address on which to listen for MQTT; port 0 takes a free port [default: 127.0.0.1:1883]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen_address)]
    mqtt: Option<SocketAddr>,
    /// Address on which to listen for HTTP; port 0 takes a free port [default: 127.0.0.1:8080]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen_address)]
    http: Option<SocketAddr>,
    /// Address on which to listen for PostgreSQL's protocol; port 0 takes a free port [default: none; `tacho demo`:
    /// 127.0.0.1:5432]
    #[arg(long, value_name = "ADDRESS:PORT", value_parser = listen_address)]
    postgres: Option<SocketAddr>,
}

impl ListenArgs {
    /// Sets the addresses in the configuration: flags override all other sources.
    pub(crate) fn apply(&self, config: &mut Config) {
        config.mqtt.listen = self.mqtt.unwrap_or(config.mqtt.listen);
        config.http.listen = self.http.unwrap_or(config.http.listen);
        if let Some(listen) = self.postgres {
            config.open_postgres(listen);
        }
    }
}
