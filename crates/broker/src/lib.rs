//! The broker: messages between clients by topic, for the MQTT door.
//!
//! A client subscribes to topic filters. A published message enters the queue of each session with a matching filter and
//! leaves it for the connection of the session. Sessions that outlive their connections, their messages of QoS 1 and 2, and
//! retained messages are in the key-value engine.
//!
//! This crate knows no registry, no rows and no packets: the hub tells it which devices and tenants exist, and the door turns
//! packets into its requests.

mod broker;
mod children;
mod counters;
mod delivering;
mod ended;
mod error;
mod held_subscriptions;
mod index;
#[cfg(test)]
mod index_tests;
pub mod limits;
#[cfg(test)]
mod match_cost_tests;
#[cfg(test)]
mod memory_tests;
mod message;
mod metrics;
#[cfg(test)]
mod model_tests;
mod publishing;
mod queue;
mod record;
mod redistributing;
#[cfg(test)]
mod redistributing_tests;
mod retained;
mod session;
mod session_map;
mod sessions;
mod shared;
#[cfg(test)]
mod shared_subscription_tests;
mod subscribing;
mod subscription;
mod system;
mod tenant_shares;
#[cfg(test)]
mod tenant_shares_tests;
#[cfg(test)]
mod tests;

pub use broker::Broker;
pub use delivering::{Acknowledged, Delivered, PubrecEffect};
pub use error::BrokerError;
pub use message::{CallOf, Content, Message, Publication, ToClient};
pub use metrics::BrokerMetrics;
pub use model::topic::{covers, is_too_deep};
pub use publishing::{DropCause, Dropped, Published};
pub use queue::{Outgoing, Sent};
pub use redistributing::{Redistributed, Unconfirmed};
pub use retained::BrokerReadError;
pub use session::{Session, SessionKey};
pub use sessions::{Attach, Attached};
pub use subscribing::Request;
pub use subscription::{Quality, RetainHandling, SubscriptionOptions};
pub use tenant_shares::{Shared, TenantShares, TenantUse};
