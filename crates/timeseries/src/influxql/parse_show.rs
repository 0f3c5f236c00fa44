//! Reads every statement that is not a SELECT.

use super::ast::{Keys, Listing, Measurement, RetentionPolicy, Show, Statement};
use super::parse::{Parser, at, found};
use super::token::{Token, TokenKind};

const STATEMENTS: [&str; 11] =
    ["SELECT", "DELETE", "SHOW", "CREATE", "DROP", "EXPLAIN", "GRANT", "REVOKE", "ALTER", "SET", "KILL"];
const SHOW: [&str; 16] = [
    "CONTINUOUS",
    "DATABASES",
    "DIAGNOSTICS",
    "FIELD",
    "GRANTS",
    "MEASUREMENT",
    "MEASUREMENTS",
    "QUERIES",
    "RETENTION",
    "SERIES",
    "SHARD",
    "SHARDS",
    "STATS",
    "SUBSCRIPTIONS",
    "TAG",
    "USERS",
];
const CREATE: [&str; 5] = ["CONTINUOUS", "DATABASE", "USER", "RETENTION", "SUBSCRIPTION"];
const DROP: [&str; 8] =
    ["CONTINUOUS", "DATABASE", "MEASUREMENT", "RETENTION", "SERIES", "SHARD", "SUBSCRIPTION", "USER"];

/// Which clauses a SHOW statement takes.
#[derive(Clone, Copy, PartialEq)]
enum Clauses {
    /// ON only.
    Database,
    /// FROM, WHERE, ORDER BY, LIMIT, OFFSET.
    Listing,
    /// FROM, WHERE, GROUP BY, LIMIT, OFFSET.
    Cardinality,
}

