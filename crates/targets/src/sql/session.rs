//! One connection: it draws tables and ids, runs transactions and counts statements.

use std::io::Write as _;
use std::time::Duration;

use clients::CancelHandle;
use clients::sql::{Address, Client, SqlError, Statement, Value};
use load::dataset::{Random, Sampler, UniqueShare, digits};

use super::oltp::{OltpScript, Protocol, TablePer, Transaction};
use super::random::{RandomSelect, segment};
use super::statement::{Sql, Values};
use super::tables::{Tables, is_missing, last_id};
use super::tally::{Statements, Tally};

/// The longest INSERT of the loader and of `bulk_insert`, as in sysbench.
pub(super) const INSERT_BYTES: usize = 512 * 1024;
/// The domains of the random numbers of connections and of rows.
const CONNECTION_DOMAIN: u64 = 0x5e55;
pub(super) const ROW_DOMAIN: u64 = 1 << 32;

/// The parameters that all connections share.
#[derive(Debug)]
pub(super) struct Work<'a> {
    pub(super) address: &'a Address,
    pub(super) tables: &'a Tables,
    pub(super) transactions: &'a [Transaction],
    pub(super) ids: &'a Sampler,
    pub(super) unique: &'a UniqueShare,
    pub(super) statements: &'a Statements,
    /// The connections of all processes.
    pub(super) connections: u32,
    pub(super) seed: u64,
    pub(super) silence: Duration,
}

/// A connection with its prepared statements.
#[derive(Debug)]
pub struct Session {
    number: u32,
    client: Client,
    /// By table and statement.
    prepared: Vec<Option<Statement>>,
    /// By class.
    random_selects: Vec<Option<RandomSelect>>,
    begin: Option<Statement>,
    commit: Option<Statement>,
    random: Random,
    operations: u32,
    /// The last row of `bulk_insert` in the connection's own table; `None` if it must be queried.
    last_bulk_row: Option<u32>,
    text: Vec<u8>,
    c: Vec<u8>,
    pad: Vec<u8>,
}

impl Session {
    pub(super) fn open(work: &Work<'_>, number: u32) -> Result<Self, SqlError> {
        let mut session = Self {
            number,
            client: Client::connect(work.address, work.silence)?,
            prepared: Vec::new(),
            random_selects: Vec::new(),
            begin: None,
            commit: None,
            random: Random::keyed(work.seed, CONNECTION_DOMAIN, number.into()),
            operations: 0,
            last_bulk_row: None,
            text: Vec::new(),
            c: Vec::new(),
            pad: Vec::new(),
        };
        session.prepare(work)?;
        if work.transactions.iter().all(|transaction| transaction.kind == OltpScript::BulkInsert) {
            session.find_last_row(work)?;
        }
        Ok(session)
    }

    /// Opens the connection again. The random numbers continue.
    pub(super) fn reopen(&mut self, work: &Work<'_>) -> Result<(), SqlError> {
        self.client = Client::connect(work.address, work.silence)?;
        work.statements.add_reconnected();
        self.prepare(work)
    }

    pub(super) fn cancel_handle(&self) -> CancelHandle {
        self.client.cancel_handle()
    }

    pub(super) fn bytes(&self) -> (u64, u64) {
        self.client.bytes()
    }

    pub(super) fn quit(&mut self) {
        self.client.quit();
    }

    pub(super) fn number(&self) -> u32 {
        self.number
    }

    pub(super) fn reseed(&mut self, work: &Work<'_>, seed: u64) {
        self.random = Random::keyed(seed, CONNECTION_DOMAIN, self.number.into());
        // An alternating run may have written into the same table meanwhile.
        if self.last_bulk_row.take().is_some() {
            // A failure appears again in the next operation, which reports it.
            let _ = self.find_last_row(work);
        }
    }

    pub(super) fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    fn prepare(&mut self, work: &Work<'_>) -> Result<(), SqlError> {
        let mut wanted: Vec<Sql> = work.transactions.iter().flat_map(Transaction::to_prepare).collect();
        wanted.sort_by_key(|sql| *sql as usize);
        wanted.dedup();
        self.prepared = vec![None; work.tables.tables as usize * Sql::ALL.len()];
        for table in 1..=work.tables.tables {
            for sql in &wanted {
                let text = sql.prepared(work.address.dialect, table);
                self.prepared[place(table, *sql)] = self.client.prepare(&text, sql.types())?;
            }
        }
        self.random_selects.clear();
        for transaction in work.transactions {
            let Tables { distribution, table_size, .. } = work.tables;
            let part = segment(distribution, *table_size, self.number, work.connections);
            let dialect = work.address.dialect;
            self.random_selects.push(RandomSelect::open(&mut self.client, dialect, transaction, part)?);
        }
        let wraps = |t: &Transaction| t.is_wrapped() && t.protocol == Protocol::Prepared;
        if work.transactions.iter().any(wraps) {
            // MySQL cannot prepare BEGIN, so it is sent as text.
            self.begin = self.client.prepare("BEGIN", &[])?;
            self.commit = self.client.prepare("COMMIT", &[])?;
        }
        Ok(())
    }

