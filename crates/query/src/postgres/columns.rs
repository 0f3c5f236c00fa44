//! The columns of `pg_catalog` and `information_schema`, as in PostgreSQL 16.

/// The schema of PostgreSQL's own tables.
pub(crate) const PG_CATALOG_NAME: &str = "pg_catalog";
/// The schema that the SQL standard defines.
pub(crate) const INFORMATION_SCHEMA_NAME: &str = "information_schema";

/// A table of a system schema.
#[derive(Debug, Clone, Copy)]
pub(super) struct System {
    pub(super) name: &'static str,
    /// See [`Listing::new`](super::listing::Listing::new).
    pub(super) columns: &'static str,
    /// Whether the table is always empty here: this server has no indexes, constraints, triggers...
    pub(super) is_empty: bool,
}

const fn filled(name: &'static str, columns: &'static str) -> System {
    System { name, columns, is_empty: false }
}

const fn empty(name: &'static str, columns: &'static str) -> System {
    System { name, columns, is_empty: true }
}

/// The tables of `pg_catalog`. Their order determines their numbers, so new ones come at the end.
pub(super) const PG_CATALOG: [System; 63] = [
    filled("pg_namespace", "oid nspname:text nspowner nspacl:texts"),
    filled(
        "pg_class",
        "oid relname:text relnamespace reltype reloftype relowner relam relfilenode reltablespace relpages:int \
         reltuples:float relallvisible:int reltoastrelid relhasindex:bool relisshared:bool relpersistence:text \
         relkind:text relnatts:int relchecks:int relhasrules:bool relhastriggers:bool relhassubclass:bool \
         relrowsecurity:bool relforcerowsecurity:bool relispopulated:bool relreplident:text relispartition:bool \
         relrewrite relfrozenxid relminmxid relacl:texts reloptions:texts relpartbound:text?",
    ),
    filled(
        "pg_attribute",
        "attrelid attname:text atttypid attlen:int attnum:int attcacheoff:int atttypmod:int attndims:int \
         attbyval:bool attalign:text attstorage:text attcompression:text attnotnull:bool atthasdef:bool \
         atthasmissing:bool attidentity:text attgenerated:text attisdropped:bool attislocal:bool attinhcount:int \
         attstattarget:int attcollation attacl:texts attoptions:texts attfdwoptions:texts attmissingval:texts",
    ),
    filled(
        "pg_type",
        "oid typname:text typnamespace typowner typlen:int typbyval:bool typtype:text typcategory:text \
         typispreferred:bool typisdefined:bool typdelim:text typrelid typsubscript:text typelem typarray \
         typinput:text typoutput:text typreceive:text typsend:text typmodin:text typmodout:text typanalyze:text \
         typalign:text typstorage:text typnotnull:bool typbasetype typtypmod:int typndims:int typcollation \
         typdefaultbin:text? typdefault:text? typacl:texts",
    ),
    filled(
        "pg_database",
        "oid datname:text datdba encoding:int datlocprovider:text datistemplate:bool datallowconn:bool \
         datconnlimit:int datfrozenxid datminmxid dattablespace datcollate:text datctype:text daticulocale:text? \
         datlocale:text? daticurules:text? datcollversion:text? datacl:texts",
    ),
    filled(
        "pg_roles",
        "rolname:text rolsuper:bool rolinherit:bool rolcreaterole:bool rolcreatedb:bool rolcanlogin:bool \
         rolreplication:bool rolconnlimit:int rolpassword:text? rolvaliduntil:text? rolbypassrls:bool \
         rolconfig:texts oid",
    ),
    filled(
        "pg_user",
        "usename:text usesysid usecreatedb:bool usesuper:bool userepl:bool usebypassrls:bool passwd:text? \
         valuntil:text? useconfig:texts",
    ),
    filled("pg_am", "oid amname:text amhandler:text amtype:text"),
    filled("pg_tablespace", "oid spcname:text spcowner spcacl:texts spcoptions:texts"),
    filled(
        "pg_settings",
        "name:text setting:text unit:text? category:text short_desc:text extra_desc:text? context:text vartype:text \
         source:text min_val:text? max_val:text? enumvals:texts boot_val:text reset_val:text sourcefile:text? \
         sourceline:int? pending_restart:bool",
    ),
    filled(
        "pg_tables",
        "schemaname:text tablename:text tableowner:text tablespace:text? hasindexes:bool hasrules:bool \
         hastriggers:bool rowsecurity:bool",
    ),
    empty("pg_description", "objoid classoid objsubid:int description:text"),
    empty("pg_shdescription", "objoid classoid description:text"),
    empty("pg_attrdef", "oid adrelid adnum:int adbin:text"),
    empty(
        "pg_constraint",
        "oid conname:text connamespace contype:text condeferrable:bool condeferred:bool convalidated:bool conrelid \
         contypid conindid conparentid confrelid confupdtype:text confdeltype:text confmatchtype:text \
         conislocal:bool coninhcount:int connoinherit:bool conkey:texts confkey:texts conpfeqop:texts \
         conppeqop:texts conffeqop:texts confdelsetcols:texts conexclop:texts conbin:text",
    ),
    empty(
        "pg_index",
        "indexrelid indrelid indnatts:int indnkeyatts:int indisunique:bool indnullsnotdistinct:bool \
         indisprimary:bool indisexclusion:bool indimmediate:bool indisclustered:bool indisvalid:bool \
         indcheckxmin:bool indisready:bool indislive:bool indisreplident:bool indkey:texts indcollation:texts \
         indclass:texts indoption:texts indexprs:text indpred:text",
    ),
    empty("pg_inherits", "inhrelid inhparent inhseqno:int inhdetachpending:bool"),
    empty(
        "pg_trigger",
        "oid tgrelid tgparentid tgname:text tgfoid tgtype:int tgenabled:text tgisinternal:bool tgconstrrelid \
         tgconstrindid tgconstraint tgdeferrable:bool tginitdeferred:bool tgnargs:int tgattr:texts tgargs:text \
         tgqual:text tgoldtable:text tgnewtable:text",
    ),
    empty(
        "pg_rewrite",
        "oid rulename:text ev_class ev_type:text ev_enabled:text is_instead:bool ev_qual:text ev_action:text",
    ),
    empty(
        "pg_policy",
        "oid polname:text polrelid polcmd:text polpermissive:bool polroles:texts polqual:text polwithcheck:text",
    ),
    empty(
        "pg_proc",
        // Functions are identified by their names, so columns such as typinput hold names.
        "oid:text proname:text pronamespace proowner prolang procost:float prorows:float provariadic prosupport:text \
         prokind:text prosecdef:bool proleakproof:bool proisstrict:bool proretset:bool provolatile:text \
         proparallel:text pronargs:int pronargdefaults:int prorettype proargtypes:texts proallargtypes:texts \
         proargmodes:texts proargnames:texts proargdefaults:text protrftypes:texts prosrc:text probin:text \
         prosqlbody:text proconfig:texts proacl:texts",
    ),
    empty(
        "pg_extension",
        "oid extname:text extowner extnamespace extrelocatable:bool extversion:text extconfig:texts extcondition:texts",
    ),
    empty(
        "pg_collation",
        "oid collname:text collnamespace collowner collprovider:text collisdeterministic:bool collencoding:int \
         collcollate:text collctype:text colliculocale:text collversion:text",
    ),
    empty("pg_enum", "oid enumtypid enumsortorder:float enumlabel:text"),
    empty(
        "pg_range",
        "rngtypid rngsubtype rngmultitypid rngcollation rngsubopc rngcanonical:text rngsubdiff:text",
    ),
    empty("pg_sequence", "seqrelid seqtypid seqstart seqincrement seqmax seqmin seqcache seqcycle:bool"),
    empty(
        "pg_sequences",
        "schemaname:text sequencename:text sequenceowner:text data_type:text start_value last_value",
    ),
    empty("pg_depend", "classid objid objsubid:int refclassid refobjid refobjsubid:int deptype:text"),
    empty("pg_shdepend", "dbid classid objid objsubid:int refclassid refobjid deptype:text"),
    empty(
        "pg_publication",
        "oid pubname:text pubowner puballtables:bool pubinsert:bool pubupdate:bool pubdelete:bool pubtruncate:bool pubviaroot:bool",
    ),
    empty("pg_publication_rel", "oid prpubid prrelid prqual:text prattrs:texts"),
    empty("pg_publication_namespace", "oid pnpubid pnnspid"),
    empty(
        "pg_publication_tables",
        "pubname:text schemaname:text tablename:text attnames:texts rowfilter:text",
    ),
    empty("pg_subscription", "oid subdbid subname:text subowner subenabled:bool"),
    empty(
        "pg_statistic_ext",
        "oid stxrelid stxname:text stxnamespace stxowner stxstattarget:int stxkeys:texts stxkind:texts stxexprs:text",
    ),
    empty("pg_foreign_table", "ftrelid ftserver ftoptions:texts"),
    empty(
        "pg_foreign_server",
        "oid srvname:text srvowner srvfdw srvtype:text srvversion:text srvacl:texts srvoptions:texts",
    ),
    empty(
        "pg_foreign_data_wrapper",
        "oid fdwname:text fdwowner fdwhandler fdwvalidator fdwacl:texts fdwoptions:texts",
    ),
    empty("pg_user_mapping", "oid umuser umserver umoptions:texts"),
    empty(
        "pg_partitioned_table",
        "partrelid partstrat:text partnatts:int partdefid partattrs:texts partclass:texts partcollation:texts partexprs:text",
    ),
    empty(
        "pg_event_trigger",
        "oid evtname:text evtevent:text evtowner evtfoid evtenabled:text evttags:texts",
    ),
    empty(
        "pg_opclass",
        "oid opcmethod opcname:text opcnamespace opcowner opcfamily opcintype opcdefault:bool opckeytype",
    ),
    empty(
        "pg_operator",
        "oid oprname:text oprnamespace oprowner oprkind:text oprcanmerge:bool oprcanhash:bool oprleft oprright oprresult oprcom oprnegate",
    ),
    empty("pg_aggregate", "aggfnoid aggkind:text aggnumdirectargs:int"),
    empty(
        "pg_language",
        "oid lanname:text lanowner lanispl:bool lanpltrusted:bool lanplcallfoid laninline lanvalidator lanacl:texts",
    ),
    empty("pg_views", "schemaname:text viewname:text viewowner:text definition:text"),
    empty(
        "pg_matviews",
        "schemaname:text matviewname:text matviewowner:text tablespace:text hasindexes:bool ispopulated:bool definition:text",
    ),
    empty("pg_indexes", "schemaname:text tablename:text indexname:text tablespace:text indexdef:text"),
    empty("pg_rules", "schemaname:text tablename:text rulename:text definition:text"),
    empty(
        "pg_auth_members",
        "oid roleid member grantor admin_option:bool inherit_option:bool set_option:bool",
    ),
    empty("pg_default_acl", "oid defaclrole defaclnamespace defaclobjtype:text defaclacl:texts"),
    empty("pg_db_role_setting", "setdatabase setrole setconfig:texts"),
    empty(
        "pg_conversion",
        "oid conname:text connamespace conowner conforencoding:int contoencoding:int conproc:text condefault:bool",
    ),
    empty("pg_cast", "oid castsource casttarget castfunc castcontext:text castmethod:text"),
    empty("pg_largeobject_metadata", "oid lomowner lomacl:texts"),
    empty("pg_ts_config", "oid cfgname:text cfgnamespace cfgowner cfgparser"),
    empty("pg_ts_dict", "oid dictname:text dictnamespace dictowner dicttemplate dictinitoption:text"),
    empty("pg_seclabel", "objoid classoid objsubid:int provider:text label:text"),
    empty("pg_init_privs", "objoid classoid objsubid:int privtype:text initprivs:texts"),
    filled(
        "pg_stat_activity",
        "datid datname:text pid:int leader_pid:int? usesysid usename:text application_name:text client_addr:text? \
         client_hostname:text? client_port:int? backend_start:text? xact_start:text? query_start:text? state_change:text? \
         wait_event_type:text? wait_event:text? state:text backend_xid:int? backend_xmin:int? query_id:int? query:text \
         backend_type:text",
    ),
    empty(
        "pg_locks",
        "locktype:text database relation page:int tuple:int virtualxid:text transactionid:int classid objid objsubid:int \
         virtualtransaction:text pid:int mode:text granted:bool fastpath:bool waitstart:text",
    ),
    filled(
        "pg_stat_user_tables",
        "relid schemaname:text relname:text seq_scan seq_tup_read idx_scan:oid? idx_tup_fetch:oid? n_tup_ins n_tup_upd n_tup_del \
         n_tup_hot_upd n_live_tup n_dead_tup n_mod_since_analyze n_ins_since_vacuum last_vacuum:text? \
         last_autovacuum:text? last_analyze:text? last_autoanalyze:text? vacuum_count autovacuum_count analyze_count \
         autoanalyze_count",
    ),
    filled("pg_keywords", "word:text catcode:text barelabel:bool catdesc:text baredesc:text"),
];

