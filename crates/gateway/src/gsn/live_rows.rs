//! The rows of a sensor as they become durable, for answers without an end.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::http::HeaderMap;
use hub::Hub;
use hub::caller::Caller;
use hub::live::{LiveConnection, Subscriber, Updates};
use hub::registry::Device;
use tokio::sync::watch;

use super::refusal::Refusal;
use super::request_context::caller_of;
use crate::http::tools::request::Params;
use crate::http::tools::state::HttpState;

/// What a client has logged in with.
pub(super) struct Login {
    pub(super) params: Params,
    pub(super) headers: HeaderMap,
    pub(super) peer: Option<SocketAddr>,
}

impl Login {
    /// The caller, as long as the login is valid.
    pub(super) async fn caller(&self, state: &HttpState) -> Result<Caller, Refusal> {
        caller_of(state, &self.headers, &self.params, self.peer).await
    }
}

/// The values of a sensor as they become durable.
pub(super) struct LiveRows {
    hub: Arc<Hub>,
    caller: Caller,
    device: Arc<Device>,
    subscriber: Subscriber,
    /// Changes when a series is made, until the sensor has one.
    new_series: Option<watch::Receiver<u64>>,
}

impl LiveRows {
    pub(super) fn new(
        hub: Arc<Hub>,
        caller: Caller,
        device: Arc<Device>,
        connection: &LiveConnection,
    ) -> Self {
        let subscriber = connection.subscriber();
        let new_series = Some(hub.new_series());
        let mut live = Self { hub, caller, device, subscriber, new_series };
        live.bind();
        live
    }

    /// Watches the series of the sensor once it has one.
    fn bind(&mut self) {
        // A caller who may not read it any more is refused by the next check.
        if let Ok(Some(series)) = self.hub.find_series_of(&self.caller, &self.device) {
            self.subscriber.watch(series);
            self.new_series = None;
        }
    }

    /// Waits for values.
    pub(super) async fn next(&mut self) -> Updates {
        while let Some(new_series) = &mut self.new_series {
            if new_series.changed().await.is_err() {
                std::future::pending::<()>().await;
            }
            self.bind();
        }
        self.subscriber.next().await
    }

    /// Whether the login is still valid, and the caller still sees the sensor.
    pub(super) async fn check(&self, state: &HttpState, login: &Login) -> Result<(), String> {
        let caller = login.caller(state).await.map_err(|refusal| refusal.0.message)?;
        match self.hub.sees_device(&caller, self.device.id) {
            true => Ok(()),
            false => Err("the sensor is not yours to read any more".to_owned()),
        }
    }
}
