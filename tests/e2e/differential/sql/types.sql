-- Literals, casts and text.
SELECT 1, -1, 2147483647, 9223372036854775807
SELECT 1.5, 1e3, 1.5e-3, .5
SELECT 'a', E'a\nb', 'it''s', ''
SELECT true, false, NULL::bool
SELECT '1'::int, '1'::bigint, ' 1 '::int, '1.5'::float8, '1e3'::float8
SELECT 1::text, 1.5::float8::text, true::text, NULL::text
SELECT 'NaN'::float8, 'Infinity'::float8, '-Infinity'::float8
SELECT 'NaN'::float8 = 'NaN'::float8, 'NaN'::float8 > 1e300, 'Infinity'::float8 > 1e300
SELECT 0.0::float8 = -0.0::float8, -0.0::float8
SELECT speed FROM readings WHERE speed = -0.0::float8 AND device = 'tram' ORDER BY ts
SELECT 1.9::float8::int, -1.9::float8::int, 2.5::float8::int, 3.5::float8::int, 0.5::float8::bigint
SELECT 1.9::numeric::int, 2.5::numeric::int
SELECT 3000000000::int
SELECT 40000::smallint
SELECT 1e30::float8::bigint
SELECT 'NaN'::float8::int
SELECT 't'::bool, 'yes'::bool, 'off'::bool, '0'::bool
SELECT 1::bool, 0::bool, true::int
SELECT '2026-01-15'::date, '2026-01-15 08:00:00'::timestamp, '2026-01-15 08:00:00+02'::timestamptz
SELECT '2026-01-15T08:00:00Z'::timestamptz, '2026-01-15 08:00:00.123456+00'::timestamptz
SELECT date '2026-01-15' + 1, date '2026-01-15' - date '2026-01-01'
SELECT timestamptz '2026-01-15 08:00:00+00' + interval '1 day 2 hours'
SELECT timestamptz '2026-01-31 00:00:00+00' + interval '1 month'
SELECT timestamptz '2026-01-15 08:00:00+00' - timestamptz '2026-01-14 07:00:00+00'
SELECT timestamptz '2026-01-15 08:00:00+00' > timestamptz '2026-01-15 08:00:00+01'
SELECT interval '90 minutes', interval '1 day', interval '1 month', interval '-1 hour'
SELECT interval '1 day' = interval '24 hours', interval '2 hours' > interval '1 hour'
SELECT date_trunc('day', timestamptz '2026-01-15 08:12:34.5+00'), date_trunc('month', timestamptz '2026-01-15 08:12:34+00')
SELECT extract(year FROM timestamptz '2026-01-15 08:12:34+00'), extract(dow FROM date '2026-01-18'), extract(doy FROM date '2026-02-01')
SELECT ts::date FROM vehicles LIMIT 1
SELECT ts::timestamp FROM vehicles LIMIT 1
SELECT ts::text FROM vehicles LIMIT 1
SELECT CAST(built AS text), CAST(weight AS text) FROM vehicles ORDER BY built
SELECT length('Tür'), char_length('😀'), octet_length('Tür')
SELECT upper('Tür'), lower('ÖL'), initcap('hello wORLD')
SELECT 'a' || 'b', 'a' || 1, 'a' || NULL, 1 || 'a'
SELECT substring('abcdef', 2, 3), substring('abcdef' FROM 2 FOR 3), substr('abcdef', 0, 3), substr('abcdef', -1)
SELECT substring('abcdef', 5, 100), substring('Türschloss', 2, 2), left('abc', 2), left('abc', -1), right('abc', 2), right('abc', -1)
SELECT position('c' IN 'abc'), strpos('abc', 'z'), strpos('Tür', 'r')
SELECT replace('aXbX', 'X', '-'), translate('abc', 'ab', 'x'), reverse('Tür')
SELECT trim('  a '), ltrim('xxa', 'x'), rtrim('axx', 'x'), btrim('xyaxy', 'xy'), trim(both 'x' from 'xax')
SELECT lpad('7', 3, '0'), rpad('7', 3, '-'), lpad('abc', 2), repeat('ab', 3), repeat('a', 0), repeat('a', -1)
SELECT split_part('a-b-c', '-', 2), split_part('a-b-c', '-', 9), split_part('a-b-c', '-', -1)
SELECT regexp_replace('abcabc', 'b', 'X'), regexp_replace('abcabc', 'b', 'X', 'g')
SELECT regexp_match('abc123', '[0-9]+'), regexp_count('a1b2', '[0-9]'), regexp_like('abc', 'B', 'i')
SELECT to_hex(255), encode('abc'::bytea, 'hex'), encode('abc'::bytea, 'base64')
SELECT 'a' < 'B', 'a' < 'b', 'Z' < 'a', 'ä' > 'z', '' < 'a'
SELECT 'abc' LIKE 'a%', 'abc' LIKE 'A%', 'abc' ILIKE 'A%', 'abc' LIKE '', '' LIKE '%', NULL LIKE 'a'
SELECT 'a' = 'a ', 'A' = 'a'
SELECT quote_ident('a b'), quote_literal('it''s')
SELECT 7 / 2, -7 / 2, 7 % 3, -7 % 3, 7.0 / 2
SELECT sqrt(2::float8), exp(1::float8), ln(10::float8), log(100::float8), power(2::float8, 10::float8), pi()
SELECT sin(1::float8), cos(1::float8), atan2(1::float8, 2::float8), degrees(pi()), radians(180::float8)
SELECT sqrt(-1::float8)
SELECT current_user IS NOT NULL, current_database() IS NOT NULL, version() LIKE 'PostgreSQL%'
