//! The texts of queries in a URL: `sum:rate:1m-avg:cpu{host=*}{zone=wildcard(a*)}`.

use super::{Filter, Metric, QueryError, RateOptions, Selection, SubQuery, Tags};

/// Reads the text of a parameter `m`: an aggregator, then options, then a metric with filters, with colons between them.
///
/// # Errors
/// [`QueryError::Invalid`]: the text is not a sub query, or it asks for what needs histograms.
pub fn sub_query(text: &str) -> Result<SubQuery, QueryError> {
    let (mut query, metric) = parts(text)?;
    let (metric, filters) = metric_and_filters(metric)?;
    query.selection = Selection::Metric(Metric::Name(metric.to_owned()));
    query.filters = filters;
    Ok(query)
}

/// Reads the text of a parameter `tsuid`: an aggregator, then options, then TSUIDs with commas between them.
///
/// # Errors
/// [`QueryError::Invalid`]: the text is not a sub query, or it asks for what needs histograms.
pub fn tsuid_query(text: &str) -> Result<SubQuery, QueryError> {
    let (mut query, tsuids) = parts(text)?;
    query.selection = Selection::Tsuids(tsuids.split(',').map(str::to_owned).collect());
    Ok(query)
}

/// Reads a metric with tags: `cpu{host=web01,zone=a}`.
///
/// # Errors
/// [`QueryError::Invalid`]: the text has another form.
pub fn metric_and_tags(text: &str) -> Result<(String, Tags), QueryError> {
    let Some((metric, rest)) = text.split_once('{') else { return Ok((text.to_owned(), Tags::new())) };
    let tags = rest.strip_suffix('}').ok_or_else(|| missing_brace(text))?;
    let mut found = Tags::new();
    for tag in split_outside(tags, ',').into_iter().filter(|_| !tags.is_empty()) {
        let (name, value) = pair(tag)?;
        found.push((name.to_owned(), value.to_owned()));
    }
    Ok((metric.to_owned(), found))
}

/// What a lookup asks for. `*` stands for anything, here `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookupText {
    pub metric: Option<String>,
    /// The names and values of tags.
    pub tags: Vec<(Option<String>, Option<String>)>,
}

impl LookupText {
    /// Reads a metric with tags in which `*` or nothing stands for any metric, name or value: `cpu{host=*}`, `{=web01}`.
    ///
    /// # Errors
    /// [`QueryError::Invalid`]: the text has another form, or names neither a metric nor a tag.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        let (metric, tags) = text.split_once('{').map_or((text, Ok("")), |(metric, rest)| {
            (metric, rest.strip_suffix('}').ok_or_else(|| missing_brace(text)))
        });
        let pairs = split_outside(tags?, ',').into_iter().filter(|tag| !tag.is_empty());
        let pairs = pairs.map(|tag| {
            let pair = tag.split_once('=').filter(|(name, value)| !name.is_empty() || !value.is_empty());
            let (name, value) = pair.ok_or_else(|| QueryError::Invalid(format!("invalid tag: {tag}")))?;
            Ok((name.to_owned(), value.to_owned()))
        });
        Self::new(metric.to_owned(), pairs.collect::<Result<_, QueryError>>()?)
    }

    /// A lookup by a metric and tags in which `*` or nothing stands for anything.
    ///
    /// # Errors
    /// [`QueryError::Invalid`]: there is neither a metric nor a tag.
    pub fn new(metric: String, tags: Tags) -> Result<Self, QueryError> {
        if metric.is_empty() && tags.is_empty() {
            return Err(QueryError::invalid("Missing metric and tags. Please supply at least one value."));
        }
        let tags = tags.into_iter().map(|(name, value)| (known(name), known(value)));
        Ok(Self { metric: known(metric), tags: tags.collect() })
    }
}

/// `None` for `*` and for an empty text.
fn known(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty() && text != "*")
}

