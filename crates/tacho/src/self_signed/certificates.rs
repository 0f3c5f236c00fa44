//! A certificate authority, and the certificate of a server that it signs.

use chrono::{Datelike as _, NaiveDate, TimeDelta, Utc};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, Error, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

use crate::limits::{CA_VALIDITY_DAYS, CERTIFICATE_VALIDITY_DAYS};

/// Certificates and key as PEM.
pub(super) struct PemFiles {
    /// The certificate of the authority, which clients trust.
    pub(super) ca: String,
    /// The certificate of the server.
    pub(super) certificate: String,
    /// The key of the server.
    pub(super) key: String,
}

/// Makes an authority and a certificate for these names and addresses. The key of the authority is not kept: it could sign a
/// certificate for any name that the clients would trust.
pub(super) fn make(names: &[String]) -> Result<PemFiles, Error> {
    let today = Utc::now().date_naive();
    let ca_key = KeyPair::generate()?;
    let mut ca = CertificateParams::new([])?;
    ca.distinguished_name.push(DnType::CommonName, "Tachograph self-signed authority");
    ca.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    ca.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    set_validity(&mut ca, today, CA_VALIDITY_DAYS);
    let ca_certificate = ca.self_signed(&ca_key)?;

    let key = KeyPair::generate()?;
    let mut server = CertificateParams::new(names)?;
    let name = names.first().map_or("localhost", String::as_str);
    server.distinguished_name.push(DnType::CommonName, name);
    server.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    server.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    server.use_authority_key_identifier_extension = true;
    set_validity(&mut server, today, CERTIFICATE_VALIDITY_DAYS);
    let certificate = server.signed_by(&key, &Issuer::new(ca, ca_key))?;
    Ok(PemFiles { ca: ca_certificate.pem(), certificate: certificate.pem(), key: key.serialize_pem() })
}

/// Valid from yesterday on, for clients whose clock is behind.
fn set_validity(params: &mut CertificateParams, today: NaiveDate, days: i64) {
    let day = |days: i64| {
        let date = today.checked_add_signed(TimeDelta::days(days)).unwrap_or(today);
        date_time_ymd(date.year(), date.month() as u8, date.day() as u8)
    };
    (params.not_before, params.not_after) = (day(-1), day(days));
}
