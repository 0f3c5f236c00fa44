-- Joins, subqueries, CTEs and set operations.
SELECT v.device, count(r.ts) FROM vehicles v LEFT JOIN readings r ON r.device = v.device GROUP BY v.device ORDER BY v.device
SELECT count(*) FROM vehicles v JOIN readings r ON r.device = v.device
SELECT count(*) FROM vehicles v RIGHT JOIN readings r ON r.device = v.device
SELECT count(*) FROM vehicles v FULL JOIN readings r ON r.device = v.device
SELECT count(*) FROM vehicles, readings
SELECT count(*) FROM vehicles CROSS JOIN readings
SELECT v.device, r.device FROM vehicles v LEFT JOIN (SELECT DISTINCT device FROM readings) r ON r.device = v.device ORDER BY 1, 2
SELECT v.device, r.device FROM vehicles v FULL JOIN (SELECT DISTINCT device FROM readings) r ON r.device = v.device ORDER BY 1, 2
SELECT device, count(*) FROM vehicles JOIN readings USING (device) GROUP BY device ORDER BY device
SELECT count(*) FROM vehicles NATURAL JOIN readings
SELECT a.device, b.device FROM vehicles a JOIN vehicles b ON a.built < b.built AND a.depot = b.depot ORDER BY 1, 2
SELECT a.device, b.device FROM vehicles a LEFT JOIN vehicles b ON a.depot = b.depot AND a.device <> b.device ORDER BY 1, 2
SELECT a.device FROM vehicles a JOIN vehicles b ON a.label = b.label ORDER BY 1
SELECT a.device FROM vehicles a JOIN vehicles b ON a.label IS NOT DISTINCT FROM b.label ORDER BY 1
SELECT a.device FROM vehicles a LEFT JOIN vehicles b ON false ORDER BY 1
SELECT a.device, b.built FROM vehicles a LEFT JOIN vehicles b ON a.device = b.device AND b.built > 2015 ORDER BY 1
SELECT a.device, b.built FROM vehicles a LEFT JOIN vehicles b ON a.device = b.device WHERE b.built > 2015 ORDER BY 1
SELECT device FROM vehicles v WHERE EXISTS (SELECT 1 FROM readings r WHERE r.device = v.device AND r.gear = 10) ORDER BY device
SELECT device FROM vehicles v WHERE NOT EXISTS (SELECT 1 FROM readings r WHERE r.device = v.device) ORDER BY device
SELECT device FROM vehicles WHERE device IN (SELECT device FROM readings WHERE speed > 99) ORDER BY device
SELECT device FROM vehicles WHERE device NOT IN (SELECT device FROM readings) ORDER BY device
SELECT device FROM vehicles WHERE depot NOT IN (SELECT depot FROM vehicles WHERE device = 'tram') ORDER BY device
SELECT device FROM vehicles WHERE depot IN (SELECT depot FROM vehicles WHERE device = 'tram') ORDER BY device
SELECT device FROM vehicles WHERE built = (SELECT max(built) FROM vehicles)
SELECT device FROM vehicles v WHERE built = (SELECT max(built) FROM vehicles w WHERE w.depot = v.depot) ORDER BY device
SELECT device, (SELECT count(*) FROM readings r WHERE r.device = v.device) FROM vehicles v ORDER BY device
SELECT device, (SELECT max(speed) FROM readings r WHERE r.device = v.device AND r.active) AS top FROM vehicles v ORDER BY device
SELECT (SELECT built FROM vehicles WHERE false)
-- differs: the same refusal with another SQLSTATE
SELECT (SELECT built FROM vehicles)
SELECT device FROM vehicles WHERE built > ALL (SELECT built FROM vehicles WHERE depot = 'north') ORDER BY device
SELECT device FROM vehicles WHERE built > ANY (SELECT built FROM vehicles WHERE depot = 'south') ORDER BY device
SELECT device FROM vehicles WHERE built >= ALL (SELECT built FROM vehicles WHERE false) ORDER BY device
SELECT device FROM vehicles WHERE built > ANY (SELECT built FROM vehicles WHERE false) ORDER BY device
-- differs: rows are not compared with rows of a subquery
SELECT device FROM vehicles WHERE (depot, built) IN (SELECT depot, max(built) FROM vehicles GROUP BY depot) ORDER BY device
SELECT s.device FROM (SELECT device, built FROM vehicles WHERE depot = 'north') s ORDER BY s.built
WITH n AS (SELECT * FROM vehicles WHERE depot = 'north') SELECT count(*) FROM n
WITH n AS (SELECT device FROM vehicles), m AS (SELECT device FROM n WHERE device LIKE 'b%') SELECT * FROM m ORDER BY device
WITH RECURSIVE t(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT n FROM t ORDER BY n
WITH RECURSIVE t(n) AS (SELECT 1 UNION SELECT (n * 2) % 7 FROM t) SELECT n FROM t ORDER BY n
WITH a AS (SELECT 1 AS x), b AS (SELECT x + 1 AS x FROM a) SELECT a.x, b.x FROM a, b
SELECT depot FROM vehicles UNION SELECT device FROM vehicles ORDER BY 1
SELECT depot FROM vehicles UNION ALL SELECT depot FROM vehicles ORDER BY 1
SELECT depot FROM vehicles INTERSECT SELECT depot FROM vehicles WHERE built > 2012 ORDER BY 1
SELECT depot FROM vehicles EXCEPT SELECT depot FROM vehicles WHERE built > 2015 ORDER BY 1
-- differs: INTERSECT ALL is refused
SELECT depot FROM vehicles INTERSECT ALL SELECT depot FROM vehicles ORDER BY 1
-- differs: EXCEPT ALL is refused
SELECT depot FROM vehicles EXCEPT ALL SELECT depot FROM vehicles WHERE device = 'bus-1' ORDER BY 1
SELECT 1 UNION SELECT 2 UNION ALL SELECT 2 ORDER BY 1
SELECT 1 UNION ALL (SELECT 2 UNION SELECT 2) ORDER BY 1
SELECT 1 UNION SELECT 2 INTERSECT SELECT 2 ORDER BY 1
SELECT 1 AS n UNION SELECT NULL ORDER BY n
SELECT NULL UNION SELECT 'a' ORDER BY 1
SELECT 1 UNION SELECT 2.5 ORDER BY 1
-- differs: a number and a text have the common type text
SELECT 1 UNION SELECT 'a'
SELECT 1, 2 UNION SELECT 1
(SELECT device FROM vehicles ORDER BY built LIMIT 1) UNION ALL (SELECT device FROM vehicles ORDER BY built DESC LIMIT 1)
SELECT device FROM vehicles UNION SELECT 'x' ORDER BY device LIMIT 2
SELECT v.device, x.n FROM vehicles v CROSS JOIN LATERAL (SELECT count(*) AS n FROM readings r WHERE r.device = v.device) x ORDER BY 1
-- differs: LATERAL with a limit is refused
SELECT v.device, x.speed FROM vehicles v LEFT JOIN LATERAL (SELECT speed FROM readings r WHERE r.device = v.device AND speed IS NOT NULL ORDER BY ts DESC LIMIT 1) x ON true ORDER BY 1
SELECT device FROM vehicles v, (SELECT max(built) AS m FROM vehicles) x WHERE v.built = x.m
SELECT device FROM vehicles v JOIN readings r ON true
SELECT v.nothing FROM vehicles v
SELECT x.device FROM vehicles v
SELECT count(*) FROM vehicles v JOIN vehicles v ON true
SELECT count(*) FROM vehicles a JOIN readings b ON a.device = b.device AND a.ts = b.ts
SELECT count(DISTINCT r.device) FROM readings r JOIN vehicles v ON r.device = v.device WHERE v.depot IS NULL OR r.gear > 100
SELECT count(*) FROM readings r RIGHT JOIN vehicles v ON r.device = v.device WHERE r.device NOT BETWEEN NULL::text AND '7'
SELECT count(*) FROM readings r RIGHT JOIN vehicles v ON r.device = v.device WHERE r.device NOT BETWEEN 'a' AND '7'
SELECT count(*) FROM readings r RIGHT JOIN vehicles v ON r.device = v.device WHERE r.device < NULL::text OR r.device > '7'
SELECT count(*) FROM readings r RIGHT JOIN vehicles v ON r.device = v.device WHERE r.device BETWEEN NULL::text AND '7'
SELECT count(*) FROM readings r RIGHT JOIN vehicles v ON r.device = v.device WHERE substr(r.device, 2, 1) NOT BETWEEN NULL::text AND left('7', 1)
SELECT count(*) FROM readings r RIGHT JOIN vehicles v ON r.device = v.device WHERE substr(r.device, 2, 1) > '7'
SELECT count(*) FROM readings r RIGHT JOIN vehicles v ON r.device = v.device WHERE substr(r.device, 2, 1) > '7' OR NULL
SELECT count(*), avg((v.built + v.weight)) FROM readings r FULL JOIN vehicles v ON r.device = v.device WHERE NOT ((v.ts <> timestamptz '2026-01-15 08:05:00+00') AND (v.ts NOT BETWEEN v.ts AND r.ts))
SELECT count(*), avg((v.built + v.weight)) FROM readings r FULL JOIN vehicles v ON r.device = v.device WHERE  ((v.ts = timestamptz '2026-01-15 08:05:00+00') OR (v.ts BETWEEN v.ts AND r.ts))
SELECT count(*) FROM readings r FULL JOIN vehicles v ON r.device = v.device WHERE v.ts BETWEEN v.ts AND r.ts
SELECT count(*) FROM readings r FULL JOIN vehicles v ON r.device = v.device WHERE v.ts NOT BETWEEN v.ts AND r.ts
SELECT count(*) FROM readings r FULL JOIN vehicles v ON r.device = v.device WHERE v.ts <= r.ts OR v.ts IS NULL
SELECT r.ts, v.ts FROM readings r RIGHT JOIN vehicles v ON r.device = v.device ORDER BY r.ts DESC, v.device LIMIT 5
SELECT r.ts, v.ts, v.device FROM readings r RIGHT JOIN vehicles v ON r.device = v.device ORDER BY v.ts, v.device DESC, r.ts LIMIT 5
SELECT v.device, r.ts FROM vehicles v LEFT JOIN readings r ON r.device = v.device AND r.ts = v.ts ORDER BY r.ts DESC NULLS LAST, v.device LIMIT 4
SELECT count(*) FROM readings r LEFT JOIN vehicles v ON r.device = v.device WHERE substr(v.device, 2, 1) > '7'
SELECT count(*) FROM readings r LEFT JOIN vehicles v ON r.device = v.device WHERE v.device LIKE 'b%' OR v.depot = 'south'
SELECT count(*) FROM readings r LEFT JOIN vehicles v ON r.device = v.device WHERE coalesce(v.device, 'none') = 'none'
SELECT count(*) FROM vehicles v FULL JOIN readings r ON r.device = v.device WHERE length(v.device) > 3 AND length(r.device) > 3
SELECT device, count(*) FROM readings RIGHT JOIN vehicles USING (device) GROUP BY device ORDER BY device
SELECT device, r.device, v.device FROM readings r FULL JOIN vehicles v USING (device) WHERE r.ts IS NULL OR v.ts IS NULL ORDER BY 1, 2, 3
SELECT device FROM readings r FULL JOIN vehicles v USING (device) WHERE device LIKE 's%'
SELECT * FROM vehicles b JOIN vehicles a USING (device) ORDER BY device
SELECT * FROM vehicles a RIGHT JOIN (SELECT device, max(gear) AS gear FROM readings GROUP BY device) z USING (device) ORDER BY device
SELECT * FROM vehicles NATURAL FULL JOIN (SELECT device, max(gear) AS gear FROM readings GROUP BY device) z ORDER BY device
SELECT device, a.built, b.built, c.built FROM vehicles a JOIN vehicles b USING (device) JOIN vehicles c USING (device) ORDER BY device
SELECT j.device FROM (vehicles a FULL JOIN (SELECT 'zz' AS device) b USING (device)) AS j ORDER BY 1