    /// Runs one transaction of a class.
    pub(super) fn run(&mut self, work: &Work<'_>, class: usize) -> Result<Tally, SqlError> {
        let transaction = &work.transactions[class];
        let mut tally = Tally::default();
        let outcome = match transaction.kind {
            OltpScript::Insert => self.insert(work, &mut tally),
            OltpScript::BulkInsert => self.bulk_insert(work, &mut tally),
            OltpScript::SelectRandomPoints | OltpScript::SelectRandomRanges => {
                self.random_select(transaction, class, &mut tally)
            }
            _ => self.transaction(work, transaction, &mut tally),
        };
        work.statements.add(&tally);
        outcome?;
        self.operations += 1;
        if transaction.reconnect > 0 && self.operations.is_multiple_of(transaction.reconnect) {
            self.client.quit();
            self.reopen(work)?;
        }
        Ok(tally)
    }

    /// Rolls back a transaction that the server has aborted.
    pub(super) fn roll_back(&mut self, work: &Work<'_>) -> Result<(), SqlError> {
        self.client.run(b"ROLLBACK")?;
        work.statements.add(&Tally { other: 1, ..Tally::default() });
        Ok(())
    }

    fn transaction(
        &mut self,
        work: &Work<'_>,
        transaction: &Transaction,
        tally: &mut Tally,
    ) -> Result<(), SqlError> {
        let prepared = transaction.protocol == Protocol::Prepared;
        let wrapped = transaction.is_wrapped();
        if wrapped {
            self.control(if prepared { self.begin } else { None }, b"BEGIN", tally)?;
        }
        let of_transaction = self.table(work);
        for (sql, count) in transaction.groups() {
            let table = match transaction.table_per {
                TablePer::Transaction => of_transaction,
                TablePer::Group => self.table(work),
            };
            for _ in 0..count {
                self.step(work, transaction, sql, table, tally)?;
            }
        }
        if wrapped {
            self.control(if prepared { self.commit } else { None }, b"COMMIT", tally)?;
        }
        Ok(())
    }

    /// Runs one statement of a group. A delete comes before each insert of a transaction.
    fn step(
        &mut self,
        work: &Work<'_>,
        transaction: &Transaction,
        sql: Sql,
        table: u32,
        tally: &mut Tally,
    ) -> Result<(), SqlError> {
        let id = work.ids.sample(&mut self.random) as i32;
        let last = id.saturating_add(transaction.range_size as i32 - 1);
        let mut k = 0;
        match sql {
            Sql::OtherUpdate => self.draw_c(),
            Sql::Insert => {
                k = work.ids.sample(&mut self.random) as i32;
                self.draw_c();
                self.draw_pad();
                self.statement(transaction.protocol, Sql::Delete, table, (id, last, k), tally)?;
            }
            _ => {}
        }
        self.statement(transaction.protocol, sql, table, (id, last, k), tally)
    }

    fn statement(
        &mut self,
        protocol: Protocol,
        sql: Sql,
        table: u32,
        (id, last, k): (i32, i32, i32),
        tally: &mut Tally,
    ) -> Result<(), SqlError> {
        let (c, pad) = (Value::Text(&self.c), Value::Text(&self.pad));
        let prepared = match protocol {
            Protocol::Prepared => self.prepared[place(table, sql)],
            Protocol::Text => None,
        };
        let effect = match prepared {
            Some(statement) => match sql {
                Sql::Point | Sql::IndexUpdate | Sql::Delete => {
                    self.client.execute(statement, &[Value::Int(id)])
                }
                Sql::OtherUpdate => self.client.execute(statement, &[c, Value::Int(id)]),
                Sql::Insert => self.client.execute(statement, &[Value::Int(id), Value::Int(k), c, pad]),
                _ => self.client.execute(statement, &[Value::Int(id), Value::Int(last)]),
            },
            None => {
                sql.text(table, &Values { id, last, k, c: &self.c, pad: &self.pad }, &mut self.text);
                self.client.run(&self.text)
            }
        };
        let effect = effect.inspect_err(|error| tally.add_refused(sql, error))?;
        tally.add_done(sql, effect);
        Ok(())
    }

