-- Window functions and frames.
SELECT device, row_number() OVER (ORDER BY device) FROM vehicles ORDER BY device
SELECT device, rank() OVER (ORDER BY depot), dense_rank() OVER (ORDER BY depot) FROM vehicles ORDER BY device
SELECT device, rank() OVER (ORDER BY depot DESC NULLS LAST) AS r FROM vehicles ORDER BY r, device
SELECT device, percent_rank() OVER (ORDER BY built), cume_dist() OVER (ORDER BY built) FROM vehicles ORDER BY device
SELECT device, ntile(3) OVER (ORDER BY built) FROM vehicles ORDER BY device
SELECT device, lag(built) OVER (ORDER BY built), lead(built) OVER (ORDER BY built) FROM vehicles ORDER BY device
SELECT device, lag(built, 2) OVER (ORDER BY built), lead(built, 1, 0) OVER (ORDER BY built) FROM vehicles ORDER BY device
SELECT device, lag(label) OVER (ORDER BY device) FROM vehicles ORDER BY device
SELECT device, lag(built, 0) OVER (ORDER BY built) FROM vehicles ORDER BY device
SELECT device, first_value(device) OVER (ORDER BY built), last_value(device) OVER (ORDER BY built) FROM vehicles ORDER BY device
SELECT device, nth_value(device, 2) OVER (ORDER BY built) FROM vehicles ORDER BY device
SELECT device, count(*) OVER (), count(depot) OVER (), max(built) OVER (PARTITION BY depot) FROM vehicles ORDER BY device
SELECT device, count(*) OVER (ORDER BY built) FROM vehicles ORDER BY device
SELECT device, count(*) OVER (ORDER BY depot) FROM vehicles ORDER BY device
SELECT device, avg(built) OVER (PARTITION BY depot ORDER BY built) FROM vehicles ORDER BY device
SELECT device, max(built) OVER (ORDER BY built ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING) FROM vehicles ORDER BY device
SELECT device, min(weight) OVER (ORDER BY built ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) FROM vehicles ORDER BY device
SELECT device, count(*) OVER (ORDER BY built ROWS UNBOUNDED PRECEDING) FROM vehicles ORDER BY device
SELECT device, count(*) OVER (ORDER BY built RANGE BETWEEN 3 PRECEDING AND CURRENT ROW) FROM vehicles ORDER BY device
SELECT device, count(*) OVER (ORDER BY built RANGE BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM vehicles ORDER BY device
SELECT device, count(*) OVER (ORDER BY depot GROUPS BETWEEN 1 PRECEDING AND CURRENT ROW) FROM vehicles ORDER BY device
SELECT device, count(*) OVER (ORDER BY built ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING) FROM vehicles ORDER BY device
SELECT device, last_value(device) OVER (ORDER BY built ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) FROM vehicles ORDER BY device
SELECT device, sum(weight) OVER (ORDER BY built ROWS BETWEEN 1 PRECEDING AND 1 PRECEDING) FROM vehicles ORDER BY device
SELECT device, sum(weight) OVER (ORDER BY built ROWS BETWEEN 2 FOLLOWING AND 3 FOLLOWING) FROM vehicles ORDER BY device
SELECT device, count(*) OVER w, max(built) OVER w FROM vehicles WINDOW w AS (PARTITION BY depot ORDER BY built) ORDER BY device
SELECT device, sum(weight) FILTER (WHERE built > 2012) OVER (ORDER BY built) FROM vehicles ORDER BY device
SELECT device, depot, row_number() OVER (PARTITION BY depot ORDER BY built DESC) AS n FROM vehicles ORDER BY depot, n
SELECT device FROM (SELECT device, row_number() OVER (PARTITION BY depot ORDER BY built) AS n FROM vehicles) s WHERE n = 1 ORDER BY device
SELECT device, ts, speed - lag(speed) OVER (PARTITION BY device ORDER BY ts) AS step FROM readings ORDER BY device, ts LIMIT 30
SELECT device, ts, count(speed) OVER (PARTITION BY device ORDER BY ts) FROM readings ORDER BY device, ts
SELECT device, ts, max(gear) OVER (PARTITION BY device ORDER BY ts ROWS 3 PRECEDING) FROM readings ORDER BY device, ts
-- differs: what leaves a window is subtracted from a sum of fractions, so the last digits beside much larger values are lost
SELECT device, ts, avg(speed) OVER (PARTITION BY device ORDER BY ts RANGE BETWEEN INTERVAL '2 minutes' PRECEDING AND CURRENT ROW) FROM readings ORDER BY device, ts
SELECT device, ts, bool_or(active) OVER (PARTITION BY device ORDER BY ts) FROM readings ORDER BY device, ts
SELECT device, ts, string_agg(note, '') OVER (PARTITION BY device ORDER BY ts) FROM readings WHERE device = 'tram' ORDER BY ts
SELECT device, array_agg(built) OVER (ORDER BY built) FROM vehicles ORDER BY device
SELECT depot, max(built), rank() OVER (ORDER BY max(built)) FROM vehicles GROUP BY depot ORDER BY depot
SELECT depot, count(*), count(*) OVER () FROM vehicles GROUP BY depot ORDER BY depot
SELECT device, rank() OVER () FROM vehicles ORDER BY device
SELECT device FROM vehicles ORDER BY row_number() OVER (ORDER BY built DESC)
SELECT DISTINCT count(*) OVER (PARTITION BY depot) FROM vehicles ORDER BY 1
-- differs: the same refusal with another SQLSTATE
SELECT device FROM vehicles WHERE row_number() OVER () = 1
SELECT device, lag(built) FROM vehicles
SELECT ntile(0) OVER () FROM vehicles
-- differs: ntile(NULL) is refused
SELECT device, ntile(NULL) OVER (ORDER BY device) FROM vehicles ORDER BY device
-- differs: nth_value(x, 0) is NULL
SELECT device, nth_value(device, 0) OVER (ORDER BY built) FROM vehicles
