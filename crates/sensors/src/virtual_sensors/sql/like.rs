//! `LIKE`.

use super::meter::Meter;

/// Characters that are compared until the meter is told, and what they cost.
const COMPARED_AT_ONCE: usize = 1_024;
const COMPARED_STEPS: u64 = 128;

/// Whether a text is like a pattern: `%` is any text, `_` one character, `\` takes the meaning of the next one away.
///
/// # Errors
/// The comparison takes too many steps.
pub(super) fn is_like(text: &str, pattern: &str, any_case: bool, meter: &Meter) -> Result<bool, String> {
    let fold = |text: &str| -> Vec<char> {
        if any_case { text.chars().flat_map(char::to_lowercase).collect() } else { text.chars().collect() }
    };
    let (text, pattern) = (fold(text), pieces(&fold(pattern)));
    let (mut at, mut piece) = (0, 0);
    // Where to continue if the text does not fit: the last `%`, which then takes one character more.
    let mut back: Option<(usize, usize)> = None;
    let mut compared = 0_usize;
    loop {
        compared += 1;
        if compared.is_multiple_of(COMPARED_AT_ONCE) {
            meter.spend(COMPARED_STEPS)?;
        }
        match pattern.get(piece) {
            Some(Piece::Any) => {
                back = Some((at, piece));
                piece += 1;
                continue;
            }
            Some(Piece::One) if at < text.len() => {
                (at, piece) = (at + 1, piece + 1);
                continue;
            }
            Some(Piece::Char(c)) if text.get(at) == Some(c) => {
                (at, piece) = (at + 1, piece + 1);
                continue;
            }
            None if at == text.len() => return Ok(true),
            _ => {}
        }
        let Some((start, any)) = back.filter(|(start, _)| *start < text.len()) else { return Ok(false) };
        back = Some((start + 1, any));
        (at, piece) = (start + 1, any + 1);
    }
}

enum Piece {
    Any,
    One,
    Char(char),
}

fn pieces(pattern: &[char]) -> Vec<Piece> {
    let mut pieces = Vec::with_capacity(pattern.len());
    let mut chars = pattern.iter();
    while let Some(c) = chars.next() {
        pieces.push(match c {
            '%' => Piece::Any,
            '_' => Piece::One,
            '\\' => Piece::Char(*chars.next().unwrap_or(c)),
            c => Piece::Char(*c),
        });
    }
    pieces
}
