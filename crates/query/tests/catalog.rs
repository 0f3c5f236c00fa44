//! PostgreSQL's catalog. `tests/e2e` runs the statements of real clients; these tests check their elements.

use model::ValueRef;
use query::{Access, Engine, QueryError, Session};

use crate::support::{engine, fleet, put, refusal, rows, text, user};

async fn rows_of(engine: &Engine, sql: &str, session: &Session) -> Vec<String> {
    let answer = engine.run(sql, session).await.unwrap_or_else(|error| panic!("{sql}: {error}"));
    text(&answer.collect().await.unwrap()).into_iter().map(|row| row.join(" ")).collect()
}

fn public() -> Session {
    let rule = |table: &str| if table == "dead_letter" { Access::Nothing } else { Access::Everything };
    Session::new("public").with_access(rule)
}

/// The query of pgjdbc's `DatabaseMetaData.getTables`.
const JDBC_TABLES: &str = "SELECT current_database() AS \"TABLE_CAT\", n.nspname AS \"TABLE_SCHEM\", \
    c.relname AS \"TABLE_NAME\", CASE n.nspname ~ '^pg_' OR n.nspname = 'information_schema' \
    WHEN true THEN CASE c.relkind WHEN 'r' THEN 'SYSTEM TABLE' WHEN 'v' THEN 'SYSTEM VIEW' ELSE NULL END \
    WHEN false THEN CASE c.relkind WHEN 'r' THEN 'TABLE' WHEN 'v' THEN 'VIEW' ELSE NULL END ELSE NULL END \
    AS \"TABLE_TYPE\", d.description AS \"REMARKS\", '' AS \"TYPE_CAT\", '' AS \"TYPE_SCHEM\", '' AS \"TYPE_NAME\" \
    FROM pg_catalog.pg_namespace n, pg_catalog.pg_class c LEFT JOIN pg_catalog.pg_description d \
    ON (c.oid = d.objoid AND d.objsubid = 0 AND d.classoid = 'pg_class'::regclass) \
    WHERE c.relnamespace = n.oid AND n.nspname LIKE 'public' AND c.relname LIKE 't%' \
    AND (false OR (c.relkind = 'r' AND n.nspname !~ '^pg_' AND n.nspname <> 'information_schema')) \
    ORDER BY \"TABLE_TYPE\", \"TABLE_SCHEM\", \"TABLE_NAME\"";

/// The query of its `getColumns`.
const JDBC_COLUMNS: &str = "SELECT * FROM (SELECT n.nspname, c.relname, a.attname, a.atttypid, \
    a.attnotnull OR (t.typtype = 'd' AND t.typnotnull) AS attnotnull, a.atttypmod, a.attlen, \
    row_number() OVER (PARTITION BY a.attrelid ORDER BY a.attnum) AS attnum, \
    nullif(a.attidentity, '') AS attidentity, nullif(a.attgenerated, '') AS attgenerated, \
    pg_catalog.pg_get_expr(def.adbin, def.adrelid) AS adsrc, dsc.description, t.typbasetype, t.typtype \
    FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_class c ON (c.relnamespace = n.oid) \
    JOIN pg_catalog.pg_attribute a ON (a.attrelid = c.oid) JOIN pg_catalog.pg_type t ON (a.atttypid = t.oid) \
    LEFT JOIN pg_catalog.pg_attrdef def ON (a.attrelid = def.adrelid AND a.attnum = def.adnum) \
    LEFT JOIN pg_catalog.pg_description dsc ON (c.oid = dsc.objoid AND a.attnum = dsc.objsubid) \
    LEFT JOIN pg_catalog.pg_class dc ON (dc.oid = dsc.classoid AND dc.relname = 'pg_class') \
    LEFT JOIN pg_catalog.pg_namespace dn ON (dc.relnamespace = dn.oid AND dn.nspname = 'pg_catalog') \
    WHERE c.relkind in ('r','p','v','f','m') AND a.attnum > 0 AND NOT a.attisdropped \
    AND n.nspname LIKE 'public' AND c.relname LIKE 'weather') c WHERE true ORDER BY nspname, c.relname, attnum";

/// The query of its `getPrimaryKeys`.
const JDBC_KEYS: &str = "SELECT NULL AS TABLE_CAT, n.nspname AS TABLE_SCHEM, ct.relname AS TABLE_NAME, a.attname AS COLUMN_NAME, \
    (information_schema._pg_expandarray(i.indkey)).n AS KEY_SEQ, ci.relname AS PK_NAME \
    FROM pg_catalog.pg_class ct JOIN pg_catalog.pg_attribute a ON (ct.oid = a.attrelid) \
    JOIN pg_catalog.pg_namespace n ON (ct.relnamespace = n.oid) JOIN pg_catalog.pg_index i ON (a.attrelid = i.indrelid) \
    JOIN pg_catalog.pg_class ci ON (ci.oid = i.indexrelid) WHERE true AND ct.relname = 'weather' AND i.indisprimary";

