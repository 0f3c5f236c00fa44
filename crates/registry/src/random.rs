//! Secrets from the operating system's random source.

/// The alphabet of access tokens and passwords, without characters that need quoting.
const ALPHABET: &[u8; 62] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Length of a generated access token; ThingsBoard's, 119 bits.
const TOKEN_CHARS: usize = 20;

/// Length of a generated password, 142 bits.
const PASSWORD_CHARS: usize = 24;

/// Length of the token of an activation link; ThingsBoard's.
const ACTIVATION_CHARS: usize = 30;

/// A random access token, or another text that nobody can guess.
pub fn token() -> String {
    alphanumeric(TOKEN_CHARS)
}

pub(super) fn password() -> String {
    alphanumeric(PASSWORD_CHARS)
}

/// A random token of an activation link.
pub(super) fn activation() -> String {
    alphanumeric(ACTIVATION_CHARS)
}

pub(super) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("BUG: the random source of a booted system does not fail");
    bytes
}

fn alphanumeric(length: usize) -> String {
    let mut text = String::with_capacity(length);
    while text.len() < length {
        let letters = bytes::<64>().into_iter().filter_map(letter);
        text.extend(letters.take(length - text.len()));
    }
    text
}

/// A letter for six bits of `byte`; none for the two values beyond the alphabet, so that all are equally likely.
fn letter(byte: u8) -> Option<char> {
    ALPHABET.get(usize::from(byte & 63)).map(|&letter| char::from(letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_have_their_length_and_differ() {
        assert_eq!((token().len(), password().len()), (20, 24));
        assert_ne!(token(), token());
        assert!(token().bytes().all(|byte| byte.is_ascii_alphanumeric()));
    }

    #[test]
    fn bytes_beyond_the_alphabet_are_skipped() {
        assert_eq!((letter(0), letter(61), letter(62), letter(63)), (Some('A'), Some('9'), None, None));
        assert_eq!(letter(64), Some('A'));
    }
}
