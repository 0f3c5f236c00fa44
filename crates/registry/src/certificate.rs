//! X.509 certificates (RFC 5280): their validity, and ThingsBoard's fingerprint of them.

use std::ops::RangeInclusive;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use sha3::{Digest, Sha3_256};
use yasna::tags::{TAG_GENERALIZEDTIME, TAG_UTCTIME};
use yasna::{ASN1Error, ASN1ErrorKind, ASN1Result, BERReader, BERReaderSeq, Tag};

const PEM_BEGIN: &str = "-----BEGIN CERTIFICATE-----";
/// The kind of the common name in a distinguished name: id-at-commonName.
const COMMON_NAME: &[u64] = &[2, 5, 4, 3];
const PEM_END: &str = "-----END CERTIFICATE-----";

/// What the server reads of a certificate. It checks no signature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Certificate {
    /// The certificate itself.
    pub der: Box<[u8]>,
    /// The times at which it is valid, in seconds since the epoch.
    pub validity_s: RangeInclusive<i64>,
    /// The distinguished name of the authority that signed it: DER.
    pub issuer: Box<[u8]>,
    /// The distinguished name of its owner: DER.
    pub subject: Box<[u8]>,
}

impl Certificate {
    /// Reads a certificate.
    ///
    /// # Errors
    /// The bytes are not a certificate.
    pub fn from_der(der: &[u8]) -> Result<Self, &'static str> {
        let read = yasna::parse_der(der, |reader| {
            reader.read_sequence(|reader| {
                let read = reader.next().read_sequence(|reader| to_be_signed(der, reader))?;
                skip_rest(reader)?;
                Ok(read)
            })
        });
        read.map_err(|_| "is not an X.509 certificate")
    }

    /// The common name of its owner, the last one if there are several; `None` if it has none that is text.
    pub fn common_name(&self) -> Option<String> {
        let mut found = None;
        let read = yasna::parse_der(&self.subject, |reader| {
            reader.read_sequence_of(|reader| {
                reader.read_set_of(|reader| {
                    reader.read_sequence(|reader| {
                        let kind = reader.next().read_oid()?;
                        let value = reader.next().read_tagged_der()?;
                        if kind.components().as_slice() == COMMON_NAME {
                            found = String::from_utf8(value.value().to_vec()).ok();
                        }
                        Ok(())
                    })
                })
            })
        });
        read.ok().and(found)
    }

    /// Reads one certificate as text: PEM, or only its Base64, with line breaks or without.
    ///
    /// # Errors
    /// The text has no certificate, several, or a damaged one. The reason follows a word for the certificate.
    pub fn from_text(text: &str) -> Result<Self, &'static str> {
        let body = match text.split_once(PEM_BEGIN) {
            None => text,
            Some((_, rest)) => {
                let (body, after) = rest.split_once(PEM_END).ok_or("has no end of the PEM text")?;
                if after.contains(PEM_BEGIN) {
                    return Err("has several certificates; send only that of the device");
                }
                body
            }
        };
        let body: String = body.chars().filter(|c| !c.is_ascii_whitespace()).collect();
        let der = BASE64_STANDARD.decode(body).map_err(|_| "is not PEM text of a certificate")?;
        Self::from_der(&der)
    }

    /// ThingsBoard's text of a certificate: PEM without its first and last line and without line breaks.
    pub fn to_text(&self) -> String {
        BASE64_STANDARD.encode(&self.der)
    }

    /// ThingsBoard's fingerprint of a certificate.
    pub fn fingerprint(&self) -> String {
        sha3_hex(&self.to_text())
    }

    /// Whether the certificate is valid at a time, in seconds since the epoch.
    pub fn is_valid_at(&self, now_s: i64) -> bool {
        self.validity_s.contains(&now_s)
    }
}