/// Its query of a type.
const JDBC_TYPE: &str = "SELECT n.nspname = ANY(current_schemas(true)), n.nspname, t.typname \
    FROM pg_catalog.pg_type t JOIN pg_catalog.pg_namespace n ON t.typnamespace = n.oid WHERE t.oid = 701";

#[tokio::test]
async fn drivers_of_java_find_tables_and_columns() {
    let engine = engine(fleet());
    assert_eq!(rows(&engine, JDBC_TABLES).await, ["tacho public telemetry TABLE NULL   "]);
    let columns: Vec<_> = rows(&engine, JDBC_COLUMNS).await;
    let number = rows(&engine, "SELECT 'weather'::regclass::oid").await.remove(0);
    let expected = [
        "public weather kind 25 false -1 -1 1 NULL NULL NULL NULL 0 b",
        "public weather site 25 false -1 -1 2 NULL NULL NULL NULL 0 b",
        "public weather ts 1184 true -1 8 3 NULL NULL NULL NULL 0 b",
        "public weather celsius 701 false -1 8 4 NULL NULL NULL NULL 0 b",
    ];
    assert_eq!(columns, expected, "{number}");
    assert_eq!(rows(&engine, JDBC_KEYS).await, [""; 0]);
    assert_eq!(rows(&engine, JDBC_TYPE).await, ["true pg_catalog float8"]);
}

#[tokio::test]
async fn a_number_leads_to_its_table_and_back() {
    let store = fleet();
    let engine = engine(store.clone());
    let number = rows(&engine, "SELECT oid FROM pg_class WHERE relname = 'weather'").await.remove(0);
    for (sql, expected) in [
        (format!("SELECT relname FROM pg_catalog.pg_class WHERE oid = '{number}'"), "weather"),
        (format!("SELECT {number}::regclass::text"), "weather"),
        ("SELECT 'public.weather'::regclass".into(), &*number),
        ("SELECT to_regclass('weather')".into(), &*number),
        ("SELECT to_regclass('nothing')".into(), "NULL"),
        ("SELECT regclass 'pg_class'".into(), "1259"),
        (
            "SELECT relname FROM pg_class c WHERE c.oid = 'pg_catalog.pg_type'::pg_catalog.regclass".into(),
            "pg_type",
        ),
        ("SELECT 1184::regtype::text".into(), "timestamp with time zone"),
        ("SELECT 'timestamptz'::regtype::oid".into(), "1184"),
        ("SELECT 2200::regnamespace::pg_catalog.text".into(), "public"),
    ] {
        assert_eq!(rows(&engine, &sql).await, [expected], "{sql}");
    }
    assert!(refusal(&engine, "SELECT 'nothing'::regclass").await.to_string().contains("does not exist"));
    // New tables do not change the number.
    for name in ["a", "w", "weather2", "z"] {
        put(&*store, name, &[("device", "x")], 0, &[("value", ValueRef::F64(1.0))]);
    }
    assert_eq!(rows(&engine, "SELECT oid FROM pg_class WHERE relname = 'weather'").await, [number]);
}

#[tokio::test]
async fn a_user_sees_only_readable_tables() {
    let engine = engine(fleet());
    let lists = [
        "SELECT relname FROM pg_class WHERE relname = 'dead_letter'",
        "SELECT attname FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid WHERE relname = 'dead_letter' AND attname = 'ts'",
        "SELECT tablename FROM pg_tables WHERE tablename = 'dead_letter'",
        "SELECT table_name FROM information_schema.tables WHERE table_name = 'dead_letter'",
        "SELECT column_name FROM information_schema.columns WHERE table_name = 'dead_letter' AND column_name = 'ts'",
        "SELECT privilege_type FROM information_schema.table_privileges WHERE table_name = 'dead_letter'",
        "SELECT 1 WHERE to_regclass('dead_letter') IS NOT NULL",
        "SELECT 1 WHERE has_table_privilege('dead_letter', 'SELECT')",
    ];
    for sql in lists {
        assert_eq!(rows(&engine, sql).await.len(), 1, "{sql}");
        assert_eq!(rows_of(&engine, sql, &public()).await, [""; 0], "{sql}");
    }
    let writes =
        "SELECT has_table_privilege('weather', 'INSERT'), has_table_privilege('tester', 'weather', 'SELECT')";
    assert_eq!(rows(&engine, writes).await, ["false true"]);
}

#[tokio::test]
async fn a_cached_plan_does_not_keep_the_user() {
    let engine = engine(fleet());
    for sql in [
        "SELECT current_user",
        "SELECT user FROM weather LIMIT 1",
        "SELECT usename FROM pg_user",
        "SELECT pg_catalog.pg_get_userbyid(usesysid) FROM pg_user",
    ] {
        assert_eq!(rows_of(&engine, sql, &Session::new("ann")).await, ["ann"], "{sql}");
        assert_eq!(rows_of(&engine, sql, &Session::new("bob")).await, ["bob"], "{sql}");
    }
}

