//! `LIKE`.

/// Whether a text is like a pattern: `%` is any text, `_` one character, `\` takes the meaning of the next one away.
pub(super) fn is_like(text: &str, pattern: &str, any_case: bool) -> bool {
    let fold = |text: &str| -> Vec<char> {
        if any_case { text.chars().flat_map(char::to_lowercase).collect() } else { text.chars().collect() }
    };
    let (text, pattern) = (fold(text), pieces(&fold(pattern)));
    let (mut at, mut piece) = (0, 0);
    // Where to continue if the text does not fit: the last `%`, which then takes one character more.
    let mut back: Option<(usize, usize)> = None;
    loop {
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
            None if at == text.len() => return true,
            _ => {}
        }
        let Some((start, any)) = back.filter(|(start, _)| *start < text.len()) else { return false };
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
