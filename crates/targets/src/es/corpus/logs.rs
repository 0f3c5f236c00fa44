//! Access logs of a web shop: 1,432 bytes a document, the size of the article's private log corpus.

use load::dataset::Random;
use wire::resp::write::decimal;

use super::slots::Slots;

/// 80 GB of documents, as in the article.
pub(crate) const DOCUMENTS: u64 = 55_865_922;
/// The mean length of a document, bytes.
const BYTES: usize = 1_432;
/// The lengths of documents are uniform within this distance of their mean.
const BYTES_AROUND: usize = 96;
const DOMAIN: u64 = 0x6c6f_6773;
/// The text from which messages are cut.
const TEXT_BYTES: usize = 64 * 1024;
const TEXT_SEED: u64 = 0x7465_7874;
/// The number of paths.
const PATHS: usize = 5_000;
/// 1 June 2017, 00:00 UTC, milliseconds since the epoch. A document follows each millisecond.
const BEGIN_MS: u64 = 1_496_275_200_000;
const COOKIE_BYTES: usize = 256;

const METHODS: [&str; 4] = ["GET", "POST", "PUT", "DELETE"];
const STATUSES: [&str; 8] = ["200", "304", "404", "302", "500", "403", "201", "503"];
const AGENTS: [&str; 5] = [
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/58.0.3029.110 Safari/537.36",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 10_3 like Mac OS X) AppleWebKit/603.1.30 (KHTML, like Gecko) Version/10.0 Mobile Safari/602.1",
    "Mozilla/5.0 (X11; Linux x86_64; rv:53.0) Gecko/20100101 Firefox/53.0",
    "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)",
    "okhttp/3.8.0",
];
const WORDS: [&str; 32] = [
    "request",
    "handled",
    "by",
    "worker",
    "after",
    "waiting",
    "for",
    "cache",
    "miss",
    "upstream",
    "answered",
    "with",
    "timeout",
    "retry",
    "order",
    "payment",
    "basket",
    "session",
    "expired",
    "user",
    "redirected",
    "to",
    "login",
    "token",
    "validated",
    "stored",
    "row",
    "fetched",
    "from",
    "replica",
    "within",
    "limit",
];

/// The generator of log lines.
#[derive(Debug)]
pub(crate) struct Logs {
    seed: u64,
    text: Vec<u8>,
    methods: Slots,
    statuses: Slots,
    agents: Slots,
    paths: Slots,
}

impl Logs {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random::new(TEXT_SEED);
        let mut text = Vec::with_capacity(TEXT_BYTES + BYTES);
        while text.len() < TEXT_BYTES {
            text.extend_from_slice(WORDS[random.below(WORDS.len() as u64) as usize].as_bytes());
            text.push(b' ');
            if random.below(8) == 0 {
                decimal(&mut text, random.below(1_000_000));
                text.push(b' ');
            }
        }
        Self {
            seed,
            text,
            methods: Slots::new(&[0.85, 0.12, 0.02, 0.01]),
            statuses: Slots::new(&[0.85, 0.05, 0.04, 0.03, 0.01, 0.01, 0.005, 0.005]),
            agents: Slots::by_rank(AGENTS.len()),
            paths: Slots::by_rank(PATHS),
        }
    }

    /// Appends document `index` as one JSON line.
    pub(crate) fn append(&self, index: u64, out: &mut Vec<u8>) {
        let mut random = Random::keyed(self.seed, DOMAIN, index);
        let begin = out.len();
        let length = BYTES - BYTES_AROUND + random.below(2 * BYTES_AROUND as u64 + 1) as usize;
        out.extend_from_slice(b"{\"@timestamp\":");
        decimal(out, BEGIN_MS + index);
        self.append_request(out, &mut random);
        out.extend_from_slice(b"\",\"trace_id\":\"");
        hexadecimal(out, 32, &mut random);
        out.extend_from_slice(b"\",\"cookie\":\"");
        hexadecimal(out, COOKIE_BYTES, &mut random);
        out.extend_from_slice(b"\",\"message\":\"");
        let rest = (begin + length).saturating_sub(out.len() + 2);
        let from = random.below((self.text.len() - BYTES) as u64) as usize;
        out.extend_from_slice(&self.text[from..from + rest]);
        out.extend_from_slice(b"\"}");
    }

    fn append_request(&self, out: &mut Vec<u8>, random: &mut Random) {
        out.extend_from_slice(b",\"clientip\":\"");
        let address = random.bits().to_le_bytes();
        for (number, byte) in address[..4].iter().enumerate() {
            if number > 0 {
                out.push(b'.');
            }
            decimal(out, u64::from(*byte));
        }
        for (name, value) in [
            ("\",\"method\":\"", METHODS[self.methods.draw(random)]),
            ("\",\"status\":", STATUSES[self.statuses.draw(random)]),
            (",\"agent\":\"", AGENTS[self.agents.draw(random)]),
            ("\",\"path\":\"", ""),
        ] {
            out.extend_from_slice(name.as_bytes());
            out.extend_from_slice(value.as_bytes());
        }
        self.append_path(out, random);
        out.extend_from_slice(b"\",\"bytes\":");
        let magnitude = random.bits() & 15;
        decimal(out, random.below(1 << magnitude));
        out.extend_from_slice(b",\"referrer\":\"http://shop.example.com");
        self.append_path(out, random);
    }

    fn append_path(&self, out: &mut Vec<u8>, random: &mut Random) {
        let path = self.paths.draw(random) as u64;
        out.extend_from_slice(b"/shop/");
        out.extend_from_slice(WORDS[(path % WORDS.len() as u64) as usize].as_bytes());
        out.extend_from_slice(b"/item-");
        decimal(out, path);
    }
}

/// Appends random hexadecimal digits, a multiple of 16.
fn hexadecimal(out: &mut Vec<u8>, digits: usize, random: &mut Random) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for _ in 0..digits / 16 {
        let bits = random.bits();
        out.extend((0..16).map(|place| DIGITS[(bits >> (4 * place)) as usize & 15]));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::Value;

    use super::*;

    #[test]
    fn documents_are_json_of_1432_bytes_on_average() {
        let corpus = Logs::new(1);
        let (mut out, mut sum) = (Vec::new(), 0);
        for index in 0..20_000 {
            out.clear();
            corpus.append(index, &mut out);
            let document: BTreeMap<String, Value> = serde_json::from_slice(&out).unwrap();
            assert_eq!(document.len(), 11, "{document:?}");
            assert!(document["message"].as_str().unwrap().len() > 300);
            assert!(out.len().abs_diff(BYTES) <= BYTES_AROUND);
            sum += out.len();
        }
        let mean = sum as f64 / 20_000.0;
        assert!((mean - 1_432.0).abs() < 1.0, "{mean}");
    }

    #[test]
    fn the_documents_of_a_seed_never_change() {
        let mut out = Vec::new();
        Logs::new(1).append(12, &mut out);
        let text = String::from_utf8(out).unwrap();
        let expected = r#"{"@timestamp":1496275200012,"clientip":"247.58.197.220","method":"GET","status":200,"agent":"Mozilla/5.0 (iPhone; CPU iPhone OS 10_3 like Mac OS X) AppleWebKit/603.1.30 (KHTML, like Gecko) Version/10.0 Mobile Safari/602.1","path":"/shop/miss/item-8","bytes":63,"referrer":"http://shop.example.com/shop/after/item-68","trace_id":"a0c074e3887b7be84d72a8504ed789f1"#;
        assert_eq!(&text[..expected.len()], expected);
    }
}
