//! SQL for the doors: permissions on tables, and the query engine.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use model::limits::QueryLimits;
use model::{DEVICE_TAG, FieldType, Namespace, TableName};
use query::{Access, Engine, EngineStatus, ScalarValue, Session};
use store::{FieldColumn, Store, TableColumns, TagColumn, TagMatcher, TagPredicate};
use uuid::Uuid;

use crate::audit::{AUDIT_KEYS, AUDIT_TABLE, AUDIT_TAG};
use crate::caller::{Action, Caller};
use crate::databases::OpenDatabase;
use crate::dead_letter::{DEAD_LETTER_KEYS, DEAD_LETTER_TABLE};
use crate::hub::Hub;
use crate::registry::{Entity, EntityKind, Profile, Registry, own_table};
use crate::visible::sees;

// Words of the engine that are part of the hub's own interface.
pub use query::{
    Answer as SqlAnswer, Batches, DataType, Prepared, QueryError as SqlError, RecordBatch, SchemaRef,
};

/// A value for a parameter (`$1`, `$2`...). The engine converts it to the type that the statement needs.
#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    /// No value.
    Null,
    Bool(bool),
    /// An integer.
    I64(i64),
    /// A number.
    F64(f64),
    /// Text, also for other types such as times and decimals.
    Text(String),
    Bytes(Vec<u8>),
    /// Microseconds since 1970, UTC.
    Timestamp(i64),
    /// Days since 1970.
    Date(i32),
    /// An array. Its values other than NULL have one kind.
    List(Vec<Parameter>),
}

impl From<Parameter> for ScalarValue {
    fn from(parameter: Parameter) -> Self {
        match parameter {
            Parameter::Null => Self::Null,
            Parameter::Bool(value) => Self::Boolean(Some(value)),
            Parameter::I64(value) => Self::Int64(Some(value)),
            Parameter::F64(value) => Self::Float64(Some(value)),
            Parameter::Text(text) => Self::Utf8(Some(text)),
            Parameter::Bytes(bytes) => Self::Binary(Some(bytes)),
            Parameter::Timestamp(micros) => Self::TimestampMicrosecond(Some(micros), Some("UTC".into())),
            Parameter::Date(days) => Self::Date32(Some(days)),
            Parameter::List(values) => {
                // Those that are not NULL have one type, which is converted to the one that the statement needs.
                let mut types = values.iter().filter_map(Parameter::data_type);
                let element = types.next_back().unwrap_or(DataType::Null);
                let typed = |value: Parameter| match value {
                    Parameter::Null => Self::try_from(&element).unwrap_or(Self::Null),
                    other => Self::from(other),
                };
                let values: Vec<_> = values.into_iter().map(typed).collect();
                Self::List(Self::new_list_nullable(&values, &element))
            }
        }
    }
}

impl Parameter {
    /// About the bytes that it takes in memory.
    pub fn weight(&self) -> usize {
        size_of::<Self>()
            + match self {
                Self::Text(text) => text.len(),
                Self::Bytes(bytes) => bytes.len(),
                Self::List(values) => values.iter().map(Self::weight).sum(),
                _ => 0,
            }
    }

    /// The type of a parameter with this value, if the statement leaves it open.
    pub fn data_type(&self) -> Option<DataType> {
        match self {
            Self::Null => None,
            other => Some(ScalarValue::from(other.clone()).data_type()),
        }
    }
}

/// The reader of a query: a caller with a time limit.
#[derive(Debug, Clone)]
pub struct Reader {
    caller: Caller,
    /// The database whose tables it reads; the tenant's own one if it is not given.
    database: Option<OpenDatabase>,
    timeout: Option<Duration>,
}

impl From<Caller> for Reader {
    /// Reads the tables of the caller's tenant; a user of a customer only the rows of devices that are assigned to the customer. [`DEAD_LETTER_TABLE`] and [`AUDIT_TABLE`] are visible only with the
    /// permissions [`Action::ReadRefused`] and [`Action::ReadAudit`].
    fn from(caller: Caller) -> Self {
        Self { caller, database: None, timeout: None }
    }
}

impl Reader {
    /// The caller of the reader.
    pub fn caller(&self) -> &Caller {
        &self.caller
    }

