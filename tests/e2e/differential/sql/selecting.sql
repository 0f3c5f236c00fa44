-- WHERE, ORDER BY, LIMIT, DISTINCT, CASE and NULL.
SELECT device, ts, speed, gear, active, note, doc FROM readings ORDER BY device, ts
SELECT * FROM vehicles ORDER BY device
SELECT device FROM vehicles ORDER BY device DESC
SELECT depot FROM vehicles ORDER BY depot
SELECT depot FROM vehicles ORDER BY depot DESC
SELECT depot FROM vehicles ORDER BY depot NULLS FIRST
SELECT depot FROM vehicles ORDER BY depot DESC NULLS LAST
SELECT depot, device FROM vehicles ORDER BY depot NULLS FIRST, device DESC
SELECT note FROM readings WHERE note IS NOT NULL GROUP BY note ORDER BY note
SELECT DISTINCT note FROM readings ORDER BY note
SELECT DISTINCT gear FROM readings ORDER BY gear DESC
SELECT DISTINCT speed FROM readings ORDER BY speed
SELECT DISTINCT active FROM readings ORDER BY active
SELECT DISTINCT ON (device) device, gear FROM readings ORDER BY device, ts DESC
SELECT DISTINCT ON (depot) depot, device FROM vehicles ORDER BY depot, device
SELECT device FROM vehicles ORDER BY device LIMIT 2
SELECT device FROM vehicles ORDER BY device LIMIT 2 OFFSET 3
SELECT device FROM vehicles ORDER BY device OFFSET 4
SELECT device FROM vehicles ORDER BY device LIMIT 0
SELECT device FROM vehicles ORDER BY device LIMIT NULL
SELECT device FROM vehicles ORDER BY device LIMIT ALL
SELECT device FROM vehicles ORDER BY device FETCH FIRST 2 ROWS ONLY
SELECT device FROM vehicles ORDER BY device OFFSET 1 ROWS FETCH NEXT 2 ROWS ONLY
-- differs: the same refusal with another SQLSTATE
SELECT device FROM vehicles ORDER BY device LIMIT -1
SELECT built FROM vehicles ORDER BY -built
SELECT device FROM vehicles ORDER BY 2
SELECT device, built FROM vehicles ORDER BY 2 DESC, 1
SELECT device FROM vehicles ORDER BY length(device), device
SELECT device FROM vehicles ORDER BY CASE WHEN depot IS NULL THEN 0 ELSE 1 END, device
SELECT count(*) FROM readings WHERE speed > 10
SELECT count(*) FROM readings WHERE NOT speed > 10
SELECT count(*) FROM readings WHERE speed = NULL
SELECT count(*) FROM readings WHERE speed IS NULL
SELECT count(*) FROM readings WHERE speed IS NOT NULL AND gear IS NULL
SELECT count(*) FROM readings WHERE active
SELECT count(*) FROM readings WHERE NOT active
SELECT count(*) FROM readings WHERE active IS TRUE
SELECT count(*) FROM readings WHERE active IS NOT TRUE
SELECT count(*) FROM readings WHERE active IS FALSE
SELECT count(*) FROM readings WHERE active IS UNKNOWN
SELECT count(*) FROM readings WHERE active IS NOT UNKNOWN
SELECT count(*) FROM readings WHERE active = 't'
SELECT count(*) FROM readings WHERE active IS DISTINCT FROM true
SELECT count(*) FROM readings WHERE gear IS NOT DISTINCT FROM NULL
SELECT count(*) FROM readings WHERE gear BETWEEN 1 AND 3
SELECT count(*) FROM readings WHERE gear NOT BETWEEN 1 AND 3
SELECT count(*) FROM readings WHERE gear BETWEEN 3 AND 1
-- differs: BETWEEN SYMMETRIC is refused
SELECT count(*) FROM readings WHERE gear BETWEEN SYMMETRIC 3 AND 1
SELECT count(*) FROM readings WHERE speed BETWEEN 0 AND 50 OR gear < 0
SELECT count(*) FROM readings WHERE (speed > 10) = active
SELECT count(*) FROM readings WHERE speed > gear
SELECT count(*) FROM readings WHERE gear > 1.5
SELECT count(*) FROM readings WHERE gear = 1.0
SELECT count(*) FROM readings WHERE speed = 50
SELECT count(*) FROM readings WHERE speed = '50'
SELECT count(*) FROM readings WHERE gear = '3'
SELECT count(*) FROM readings WHERE gear = 'x'
-- differs: a text compared with a number is read as a number
SELECT count(*) FROM readings WHERE device = 3
SELECT count(*) FROM readings WHERE device > 'car'
SELECT count(*) FROM readings WHERE device < 'Z'
SELECT count(*) FROM readings WHERE note LIKE '%a%'
SELECT count(*) FROM readings WHERE note LIKE 'a\_b'
SELECT count(*) FROM readings WHERE note LIKE 'a_b'
SELECT count(*) FROM readings WHERE note LIKE '100\%'
SELECT count(*) FROM readings WHERE note LIKE 'back\\\\%'
SELECT count(*) FROM readings WHERE note ILIKE '%ÖL%'
SELECT count(*) FROM readings WHERE note ILIKE 'öl'
SELECT count(*) FROM readings WHERE note NOT LIKE '%o%'
SELECT count(*) FROM readings WHERE note ~ '^[a-z]+$'
SELECT count(*) FROM readings WHERE note ~* '^[a-z]+$'
SELECT count(*) FROM readings WHERE note !~ '^[a-z]+$'
SELECT count(*) FROM readings WHERE device LIKE 'bus%' AND ts >= '2026-01-15 08:10:00+00'
SELECT count(*) FROM readings WHERE ts < timestamptz '2026-01-15 08:05:00+00'
SELECT count(*) FROM readings WHERE ts BETWEEN '2026-01-15T08:05:00Z' AND '2026-01-15T08:06:00Z'
SELECT count(*) FROM readings WHERE ts > '2026-01-15'
SELECT count(*) FROM readings WHERE ts::date = '2026-01-15'
SELECT count(*) FROM readings WHERE ts > now()
SELECT NULL AND false, NULL AND true, NULL OR true, NULL OR false, NOT NULL::bool
SELECT NULL = NULL, NULL <> 1, 1 IS NULL, NULL IS NULL
SELECT NULL IS DISTINCT FROM NULL, 1 IS DISTINCT FROM NULL, 1 IS NOT DISTINCT FROM 1
SELECT 1 IN (1, NULL), 2 IN (1, NULL), 2 NOT IN (1, NULL), NULL IN (1, 2)
SELECT coalesce(NULL, 1), coalesce(NULL, NULL, 'a'), nullif(1, 1), nullif(1, 2)
SELECT greatest(1, 3, 2), least(1, 3, 2), greatest(1, NULL, 2), least(NULL, NULL)
SELECT greatest('a', 'b'), least(true, false)
SELECT CASE gear WHEN 1 THEN 'one' WHEN 2 THEN 'two' ELSE 'many' END, count(*) FROM readings GROUP BY 1 ORDER BY 1
SELECT CASE WHEN speed > 40 THEN 'fast' WHEN speed IS NULL THEN 'unknown' END AS pace, count(*) FROM readings GROUP BY pace ORDER BY pace
SELECT CASE WHEN NULL THEN 1 ELSE 2 END
SELECT CASE WHEN false THEN 1 END
SELECT CASE NULL WHEN NULL THEN 1 ELSE 2 END
SELECT CASE WHEN gear = 0 THEN 0 ELSE 10 / gear END FROM readings WHERE device = 'tram' ORDER BY ts
-- differs: rows with NULL are compared as records
SELECT (1, 2) = (1, 2), (1, 2) < (1, 3), (1, NULL) = (1, 2)
SELECT count(*) FROM vehicles WHERE (device, depot) IN (('bus-1', 'north'), ('tram', 'x'))
SELECT 1 WHERE true
SELECT 1 WHERE false
SELECT count(*) WHERE false
SELECT 1 WHERE NULL
VALUES (1, 'a'), (2, 'b')
SELECT * FROM (VALUES (1, 'a'), (2, NULL)) AS t(n, s) ORDER BY n
SELECT device FROM vehicles WHERE unknown_column = 1
SELECT * FROM unknown_table
SELECT unknown_function(1)
SELECT FROM vehicles WHERE
SELECT device FROM vehicles GROUP BY built
SELECT device FROM vehicles WHERE count(*) > 1
SELECT sum(device) FROM vehicles
SELECT -device FROM vehicles
SELECT device + 1 FROM vehicles
SELECT 1 / 0
SELECT built / 0 FROM vehicles
SELECT 'x'::int
SELECT 'maybe'::bool
SELECT '2026-13-01'::date
SELECT ''::int
SELECT device, -built AS built FROM vehicles ORDER BY built % 5, device LIMIT 3
SELECT device, max(gear) AS gear FROM readings GROUP BY device ORDER BY max(gear), device
SELECT built FROM (SELECT -built AS built FROM vehicles ORDER BY built + 0 LIMIT 2) s ORDER BY 1
SELECT count(*) FROM readings WHERE ts BETWEEN '2026-01-15 08:05' AND '2026-01-15 08:07'
SELECT count(*) FROM readings WHERE note ~ '^[0-9]{4}-' AND note::date > '2020-01-01'
