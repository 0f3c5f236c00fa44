//! Places of the world in the form of esrally's `geonames` corpus: 17 fields, 311 bytes a line on average. They are
//! made up: frequencies follow rank laws, not the gazetteer.

use load::dataset::Random;
use wire::resp::write::decimal;

use super::names::{Name, Names, Phrase};
use super::slots::Slots;

/// The documents of the original corpus.
pub(crate) const DOCUMENTS: u64 = 11_396_503;
/// The domain of the random numbers of documents.
const DOMAIN: u64 = 0x6765_6f6e;
/// The number of the first place.
const FIRST_ID: u64 = 2_986_043;

/// Country codes, roughly by their number of places. A country has places in inverse proportion to its rank.
const COUNTRIES: &str = "US CN IN NO MX ID RU CA TH IR AU PK BR DE SE MM FI FR NP PH JP ZA KR KE UA ES AF TR GB CZ KP AT PL IT PE VN CO AR \
    MA GR YE DZ CL NZ BD MY LK VE IQ NG SA CD BO EC RO TZ LA SD UZ PT HU KZ TW BG SY ET MN CU TD GH BY NE MZ ML CF CI ZM AO CM MG NA IS GT BA \
    LY SO BF SN HR UG KH HN OM EG SI CH MR NI PA BJ TM GA BW ZW GN DO IE LR TN SK CG PG AZ RS KG LT SL DK ER HT TJ JO AM BE LV SV CR NL AL MW \
    PY MD EE IL GE RW TG SS UY BI LB FJ GL MK JM GY BT GW ME SR SB AE NC CY LS AQ PR KW XK PS VU QA SZ GM DJ KM BZ TT GQ GF PF BS LU BN TL WS \
    FM EH RE KI MQ CV MU TO GP FO MV BH MT SC AD LI HK ST KY VI AG GD DM LC BB VC FK GU MH PW AS MP CK TV NU WF PM TC VG AI MS KN BM AW CW SX \
    BQ BL MF YT GI GG JE IM SM MC VA MO SG NR TK PN NF CX CC IO SH GS TF HM BV UM SJ AX";
/// The country of the original track's constant query.
const AUSTRIA: &str = "AT";

/// Feature classes with their share in per mille and some of their codes, the most frequent first.
const CLASSES: [(&str, f64, &[&str]); 9] = [
    ("P", 390.0, &["PPL", "PPLX", "PPLA4", "PPLL", "PPLA3"]),
    ("S", 200.0, &["HTL", "SCH", "CH", "FRM", "BLDG", "HSP", "RSTN"]),
    ("H", 195.0, &["STM", "LK", "STMI", "SPNG", "RSV", "WLL"]),
    ("T", 140.0, &["HLL", "MT", "ISL", "PK", "VAL", "RDGE"]),
    ("A", 35.0, &["ADM3", "ADM4", "ADM2", "ADMD"]),
    ("L", 30.0, &["LCTY", "PRK", "AREA", "RGN"]),
    ("V", 4.5, &["FRST", "CULT", "SCRB"]),
    ("R", 4.5, &["RD", "TNL", "RDJCT"]),
    ("U", 1.0, &["SMU", "RDGU", "BNKU"]),
];

const ZONES: [&str; 24] = [
    "America/New_York",
    "America/Chicago",
    "Asia/Shanghai",
    "Asia/Kolkata",
    "Europe/Oslo",
    "America/Mexico_City",
    "Asia/Jakarta",
    "Europe/Moscow",
    "America/Toronto",
    "Asia/Bangkok",
    "Asia/Tehran",
    "Australia/Sydney",
    "Asia/Karachi",
    "America/Sao_Paulo",
    "Europe/Berlin",
    "Europe/Stockholm",
    "Asia/Yangon",
    "Europe/Helsinki",
    "Europe/Paris",
    "Asia/Kathmandu",
    "Asia/Manila",
    "Asia/Tokyo",
    "Africa/Johannesburg",
    "Europe/Vienna",
];

/// The searchable part of a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Terms {
    country: u8,
    class: u8,
    name: Name,
}

/// The generator of places.
#[derive(Debug)]
pub(crate) struct Geonames {
    seed: u64,
    countries: Vec<&'static str>,
    country_slots: Slots,
    class_slots: Slots,
    code_slots: Vec<Slots>,
    names: Names,
}

/// The number of documents with each term.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TermCounts {
    pub(crate) documents: u64,
    countries: Vec<u64>,
    classes: Vec<u64>,
    phrases: Vec<u32>,
}

impl Geonames {
    pub(crate) fn new(seed: u64) -> Self {
        let countries: Vec<&str> = COUNTRIES.split_whitespace().collect();
        let shares: Vec<f64> = CLASSES.iter().map(|(_, share, _)| *share).collect();
        Self {
            seed,
            country_slots: Slots::by_rank(countries.len()),
            countries,
            class_slots: Slots::new(&shares),
            code_slots: CLASSES.iter().map(|(_, _, codes)| Slots::by_rank(codes.len())).collect(),
            names: Names::new(),
        }
    }