/// ThingsBoard's hash of a text: SHA3-256 in hexadecimal digits.
pub(crate) fn sha3_hex(text: &str) -> String {
    Sha3_256::digest(text).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads version, serial number, signature algorithm, issuer, validity and subject, and skips the rest.
fn to_be_signed(der: &[u8], reader: &mut BERReaderSeq<'_, '_>) -> ASN1Result<Certificate> {
    reader.read_optional(|reader| reader.read_tagged(Tag::context(0), |reader| reader.read_i64()))?;
    for _ in 0..2 {
        reader.next().read_der()?;
    }
    let issuer = reader.next().read_der()?.into();
    let validity_s =
        reader.next().read_sequence(|reader| Ok(time_s(reader.next())?..=time_s(reader.next())?))?;
    let subject = reader.next().read_der()?.into();
    skip_rest(reader)?;
    Ok(Certificate { der: der.into(), validity_s, issuer, subject })
}

fn time_s(reader: BERReader<'_, '_>) -> ASN1Result<i64> {
    match reader.lookahead_tag()? {
        TAG_UTCTIME => Ok(reader.read_utctime()?.datetime().unix_timestamp()),
        TAG_GENERALIZEDTIME => Ok(reader.read_generalized_time()?.datetime().unix_timestamp()),
        _ => Err(ASN1Error::new(ASN1ErrorKind::Invalid)),
    }
}

fn skip_rest(reader: &mut BERReaderSeq<'_, '_>) -> ASN1Result<()> {
    while reader.read_optional(|reader| reader.read_der())?.is_some() {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn made(year: i32) -> rcgen::Certificate {
        let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year, 2, 3);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap()
    }

    #[test]
    fn validity_is_read_in_both_forms_of_a_time() {
        // Times from 2050 on are GeneralizedTime, earlier ones UTCTime.
        for (year, end) in [(2031, 1_927_843_200), (2057, 2_748_384_000)] {
            let made = made(year);
            let read = Certificate::from_der(made.der()).unwrap();
            assert_eq!(read.validity_s, 1_577_836_800..=end);
            assert!(read.is_valid_at(end) && !read.is_valid_at(end + 1) && !read.is_valid_at(1_577_836_799));
            for cut in 0..made.der().len() {
                assert!(Certificate::from_der(&made.der()[..cut]).is_err(), "{cut}");
            }
        }
    }

    #[test]
    fn the_names_of_owner_and_issuer_are_read() {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(rcgen::DnType::OrganizationName, "Acme");
        params.distinguished_name.push(rcgen::DnType::CommonName, "Pumpe Nº 7");
        let own = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        let read = Certificate::from_der(own.der()).unwrap();
        assert_eq!(read.common_name().as_deref(), Some("Pumpe Nº 7"));
        assert_eq!(read.issuer, read.subject);
        let mut params = CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        let nameless = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        assert_eq!(Certificate::from_der(nameless.der()).unwrap().common_name(), None);
    }

    #[test]
    fn a_certificate_is_read_from_pem_and_from_its_base64() {
        let made = made(2031);
        let read = Certificate::from_text(&made.pem()).unwrap();
        assert_eq!(read, Certificate::from_der(made.der()).unwrap());
        assert_eq!(read, Certificate::from_text(&read.to_text()).unwrap());
        let with_text = format!("subject=x\r\n{}\r\n", made.pem().replace('\n', "\r\n"));
        assert_eq!(read, Certificate::from_text(&with_text).unwrap());
        for wrong in ["", "hello", &made.pem()[..200], &made.pem().repeat(2), &read.to_text()[4..]] {
            assert!(Certificate::from_text(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_hash_is_sha3_256() {
        // FIPS 202, the examples of an empty message and of "abc".
        assert_eq!(sha3_hex(""), "a7ffc6f8bf1ed76651c14756a061d662f580ff4de43b49fa82d80a4b80f8434a");
        assert_eq!(sha3_hex("abc"), "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532");
        let read = Certificate::from_der(made(2031).der()).unwrap();
        assert_eq!(read.fingerprint(), sha3_hex(&read.to_text()));
    }
}