    /// The reader with a time limit for queries, if it is below the operator's limit.
    #[must_use]
    pub fn with_timeout(self, timeout: Option<Duration>) -> Self {
        Self { timeout, ..self }
    }

    /// The reader of the tables of a database.
    #[must_use]
    pub fn in_database(self, database: OpenDatabase) -> Self {
        Self { database: (!database.is_own()).then_some(database), ..self }
    }

    /// The namespace of the tables that it reads.
    pub(crate) fn namespace(&self, registry: &Registry) -> Namespace {
        match &self.database {
            Some(database) => database.namespace().clone(),
            None => registry.namespace(self.caller.tenant()),
        }
    }

    /// A session of the engine for this reader of the tables of a store.
    pub(crate) fn session(&self, registry: &Registry, store: &Arc<dyn Store>) -> Session {
        let session = Session::new(self.caller.login()).of_tenant(self.caller.tenant().as_u128());
        let session = session.with_access(self.access(registry, store));
        if let Some(database) = &self.database {
            return self
                .limited(session.in_namespace(database.namespace().clone()).in_catalog(database.name()));
        }
        let namespace = registry.namespace(self.caller.tenant());
        let profiles = self.profiles(registry);
        let session = session.in_namespace(namespace.clone());
        let session = session.with_expected_tables(move || tables_to_come(&namespace, &profiles));
        self.limited(session)
    }

    /// A session with the reader's time limit.
    pub(crate) fn limited(&self, session: Session) -> Session {
        match self.timeout {
            Some(timeout) => session.with_timeout(timeout),
            None => session,
        }
    }

    /// What the reader may read of each table of the database. The tables of a user of a customer are those that have a series of a
    /// device of the customer, and those to which such a device will write.
    pub(crate) fn access(
        &self,
        registry: &Registry,
        store: &Arc<dyn Store>,
    ) -> impl Fn(&str) -> Access + Send + Sync + 'static {
        let is_own = self.database.is_none();
        let sees_refused = !is_own || self.caller.may(Action::ReadRefused);
        let sees_audit = !is_own || self.caller.may(Action::ReadAudit);
        let of_customer = self.caller.customer().map(|_| CustomerTables {
            namespace: self.namespace(registry),
            matchers: self.matchers(registry),
            expected: self.profiles(registry).iter().map(|profile| profile.table.clone()).collect(),
            store: Arc::clone(store),
        });
        move |table| {
            let is_seen = match table {
                DEAD_LETTER_TABLE => sees_refused,
                AUDIT_TABLE => sees_audit,
                _ => true,
            };
            match &of_customer {
                _ if !is_seen => Access::Nothing,
                None => Access::Everything,
                Some(of_customer) => of_customer.access(table),
            }
        }
    }

    /// The series that a user of a customer sees: those of the devices that are assigned to the customer, in every table.
    fn matchers(&self, registry: &Registry) -> Vec<TagMatcher> {
        let names = self.devices(registry).iter().map(|device| device.name().to_owned()).collect();
        vec![TagMatcher { tag: DEVICE_TAG.to_owned(), predicate: TagPredicate::OneOf(names) }]
    }

    /// The device profiles whose tables the reader sees before they have rows.
    fn profiles(&self, registry: &Registry) -> Vec<Arc<Profile>> {
        let mut profiles = registry.profiles(self.caller.tenant());
        if self.caller.customer().is_some() {
            let devices = self.devices(registry);
            let ids: HashSet<Uuid> = devices
                .iter()
                .filter_map(
                    |device| if let Entity::Device(device) = device { Some(device.profile.id) } else { None },
                )
                .collect();
            profiles.retain(|profile| ids.contains(&profile.id));
        }
        profiles
    }

    fn devices(&self, registry: &Registry) -> Vec<Entity> {
        registry.entities(self.caller.tenant(), EntityKind::Device, |entity| sees(&self.caller, entity))
    }
}

/// The tables of a user of a customer.
struct CustomerTables {
    namespace: Namespace,
    /// The series that the user sees.
    matchers: Vec<TagMatcher>,
    /// Tables that the user sees without a series too.
    expected: HashSet<TableName>,
    store: Arc<dyn Store>,
}