    fn terms(&self, random: &mut Random) -> Terms {
        let country = self.country_slots.draw(random) as u8;
        let class = self.class_slots.draw(random) as u8;
        Terms { country, class, name: self.names.draw(random) }
    }

    /// Counts the terms of the documents 0 to `documents` - 1. It takes some 20 ns for each.
    pub(crate) fn count(&self, documents: u64) -> TermCounts {
        let mut counts = TermCounts {
            documents,
            countries: vec![0; self.countries.len()],
            classes: vec![0; CLASSES.len()],
            phrases: vec![0; Phrase::COUNT],
        };
        for index in 0..documents {
            let terms = self.terms(&mut Random::keyed(self.seed, DOMAIN, index));
            counts.countries[usize::from(terms.country)] += 1;
            counts.classes[usize::from(terms.class)] += 1;
            if let Some(phrase) = terms.name.phrase() {
                counts.phrases[phrase.index()] += 1;
            }
        }
        counts
    }

    /// Every country code with its number of documents.
    pub(crate) fn countries<'a>(
        &'a self,
        counts: &'a TermCounts,
    ) -> impl Iterator<Item = (&'static str, u64)> + 'a {
        self.countries.iter().copied().zip(counts.countries.iter().copied())
    }

    /// The country of the constant query.
    pub(crate) fn constant_country(&self, counts: &TermCounts) -> (&'static str, u64) {
        let number =
            self.countries(counts).find(|(code, _)| *code == AUSTRIA).map_or(0, |(_, number)| number);
        (AUSTRIA, number)
    }

    /// Every feature class with its number of documents.
    pub(crate) fn classes(counts: &TermCounts) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        CLASSES.iter().map(|(class, _, _)| *class).zip(counts.classes.iter().copied())
    }

    /// A phrase with its number of documents.
    pub(crate) fn phrase(&self, phrase: Phrase, counts: &TermCounts) -> (String, u64) {
        (self.names.text(phrase), counts.phrases[phrase.index()].into())
    }

    /// The phrase of a random document that has one; `None` if none of many has.
    pub(crate) fn sampled_phrase(&self, random: &mut Random, counts: &TermCounts) -> Option<Phrase> {
        // Three of four documents have one.
        (0..1_000).find_map(|_| {
            let index = random.below(counts.documents);
            self.terms(&mut Random::keyed(self.seed, DOMAIN, index)).name.phrase()
        })
    }

    /// Appends document `index` as one JSON line.
    pub(crate) fn append(&self, index: u64, out: &mut Vec<u8>) {
        let mut random = Random::keyed(self.seed, DOMAIN, index);
        let terms = self.terms(&mut random);
        out.extend_from_slice(b"{\"geonameid\":");
        decimal(out, FIRST_ID + index);
        self.append_names(out, terms.name, &mut random);
        let (class, _, codes) = CLASSES[usize::from(terms.class)];
        text(out, "feature_class", class);
        text(out, "feature_code", codes[self.code_slots[usize::from(terms.class)].draw(&mut random)]);
        text(out, "country_code", self.countries[usize::from(terms.country)]);
        append_codes(out, self.countries[usize::from(terms.country)], &mut random);
        append_numbers(out, class == "P", &mut random);
        text(out, "timezone", ZONES[usize::from(terms.country) % ZONES.len()]);
        append_location(out, &mut random);
        out.push(b'}');
    }

    fn append_names(&self, out: &mut Vec<u8>, name: Name, random: &mut Random) {
        open(out, "name");
        self.names.append(out, name, false);
        out.push(b'"');
        open(out, "asciiname");
        self.names.append(out, name, true);
        out.push(b'"');
        // Three of eight places have no other name, the others up to ten.
        let others = random.below(16).saturating_sub(5);
        if others > 0 {
            open(out, "alternatenames");
            for other in 0..others {
                if other > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(self.names.draw_word(random).as_bytes());
            }
            out.push(b'"');
        }
    }
}

/// The codes of districts: the smaller the district, the fewer places have one.
fn append_codes(out: &mut Vec<u8>, country: &str, random: &mut Random) {
    let draw = random.bits();
    if draw & 127 == 0 {
        text(out, "cc2", country);
    }
    number_text(out, "admin1_code", (draw >> 8) % 60);
    for (name, one_in, shift) in [("admin2_code", 2, 16), ("admin3_code", 4, 28), ("admin4_code", 16, 40)] {
        if (draw >> shift).is_multiple_of(one_in) {
            number_text(out, name, (draw >> shift) % 10_000);
        }
    }
}

