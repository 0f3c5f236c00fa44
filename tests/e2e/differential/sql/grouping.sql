-- Aggregates, GROUP BY, grouping sets, FILTER, HAVING.
SELECT count(*), count(speed), count(gear), count(note), count(active) FROM readings
SELECT count(DISTINCT gear), count(DISTINCT note), count(DISTINCT active) FROM readings
SELECT min(speed), max(speed), avg(speed), sum(speed) FROM readings
SELECT min(gear), max(gear), avg(gear) FROM readings
SELECT min(note), max(note), min(device), max(device) FROM readings
SELECT min(ts), max(ts) FROM readings
SELECT min(ts::date), max(ts::date) FROM readings
SELECT bool_and(active), bool_or(active), every(active) FROM readings
SELECT device, bool_and(active), bool_or(active) FROM readings GROUP BY device ORDER BY device
SELECT count(*), sum(speed), max(gear), avg(speed) FROM readings WHERE false
SELECT bool_and(active), array_agg(gear), string_agg(note, ',') FROM readings WHERE false
SELECT sum(speed), avg(speed) FROM readings WHERE speed IS NULL
SELECT device, count(*) FROM readings WHERE false GROUP BY device
-- differs: GROUP BY () is refused; leave it out
SELECT count(*) FROM readings WHERE false GROUP BY ()
SELECT device, count(*), min(speed), max(speed) FROM readings GROUP BY device ORDER BY device
SELECT device, active, count(*) FROM readings GROUP BY device, active ORDER BY device, active
SELECT depot, count(*) FROM vehicles GROUP BY depot ORDER BY depot
SELECT depot, count(*) FROM vehicles GROUP BY depot ORDER BY count(*) DESC, depot
SELECT depot, max(built) - min(built) AS span FROM vehicles GROUP BY depot ORDER BY span, depot
SELECT gear > 1 AS high, count(*) FROM readings GROUP BY high ORDER BY high
SELECT gear > 1 AS high, count(*) FROM readings GROUP BY gear > 1 ORDER BY 1
SELECT device, count(*) FROM readings GROUP BY 1 HAVING count(*) > 5 ORDER BY 1
SELECT device, avg(speed) FROM readings GROUP BY device HAVING avg(speed) > 1000 ORDER BY device
SELECT device FROM readings GROUP BY device HAVING bool_or(active) ORDER BY device
SELECT count(*) FILTER (WHERE speed > 10), count(*) FILTER (WHERE speed <= 10), count(*) FILTER (WHERE speed IS NULL) FROM readings
SELECT device, max(speed) FILTER (WHERE active) FROM readings GROUP BY device ORDER BY device
SELECT sum(speed) FILTER (WHERE false) FROM readings
SELECT string_agg(device, ',' ORDER BY device) FROM vehicles
SELECT string_agg(device, ',' ORDER BY device DESC) FROM vehicles
SELECT string_agg(depot, '|' ORDER BY device) FROM vehicles
SELECT string_agg(label, ', ' ORDER BY label) FILTER (WHERE built > 2015) FROM vehicles
SELECT depot, string_agg(device, '+' ORDER BY built DESC) FROM vehicles GROUP BY depot ORDER BY depot
SELECT depot, built, count(*) FROM vehicles GROUP BY ROLLUP (depot, built) ORDER BY depot, built, 3
SELECT depot, count(*) FROM vehicles GROUP BY ROLLUP (depot) ORDER BY depot, 2
SELECT depot, label, count(*) FROM vehicles GROUP BY CUBE (depot, label) ORDER BY depot, label, 3
SELECT depot, built, count(*) FROM vehicles GROUP BY GROUPING SETS ((depot), (built), ()) ORDER BY depot, built, 3
SELECT depot, grouping(depot), count(*) FROM vehicles GROUP BY ROLLUP (depot) ORDER BY depot, 2
SELECT depot, label, grouping(depot, label), count(*) FROM vehicles GROUP BY CUBE (depot, label) ORDER BY 3, 1, 2
SELECT device, grouping(device) FROM vehicles GROUP BY device ORDER BY device
SELECT count(*), depot FROM vehicles GROUP BY GROUPING SETS ((depot), (depot)) ORDER BY depot, 1
SELECT var_pop(speed), var_samp(speed), variance(speed) FROM readings WHERE speed < 1000
SELECT stddev_pop(speed), stddev_samp(speed), stddev(speed) FROM readings WHERE speed < 1000
SELECT stddev(speed), stddev_pop(speed), variance(speed) FROM readings WHERE device = 'tram' AND speed IS NOT NULL GROUP BY ts ORDER BY ts LIMIT 1
SELECT corr(built, weight), covar_pop(built, weight), covar_samp(built, weight) FROM vehicles
SELECT regr_slope(weight, built), regr_intercept(weight, built), regr_r2(weight, built), regr_count(weight, built) FROM vehicles
SELECT regr_avgx(weight, built), regr_avgy(weight, built), regr_sxx(weight, built), regr_syy(weight, built), regr_sxy(weight, built) FROM vehicles
SELECT percentile_cont(0.5) WITHIN GROUP (ORDER BY speed) FROM readings
SELECT percentile_cont(0.9) WITHIN GROUP (ORDER BY weight) FROM vehicles
-- differs: percentile_disc is absent
SELECT percentile_disc(0.5) WITHIN GROUP (ORDER BY built) FROM vehicles
-- differs: mode is absent
SELECT mode() WITHIN GROUP (ORDER BY depot) FROM vehicles
SELECT bit_and(built), bit_or(built) FROM vehicles
SELECT bit_xor(built) FROM vehicles
SELECT count(DISTINCT (depot, built)) FROM vehicles
SELECT sum(DISTINCT weight), avg(DISTINCT weight) FROM vehicles
SELECT max(built), max(built) + 1, max(built + 1) FROM vehicles
SELECT device, max(gear) AS top FROM readings GROUP BY device ORDER BY top DESC, device LIMIT 3
SELECT max(count) FROM (SELECT count(*) FROM readings GROUP BY device) s
SELECT avg(n) FROM (SELECT device, count(*) AS n FROM readings GROUP BY device) s
SELECT count(*) FROM (SELECT DISTINCT device, active FROM readings) s
SELECT upper(depot) AS d, count(*) FROM vehicles GROUP BY d ORDER BY d
SELECT length(device) AS l, array_agg(device ORDER BY device) FROM vehicles GROUP BY l ORDER BY l
SELECT date_trunc('minute', ts) AS t, count(*) FROM readings GROUP BY t ORDER BY t LIMIT 3
SELECT date_trunc('hour', ts) AS t, avg(speed) FROM readings WHERE device = 'van' GROUP BY t ORDER BY t
-- differs: json_agg is absent
SELECT json_agg(built) FROM vehicles
-- differs: jsonb_object_agg is absent
SELECT jsonb_object_agg(device, built) FROM vehicles
-- differs: any_value is there, as in PostgreSQL 16
SELECT any_value(built) IS NULL FROM vehicles
-- differs: first_value is an aggregate too
SELECT first_value(built) FROM vehicles
-- differs: count takes several columns
SELECT count(gear, speed) FROM readings
SELECT sum(active) FROM readings
-- differs: max takes truth values
SELECT max(active) FROM readings
SELECT avg(device) FROM readings
SELECT max(sum(gear)) FROM readings
SELECT device, speed FROM readings GROUP BY device
SELECT note, (timestamptz '2026-01-15 08:10:00+00' - interval '1 day') AS t, count(*) FROM readings GROUP BY ROLLUP (note, (timestamptz '2026-01-15 08:10:00+00' - interval '1 day'))
SELECT nullif(ts, timestamptz '2026-01-15 08:10:00+00'), min(gear / 2) FROM readings WHERE device = 'tram' GROUP BY CUBE (nullif(ts, timestamptz '2026-01-15 08:10:00+00')) ORDER BY 1
SELECT gear / 2, speed - 0.5::float8, count(*) FROM readings WHERE device = 'tram' GROUP BY ROLLUP (gear / 2, speed - 0.5::float8) ORDER BY 1, 2, 3
-- differs: a key twice in ROLLUP or CUBE is refused
SELECT gear, gear, count(*) FROM readings GROUP BY ROLLUP (gear, gear)
SELECT device, gear, count(*) FROM readings WHERE device = 'tram' GROUP BY ROLLUP (device, gear) ORDER BY device, gear, 3
SELECT device, count(*) FROM readings WHERE device = 'tram' GROUP BY CUBE (device) ORDER BY device
SELECT gear, device, count(*) FROM readings WHERE gear = 1 GROUP BY ROLLUP (gear, device) ORDER BY gear, device
SELECT gear, device, count(*) FROM readings WHERE gear = 1 GROUP BY ROLLUP (device, gear) ORDER BY device, gear
SELECT * FROM (SELECT device, gear, count(*) AS n FROM readings GROUP BY ROLLUP (device, gear)) s WHERE device = 'tram' ORDER BY 1, 2, 3
SELECT * FROM (SELECT device, gear, count(*) AS n FROM readings WHERE device = 'tram' GROUP BY ROLLUP (device, gear)) s WHERE device IS NULL
SELECT gear, row_number() OVER (PARTITION BY device ORDER BY gear, n) FROM (SELECT device, gear, count(*) AS n FROM readings WHERE device = 'tram' GROUP BY ROLLUP (device, gear)) s ORDER BY 1, 2
-- differs: a constant as a key of ROLLUP is refused
SELECT gear, 1, count(*) FROM readings GROUP BY ROLLUP (gear, 1)
SELECT percentile_cont(0.123456789) WITHIN GROUP (ORDER BY built) FROM vehicles
SELECT device, percentile_cont(0.333333333) WITHIN GROUP (ORDER BY speed) FROM readings GROUP BY device ORDER BY device
SELECT device, sum(ts - timestamptz '2026-01-14 19:00:00+00'), avg(ts - timestamptz '2026-01-14 19:00:00+00') FROM readings GROUP BY device ORDER BY device
SELECT string_agg(device, ',' ORDER BY device), string_agg(device, ',' ORDER BY device DESC), array_agg(device ORDER BY built) FROM vehicles
SELECT ts::date, ts::time, max(built), max(built::text) FROM vehicles GROUP BY 1, 2
