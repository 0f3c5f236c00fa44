-- Functions and operators of numbers, text, documents and times.
SELECT count(*) FROM readings WHERE note LIKE 'a!_b' ESCAPE '!'
SELECT 1.0 / 0
SELECT concat('a', NULL, 1, true), concat_ws('-', 'a', NULL, 'b', false), concat(active, device) FROM readings ORDER BY 1, 2, 3
SELECT starts_with('abc', 'ab'), ascii('a'), chr(228)
-- differs: md5 is absent
SELECT md5('a')
SELECT abs(-3), abs(-1.5::float8), sign(-2.5::float8), ceil(1.2::float8), floor(-1.2::float8)
SELECT round(2.5::float8), round(-2.5::float8), round(1.2345::numeric, 2), trunc(1.9::float8), trunc(-1.9::float8)
SELECT mod(7, 3), gcd(12, 18), lcm(4, 6)
-- differs: div and factorial of bigint are bigint
SELECT div(7, 2), factorial(5)
SELECT 5 & 3, 5 | 3, 5 # 3, 1 << 4, 16 >> 2, ~5, ~(-1), ~1 + 1, ~1 * 2 - 3, ~5 & 3, (~1) + 1, 2 * (~1), ~ ~7
SELECT -1.5::float8 ^ 0::float8, -2::float8 ^ 2::float8, 2 ^ 3 ^ 2, - 2 ^ 2, -(2 ^ 2), 2 ^ -1 ^ 2, - - 2 ^ 2, 3 - 2 ^ 2
SELECT width_bucket(5.35::float8, 0.024, 10.06, 5)
SELECT ln(0::float8)
-- differs: pg_typeof is absent
SELECT pg_typeof(1)
SELECT doc::json ->> 'a' FROM readings WHERE doc IS NOT NULL ORDER BY device, ts
-- differs: the types json and jsonb are absent; documents are text
SELECT doc::jsonb -> 'b' ->> 0 FROM readings WHERE doc LIKE '%"b"%' ORDER BY device, ts
-- differs: json_typeof is absent
SELECT json_typeof(doc::json) FROM readings WHERE doc IS NOT NULL ORDER BY device, ts
SELECT now() IS NOT NULL, current_timestamp IS NOT NULL, current_date IS NOT NULL, localtimestamp IS NOT NULL
SELECT random() < 1
-- differs: gen_random_uuid is absent
SELECT gen_random_uuid() IS NOT NULL
SELECT extract(minute FROM ts) AS m, count(*) FROM readings GROUP BY m ORDER BY m LIMIT 3
SELECT quote_literal(1), quote_literal(1.5::float8), quote_literal('a\b'), quote_literal(NULL), quote_literal(true), quote_nullable(NULL), quote_nullable('a')
SELECT to_number('abc', ''), to_number('', '')
SELECT regexp_match('abc', 'B', 'i'), regexp_match('abc', '', ''), regexp_match('abc', 'b', 'c'), regexp_match('abc', 'x')
-- differs: the option m is refused
SELECT regexp_match(E'a\nb', '^b', 'm')
SELECT regexp_match('abc', 'b', 'g')
SELECT date '0001-01-01' - 1, (date '0001-01-01' - 1)::text, to_date('', ''), date '0044-03-15'
SELECT 'a' || 1 + 2, 1 + 2 << 1, 1 << 2 + 1, 5 & 3 = 1, 7 - 2 | 1, 1 | 2 # 3, 6 & 3 << 1
SELECT 1 < 2 IS TRUE, NOT 1 = 2, NOT NULL IS NULL, 1 = 2 IS NULL, NOT true OR true, NOT 1 BETWEEN 2 AND 3
SELECT -7 % 4, - 7 / 2 * 2, 10 - 4 - 3, 100 / 10 / 2, 2 - -3, -5::int % 3
-- differs: ~ behind an operator is refused without parentheses
SELECT 2 * ~1
-- differs: constants are bigint
SELECT to_hex(-3)
-- differs: the types of constants: bigint here
SELECT sum(7)