/// The aggregator and options of a sub query, and the text after its last colon.
fn parts(text: &str) -> Result<(SubQuery, &str), QueryError> {
    let parts = split_outside(text, ':');
    let (aggregator, options, last) = match parts.as_slice() {
        [aggregator, options @ .., last] if options.len() <= 3 => (*aggregator, options, *last),
        _ => {
            let number = if parts.len() < 2 { "not enough" } else { "too many" };
            return Err(QueryError::Invalid(format!(
                "Invalid parameter m={text} ({number} :-separated parts)"
            )));
        }
    };
    let mut query = SubQuery {
        aggregator: aggregator.to_owned(),
        selection: Selection::Tsuids(Vec::new()),
        downsample: None,
        rate: None,
        filters: Vec::new(),
        explicit_tags: false,
    };
    for option in options {
        let lower = option.to_ascii_lowercase();
        if lower.starts_with("rate") {
            query.rate = Some(rate_options(option)?);
        } else if lower.starts_with(|first: char| first.is_ascii_digit()) {
            query.downsample = Some((*option).to_owned());
        } else if lower.starts_with("explicit_tags") {
            query.explicit_tags = true;
        } else if lower.starts_with("percentiles") || lower.starts_with("show-histogram") {
            return Err(QueryError::invalid(
                "This server has no histograms, so it has no percentiles of them",
            ));
        } else if lower == "pre-agg" || lower == "rollup_nofallback" {
            return Err(QueryError::Invalid(format!(
                "'{option}' is not supported: this server has no rollups and reads what was written"
            )));
        } else if !lower.starts_with("rollup_") {
            return Err(QueryError::Invalid(format!("'{option}' is not an option of a sub query")));
        }
    }
    Ok((query, last))
}

/// Reads `rate` or `rate{counter[,max[,reset]]}`, or `dropcounter` for `counter`.
fn rate_options(text: &str) -> Result<RateOptions, QueryError> {
    let wrong = || QueryError::Invalid(format!("Invalid rate options specification: {text}"));
    let rest = text.get(4..).unwrap_or_default();
    if rest.is_empty() {
        return Ok(RateOptions::default());
    }
    let inner = rest.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')).ok_or_else(wrong)?;
    let parts: Vec<&str> = inner.split(',').collect();
    if parts.len() > 3 {
        return Err(wrong());
    }
    let number = |at: usize, what: &str, default: i64| match parts.get(at) {
        None | Some(&"") => Ok(default),
        Some(text) => text.parse().map_err(|_| {
            QueryError::Invalid(format!("{what} value of counter was not a number, received '{text}'"))
        }),
    };
    Ok(RateOptions {
        counter: parts[0].ends_with("counter"),
        counter_max: number(1, "Max", i64::MAX)?,
        reset_value: number(2, "Reset", 0)?,
        drop_resets: parts[0] == "dropcounter",
    })
}

/// Reads `metric`, `metric{grouping}` or `metric{grouping}{filters}`.
fn metric_and_filters(text: &str) -> Result<(&str, Vec<Filter>), QueryError> {
    if text.is_empty() {
        return Err(QueryError::invalid("Metric cannot be null or empty"));
    }
    let Some((metric, rest)) = text.split_once('{') else { return Ok((text, Vec::new())) };
    let rest = rest.strip_suffix('}').ok_or_else(|| missing_brace(text))?;
    let (grouping, others) = rest.split_once("}{").unwrap_or((rest, ""));
    let mut filters: Vec<Filter> = Vec::new();
    for (texts, group_by) in [(others, false), (grouping, true)] {
        for entry in split_outside(texts, ',').into_iter().filter(|entry| !entry.is_empty()) {
            let filter = pair(entry).and_then(|(tag, value)| Filter::of_tag(tag, value, group_by));
            filters.push(
                filter
                    .map_err(|error| QueryError::Invalid(format!("When parsing tag '{entry}': {error}")))?,
            );
        }
    }
    Ok((metric, filters))
}

