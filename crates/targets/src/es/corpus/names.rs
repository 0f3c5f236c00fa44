//! The names of places: a kind, a proper word and an ending, as in "Sankt Georgen" or "Rio Balo Norte".

use std::collections::HashSet;

use load::dataset::Random;

use super::slots::Slots;

/// Words before a proper word, the most frequent first.
const KINDS: [&str; 48] = [
    "Rio", "Lake", "Mount", "Cerro", "Sankt", "San", "Santa", "Hotel", "Ban", "Wadi", "Jabal", "Gunung",
    "Sungai", "El", "La", "Los", "Las", "Monte", "Pic", "Puy", "Cape", "Fort", "Port", "Bayt", "Tall", "Kuh",
    "Rud", "Nahr", "Ozero", "Reka", "Gora", "Krasnaya", "Novaya", "Stary", "Nova", "Velika", "Ober", "Unter",
    "Bad", "Gross", "Klein", "Saint", "Sainte", "Villa", "Quebrada", "Laguna", "Desa", "Kampong",
];
/// Words after a proper word.
const ENDINGS: [&str; 24] = [
    "Creek", "School", "Church", "Park", "River", "Point", "Island", "Bay", "Farm", "Hill", "Station",
    "Cemetery", "Valley", "Bridge", "Ridge", "Spring", "Norte", "Sur", "Grande", "Khurd", "Kalan", "Cun",
    "Zhen", "Shan",
];
/// The number of proper words.
const WORDS: usize = 2_000;
/// The proper word of the constant phrase, and its rank: with its kind it names about one place in 100,000, as few as
/// in the gazetteer.
const GEORGEN: (&str, usize) = ("Georgen", 300);
const SANKT: usize = 4;
/// The seed of the proper words. They are the same in every corpus.
const WORDS_SEED: u64 = 0x706c_6163_6573;

const ONSETS: [&str; 20] = [
    "b", "d", "f", "g", "h", "k", "l", "m", "n", "p", "r", "s", "t", "v", "w", "br", "st", "tr", "kl", "sch",
];
const VOWELS: [&str; 8] = ["a", "e", "i", "o", "u", "au", "ei", "ia"];
const CODAS: [&str; 10] = ["", "", "", "n", "r", "s", "l", "m", "nd", "rg"];

/// A proper word.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Word {
    /// As it is written, sometimes with an umlaut.
    name: String,
    ascii: String,
}

/// The parts of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Name {
    kind: Option<u8>,
    word: u16,
    ending: Option<u8>,
}

/// A kind and a proper word that follow each other in a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Phrase(u32);

/// All words, with their frequencies.
#[derive(Debug)]
pub(super) struct Names {
    words: Vec<Word>,
    kinds: Slots,
    word_ranks: Slots,
    endings: Slots,
}

impl Names {
    pub(super) fn new() -> Self {
        Self {
            words: words(),
            kinds: Slots::by_rank(KINDS.len()),
            word_ranks: Slots::by_rank(WORDS),
            endings: Slots::by_rank(ENDINGS.len()),
        }
    }

    /// Half of the names have a kind and a word, a quarter has only a word, and a quarter has an ending as well.
    pub(super) fn draw(&self, random: &mut Random) -> Name {
        let form = random.bits() >> 62;
        let word = self.word_ranks.draw(random) as u16;
        let kind = (form != 0).then(|| self.kinds.draw(random) as u8);
        let ending = (form == 3).then(|| self.endings.draw(random) as u8);
        Name { kind, word, ending }
    }

    /// A proper word, for other names of a place.
    pub(super) fn draw_word(&self, random: &mut Random) -> &str {
        &self.words[self.word_ranks.draw(random)].name
    }

    /// Appends a name as it is written, or in ASCII.
    pub(super) fn append(&self, out: &mut Vec<u8>, name: Name, is_ascii: bool) {
        if let Some(kind) = name.kind {
            out.extend_from_slice(KINDS[usize::from(kind)].as_bytes());
            out.push(b' ');
        }
        let word = &self.words[usize::from(name.word)];
        out.extend_from_slice(if is_ascii { &word.ascii } else { &word.name }.as_bytes());
        if let Some(ending) = name.ending {
            out.push(b' ');
            out.extend_from_slice(ENDINGS[usize::from(ending)].as_bytes());
        }
    }

    /// The text of a phrase.
    pub(crate) fn text(&self, phrase: Phrase) -> String {
        let (kind, word) = (phrase.0 as usize / WORDS, phrase.0 as usize % WORDS);
        format!("{} {}", KINDS[kind], self.words[word].name)
    }
}

impl Name {
    /// Its kind and word, if it has both.
    pub(super) fn phrase(self) -> Option<Phrase> {
        self.kind.map(|kind| Phrase(u32::from(kind) * WORDS as u32 + u32::from(self.word)))
    }
}

impl Phrase {
    /// The number of all phrases; [`Self::index`] is below it.
    pub(super) const COUNT: usize = KINDS.len() * WORDS;
    /// "Sankt Georgen", the phrase of the original track.
    pub(crate) const CONSTANT: Self = Self((SANKT * WORDS + GEORGEN.1) as u32);

    pub(super) fn index(self) -> usize {
        self.0 as usize
    }
}

/// Proper words of two or three syllables. None is a kind or an ending, so that a phrase occurs only where a name has it.
fn words() -> Vec<Word> {
    let mut random = Random::new(WORDS_SEED);
    let mut seen: HashSet<String> =
        KINDS.iter().chain(&ENDINGS).chain([&GEORGEN.0]).map(|word| word.to_lowercase()).collect();
    let mut words = Vec::with_capacity(WORDS);
    while words.len() < WORDS {
        if words.len() == GEORGEN.1 {
            words.push(Word { name: GEORGEN.0.to_owned(), ascii: GEORGEN.0.to_owned() });
            continue;
        }
        let ascii: String = (0..random.between(2, 3)).map(|_| syllable(&mut random)).collect();
        if seen.insert(ascii.clone()) {
            let (first, rest) = ascii.split_at(1);
            let ascii = format!("{}{rest}", first.to_uppercase());
            let has_umlaut = words.len() % 6 == 5;
            let name = if has_umlaut { ascii.replacen('u', "ü", 1) } else { ascii.clone() };
            words.push(Word { name, ascii });
        }
    }
    words
}

fn syllable(random: &mut Random) -> String {
    let mut one = |of: &[&'static str]| of[random.below(of.len() as u64) as usize];
    [one(&ONSETS), one(&VOWELS), one(&CODAS)].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_another_and_no_kind() {
        let names = Names::new();
        let lower: HashSet<String> = names.words.iter().map(|word| word.name.to_lowercase()).collect();
        assert_eq!(lower.len(), WORDS);
        assert!(KINDS.iter().chain(&ENDINGS).all(|word| !lower.contains(&word.to_lowercase())));
        assert_eq!(names.text(Phrase::CONSTANT), "Sankt Georgen");
        assert!(names.words.iter().any(|word| word.name != word.ascii));
    }

    #[test]
    fn a_phrase_is_the_beginning_of_its_name() {
        let names = Names::new();
        let mut random = Random::new(3);
        let mut phrases = 0;
        for _ in 0..1_000 {
            let name = names.draw(&mut random);
            let mut text = Vec::new();
            names.append(&mut text, name, false);
            let text = String::from_utf8(text).unwrap();
            if let Some(phrase) = name.phrase() {
                assert!(text.starts_with(&names.text(phrase)) && phrase.index() < Phrase::COUNT, "{text}");
                phrases += 1;
            }
        }
        assert!((700..800).contains(&phrases), "{phrases}");
    }
}
