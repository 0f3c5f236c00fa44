//! The end of a certificate's validity (RFC 5280, 4.1).

use yasna::tags::{TAG_GENERALIZEDTIME, TAG_UTCTIME};
use yasna::{ASN1Error, ASN1ErrorKind, ASN1Result, BERReader, BERReaderSeq, Tag};

/// The time until which a certificate is valid. `None` if it is no certificate.
pub(super) fn valid_until(certificate: &[u8]) -> Option<jiff::Timestamp> {
    let not_after_s = yasna::parse_der(certificate, |reader| {
        reader.read_sequence(|reader| {
            let not_after_s = reader.next().read_sequence(signed_part)?;
            skip_rest(reader)?;
            Ok(not_after_s)
        })
    });
    jiff::Timestamp::from_second(not_after_s.ok()?).ok()
}

/// Reads version, serial number, signature algorithm and issuer, then the validity.
fn signed_part(reader: &mut BERReaderSeq<'_, '_>) -> ASN1Result<i64> {
    reader.read_optional(|reader| reader.read_tagged(Tag::context(0), |reader| reader.read_i64()))?;
    for _ in 0..3 {
        reader.next().read_der()?;
    }
    let not_after_s = reader.next().read_sequence(|reader| {
        time_s(reader.next())?;
        time_s(reader.next())
    })?;
    skip_rest(reader)?;
    Ok(not_after_s)
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

    #[test]
    fn the_end_of_validity_is_read_in_both_forms_of_a_time() {
        // Times from 2050 on are GeneralizedTime, earlier ones UTCTime.
        for (year, expected) in [(2031, "2031-02-03T00:00:00Z"), (2057, "2057-02-03T00:00:00Z")] {
            let mut params = CertificateParams::new(["localhost".to_owned()]).unwrap();
            params.not_after = date_time_ymd(year, 2, 3);
            let made = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
            assert_eq!(valid_until(made.der()), Some(expected.parse().unwrap()));
            let cut = &made.der()[..made.der().len() / 2];
            assert_eq!(valid_until(cut), None);
        }
        assert_eq!(valid_until(b""), None);
    }
}
