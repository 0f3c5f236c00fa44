//! The documents to index. They follow from a seed and their number alone, so that any connection can make any part of
//! them, and the number of hits of a query is known.

mod geonames;
mod logs;
mod names;
mod slots;

use serde::Deserialize;

pub(super) use geonames::{Geonames, TermCounts};
use logs::Logs;
pub(super) use names::Phrase;

/// The kind of documents.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum CorpusName {
    /// Places, as in esrally's track `geonames`.
    #[default]
    Geonames,
    /// Access logs of 1,432 bytes.
    Logs,
}

impl CorpusName {
    /// The name of the index if the target's URL has none.
    pub(super) fn index(self) -> &'static str {
        match self {
            Self::Geonames => "geonames",
            Self::Logs => "logs",
        }
    }

    /// The number of documents of the original.
    pub(super) fn documents(self) -> u64 {
        match self {
            Self::Geonames => geonames::DOCUMENTS,
            Self::Logs => logs::DOCUMENTS,
        }
    }

    /// The mean length of a document in a bulk request, bytes, rounded up.
    pub(super) fn document_bytes(self) -> u64 {
        match self {
            Self::Geonames => 325,
            Self::Logs => 1_446,
        }
    }
}

/// A generator of documents.
#[derive(Debug)]
pub(super) enum Corpus {
    Geonames(Box<Geonames>),
    Logs(Logs),
}

impl Corpus {
    pub(super) fn new(name: CorpusName, seed: u64) -> Self {
        match name {
            CorpusName::Geonames => Self::Geonames(Box::new(Geonames::new(seed))),
            CorpusName::Logs => Self::Logs(Logs::new(seed)),
        }
    }

    /// Appends document `index` as one JSON line, without its end.
    pub(super) fn append(&self, index: u64, out: &mut Vec<u8>) {
        match self {
            Self::Geonames(corpus) => corpus.append(index, out),
            Self::Logs(corpus) => corpus.append(index, out),
        }
    }
}