#[tokio::test]
async fn a_prepared_statement_lists_the_tables_of_its_run() {
    let store = fleet();
    let engine = engine(store.clone());
    let sql = "SELECT relname FROM pg_class WHERE relkind = $1 AND relname LIKE 'wea%' ORDER BY 1";
    let prepared = engine.prepare(sql, &[], &user()).await.unwrap();
    let run = async || {
        let answer = prepared.run(vec![query::ScalarValue::from("r")], &user()).await.unwrap();
        text(&answer.collect().await.unwrap()).concat()
    };
    assert_eq!(run().await, ["weather"]);
    put(&*store, "weather2", &[("device", "x")], 0, &[("value", ValueRef::F64(1.0))]);
    assert_eq!(run().await, ["weather", "weather2"]);
}

#[tokio::test]
async fn empty_system_tables_need_no_plan() {
    let engine = engine(fleet());
    for (sql, expected) in [
        (
            "SELECT a.attname, (SELECT pg_catalog.pg_get_expr(d.adbin, d.adrelid, true) FROM pg_catalog.pg_attrdef d \
          WHERE d.adrelid = a.attrelid AND d.adnum = a.attnum AND a.atthasdef) FROM pg_catalog.pg_attribute a \
          JOIN pg_class c ON a.attrelid = c.oid WHERE relname = 'weather' AND attnum = 3",
            vec!["ts NULL"],
        ),
        (
            "SELECT conname, unnest(conkey), generate_subscripts(conkey, 1) AS ord FROM pg_constraint ORDER BY conrelid",
            vec![],
        ),
        (
            "SELECT array_agg(x.attnum ORDER BY x.ord) FROM (SELECT indrelid, unnest(indkey) AS attnum, generate_subscripts(indkey, 1) AS ord FROM pg_index) x GROUP BY x.indrelid",
            vec![],
        ),
        ("SELECT count(*) FROM pg_extension WHERE extname = 'timescaledb'", vec!["0"]),
        ("SELECT count(*) FROM pg_constraint c LEFT JOIN pg_class t ON c.conrelid = t.oid", vec!["0"]),
        (
            "SELECT (SELECT count(*) FROM pg_index WHERE false), 1 = ANY (SELECT oid FROM pg_proc), 3 > ANY (SELECT oid FROM pg_am)",
            vec!["0 false true"],
        ),
        (
            "SELECT n.oid, n.* FROM pg_namespace n LEFT JOIN pg_description d ON d.objoid = n.oid WHERE nspname = 'public'",
            vec!["2200 2200 public 10 NULL"],
        ),
        (
            "SELECT t.typname, p.proname FROM pg_type t LEFT JOIN pg_proc p ON p.oid = t.typreceive WHERE t.oid = 16",
            vec!["bool NULL"],
        ),
        (
            "SELECT EXISTS (SELECT 1 FROM pg_trigger) AS a, 1 IN (SELECT oid FROM pg_index) AS b, NOT EXISTS (SELECT FROM pg_inherits)",
            vec!["false false true"],
        ),
        (
            "SELECT nspname FROM pg_namespace WHERE nspname = 'public' UNION SELECT proname FROM pg_proc ORDER BY 1",
            vec!["public"],
        ),
        (
            "SELECT relname FROM pg_class c LEFT JOIN pg_index i ON i.indrelid = c.oid WHERE relname = 'weather'",
            vec!["weather"],
        ),
        (
            "SELECT rolname, ARRAY(SELECT b.rolname FROM pg_auth_members m JOIN pg_roles b ON m.roleid = b.oid WHERE m.member = r.oid) FROM pg_roles r WHERE rolcanlogin",
            vec!["tester []"],
        ),
    ] {
        assert_eq!(rows(&engine, sql).await, expected, "{sql}");
    }
}

#[tokio::test]
async fn catalog_statements_have_the_same_limits() {
    let engine = engine(fleet());
    let deep = format!("SELECT {}1{} FROM pg_class", "(".repeat(5_000), ")".repeat(5_000));
    let error = refusal(&engine, &deep).await;
    assert!(matches!(&error, QueryError::OverLimit { .. }), "{error}");
    let deepest = format!(
        "SELECT relname::text FROM pg_class WHERE {}oid = 'weather'::regclass{}",
        "(".repeat(25),
        ")".repeat(25)
    );
    assert_eq!(rows(&engine, &deepest).await, ["weather"]);
    for sql in [
        "INSERT INTO pg_class VALUES (1)",
        "UPDATE pg_catalog.pg_class SET relname = 'x'",
        "WITH a AS (DELETE FROM pg_class RETURNING *) SELECT * FROM a",
        "SELECT * INTO x FROM pg_class",
        "CREATE TABLE pg_catalog.x (a int)",
    ] {
        let error = refusal(&engine, sql).await;
        assert!(matches!(&error, QueryError::ReadOnly { .. }), "{sql}: {error}");
    }
    for sql in [
        "SELECT * FROM pg_catalog.nothing",
        "SELECT * FROM pg_nothing",
        "SELECT * FROM information_schema.df_settings",
    ] {
        let error = refusal(&engine, sql).await;
        assert!(matches!(&error, QueryError::UnknownTable { .. }), "{sql}: {error}");
    }
}
