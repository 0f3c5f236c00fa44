-- Names of columns: given ones, those that PostgreSQL makes up, the same one twice.
SELECT 0, 0
SELECT 0 AS a, 0 AS a
SELECT 'x', 'x', 1
SELECT count(*), count(*) FROM readings
SELECT count(*), count(gear), sum(gear) IS NULL, max(device) FROM readings
SELECT device, device FROM vehicles ORDER BY device
SELECT device AS a, depot AS a FROM vehicles ORDER BY 1, 2
SELECT device, upper(device), upper(device) FROM vehicles ORDER BY 1
SELECT *, device FROM vehicles ORDER BY device
SELECT device, * FROM vehicles ORDER BY device
SELECT v.device, v.* FROM vehicles v ORDER BY v.device
SELECT *, built + 1 FROM vehicles ORDER BY device
SELECT *, built::text FROM vehicles ORDER BY device
-- differs: two * over one table are refused
SELECT *, * FROM (SELECT 1 AS a) s
SELECT * FROM (SELECT 0, 0) s
SELECT * FROM (SELECT device, device FROM vehicles) s ORDER BY 1
SELECT s.count FROM (SELECT count(*) FROM readings) s
SELECT count FROM (SELECT count(*) FROM readings) s
SELECT "?column?" FROM (SELECT 1 + 1) s
SELECT max FROM (SELECT device, max(gear) FROM readings GROUP BY device) s ORDER BY 1
WITH s AS (SELECT count(*), max(gear) FROM readings) SELECT count, max FROM s
WITH s AS (SELECT 0, 0) SELECT * FROM s
WITH s(a, b) AS (SELECT 0, 0) SELECT a, b FROM s
SELECT * FROM (SELECT 0, 0) AS s(a, b)
SELECT 0, 0 UNION SELECT 1, 1 ORDER BY 1
-- differs: refused: the planner loses the order of a column that is there twice
SELECT device, device FROM vehicles UNION ALL SELECT 'x', 'y' ORDER BY 1, 2
SELECT 1, 1 UNION ALL SELECT 1, 1
SELECT 1 AS a, 2 AS a EXCEPT SELECT 1, 3
SELECT 1, 1 INTERSECT SELECT 1, 1
SELECT 1, count(*) FROM readings GROUP BY 1
SELECT 1, 1, count(*) FROM readings GROUP BY 1, 2
SELECT 'a', 'a', device FROM vehicles GROUP BY 1, 2, 3 ORDER BY 3
SELECT a.device, b.device FROM vehicles a JOIN vehicles b ON a.device = b.device ORDER BY 1
SELECT * FROM vehicles a JOIN vehicles b ON a.device = b.device ORDER BY a.device
SELECT * FROM vehicles a JOIN vehicles b USING (device) ORDER BY device
SELECT DISTINCT device, device FROM vehicles ORDER BY device
SELECT gear::text FROM readings WHERE device = 'tram' ORDER BY gear, ts
SELECT gear::text FROM readings WHERE gear > 1 GROUP BY gear ORDER BY gear
SELECT note::text AS status, count(*) FROM readings GROUP BY status ORDER BY status
SELECT depot::text, count(*) FROM vehicles GROUP BY depot ORDER BY depot
SELECT active::text, count(*) FROM readings GROUP BY active ORDER BY active
SELECT ts::date, count(*) FROM readings GROUP BY ts::date ORDER BY ts
SELECT lower(device), lower(device) AS b FROM vehicles ORDER BY lower(device)
SELECT avg(gear), avg(speed), max(speed) - 1, 1::bigint, min(gear) AS low FROM readings
SELECT (SELECT max(built) FROM vehicles), EXISTS (SELECT 1, 1 FROM vehicles), CASE WHEN true THEN 1 END
SELECT CASE WHEN true THEN 1 ELSE built END FROM vehicles ORDER BY device
SELECT coalesce(depot, '-'), nullif(depot, 'north') FROM vehicles ORDER BY device
SELECT row_number() OVER (ORDER BY device), row_number() OVER (ORDER BY device) FROM vehicles
SELECT device AS "Device", built AS "Built In" FROM vehicles ORDER BY "Device"
SELECT DEVICE FROM vehicles ORDER BY 1
SELECT a FROM (SELECT device AS a, depot AS a FROM vehicles) s
SELECT count(*) AS n FROM readings HAVING count(*) > 5
SELECT device FROM vehicles GROUP BY device, built ORDER BY built
SELECT built, count(*) FROM vehicles GROUP BY built HAVING built > 2015 ORDER BY built
SELECT built::text, count(*) FROM vehicles GROUP BY built HAVING built > 2015 ORDER BY 1
SELECT built / 10 AS built FROM vehicles GROUP BY built HAVING built > 2015 ORDER BY 1
SELECT now() = now(), current_date = current_date
SELECT timestamp '2026-01-01', date '2026-01-01', interval '1 day', true, NULL
