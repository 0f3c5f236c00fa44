-- IN and EXISTS with subqueries: NULL on either side, in conditions and as values.
SELECT 1 NOT IN (SELECT gear FROM readings)
SELECT 1 IN (SELECT gear FROM readings)
SELECT 99 IN (SELECT gear FROM readings)
SELECT 99 NOT IN (SELECT gear FROM readings)
SELECT count(*) FROM vehicles WHERE 99 NOT IN (SELECT gear FROM readings)
SELECT count(*) FROM vehicles WHERE 99 NOT IN (SELECT gear FROM readings WHERE gear IS NOT NULL)
SELECT count(*) FROM vehicles WHERE 99 IN (SELECT gear FROM readings) IS NULL
SELECT count(*) FROM vehicles WHERE NOT (99 IN (SELECT gear FROM readings))
SELECT count(*) FROM vehicles WHERE built NOT IN (SELECT gear FROM readings)
SELECT count(*) FROM vehicles WHERE NOT (built IN (SELECT gear FROM readings))
SELECT count(*) FROM vehicles WHERE NOT (built IN (SELECT gear FROM readings)) OR built = 2010
SELECT count(*) FROM vehicles WHERE built NOT IN (SELECT gear FROM readings) OR built = 2010
SELECT count(*) FROM vehicles WHERE (built IN (SELECT gear FROM readings)) IS NULL
SELECT count(*) FROM vehicles WHERE NOT (built IN (SELECT gear FROM readings) AND built > 2)
SELECT count(*) FROM vehicles WHERE built > 5 AND (depot NOT IN (SELECT note FROM readings) OR label IS NULL)
SELECT device, built IN (SELECT gear FROM readings) FROM vehicles ORDER BY device
SELECT device, built NOT IN (SELECT gear FROM readings) FROM vehicles ORDER BY device
SELECT device, depot IN (SELECT depot FROM vehicles) FROM vehicles ORDER BY device
SELECT device, CASE WHEN depot IN (SELECT depot FROM vehicles) THEN 1 ELSE 2 END FROM vehicles ORDER BY device
SELECT count(*) FROM vehicles v WHERE built NOT IN (SELECT gear FROM readings r WHERE r.device = v.device)
SELECT count(*) FROM vehicles v WHERE depot NOT IN (SELECT note FROM readings r WHERE r.device = v.device)
SELECT count(*) FROM vehicles v WHERE depot IN (SELECT note FROM readings r WHERE r.device = v.device)
SELECT v.device, built IN (SELECT gear FROM readings r WHERE r.device = v.device) FROM vehicles v ORDER BY 1
SELECT NULL::int IN (SELECT gear FROM readings), NULL::int IN (SELECT gear FROM readings WHERE false), NULL::int NOT IN (SELECT gear FROM readings WHERE false)
SELECT count(*) FROM vehicles WHERE NULL::int NOT IN (SELECT gear FROM readings WHERE false)
SELECT count(*) FROM vehicles WHERE 1 = ANY (SELECT gear FROM readings)
SELECT count(*) FROM vehicles WHERE 99 <> ALL (SELECT gear FROM readings)
SELECT count(*) FROM readings GROUP BY active HAVING count(*) NOT IN (SELECT gear FROM readings)
SELECT device FROM vehicles ORDER BY built IN (SELECT gear FROM readings), device
SELECT v.device FROM vehicles v JOIN readings r ON v.device = r.device AND r.gear NOT IN (SELECT built FROM vehicles) ORDER BY 1 LIMIT 3
SELECT EXISTS (SELECT 1 FROM readings), NOT EXISTS (SELECT 1 FROM readings WHERE false)
SELECT v.device, EXISTS (SELECT 1 FROM readings r WHERE r.device = v.device) FROM vehicles v ORDER BY 1
SELECT count(*) FROM readings WHERE gear + 1 NOT IN (SELECT built - 2009 FROM vehicles)
SELECT count(*) FROM readings WHERE gear NOT IN (SELECT NULL::bigint)
SELECT count(*) FROM readings WHERE gear NOT IN (SELECT NULL::bigint WHERE false)
SELECT count(CASE WHEN gear IN (SELECT built - 2009 FROM vehicles) THEN 1 END) FROM readings
SELECT count(*) FILTER (WHERE gear IN (SELECT built - 2009 FROM vehicles)) FROM readings
SELECT count(*) FROM readings WHERE gear IN (SELECT built - 2009 FROM vehicles) OR note NOT IN (SELECT label FROM vehicles WHERE label IS NOT NULL)
SELECT count(*) FROM readings WHERE NOT (gear IN (SELECT built - 2009 FROM vehicles) OR active)
SELECT count(*) FROM readings WHERE (gear NOT IN (SELECT built - 2009 FROM vehicles)) IS NOT TRUE
SELECT count(*) FROM readings WHERE gear NOT IN (SELECT built - 2009 FROM vehicles) = active
SELECT count(*) FROM readings WHERE 'x' NOT IN (SELECT depot FROM vehicles) OR gear = 1
SELECT count(*) FROM readings r WHERE r.gear NOT IN (SELECT v.built - 2009 FROM vehicles v WHERE v.device = r.device) AND r.active
SELECT count(*) FROM readings WHERE NOT EXISTS (SELECT 1 FROM vehicles v WHERE v.device = readings.device) OR gear = 1
SELECT device FROM readings GROUP BY device HAVING 5 NOT IN (SELECT gear FROM readings WHERE gear IS NOT NULL) ORDER BY device
SELECT device, count(*) IN (SELECT 20) FROM readings GROUP BY device ORDER BY device
SELECT v.device, NOT EXISTS (SELECT 1 FROM readings r WHERE r.device = v.device AND r.gear = 4) FROM vehicles v ORDER BY 1
SELECT CASE WHEN EXISTS (SELECT 1 FROM vehicles WHERE built > 3000) THEN 'new' ELSE 'old' END
SELECT device FROM vehicles WHERE weight NOT IN (SELECT speed FROM readings WHERE speed IS NOT NULL) ORDER BY device
SELECT device FROM vehicles WHERE NOT weight IN (SELECT built FROM vehicles) ORDER BY device
SELECT 1 IN (SELECT weight FROM vehicles), 'north' IN (SELECT depot FROM vehicles), timestamptz '2026-01-15 08:00:00+00' IN (SELECT ts FROM vehicles)
SELECT count(*) FROM readings WHERE speed NOT IN (-1.5, NULL) OR speed NOT IN (0.5)
SELECT count(*) FROM readings WHERE speed NOT IN (-1.5, 0) OR speed NOT IN (0.5, 50)
SELECT count(*) FROM readings WHERE speed IN (0.5) AND speed NOT IN (1, NULL)
SELECT count(*) FROM readings WHERE NOT (gear IN (1, 2) AND gear IN (3, 4))
SELECT count(*) FROM readings WHERE (gear IN (1, 2) AND gear IN (3, 4)) IS NULL
SELECT count(*) FROM readings WHERE (gear IN (1, 2) AND gear NOT IN (1, 2, 3)) IS NULL
SELECT count(*) FILTER (WHERE gear IN (1, 2) OR gear IN (2, 3)), count(*) FILTER (WHERE gear NOT IN (1, 2) AND gear NOT IN (2, 3)) FROM readings
SELECT gear IN (1, NULL), gear NOT IN (1, NULL), gear IN (NULL), gear NOT IN (NULL, NULL), gear IN (1, 2) AND gear IN (3, 4), gear NOT IN (1, 2) OR gear NOT IN (3, 4), gear IN (1, 2) OR gear NOT IN (1, 3) FROM readings ORDER BY device, ts
SELECT count(*) FROM readings WHERE device NOT IN ('bus-1', NULL) OR device NOT IN ('bus-2', 'tram')
SELECT count(*) FROM (SELECT * FROM readings WHERE gear IN (1, 2, 3)) r WHERE gear NOT IN (4, NULL)
SELECT count(*) FROM (SELECT * FROM readings WHERE device IN ('bus-1', 'tram')) r WHERE device NOT IN ('tram', 'van')
SELECT count(*) FROM readings WHERE device IN ('bus-1', 'tram', NULL) AND NOT (gear = ANY ('{1,NULL}'::bigint[]) AND gear = ANY ('{2,3}'::bigint[]))
SELECT note IN (SELECT note FROM readings WHERE note <> 'ok'), note NOT IN (SELECT note FROM readings WHERE note <> 'ok'), note IN (SELECT note FROM readings WHERE device = 'tram') FROM readings ORDER BY device, ts
SELECT device || ts::text IN (SELECT device || ts::text FROM readings WHERE gear > 1), ts NOT IN (SELECT ts FROM readings WHERE device = 'tram') FROM readings ORDER BY device, ts
SELECT gear + 10 = ANY (array_agg(n)) FROM readings, generate_series(1, 30) AS n GROUP BY device, ts, gear ORDER BY device, ts
