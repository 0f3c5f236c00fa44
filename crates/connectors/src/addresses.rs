//! The addresses of a server that a descriptor names: looked up once, checked, and then connected to.

use std::net::SocketAddr;

use clients::outgoing::AllowedTargets;
use tokio::net::lookup_host;

/// The addresses of a server that may be connected to.
///
/// # Errors
/// The name has no address, or none that is allowed.
pub(crate) async fn addresses(
    targets: &AllowedTargets,
    host: &str,
    port: u16,
) -> Result<Vec<SocketAddr>, String> {
    let found = lookup_host((host, port)).await.map_err(|error| format!("{host}: {error}"))?;
    targets.choose(host, found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_server_has_its_addresses_unless_they_are_refused() {
        let targets = AllowedTargets::default();
        let found = addresses(&targets, "127.0.0.1", 9).await.unwrap();
        assert_eq!(found, [SocketAddr::from(([127, 0, 0, 1], 9))]);
        let refused = addresses(&targets, "169.254.169.254", 80).await.unwrap_err();
        assert!(refused.contains("sensors.allowed_targets"), "{refused}");
    }
}
