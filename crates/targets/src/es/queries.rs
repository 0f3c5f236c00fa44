//! Search requests, written before the load, with the hits that the corpus must give.

use load::dataset::Random;
use serde_json::{Value, json};

use super::corpus::{Geonames, Phrase, TermCounts};
use super::options::OperationOptions;
use crate::request::{Format, RequestHead};

/// The number of phrases that an operation draws from.
const PHRASES: usize = 2_000;
/// The number of pages that `match-all` draws from.
const PAGES: u64 = 100;
/// The documents that a server returns if the request does not say.
const DEFAULT_ROWS: u64 = 10;
/// The domain of the random phrases.
const DOMAIN: u64 = 0x7068_7261;
/// How long a server keeps a scroll for its next page.
pub(super) const SCROLL_TIME: &str = "10s";

/// One request with its expected answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Query {
    /// The first request.
    pub(super) request: Vec<u8>,
    /// The number of documents that match.
    pub(super) total: u64,
    /// The number of documents that the first answer returns.
    pub(super) rows: u64,
}

/// The requests of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Search {
    pub(super) queries: Vec<Query>,
    /// The sums of the weights up to each query.
    pub(super) upto: Vec<u64>,
    /// The documents to fetch page by page, and those of a page.
    pub(super) scroll: Option<Scroll>,
    /// Whether answers have groups.
    pub(super) is_grouped: bool,
}

/// The pages of a scroll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Scroll {
    pub(super) pages: u32,
    pub(super) page_size: u32,
}

impl Search {
    /// A random query.
    pub(super) fn draw(&self, random: &mut Random) -> usize {
        match self.upto.last() {
            Some(sum) if self.queries.len() > 1 => {
                let at = random.below(*sum);
                self.upto.partition_point(|upto| *upto <= at)
            }
            _ => 0,
        }
    }
}

/// A body with the number of matching documents, and its weight among the others.
struct Body {
    json: Value,
    total: u64,
    weight: u64,
}

/// Writes the requests of searches.
pub(super) struct QueryWriter<'a> {
    pub(super) head: &'a RequestHead,
    pub(super) index: &'a str,
    pub(super) corpus: &'a Geonames,
    pub(super) counts: &'a TermCounts,
    pub(super) seed: u64,
}