impl Parser<'_> {
    pub(super) fn statement(&mut self) -> Result<Statement, String> {
        match self.word(&STATEMENTS)? {
            "SELECT" => self.select().map(|select| Statement::Select(Box::new(select))),
            "DELETE" => {
                let (from, condition) = self.selected_series()?;
                Ok(Statement::Delete { from, condition })
            }
            "SHOW" => self.show(),
            "CREATE" => self.create(),
            "DROP" => self.drop(),
            "ALTER" => {
                self.expect("RETENTION")?;
                self.expect("POLICY")?;
                self.alter_policy()
            }
            "EXPLAIN" => self.refuse("EXPLAIN"),
            "GRANT" => self.refuse("GRANT"),
            "REVOKE" => self.refuse("REVOKE"),
            "SET" => self.refuse("SET PASSWORD"),
            _ => self.refuse("KILL QUERY"),
        }
    }

    /// One of some keywords.
    fn word(&mut self, words: &[&'static str]) -> Result<&'static str, String> {
        let token = self.next();
        words.iter().find(|word| token.is(word)).copied().ok_or_else(|| found(&token, words))
    }

    /// Skips a statement that the server does not have.
    fn refuse(&mut self, what: &'static str) -> Result<Statement, String> {
        loop {
            let token: Token = self.next();
            match token.kind {
                TokenKind::Eof | TokenKind::Mark(";") => {
                    self.back();
                    return Ok(Statement::Refused(what));
                }
                TokenKind::BadString => return Err(found(&token, &["string"])),
                _ => {}
            }
        }
    }

    fn create(&mut self) -> Result<Statement, String> {
        match self.word(&CREATE)? {
            "DATABASE" => self.create_database(),
            "RETENTION" => {
                self.expect("POLICY")?;
                self.create_policy()
            }
            "CONTINUOUS" => self.refuse("CREATE CONTINUOUS QUERY"),
            "USER" => self.refuse("CREATE USER"),
            _ => self.refuse("CREATE SUBSCRIPTION"),
        }
    }

    fn create_database(&mut self) -> Result<Statement, String> {
        let name = self.ident()?;
        if !self.take("WITH") {
            return Ok(Statement::CreateDatabase { name, duration: None, policy: None });
        }
        self.word(&["DURATION", "NAME", "REPLICATION", "SHARD"])?;
        self.back();
        let duration = if self.take("DURATION") { Some(self.duration()?) } else { None };
        if self.take("REPLICATION") {
            self.positive()?;
        }
        if self.take("SHARD") {
            self.expect("DURATION")?;
            self.duration()?;
        }
        let policy = if self.take("NAME") { Some(self.ident()?) } else { None };
        Ok(Statement::CreateDatabase { name, duration, policy })
    }

    fn positive(&mut self) -> Result<(), String> {
        let token = self.next();
        if token.kind != TokenKind::Integer {
            return Err(found(&token, &["integer"]));
        }
        match token.text.parse::<i64>() {
            Ok(1..=2_147_483_647) => Ok(()),
            _ => {
                Err(format!("invalid value {}: must be 1 <= n <= 2147483647{}", token.text, at(token.place)))
            }
        }
    }

    fn create_policy(&mut self) -> Result<Statement, String> {
        let name = self.ident()?;
        self.expect("ON")?;
        let database = self.ident()?;
        self.expect("DURATION")?;
        let duration = Some(self.duration()?);
        self.expect("REPLICATION")?;
        self.positive()?;
        if self.take("SHARD") {
            self.expect("DURATION")?;
            self.duration()?;
        }
        self.take("DEFAULT");
        Ok(Statement::RetentionPolicy(RetentionPolicy { create: true, name, database, duration }))
    }

    fn alter_policy(&mut self) -> Result<Statement, String> {
        let name = if self.take("DEFAULT") { "default".to_owned() } else { self.ident()? };
        self.expect("ON")?;
        let database = self.ident()?;
        let mut policy = RetentionPolicy { create: false, name, database, duration: None };
        self.word(&["DURATION", "REPLICATION", "SHARD", "DEFAULT"])?;
        self.back();
        loop {
            let token = self.next();
            match token.kind {
                TokenKind::Word("DURATION") => policy.duration = Some(self.duration()?),
                TokenKind::Word("REPLICATION") => self.positive()?,
                TokenKind::Word("SHARD") => {
                    self.expect("DURATION")?;
                    self.duration()?;
                }
                TokenKind::Word("DEFAULT") => {}
                _ => {
                    self.back();
                    return Ok(Statement::RetentionPolicy(policy));
                }
            }
        }
    }

    fn drop(&mut self) -> Result<Statement, String> {
        match self.word(&DROP)? {
            "DATABASE" => Ok(Statement::DropDatabase { name: self.ident()? }),
            "MEASUREMENT" => Ok(Statement::DropMeasurement { name: self.ident()? }),
            "SERIES" => {
                let (from, condition) = self.selected_series()?;
                Ok(Statement::DropSeries { from, condition })
            }
            "CONTINUOUS" => self.refuse("DROP CONTINUOUS QUERY"),
            "RETENTION" => self.refuse("DROP RETENTION POLICY"),
            "SHARD" => self.refuse("DROP SHARD"),
            "SUBSCRIPTION" => self.refuse("DROP SUBSCRIPTION"),
            _ => self.refuse("DROP USER"),
        }
    }

    /// FROM and WHERE of DELETE and DROP SERIES.
    fn selected_series(&mut self) -> Result<(Vec<Measurement>, Option<super::ast::Expr>), String> {
        let first = self.next();
        let mut from = Vec::new();
        match first.is("FROM") {
            true => from = self.measurements()?,
            false => self.back(),
        }
        for measurement in &from {
            if !measurement.database.is_empty() {
                return Err("database not supported at line 1, char 1".to_owned());
            }
            if !measurement.policy.is_empty() {
                return Err("retention policy not supported at line 1, char 1".to_owned());
            }
        }
        let condition = self.condition()?;
        if from.is_empty() && condition.is_none() {
            return Err(found(&first, &["FROM", "WHERE"]));
        }
        Ok((from, condition))
    }

    fn show(&mut self) -> Result<Statement, String> {
        let show = match self.word(&SHOW)? {
            "CONTINUOUS" => {
                self.expect("QUERIES")?;
                plain(Listing::ContinuousQueries)
            }
            "DATABASES" => plain(Listing::Databases),
            "DIAGNOSTICS" => self.module(Listing::Diagnostics)?,
            "STATS" => self.module(Listing::Stats)?,
            "FIELD" => match self.word(&["KEY", "KEYS"])? {
                "KEYS" => self.clauses(Listing::FieldKeys, Clauses::Listing)?,
                _ => self.cardinality(Listing::FieldKeyCardinality)?,
            },
            "GRANTS" => return self.refuse("SHOW GRANTS"),
            "MEASUREMENT" => self.cardinality_words(Listing::MeasurementCardinality)?,
            "MEASUREMENTS" => self.clauses(Listing::Measurements, Clauses::Listing)?,
            "QUERIES" => plain(Listing::Queries),
            "RETENTION" => {
                self.expect("POLICIES")?;
                self.clauses(Listing::RetentionPolicies, Clauses::Database)?
            }
            "SERIES" => self.show_series()?,
            "SHARD" => {
                self.expect("GROUPS")?;
                plain(Listing::ShardGroups)
            }
            "SHARDS" => plain(Listing::Shards),
            "SUBSCRIPTIONS" => plain(Listing::Subscriptions),
            "TAG" => match self.word(&["KEY", "KEYS", "VALUES"])? {
                "KEYS" => self.clauses(Listing::TagKeys, Clauses::Listing)?,
                "VALUES" => self.show_tag_values()?,
                _ => self.cardinality(Listing::TagKeyCardinality)?,
            },
            _ => plain(Listing::Users),
        };
        Ok(Statement::Show(Box::new(show)))
    }

    /// `FOR 'module'` of SHOW STATS and SHOW DIAGNOSTICS.
    fn module(&mut self, listing: Listing) -> Result<Show, String> {
        if self.take("FOR") {
            let token = self.next();
            if token.kind != TokenKind::String {
                return Err(found(&token, &["string"]));
            }
        }
        Ok(plain(listing))
    }

    fn show_series(&mut self) -> Result<Show, String> {
        let exact = self.take("EXACT");
        if self.take("CARDINALITY") {
            let mut show = self.clauses(Listing::SeriesCardinality, Clauses::Cardinality)?;
            show.exact = exact;
            return Ok(show);
        }
        self.clauses(Listing::Series, Clauses::Listing)
    }

    fn show_tag_values(&mut self) -> Result<Show, String> {
        let token = self.next();
        let exact = token.is("EXACT");
        if exact || token.is("CARDINALITY") {
            if exact {
                self.expect("CARDINALITY")?;
            }
            let mut show = self.clauses(Listing::TagValuesCardinality, Clauses::Cardinality)?;
            show.exact = exact;
            return Ok(show);
        }
        self.back();
        self.clauses(Listing::TagValues, Clauses::Listing)
    }

    /// `[EXACT] CARDINALITY` and the clauses behind it.
    fn cardinality(&mut self, listing: Listing) -> Result<Show, String> {
        self.cardinality_words(listing)
    }

    fn cardinality_words(&mut self, listing: Listing) -> Result<Show, String> {
        let exact = self.word(&["EXACT", "CARDINALITY"])? == "EXACT";
        if exact {
            self.expect("CARDINALITY")?;
        }
        let mut show = self.clauses(listing, Clauses::Cardinality)?;
        show.exact = exact;
        Ok(show)
    }

    fn clauses(&mut self, listing: Listing, clauses: Clauses) -> Result<Show, String> {
        let mut show = plain(listing);
        if self.take("ON") {
            show.database = self.ident()?;
        }
        if clauses == Clauses::Database {
            return Ok(show);
        }
        match listing {
            Listing::Measurements => {
                if self.take("WITH") {
                    self.expect("MEASUREMENT")?;
                    let token = self.next();
                    if !token.is("=") && !token.is("=~") {
                        return Err(found(&token, &["=", "=~"]));
                    }
                    show.from.push(self.measurement()?);
                }
            }
            _ => {
                if self.take("FROM") {
                    show.from = self.measurements()?;
                }
            }
        }
        if matches!(listing, Listing::TagValues | Listing::TagValuesCardinality) {
            show.keys = Some(self.keys()?);
        }
        if listing != Listing::FieldKeys {
            show.condition = self.condition()?;
        }
        match clauses {
            Clauses::Cardinality => {
                if !self.dimensions()?.is_empty() {
                    return Err("GROUP BY is not supported in SHOW ... CARDINALITY".to_owned());
                }
            }
            _ => drop(self.order()?),
        }
        show.limit = self.optional_number("LIMIT")?;
        show.offset = self.optional_number("OFFSET")?;
        Ok(show)
    }

    fn keys(&mut self) -> Result<Keys, String> {
        self.expect("WITH")?;
        self.expect("KEY")?;
        let token = self.next();
        match token.kind {
            TokenKind::Word("IN") => {
                self.expect("(")?;
                let mut names = vec![self.ident()?];
                while self.take(",") {
                    names.push(self.ident()?);
                }
                self.expect(")")?;
                Ok(Keys::OneOf(names))
            }
            TokenKind::Mark("=") => self.ident().map(Keys::Is),
            TokenKind::Mark("!=") => self.ident().map(Keys::IsNot),
            TokenKind::Mark(mark @ ("=~" | "!~")) => match self.regex()? {
                Some(pattern) if mark == "=~" => Ok(Keys::Matches(pattern)),
                Some(pattern) => Ok(Keys::MatchesNot(pattern)),
                None => Err(found(&self.next(), &["regex"])),
            },
            _ => Err(found(&token, &["IN", "=", "=~"])),
        }
    }
}

fn plain(listing: Listing) -> Show {
    Show {
        listing,
        database: String::new(),
        from: Vec::new(),
        keys: None,
        condition: None,
        exact: false,
        limit: 0,
        offset: 0,
    }
}
