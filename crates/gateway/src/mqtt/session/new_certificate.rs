//! A CONNECT with a certificate that no device has yet, and that an authority of a device profile has signed.

use std::sync::Arc;

use hub::certificate::Certificate;
use hub::registry::Profile;
use wire::mqtt::{Connect, ConnectReturnCode, ReasonCode};

use super::super::provisioner::Join;
use super::context::Context;
use super::provisioning::asks_for_credentials;
use super::refused_connect::RefusedConnect;
use crate::tls::is_issued_by;

/// Begins to find or to add the device that the certificates of a client name; that waits for the disk. `None` if no authority of a
/// profile has signed them, or a device has the certificate.
///
/// # Errors
/// Too many devices join at this moment.
pub(super) fn begin(connect: &Connect<'_>, context: &Context<'_>) -> Result<Option<Join>, RefusedConnect> {
    if context.exceeded.is_some() || context.certificates.is_empty() || asks_for_credentials(connect) {
        return Ok(None);
    }
    let Some((profile, certificate)) = profile_of(context) else { return Ok(None) };
    let begun = context.provisioner.join(profile, certificate, (context.wake)());
    begun.map(Some).ok_or_else(|| RefusedConnect {
        code: ReasonCode::SERVER_BUSY,
        return_code: ConnectReturnCode::SERVER_UNAVAILABLE,
        label: "provision_busy",
        cause: "too many devices join; try again in a second".to_owned(),
    })
}

/// The profile whose authority has signed the client's certificate.
fn profile_of(context: &Context<'_>) -> Option<(Arc<Profile>, Certificate)> {
    let registry = context.hub.registry();
    let read =
        context.certificates.iter().map(|der| Certificate::from_der(der)).collect::<Result<Vec<_>, _>>();
    let chain = read.ok()?;
    if registry.device_by_certificate(&chain[0].fingerprint()).is_some() {
        return None;
    }
    let now_s = context.now.micros().div_euclid(1_000_000);
    let profile = registry.profiles_of_chain(&chain).into_iter().find(|profile| {
        let terms = profile.provision.chain.as_ref();
        terms.is_some_and(|terms| is_issued_by(&terms.authority().der, &context.certificates, now_s))
    })?;
    Some((profile, chain.into_iter().next()?))
}

/// The refusal of a client whose certificate names no device that may log in.
pub(super) fn refused(cause: String) -> RefusedConnect {
    RefusedConnect {
        code: ReasonCode::NOT_AUTHORIZED,
        return_code: ConnectReturnCode::NOT_AUTHORIZED,
        label: "certificate_chain",
        cause,
    }
}