impl QueryWriter<'_> {
    /// The requests of an operation; `None` for bulk requests. The error states which query finds nothing.
    pub(super) fn search(&self, operation: OperationOptions) -> Result<Option<Search>, String> {
        let path = |question: &str| format!("/{}/_search{question}", self.index);
        let search = match operation {
            OperationOptions::Bulk {} => return Ok(None),
            OperationOptions::Term { constant } => self.prepared(&path(""), self.terms(constant), 0, None)?,
            OperationOptions::Phrase { constant } => {
                self.prepared(&path(""), self.phrases(constant), 0, None)?
            }
            OperationOptions::MatchAll { constant } => self.pages(&path(""), constant)?,
            OperationOptions::CountryAgg { constant, cached } => {
                let target = path(&format!("?request_cache={cached}"));
                let mut search = self.prepared(&target, self.groups(constant), 0, Some(0))?;
                search.is_grouped = true;
                search
            }
            OperationOptions::Scroll { constant, pages, page_size } => {
                let target = path(&format!("?scroll={SCROLL_TIME}"));
                let bodies = self.by_class(constant).map(|(query, total)| Body {
                    json: json!({ "query": query, "size": page_size, "sort": ["_doc"] }),
                    total,
                    weight: 1,
                });
                let mut search = self.prepared(&target, bodies.collect(), 0, Some(page_size.into()))?;
                search.scroll = Some(Scroll { pages, page_size });
                search
            }
        };
        Ok(Some(search))
    }

    /// Countries by their number of documents, as a random document would have them.
    fn terms(&self, constant: bool) -> Vec<Body> {
        let countries = match constant {
            true => vec![self.corpus.constant_country(self.counts)],
            false => self.corpus.countries(self.counts).collect(),
        };
        let body = |(code, total)| Body {
            json: json!({ "query": { "term": { "country_code.raw": code } } }),
            total,
            weight: total,
        };
        countries.into_iter().map(body).collect()
    }

    fn phrases(&self, constant: bool) -> Vec<Body> {
        let phrases: Vec<Phrase> = if constant {
            vec![Phrase::CONSTANT]
        } else {
            let mut random = Random::keyed(self.seed, DOMAIN, 0);
            (0..PHRASES).filter_map(|_| self.corpus.sampled_phrase(&mut random, self.counts)).collect()
        };
        let body = |phrase| {
            let (text, total) = self.corpus.phrase(phrase, self.counts);
            Body { json: json!({ "query": { "match_phrase": { "name": text } } }), total, weight: 1 }
        };
        phrases.into_iter().map(body).collect()
    }

    /// The first page of all documents, or any of the first pages.
    fn pages(&self, target: &str, constant: bool) -> Result<Search, String> {
        let total = self.counts.documents;
        let pages = if constant { 1 } else { total.div_ceil(DEFAULT_ROWS).clamp(1, PAGES) };
        let mut search = Search { queries: Vec::new(), upto: Vec::new(), scroll: None, is_grouped: false };
        for page in 0..pages {
            let from = page * DEFAULT_ROWS;
            let json = match constant {
                true => json!({ "query": { "match_all": {} } }),
                false => json!({ "query": { "match_all": {} }, "from": from }),
            };
            let one = self.prepared(target, vec![Body { json, total, weight: 1 }], from, None)?;
            search.queries.extend(one.queries);
            search.upto.push(page + 1);
        }
        Ok(search)
    }

    /// All documents, or those of a feature class.
    fn by_class(&self, constant: bool) -> impl Iterator<Item = (Value, u64)> {
        let classes: Vec<(Value, u64)> = if constant {
            vec![(json!({ "match_all": {} }), self.counts.documents)]
        } else {
            Geonames::classes(self.counts)
                .map(|(class, total)| (json!({ "term": { "feature_class.raw": class } }), total))
                .collect()
        };
        classes.into_iter().filter(|(_, total)| *total > 0)
    }

    fn groups(&self, constant: bool) -> Vec<Body> {
        let groups = json!({
            "country_population": {
                "terms": { "field": "country_code.raw" },
                "aggs": { "sum_population": { "sum": { "field": "population" } } },
            },
        });
        let body = |(query, total)| Body {
            json: match constant {
                true => json!({ "size": 0, "aggs": groups }),
                false => json!({ "size": 0, "query": query, "aggs": groups }),
            },
            total,
            weight: 1,
        };
        self.by_class(constant).map(body).collect()
    }

    /// Writes requests. `from` documents are skipped, and at most `size` are returned.
    fn prepared(
        &self,
        target: &str,
        bodies: Vec<Body>,
        from: u64,
        size: Option<u64>,
    ) -> Result<Search, String> {
        let mut search = Search { queries: Vec::new(), upto: Vec::new(), scroll: None, is_grouped: false };
        let mut sum = 0;
        for body in bodies.into_iter().filter(|body| body.total > 0) {
            let mut request = Vec::new();
            self.head.append(&mut request, "POST", target, Format::Json, body.json.to_string().as_bytes());
            let rows = body.total.saturating_sub(from).min(size.unwrap_or(DEFAULT_ROWS));
            search.queries.push(Query { request, total: body.total, rows });
            sum += body.weight;
            search.upto.push(sum);
        }
        if search.queries.is_empty() {
            return Err(format!(
                "no document of {} has what it asks for; use more documents or constant = false",
                self.counts.documents
            ));
        }
        Ok(search)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(operation: OperationOptions, documents: u64) -> Result<Search, String> {
        let head = RequestHead { host: "h".to_owned(), login: None };
        let corpus = Geonames::new(1);
        let counts = corpus.count(documents);
        let writer = QueryWriter { head: &head, index: "i", corpus: &corpus, counts: &counts, seed: 1 };
        writer.search(operation).map(Option::unwrap)
    }

    fn text(query: &Query) -> String {
        String::from_utf8(query.request.clone()).unwrap()
    }

    #[test]
    fn constant_queries_are_those_of_the_original_track() {
        let term = search(OperationOptions::Term { constant: true }, 10_000).unwrap();
        assert!(text(&term.queries[0]).ends_with(r#"{"query":{"term":{"country_code.raw":"AT"}}}"#));
        assert!(term.queries.len() == 1 && term.queries[0].rows == 10);
        let phrase = search(OperationOptions::Phrase { constant: true }, 400_000).unwrap();
        assert!(text(&phrase.queries[0]).ends_with(r#"{"query":{"match_phrase":{"name":"Sankt Georgen"}}}"#));
        let scroll = OperationOptions::Scroll { constant: true, pages: 25, page_size: 1_000 };
        let scroll = search(scroll, 10_000).unwrap();
        assert!(text(&scroll.queries[0]).starts_with("POST /i/_search?scroll=10s HTTP/1.1\r\n"));
        assert_eq!((scroll.queries[0].total, scroll.queries[0].rows), (10_000, 1_000));
        let none = search(OperationOptions::Phrase { constant: true }, 10).unwrap_err();
        assert!(none.contains("no document of 10"), "{none}");
    }

    #[test]
    fn varied_queries_come_as_often_as_their_documents() {
        let term = search(OperationOptions::Term { constant: false }, 50_000).unwrap();
        assert!(
            term.queries.len() > 200 && term.queries.iter().map(|query| query.total).sum::<u64>() == 50_000
        );
        let mut random = Random::new(1);
        let largest = (0..10_000).filter(|_| term.draw(&mut random) == 0).count() as u64;
        assert!(largest.abs_diff(term.queries[0].total / 5) < 200, "{largest}");
        let phrase = search(OperationOptions::Phrase { constant: false }, 50_000).unwrap();
        assert!(phrase.queries.len() == PHRASES && phrase.queries.iter().all(|query| query.total > 0));
        let all = search(OperationOptions::MatchAll { constant: false }, 25).unwrap();
        assert_eq!(all.queries.iter().map(|query| query.rows).collect::<Vec<_>>(), [10, 10, 5]);
        let grouped = OperationOptions::CountryAgg { constant: false, cached: true };
        let grouped = search(grouped, 10_000).unwrap();
        assert!(grouped.is_grouped && text(&grouped.queries[0]).contains("?request_cache=true"));
        assert!(grouped.queries.iter().all(|query| query.rows == 0));
    }
}