fn missing_brace(text: &str) -> QueryError {
    QueryError::Invalid(format!("Missing '}}' at the end of: {text}"))
}

fn pair(text: &str) -> Result<(&str, &str), QueryError> {
    let pair = text.split_once('=').filter(|(name, value)| !name.is_empty() && !value.is_empty());
    pair.ok_or_else(|| QueryError::Invalid(format!("invalid tag: {text}")))
}

/// Splits at a separator outside braces and parentheses.
fn split_outside(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut begin, mut depth) = (Vec::new(), 0, 0_u32);
    for (at, character) in text.char_indices() {
        match character {
            '{' | '(' => depth += 1,
            '}' | ')' => depth = depth.saturating_sub(1),
            _ if character == separator && depth == 0 => {
                parts.push(&text[begin..at]);
                begin = at + separator.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(&text[begin..]);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filters(text: &str) -> Vec<String> {
        let shown = |filter: &Filter| {
            format!("{} {} {} {}", filter.tag, filter.kind.name, filter.text, filter.group_by)
        };
        sub_query(text).unwrap().filters.iter().map(shown).collect()
    }

    #[test]
    fn a_sub_query_has_options_and_filters() {
        let query =
            sub_query("sum:1m-avg-zero:rate{counter,100,5}:explicit_tags:sys.cpu{host=web01}").unwrap();
        assert_eq!(query.aggregator, "sum");
        assert_eq!(query.downsample.as_deref(), Some("1m-avg-zero"));
        let rate = query.rate.unwrap();
        assert!(rate.counter && rate.counter_max == 100 && rate.reset_value == 5 && !rate.drop_resets);
        assert!(query.explicit_tags);
        assert_eq!(query.selection, Selection::Metric(Metric::Name("sys.cpu".into())));
        assert!(sub_query("sum:rate{dropcounter}:m").unwrap().rate.unwrap().drop_resets);
        let tsuids = tsuid_query("sum:00AA,00BB").unwrap().selection;
        assert_eq!(tsuids, Selection::Tsuids(vec!["00AA".into(), "00BB".into()]));
    }

    #[test]
    fn the_first_braces_group_and_the_second_only_filter() {
        assert_eq!(
            filters("sum:m{host=*,zone=a|b}{os=not_literal_or(x|y),n=regexp(a{1,2}:b)}"),
            [
                "os not_literal_or x|y false",
                "n regexp a{1,2}:b false",
                "host wildcard * true",
                "zone literal_or a|b true"
            ]
        );
        assert!(filters("sum:m{}").is_empty());
        assert_eq!(filters("sum:m{}{host=web*}"), ["host wildcard web* false"]);
    }

    #[test]
    fn a_wrong_sub_query_is_refused() {
        for wrong in [
            "",
            "sum",
            "sum:",
            "a:b:c:d:e:f",
            "sum:m{",
            "sum:m{host}",
            "sum:m{host=}",
            "sum:rate{x:m",
            "sum:rate{counter,x}:m",
            "sum:percentiles[99]:m",
            "sum:fast:m",
            "sum:pre-agg:m",
            "sum:rollup_nofallback:m",
            "sum:m{host=regexp(()}",
        ] {
            assert!(sub_query(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_lookup_has_stars_for_anything() {
        let lookup = LookupText::parse("*{host=*,*=a}").unwrap();
        assert_eq!(lookup.metric, None);
        assert_eq!(lookup.tags, [(Some("host".into()), None), (None, Some("a".into()))]);
        let lookup = LookupText::parse("m{=web01,zone=}").unwrap();
        assert_eq!(lookup.tags, [(None, Some("web01".into())), (Some("zone".into()), None)]);
        for wrong in ["", "{}", "m{host", "m{host}", "m{=}"] {
            assert!(LookupText::parse(wrong).is_err(), "{wrong}");
        }
    }
}
