-- What another step makes equal: not run yet.
SELECT extract(minute FROM ts) AS m, count(*) FROM readings GROUP BY m ORDER BY m LIMIT 3