    fn control(
        &mut self,
        prepared: Option<Statement>,
        text: &[u8],
        tally: &mut Tally,
    ) -> Result<(), SqlError> {
        match prepared {
            Some(statement) => self.client.execute(statement, &[])?,
            None => self.client.run(text)?,
        };
        tally.other += 1;
        Ok(())
    }

    /// sysbench's `oltp_insert`: as text, one row; the id comes from the server or never repeats.
    fn insert(&mut self, work: &Work<'_>, tally: &mut Tally) -> Result<(), SqlError> {
        use clients::sql::Dialect;
        let table = self.table(work);
        let k = work.ids.sample(&mut self.random);
        self.draw_c();
        self.draw_pad();
        self.text.clear();
        let by_server = work.tables.auto_inc;
        let head = match (by_server, work.address.dialect) {
            (true, Dialect::Postgres) => {
                write!(self.text, "INSERT INTO sbtest{table} (k, c, pad) VALUES ({k}, '")
            }
            (true, Dialect::Mysql) => {
                write!(self.text, "INSERT INTO sbtest{table} (id, k, c, pad) VALUES (0, {k}, '")
            }
            (false, _) => {
                let id = i64::from(work.unique.next()) - (1 << 31);
                write!(self.text, "INSERT INTO sbtest{table} (id, k, c, pad) VALUES ({id}, {k}, '")
            }
        };
        head.expect("BUG: writing to memory cannot fail");
        self.text.extend_from_slice(&self.c);
        self.text.extend_from_slice(b"', '");
        self.text.extend_from_slice(&self.pad);
        self.text.extend_from_slice(b"')");
        let effect =
            self.client.run(&self.text).inspect_err(|error| tally.add_refused(Sql::Insert, error))?;
        tally.add_done(Sql::Insert, effect);
        Ok(())
    }

    /// sysbench's `bulk_insert`: rows (n, n) for the connection's own table, as many as fit into a statement.
    fn bulk_insert(&mut self, work: &Work<'_>, tally: &mut Tally) -> Result<(), SqlError> {
        let last = match self.last_bulk_row {
            Some(last) => last,
            None => self.find_last_row(work)?,
        };
        self.text.clear();
        write!(self.text, "INSERT INTO sbtest{} VALUES", self.own_table())
            .expect("BUG: writing to memory cannot fail");
        let mut row = last;
        // The longest row has 24 characters.
        while self.text.len() + 24 <= INSERT_BYTES {
            row += 1;
            let comma = if row == last + 1 { "" } else { "," };
            write!(self.text, "{comma}({row},{row})").expect("BUG: writing to memory cannot fail");
        }
        self.last_bulk_row = Some(row);
        let effect =
            self.client.run(&self.text).inspect_err(|error| tally.add_refused(Sql::Insert, error))?;
        tally.add_done(Sql::Insert, effect);
        tally.rows += effect.affected;
        Ok(())
    }

    /// Finds the last row of `bulk_insert`, so that new rows follow it. sysbench fills a table once and starts from 1;
    /// here the same tables are used again.
    fn find_last_row(&mut self, work: &Work<'_>) -> Result<u32, SqlError> {
        let table = self.own_table();
        let last = last_id(&mut self.client, table).map_err(|error| match error {
            SqlError::Refused { code, .. } if is_missing(&code) => {
                // The text has no table number, so that it is the same for all connections.
                let message = "a connection has no table of its own; run the load phase with as many connections as this phase has";
                SqlError::Refused { code, message: message.to_owned() }
            }
            other => other,
        })?;
        // The server counts the query.
        work.statements.add(&Tally { read: 1, ..Tally::default() });
        let last = u32::try_from(last).unwrap_or(0);
        self.last_bulk_row = Some(last);
        Ok(last)
    }

    /// The table of this connection alone.
    fn own_table(&self) -> u32 {
        self.number + 1
    }

    fn random_select(
        &mut self,
        transaction: &Transaction,
        class: usize,
        tally: &mut Tally,
    ) -> Result<(), SqlError> {
        let select = self.random_selects[class].as_ref().expect("BUG: it is opened with the connection");
        let outcome = select.run(&mut self.client, transaction, &mut self.random);
        let effect = outcome.inspect_err(|error| tally.add_refused(Sql::Range, error))?;
        tally.add_done(Sql::Range, effect);
        Ok(())
    }

    fn table(&mut self, work: &Work<'_>) -> u32 {
        1 + self.random.below(work.tables.tables.into()) as u32
    }

    fn draw_c(&mut self) {
        self.c.clear();
        digits(&mut self.random, 10, &mut self.c);
    }

    fn draw_pad(&mut self) {
        self.pad.clear();
        digits(&mut self.random, 5, &mut self.pad);
    }
}

fn place(table: u32, sql: Sql) -> usize {
    (table as usize - 1) * Sql::ALL.len() + sql as usize
}