fn append_numbers(out: &mut Vec<u8>, is_populated: bool, random: &mut Random) {
    let draw = random.bits();
    out.extend_from_slice(b",\"population\":");
    let population = if is_populated && draw & 7 == 0 { (draw >> 8) % 20_000 } else { 0 };
    decimal(out, population);
    let meters = (draw >> 32) % 3_000;
    if (draw >> 60) < 3 {
        out.extend_from_slice(b",\"elevation\":");
        decimal(out, meters);
    }
    number_text(out, "dem", meters);
}

/// Longitude and latitude with five decimals.
fn append_location(out: &mut Vec<u8>, random: &mut Random) {
    out.extend_from_slice(b",\"location\":[");
    hundred_thousandths(out, random.below(36_000_000) as i64 - 18_000_000);
    out.push(b',');
    hundred_thousandths(out, random.below(17_000_000) as i64 - 8_500_000);
    out.push(b']');
}

fn hundred_thousandths(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    let value = value.unsigned_abs();
    decimal(out, value / 100_000);
    out.push(b'.');
    let fraction = value % 100_000;
    out.extend([10_000, 1_000, 100, 10, 1].map(|unit| b'0' + (fraction / unit % 10) as u8));
}

fn open(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":\"");
}

fn text(out: &mut Vec<u8>, name: &str, value: &str) {
    open(out, name);
    out.extend_from_slice(value.as_bytes());
    out.push(b'"');
}

fn number_text(out: &mut Vec<u8>, name: &str, value: u64) {
    open(out, name);
    decimal(out, value);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use serde_json::Value;

    use super::*;

    const SAMPLE: u64 = 50_000;

    fn document(corpus: &Geonames, index: u64) -> Value {
        let mut out = Vec::new();
        corpus.append(index, &mut out);
        serde_json::from_slice(&out).unwrap()
    }

    #[test]
    fn documents_are_as_long_as_the_original_ones_with_the_same_fields() {
        let corpus = Geonames::new(1);
        let (mut out, mut fields) = (Vec::new(), BTreeSet::new());
        for index in 0..SAMPLE {
            corpus.append(index, &mut out);
            out.push(b'\n');
        }
        for line in out.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let value: BTreeMap<String, Value> = serde_json::from_slice(line).unwrap();
            fields.extend(value.into_keys());
        }
        let mean = out.len() as f64 / SAMPLE as f64;
        assert!((mean - 311.3).abs() < 1.0, "{mean}");
        assert_eq!(fields.len(), 17, "{fields:?}");
    }

    #[test]
    fn counted_terms_are_those_of_the_documents() {
        let corpus = Geonames::new(7);
        let counts = corpus.count(2_000);
        let documents: Vec<Value> = (0..2_000).map(|index| document(&corpus, index)).collect();
        let with = |field: &str, value: &str| documents.iter().filter(|it| it[field] == value).count() as u64;
        for (code, number) in corpus.countries(&counts) {
            assert_eq!(with("country_code", code), number, "{code}");
        }
        for (class, number) in Geonames::classes(&counts) {
            assert_eq!(with("feature_class", class), number, "{class}");
        }
        let mut random = Random::new(1);
        for _ in 0..50 {
            let phrase = corpus.sampled_phrase(&mut random, &counts).unwrap();
            let (text, number) = corpus.phrase(phrase, &counts);
            let has =
                |it: &&Value| format!("{} ", it["name"].as_str().unwrap()).contains(&format!("{text} "));
            assert_eq!(documents.iter().filter(has).count() as u64, number, "{text}");
            assert!(number > 0);
        }
    }

    #[test]
    fn the_terms_of_the_constant_queries_have_the_share_of_their_rank() {
        let corpus = Geonames::new(1);
        let codes: BTreeSet<&str> = corpus.countries.iter().copied().collect();
        assert!(codes.len() == corpus.countries.len() && codes.len() >= 245, "{}", codes.len());
        let counts = corpus.count(1_000_000);
        let (code, number) = corpus.constant_country(&counts);
        assert!(code == "AT" && (4_000..6_500).contains(&number), "{number}");
        let (text, number) = corpus.phrase(Phrase::CONSTANT, &counts);
        assert!(text == "Sankt Georgen" && (5..100).contains(&number), "{number}");
    }

    #[test]
    fn the_documents_of_a_seed_never_change() {
        let mut out = Vec::new();
        Geonames::new(1).append(12, &mut out);
        let expected = r#"{"geonameid":2986055,"name":"Los Delsomrind","asciiname":"Los Delsomrind","feature_class":"S","feature_code":"HTL","country_code":"US","admin1_code":"48","admin2_code":"414","population":0,"dem":"1135","timezone":"America/New_York","location":[64.73451,84.43097]}"#;
        assert_eq!(String::from_utf8(out).unwrap(), expected);
    }
}
