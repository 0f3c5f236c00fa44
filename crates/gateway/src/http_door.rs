//! The HTTP door: the server of `http` with the interfaces of all folders behind one port.

use std::io;
use std::sync::Arc;

use hub::Hub;
use tokio::net::TcpListener;
use virtual_sensors::VirtualSensors;

use crate::http::HttpOptions;
use crate::http::server::{self, Interfaces};
use crate::http::tools::route_list::Routes;
use crate::opentsdb::telnet;
use crate::tls::Listeners;
use crate::{gsn, influx, opentsdb, prometheus};

/// Serves `listeners` until `shutdown` ends. Then it accepts no more, lets running requests finish, closes WebSockets with code
/// 1001, and cuts off the rest after `DRAIN_TIMEOUT`.
///
/// # Errors
/// The listeners cannot be used.
pub async fn serve(
    hub: Arc<Hub>,
    sensors: Arc<VirtualSensors>,
    listeners: impl Into<Listeners<TcpListener>>,
    options: HttpOptions,
    shutdown: impl Future<Output = ()> + Send,
) -> io::Result<()> {
    let interfaces = Interfaces { routes: routes_of_other_products(), lines: telnet::of_door(options.door) };
    server::serve(hub, sensors, listeners, options, interfaces, shutdown).await
}

/// The interfaces of other products than ThingsBoard.
fn routes_of_other_products() -> Routes {
    influx::routes().merge(gsn::routes()).merge(prometheus::routes()).merge(opentsdb::routes())
}

/// All routes of the door.
#[cfg(test)]
pub(crate) fn routes() -> Routes {
    server::own_routes().merge(routes_of_other_products())
}