impl CustomerTables {
    fn access(&self, table: &str) -> Access {
        // A name against the rules is the name of no table.
        let Ok(name) = TableName::new(&self.namespace, table) else { return Access::Nothing };
        let is_seen = self.expected.contains(&name)
            || match self.store.snapshot(&name) {
                Ok(Some(table)) => table.select(&self.matchers).is_ok_and(|series| !series.is_empty()),
                Ok(None) | Err(_) => false,
            };
        if is_seen { Access::Series(self.matchers.clone()) } else { Access::Nothing }
    }
}

/// The tables of all profiles, of dead letters and of administrative acts, as they are before the first row.
fn tables_to_come(namespace: &Namespace, profiles: &[Arc<Profile>]) -> Vec<TableColumns> {
    let columns = |table: TableName, tag: &str, fields: &[&str]| TableColumns {
        table,
        tags: vec![TagColumn { tag: tag.into(), column: tag.into() }],
        fields: fields
            .iter()
            .map(|key| FieldColumn {
                key: (*key).into(),
                field_type: FieldType::String,
                column: (*key).into(),
                with_integers: false,
            })
            .collect(),
    };
    let mut tables: Vec<_> =
        profiles.iter().map(|profile| columns(profile.table.clone(), DEVICE_TAG, &[])).collect();
    tables.push(columns(own_table(namespace, DEAD_LETTER_TABLE), DEVICE_TAG, &DEAD_LETTER_KEYS));
    tables.push(columns(own_table(namespace, AUDIT_TABLE), AUDIT_TAG, &AUDIT_KEYS));
    tables
}

impl Hub {
    /// Starts the query engine. Call it once, before the doors start.
    pub fn open_sql(&self, limits: QueryLimits) -> Result<(), SqlError> {
        let engine = Engine::under(Arc::clone(self.memory_pressure()), Arc::clone(&self.store), limits)?;
        if self.sql.set(engine).is_err() {
            return Err(SqlError::Bug { message: "the SQL engine was started twice".into() });
        }
        Ok(())
    }

    /// Runs a statement. It produces rows as the caller takes them. Dropping the answer ends the query.
    pub async fn sql(
        &self,
        text: &str,
        parameters: Vec<Parameter>,
        reader: &Reader,
    ) -> Result<SqlAnswer, SqlError> {
        let session = reader.session(&self.registry, &self.store);
        if parameters.is_empty() {
            return self.engine()?.run(text, &session).await;
        }
        let types: Vec<_> = parameters.iter().map(Parameter::data_type).collect();
        let parameters: Vec<_> = parameters.into_iter().map(ScalarValue::from).collect();
        let engine = self.engine()?;
        let answer = engine.prepare(text, &types, &session).await?.run(parameters.clone(), &session).await;
        match answer {
            // A column changed in between. No client has seen its old type.
            Err(SqlError::ResultChanged) => {
                engine.prepare(text, &types, &session).await?.run(parameters, &session).await
            }
            answer => answer,
        }
    }

    /// Prepares a statement: its columns and parameter types. The statement determines types that are not given.
    pub async fn prepare_sql(
        &self,
        text: &str,
        types: &[Option<DataType>],
        reader: &Reader,
    ) -> Result<Prepared, SqlError> {
        self.engine()?.prepare(text, types, &reader.session(&self.registry, &self.store)).await
    }

    /// Runs a prepared statement.
    pub async fn run_sql(
        &self,
        prepared: &Prepared,
        parameters: Vec<Parameter>,
        reader: &Reader,
    ) -> Result<SqlAnswer, SqlError> {
        let parameters = parameters.into_iter().map(ScalarValue::from).collect();
        prepared.run(parameters, &reader.session(&self.registry, &self.store)).await
    }

    /// The load of the engine, if it was started.
    pub(crate) fn sql_status(&self) -> Option<EngineStatus> {
        self.sql.get().map(Engine::status)
    }

    pub(crate) fn engine(&self) -> Result<&Engine, SqlError> {
        self.sql
            .get()
            .ok_or_else(|| SqlError::Unsupported { message: "SQL is not started on this server".into() })
    }
}