/// The tables of `information_schema` except `routines` and `parameters`, which DataFusion provides.
pub(super) const INFORMATION_SCHEMA: [System; 14] = [
    filled(
        "tables",
        "table_catalog:text table_schema:text table_name:text table_type:text self_referencing_column_name:text? \
         reference_generation:text? user_defined_type_catalog:text? user_defined_type_schema:text? \
         user_defined_type_name:text? is_insertable_into:text is_typed:text commit_action:text?",
    ),
    filled(
        "columns",
        "table_catalog:text table_schema:text table_name:text column_name:text ordinal_position:int \
         column_default:text? is_nullable:text data_type:text character_maximum_length:text? \
         character_octet_length:text? numeric_precision:int? numeric_precision_radix:int? numeric_scale:int? \
         datetime_precision:int? interval_type:text? interval_precision:int? character_set_name:text? \
         collation_catalog:text? collation_schema:text? collation_name:text? domain_catalog:text? \
         domain_schema:text? domain_name:text? udt_catalog:text udt_schema:text udt_name:text \
         dtd_identifier:text is_self_referencing:text is_identity:text identity_generation:text? \
         is_generated:text generation_expression:text? is_updatable:text",
    ),
    filled(
        "schemata",
        "catalog_name:text schema_name:text schema_owner:text default_character_set_catalog:text? \
         default_character_set_schema:text? default_character_set_name:text? sql_path:text?",
    ),
    filled("information_schema_catalog_name", "catalog_name:text"),
    filled("enabled_roles", "role_name:text"),
    filled("applicable_roles", "grantee:text role_name:text is_grantable:text"),
    filled(
        "table_privileges",
        "grantor:text grantee:text table_catalog:text table_schema:text table_name:text privilege_type:text \
         is_grantable:text with_hierarchy:text",
    ),
    empty(
        "views",
        "table_catalog:text table_schema:text table_name:text definition:text view_definition:text check_option:text is_updatable:text",
    ),
    empty(
        "table_constraints",
        "constraint_catalog:text constraint_schema:text constraint_name:text table_catalog:text table_schema:text \
         table_name:text constraint_type:text is_deferrable:text initially_deferred:text enforced:text nulls_distinct:text",
    ),
    empty(
        "key_column_usage",
        "constraint_catalog:text constraint_schema:text constraint_name:text table_catalog:text table_schema:text \
         table_name:text column_name:text ordinal_position:int position_in_unique_constraint:int",
    ),
    empty(
        "referential_constraints",
        "constraint_catalog:text constraint_schema:text constraint_name:text unique_constraint_catalog:text \
         unique_constraint_schema:text unique_constraint_name:text match_option:text update_rule:text delete_rule:text",
    ),
    empty(
        "constraint_column_usage",
        "table_catalog:text table_schema:text table_name:text column_name:text constraint_catalog:text \
         constraint_schema:text constraint_name:text",
    ),
    empty(
        "sequences",
        "sequence_catalog:text sequence_schema:text sequence_name:text data_type:text start_value:text increment:text",
    ),
    empty(
        "triggers",
        "trigger_catalog:text trigger_schema:text trigger_name:text event_manipulation:text \
         event_object_schema:text event_object_table:text action_statement:text",
    ),
];

/// Returns the table of `pg_catalog` with this name.
pub(super) fn in_pg_catalog(name: &str) -> Option<&'static System> {
    PG_CATALOG.iter().find(|table| table.name == name)
}

/// Returns the table of `information_schema` with this name.
pub(super) fn in_information_schema(name: &str) -> Option<&'static System> {
    INFORMATION_SCHEMA.iter().find(|table| table.name == name)
}
