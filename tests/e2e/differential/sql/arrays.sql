-- Arrays: literals, ANY and ALL, functions, output.
SELECT '{a,b}'::text[]
SELECT '{1,2,NULL}'::int[]
SELECT '{"a b","c,d","e\"f",NULL,"NULL",""}'::text[]
SELECT '{1.5,2}'::float8[]
SELECT '{t,f,NULL}'::bool[]
SELECT '{2026-01-15 08:00:00+00}'::timestamptz[]
SELECT '{}'::text[]
SELECT ARRAY[1,2,3]
SELECT ARRAY['a','b']
SELECT ARRAY[1,NULL,3]
SELECT ARRAY[]::int[]
SELECT ARRAY['a','b']::text[]
SELECT ARRAY[1.5, 2]::float8[]
SELECT 1 = ANY('{1,2}'::int[])
SELECT 3 = ANY('{1,2}'::int[])
SELECT 3 = ANY('{1,NULL}'::int[])
SELECT 1 = ANY('{1,NULL}'::int[])
SELECT NULL::int = ANY('{1,2}'::int[])
SELECT NULL::int = ANY('{}'::int[])
SELECT 1 = ANY(NULL::int[])
SELECT 1 <> ALL('{2,3}'::int[])
SELECT 1 <> ALL('{1,3}'::int[])
SELECT 1 <> ALL('{2,NULL}'::int[])
SELECT 1 <> ALL('{}'::int[])
SELECT NULL::int <> ALL('{}'::int[])
SELECT 1 <> ALL(NULL::int[])
SELECT 1 <> ANY('{1,1}'::int[])
SELECT 1 <> ANY('{1,2}'::int[])
SELECT 1 <> ANY('{1,NULL}'::int[])
SELECT 1 = ALL('{1,1}'::int[])
SELECT 1 = ALL('{1,NULL}'::int[])
SELECT 2 = ALL('{1,NULL}'::int[])
SELECT 2 > ALL('{1,NULL}'::int[])
SELECT 2 > ANY('{1,NULL}'::int[])
SELECT 1 > ANY('{1,NULL}'::int[])
SELECT 2 < ANY('{1,2}'::int[]), 2 <= ANY('{1,2}'::int[]), 2 >= ALL('{1,2}'::int[]), 2 < ALL('{3,4}'::int[])
SELECT 'abc' LIKE ANY('{a%,x%}'::text[]), 'abc' LIKE ANY('{x%,NULL}'::text[]), 'abc' NOT LIKE ANY('{a%,x%}'::text[])
SELECT 'abc' ILIKE ANY(ARRAY['A%']), 'abc' ~~ ALL(ARRAY['a%','%c']), 'abc' !~~ ALL(ARRAY['x%'])
SELECT 'a' = ANY(ARRAY['a','b']), 'a' <> ALL(ARRAY['a','b'])
SELECT count(*) FROM readings WHERE device = ANY('{bus-1,bus-2}'::text[])
SELECT count(*) FROM readings WHERE device = ANY('{bus-1,NULL}'::text[])
SELECT count(*) FROM readings WHERE device = ANY('{bus-1,bus-2}')
SELECT count(*) FROM readings WHERE device <> ALL('{bus-1,bus-2}'::text[])
SELECT count(*) FROM readings WHERE device <> ALL('{bus-1,NULL}'::text[])
SELECT count(*) FROM readings WHERE NOT (device = ANY('{bus-1,bus-2}'::text[]))
SELECT count(*) FROM readings WHERE NOT (device = ANY('{bus-1,NULL}'::text[]))
SELECT count(*) FROM readings WHERE device = ANY('{}'::text[])
SELECT count(*) FROM readings WHERE device <> ALL('{}'::text[])
SELECT count(*) FROM readings WHERE device = ANY(ARRAY['Über','tram'])
SELECT count(*) FROM readings WHERE device LIKE ANY(ARRAY['bus%','t%'])
SELECT count(*) FROM readings WHERE gear = ANY('{1,2,3}'::int[])
SELECT count(*) FROM readings WHERE gear = ANY('{1,2,NULL}'::bigint[])
SELECT count(*) FROM readings WHERE gear <> ALL('{1,2}'::bigint[])
SELECT count(*) FROM readings WHERE gear > ALL('{1,2}'::bigint[])
SELECT count(*) FROM readings WHERE speed = ANY('{0.5,50}'::float8[])
SELECT count(*) FROM readings WHERE active = ANY('{t}'::bool[])
SELECT count(*) FROM readings WHERE ts = ANY('{2026-01-15 08:00:00+00,2026-01-15 08:01:00+00}'::timestamptz[])
SELECT count(*) FROM readings WHERE note = ANY('{ok,"",NULL,"Tür auf"}'::text[])
SELECT device, gear = ANY('{1,2}'::bigint[]) AS found FROM readings WHERE device = 'tram' ORDER BY ts
SELECT count(*) FROM readings WHERE gear IN (1, 2, NULL)
SELECT count(*) FROM readings WHERE gear NOT IN (1, 2, NULL)
SELECT count(*) FROM readings WHERE device IN ('bus-1', 'tram')
SELECT count(*) FROM readings WHERE device NOT IN ('bus-1', 'tram')
SELECT count(*) FROM readings WHERE device = ANY(SELECT device FROM vehicles)
SELECT count(*) FROM readings WHERE device <> ALL(SELECT device FROM vehicles)
SELECT count(*) FROM readings WHERE gear > ANY(SELECT built - 2009 FROM vehicles)
SELECT count(*) FROM readings WHERE gear > ALL(SELECT built - 2030 FROM vehicles)
SELECT device, array_agg(gear ORDER BY ts) FROM readings GROUP BY device ORDER BY device
SELECT array_agg(label ORDER BY device) FROM vehicles
SELECT array_agg(built ORDER BY built DESC) FROM vehicles
SELECT array_agg(weight ORDER BY device) FROM vehicles
SELECT array_agg(built) FROM vehicles WHERE false
SELECT array_agg(DISTINCT depot ORDER BY depot) FROM vehicles
SELECT array_agg(ts ORDER BY device) FROM vehicles
SELECT array_agg(active ORDER BY ts, device) FROM readings WHERE device = 'tram'
SELECT array_length('{a,b}'::text[], 1), array_length('{}'::text[], 1), array_length(NULL::text[], 1)
SELECT array_upper('{a,b}'::text[], 1), array_lower('{a,b}'::text[], 1)
SELECT array_length('{1,2}'::int[], 2), array_upper('{}'::int[], 1), array_lower('{}'::int[], 1), array_ndims('{}'::int[]), array_upper('{1,2}'::int[], 2), array_length('{1}'::int[], 0), array_upper('{4,5}'::int[], NULL)
SELECT cardinality('{a,b}'::text[]), cardinality('{}'::text[])
-- differs: array_dims is absent
SELECT array_ndims('{a,b}'::text[]), array_dims('{a,b}'::text[])
SELECT ('{a,b}'::text[])[1], ('{a,b}'::text[])[3], ('{a,b}'::text[])[0], ('{a,b}'::text[])[-1]
SELECT ('{1,2,3,4}'::int[])[2:3]
SELECT array_position('{a,b,a}'::text[], 'a'), array_position('{a,b}'::text[], 'c')
SELECT array_positions('{a,b,a}'::text[], 'a')
SELECT array_append('{1,2}'::int[], 3), array_prepend(0, '{1,2}'::int[]), array_cat('{1}'::int[], '{2}'::int[])
SELECT array_append(NULL::int[], 3), array_cat(NULL::int[], '{2}'::int[])
SELECT array_remove('{1,2,1}'::int[], 1), array_replace('{1,2,1}'::int[], 1, 9)
SELECT array_to_string('{a,NULL,b}'::text[], ','), array_to_string('{a,NULL,b}'::text[], ',', '*')
SELECT array_to_string('{1,2}'::int[], '-')
SELECT string_to_array('a,b,,c', ','), string_to_array('', ','), string_to_array('abc', NULL), string_to_array(NULL, ',')
SELECT string_to_array('a,b,x', ',', 'x')
SELECT '{1,2}'::int[] || '{3}'::int[], '{1,2}'::int[] || 3, 0 || '{1,2}'::int[]
SELECT '{1,2,3}'::int[] @> '{1,3}'::int[], '{1}'::int[] @> '{1,2}'::int[], '{1}'::int[] <@ '{1,2}'::int[]
SELECT '{1,2}'::int[] && '{2,3}'::int[], '{1}'::int[] && '{2}'::int[], '{}'::int[] && '{1}'::int[]
SELECT '{NULL}'::int[] && '{NULL}'::int[], '{NULL,1}'::int[] @> '{NULL}'::int[], '{NULL}'::int[] <@ '{NULL,1}'::int[], NULL::int[] @> '{1}'::int[], '{1,NULL}'::int[] && '{NULL,1}'::int[]
SELECT array_agg(gear) @> '{1}'::bigint[], array_agg(gear) && '{7,8}'::bigint[], '{1,2}'::bigint[] <@ array_agg(gear) FROM readings GROUP BY device ORDER BY device
SELECT '{1,2}'::int[] @> '{}'::int[], '{}'::int[] <@ '{1}'::int[]
SELECT '{1,2}'::int[] = '{1,2}'::int[], '{1,2}'::int[] < '{1,3}'::int[], '{1}'::int[] <> '{2}'::int[]
SELECT unnest('{a,b,NULL}'::text[])
SELECT unnest('{1,2,3}'::int[]) AS n
SELECT n FROM unnest('{3,1,2}'::int[]) AS n ORDER BY n
SELECT n * 2 FROM unnest(ARRAY[1,2,3]) AS t(n) ORDER BY 1
SELECT count(*) FROM unnest('{}'::int[]) AS n
SELECT v.device, x FROM vehicles v, unnest(ARRAY[1,2]) AS x ORDER BY v.device, x
SELECT '{1,2}'::int[]::text, ARRAY['a b','c']::text
SELECT ARRAY[1,2]::text[]
SELECT '{1,2}'::text[]::int[]
-- differs: ARRAY of a subquery is absent; use array_agg
SELECT ARRAY(SELECT device FROM vehicles ORDER BY device)
-- differs: ARRAY of a subquery is absent; use array_agg
SELECT ARRAY(SELECT built FROM vehicles WHERE false)
SELECT device FROM vehicles WHERE device = ANY(string_to_array('tram,ship', ',')) ORDER BY device
SELECT '{a'::text[]
SELECT '{1,x}'::int[]
SELECT 'abc'::int[]
SELECT 1 = ANY('{a,b}'::text[])
-- differs: the same refusal with another SQLSTATE
SELECT 'a' = ANY('{1,2}'::int[])
SELECT device = ANY('{1,2}'::int[]) FROM vehicles
-- differs: array_fill is absent
SELECT array_fill(7, ARRAY[3])
-- differs: trim_array is absent
SELECT trim_array('{1,2,3}'::int[], 1)
-- differs: generate_series is there in FROM only
SELECT generate_series(1, 3)
SELECT n FROM generate_series(1, 5, 2) AS n
