//! Whether the certificates of a client lead to an authority.

use std::sync::Arc;
use std::time::Duration;

use rustls::RootCertStore;
use rustls::crypto::ring;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::WebPkiClientVerifier;

/// Whether the authority has signed the client's certificate, itself or through the others that the client sent, and all of them are
/// valid at this time. `chain` has the client's own certificate first; the one of the authority may be among them.
pub(crate) fn is_issued_by(authority: &[u8], chain: &[CertificateDer<'static>], now_s: i64) -> bool {
    let Some((own, others)) = chain.split_first() else { return false };
    let mut roots = RootCertStore::empty();
    if roots.add(CertificateDer::from(authority.to_vec())).is_err() {
        return false;
    }
    let provider = Arc::new(ring::default_provider());
    let Ok(verifier) = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build() else {
        return false;
    };
    let now = UnixTime::since_unix_epoch(Duration::from_secs(u64::try_from(now_s).unwrap_or(0)));
    verifier.verify_client_cert(own, others, now).is_ok()
}

#[cfg(test)]
mod tests {
    use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};

    use super::*;

    /// 2026-01-01.
    const NOW_S: i64 = 1_767_225_600;

    struct Made {
        der: CertificateDer<'static>,
        params: CertificateParams,
        key: KeyPair,
    }

    fn made(name: &str, is_authority: bool, issuer: Option<&Made>) -> Made {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_before = date_time_ymd(2025, 1, 1);
        params.not_after = date_time_ymd(2027, 1, 1);
        if is_authority {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = match issuer {
            None => params.self_signed(&key),
            Some(issuer) => params.signed_by(&key, &Issuer::from_params(&issuer.params, &issuer.key)),
        };
        Made { der: certificate.unwrap().der().clone(), params, key }
    }

    #[test]
    fn only_a_chain_of_valid_signatures_leads_to_an_authority() {
        let authority = made("authority", true, None);
        let middle = made("middle", true, Some(&authority));
        let direct = made("direct", false, Some(&authority));
        let deep = made("deep", false, Some(&middle));
        // It has the name of the authority, and not its key.
        let forged = made("forged", false, Some(&made("authority", true, None)));
        let leads = |chain: &[&Made], now_s| {
            let chain: Vec<_> = chain.iter().map(|made| made.der.clone()).collect();
            is_issued_by(&authority.der, &chain, now_s)
        };
        assert!(leads(&[&direct], NOW_S) && leads(&[&direct, &authority], NOW_S));
        assert!(leads(&[&deep, &middle], NOW_S) && leads(&[&deep, &middle, &authority], NOW_S));
        assert!(!leads(&[&deep], NOW_S), "the client keeps a link back");
        assert!(!leads(&[&forged], NOW_S) && !leads(&[&forged, &authority], NOW_S) && !leads(&[], NOW_S));
        assert!(!leads(&[&authority], NOW_S), "an authority is not a device");
        assert!(!leads(&[&direct], NOW_S + 2 * 366 * 86_400) && !leads(&[&direct], 0));
    }
}
