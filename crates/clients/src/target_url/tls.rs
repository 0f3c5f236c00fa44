//! The parts of a URL that are about TLS.

use std::path::PathBuf;

use super::form::{FileNames, Form, Parsed, TlsForm, TlsMode};
use crate::tls::{Identity, TlsOptions, Trust};

/// `insecure=true`, for drivers whose product has no parameter for it.
const INSECURE: &str = "insecure";

/// Whether a parameter of `form` is about TLS.
pub(super) fn has_parameter(form: &Form, name: &str) -> bool {
    match &form.tls {
        TlsForm::Schemes(_, files) => name == INSECURE || files.all().contains(&name),
        TlsForm::Modes { names, files, .. } => names.contains(&name) || files.all().contains(&name),
        TlsForm::None { .. } => false,
    }
}

/// The names of all parameters of `form` that are about TLS.
pub(super) fn parameter_names(form: &Form) -> Vec<&'static str> {
    match &form.tls {
        TlsForm::Schemes(_, files) => files.all().into_iter().chain([INSECURE]).collect(),
        TlsForm::Modes { names, files, .. } => names.iter().copied().chain(files.all()).collect(),
        TlsForm::None { .. } => Vec::new(),
    }
}

/// The options that the scheme and the parameters of a URL ask for; `None` without TLS.
pub(super) fn options(
    scheme: &str,
    parameters: &[(String, String)],
    form: &Form,
) -> Parsed<Option<TlsOptions>> {
    let value =
        |name: &str| parameters.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let (trust, files) = match &form.tls {
        TlsForm::None { .. } => return Ok(None),
        TlsForm::Schemes(schemes, files) => {
            let is_insecure = match value(INSECURE) {
                None | Some("false") => false,
                Some("true") => true,
                Some(other) => return Err(format!("`insecure={other}`: insecure can be true or false")),
            };
            if !schemes.iter().any(|(name, _)| *name == scheme) {
                let given = parameter_names(form).into_iter().find(|name| value(name).is_some());
                return match given {
                    Some(name) => Err(format!("`{name}` is for TLS: write {}://", schemes[0].0)),
                    None => Ok(None),
                };
            }
            let authority = value(files.authority).map(PathBuf::from);
            let trust = match (is_insecure, authority) {
                (true, Some(_)) => {
                    return Err(format!("`insecure=true` verifies nothing: leave out `{}`", files.authority));
                }
                (true, None) => Trust::Everything,
                (false, Some(file)) => Trust::File(file),
                (false, None) => Trust::System,
            };
            (trust, files)
        }
        TlsForm::Modes { names, modes, files } => {
            let given = names.iter().find_map(|name| Some((*name, value(name)?)));
            match trust_of_mode(given, modes, files, &value)? {
                Some(trust) => (trust, files),
                None => return Ok(None),
            }
        }
    };
    Ok(Some(TlsOptions { trust, identity: identity(files, &value)? }))
}

fn trust_of_mode<'a>(
    given: Option<(&str, &str)>,
    modes: &[(&str, TlsMode)],
    files: &FileNames,
    value: &impl Fn(&str) -> Option<&'a str>,
) -> Parsed<Option<Trust>> {
    let mode = match given {
        None => TlsMode::Off,
        Some((name, text)) => {
            let known = modes.iter().find(|(known, _)| known.eq_ignore_ascii_case(text));
            let names: Vec<&str> = modes.iter().map(|(name, _)| *name).collect();
            known.map(|(_, mode)| *mode).ok_or_else(|| {
                format!(
                    "`{name}={text}`: {name} can be {}; a mode that lets the server choose measures the one or the other",
                    names.join(" or ")
                )
            })?
        }
    };
    let authority = value(files.authority).map(PathBuf::from);
    Ok(match mode {
        TlsMode::Off => match files.all().into_iter().find(|name| value(name).is_some()) {
            Some(name) => return Err(format!("`{name}` is for TLS: give a mode that uses it")),
            None => None,
        },
        TlsMode::Unverified if authority.is_some() => {
            return Err(format!(
                "`{}` is not used in this mode, which verifies nothing: give one that verifies",
                files.authority
            ));
        }
        TlsMode::Unverified => Some(Trust::Everything),
        TlsMode::AnyName => Some(Trust::AnyName(authority)),
        TlsMode::Full => Some(authority.map_or(Trust::System, Trust::File)),
    })
}

fn identity<'a>(files: &FileNames, value: &impl Fn(&str) -> Option<&'a str>) -> Parsed<Option<Identity>> {
    match (value(files.certificate), value(files.key)) {
        (Some(certificate), Some(key)) => {
            Ok(Some(Identity { certificate: certificate.into(), key: key.into() }))
        }
        (None, None) => Ok(None),
        _ => Err(format!("`{}` and `{}` belong together", files.certificate, files.key)),
    }
}
