-- What another step makes equal: not run yet.
SELECT count(*) FROM readings WHERE note LIKE 'a!_b' ESCAPE '!'
SELECT 1.0 / 0
SELECT concat('a', NULL, 1, true), concat_ws('-', 'a', NULL, 'b')
SELECT starts_with('abc', 'ab'), ascii('a'), chr(228), md5('a')
SELECT abs(-3), abs(-1.5::float8), sign(-2.5::float8), ceil(1.2::float8), floor(-1.2::float8)
SELECT round(2.5::float8), round(-2.5::float8), round(1.2345::numeric, 2), trunc(1.9::float8), trunc(-1.9::float8)
SELECT mod(7, 3), div(7, 2), gcd(12, 18), lcm(4, 6), factorial(5)
SELECT 5 & 3, 5 | 3, 5 # 3, 1 << 4, 16 >> 2, ~5
SELECT width_bucket(5.35::float8, 0.024, 10.06, 5)
SELECT ln(0::float8)
SELECT pg_typeof(1), pg_typeof('a'::text), pg_typeof(1.5::float8)
SELECT doc::json ->> 'a' FROM readings WHERE doc IS NOT NULL ORDER BY device, ts
SELECT doc::jsonb -> 'b' ->> 0 FROM readings WHERE doc LIKE '%"b"%' ORDER BY device, ts
SELECT json_typeof(doc::json) FROM readings WHERE doc IS NOT NULL ORDER BY device, ts
SELECT now() IS NOT NULL, current_timestamp IS NOT NULL, current_date IS NOT NULL, localtimestamp IS NOT NULL
SELECT random() < 1, gen_random_uuid() IS NOT NULL
