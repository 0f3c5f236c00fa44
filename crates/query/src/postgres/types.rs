//! The types of PostgreSQL that answers have, with the numbers that clients contain.

use arrow_schema::DataType;

/// A type of `pg_type`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PgType {
    pub(super) oid: i64,
    pub(super) name: &'static str,
    /// The name in SQL, as `format_type` returns it.
    pub(super) sql_name: &'static str,
    /// The bytes of a value; -1 for a variable length.
    pub(super) length: i32,
    pub(super) category: &'static str,
    /// The type of its arrays; zero if there is none.
    pub(super) array_oid: i64,
}

const fn of(
    oid: i64,
    name: &'static str,
    sql_name: &'static str,
    length: i32,
    category: &'static str,
    array_oid: i64,
) -> PgType {
    PgType { oid, name, sql_name, length, category, array_oid }
}

const BOOL: PgType = of(16, "bool", "boolean", 1, "B", 1000);
const BYTEA: PgType = of(17, "bytea", "bytea", -1, "U", 1001);
const INT8: PgType = of(20, "int8", "bigint", 8, "N", 1016);
const INT4: PgType = of(23, "int4", "integer", 4, "N", 1007);
const FLOAT8: PgType = of(701, "float8", "double precision", 8, "N", 1022);
const TEXT: PgType = of(25, "text", "text", -1, "S", 1009);
const TIMESTAMP: PgType = of(1114, "timestamp", "timestamp without time zone", 8, "D", 1115);
const TIMESTAMPTZ: PgType = of(1184, "timestamptz", "timestamp with time zone", 8, "D", 1185);

/// All types except arrays.
pub(super) const TYPES: [PgType; 29] = [
    BOOL,
    BYTEA,
    of(18, "char", "\"char\"", 1, "Z", 1002),
    of(19, "name", "name", 64, "S", 1003),
    INT8,
    of(21, "int2", "smallint", 2, "N", 1005),
    INT4,
    of(24, "regproc", "regproc", 4, "N", 1008),
    TEXT,
    of(26, "oid", "oid", 4, "N", 1028),
    of(28, "xid", "xid", 4, "U", 1011),
    of(114, "json", "json", -1, "U", 199),
    of(700, "float4", "real", 4, "N", 1021),
    FLOAT8,
    of(705, "unknown", "unknown", -2, "X", 0),
    of(1042, "bpchar", "character", -1, "S", 1014),
    of(1043, "varchar", "character varying", -1, "S", 1015),
    of(1082, "date", "date", 4, "D", 1182),
    of(1083, "time", "time without time zone", 8, "D", 1183),
    TIMESTAMP,
    TIMESTAMPTZ,
    of(1186, "interval", "interval", 16, "T", 1187),
    of(1700, "numeric", "numeric", -1, "N", 1231),
    of(2205, "regclass", "regclass", 4, "N", 2210),
    of(2206, "regtype", "regtype", 4, "N", 2211),
    of(2249, "record", "record", -1, "P", 2287),
    of(2278, "void", "void", 4, "P", 0),
    of(2950, "uuid", "uuid", 16, "U", 2951),
    of(3802, "jsonb", "jsonb", -1, "U", 3807),
];

/// Returns the type of a column.
pub(super) fn of_column(data_type: &DataType) -> PgType {
    match data_type {
        DataType::Boolean => BOOL,
        DataType::Int8 | DataType::Int16 | DataType::Int32 => INT4,
        data_type if data_type.is_integer() => INT8,
        data_type if data_type.is_floating() => FLOAT8,
        DataType::Timestamp(_, Some(_)) => TIMESTAMPTZ,
        DataType::Timestamp(_, None) => TIMESTAMP,
        DataType::Binary | DataType::LargeBinary | DataType::BinaryView => BYTEA,
        DataType::List(_) => of(1009, "_text", "ARRAY", -1, "A", 0),
        _ => TEXT,
    }
}

/// Returns the name in SQL of the type with this number.
pub(super) fn sql_name(oid: i64) -> Option<String> {
    let direct = TYPES.iter().find(|known| known.oid == oid).map(|known| known.sql_name.to_owned());
    let array =
        || TYPES.iter().find(|known| known.array_oid == oid).map(|known| format!("{}[]", known.sql_name));
    if oid == 0 { None } else { direct.or_else(array) }
}

/// Returns the number of the type with this name, in SQL or in the catalog.
pub(super) fn number(name: &str) -> Option<i64> {
    let name = name.trim().to_ascii_lowercase();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(&name);
    let find = |name: &str| TYPES.iter().find(|known| known.name == name || known.sql_name == name);
    match name.strip_suffix("[]").or_else(|| name.strip_prefix('_')) {
        Some(element) => find(element).map(|known| known.array_oid).filter(|oid| *oid != 0),
        None if name == "int" => Some(INT4.oid),
        None => find(name).map(|known| known.oid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_belong_together() {
        for (name, oid, sql) in [
            ("int8", 20, "bigint"),
            ("pg_catalog.float8", 701, "double precision"),
            ("timestamp with time zone", 1184, "timestamp with time zone"),
            ("text[]", 1009, "text[]"),
            ("_bool", 1000, "boolean[]"),
        ] {
            assert_eq!(number(name), Some(oid), "{name}");
            assert_eq!(sql_name(oid).as_deref(), Some(sql));
        }
        assert_eq!((number("hstore"), sql_name(0), sql_name(99_999)), (None, None, None));
    }
}
