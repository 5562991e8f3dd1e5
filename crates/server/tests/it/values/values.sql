-- Values at the ends of all types: type, time zone, text and bytes.
SET TimeZone = 'UTC';

CREATE FUNCTION pg_temp.row(kind text, text text, bytes bytea) RETURNS text LANGUAGE sql AS
    $$ SELECT concat_ws(chr(9), kind, current_setting('TimeZone'),
        replace(replace(replace(replace(text, '\', '\\'), chr(9), '\t'), chr(10), '\n'), chr(13), '\r'), encode(bytes, 'hex')) $$;

SELECT pg_temp.row('bool', format('%s', x), boolsend(x)) FROM unnest('{t,f}'::bool[]) x;
SELECT pg_temp.row('int2', format('%s', x), int2send(x)) FROM unnest('{0,1,-1,32767,-32768,100,-99}'::int2[]) x;
SELECT pg_temp.row('int4', format('%s', x), int4send(x)) FROM unnest('{0,1,-1,2147483647,-2147483648,1000000,-99}'::int4[]) x;
SELECT pg_temp.row('int8', format('%s', x), int8send(x))
    FROM unnest('{0,1,-1,9223372036854775807,-9223372036854775808,4294967296,-1000000000000}'::int8[]) x;
SELECT pg_temp.row('float4', format('%s', x), float4send(x)) FROM unnest('{0,-0,1,-1.5,NaN,Infinity,-Infinity,3.4028235e38,-3.4028235e38,
    1.1754944e-38,1e-45,-1e-45,1e20,1e-5,0.0001,123456,1234567,999999,0.1,0.3,16777216,33554432,8.5899346e9,1e10,3e10,9.8e-4}'::float4[]) x;
SELECT pg_temp.row('float8', format('%s', x), float8send(x)) FROM unnest('{0,-0,1,-1.5,NaN,Infinity,-Infinity,1.7976931348623157e308,
    -1.7976931348623157e308,2.2250738585072014e-308,5e-324,-5e-324,1e20,1e-5,0.0001,0.00001234,123456789012345,1234567890123456,1e14,1e15,
    1e16,1e22,1e23,1e24,9007199254740992,9007199254740993,9007199254740994,18014398509481984,0.1,0.2,0.30000000000000004,1e100,1e-100,
    4503599627370496.5,123456.789,100,1e21,2e-310,9.5367431640625e-07,5e-5}'::float8[]) x;
SELECT pg_temp.row('float8', format('%s', x), float8send(x)) FROM (SELECT 2::float8 ^ n x FROM generate_series(-1070, 1023, 61) n) t;
SELECT pg_temp.row('float8', format('%s', x), float8send(x)) FROM (SELECT ('1e' || n)::float8 x FROM generate_series(-320, 308, 31) n) t;
SELECT pg_temp.row('float4', format('%s', x), float4send(x)) FROM (SELECT (2::float8 ^ n)::float4 x FROM generate_series(-149, 127, 7) n) t;
SELECT pg_temp.row('numeric', format('%s', x), numeric_send(x)) FROM unnest('{0,0.0,0.00000,1,-1,10,100,1000,10000,100000,123456789,1.5,-1.50,
    0.1,0.01,0.001,0.0001,0.00001,0.000010,-0.00012345,12345.6789,123456.78901,10000.0001,10000.00010,99999999.9999,
    99999999999999999999999999999999999999,-99999999999999999999999999999999999999,0.99999999999999999999999999999999999999,
    1000000000000000000000000000000000000,100000000000000000000.00000000000000001,0.00000000000000000000000000000000000001,
    18446744073709551615,18446744073709551616,9223372036854775808,170141183460469231731687303715884105.7,10000000000000000}'::numeric[]) x;
SELECT pg_temp.row('numeric', format('%s', x), numeric_send(x))
    FROM (SELECT round(10::numeric ^ (n % 19) * 7 / 3, n % 7) * (CASE WHEN n % 2 = 0 THEN 1 ELSE -1 END) x FROM generate_series(0, 60) n) t;
SELECT pg_temp.row('text', x, textsend(x)) FROM unnest(ARRAY['', ' ', 'a', 'NULL', 'äöü', '日本語', '🙂', E'a\tb', E'a\nb', E'a\r\nb', 'a\b', '"', '''',
    '{}', '\N', '\.', 'a,b', repeat('x', 300)]) x;
SELECT pg_temp.row('varchar', x, varcharsend(x)) FROM unnest(ARRAY['', 'abc']::varchar[]) x;
SELECT pg_temp.row('bytea', format('%s', x), byteasend(x))
    FROM unnest(ARRAY['', '\x00', '\xff', '\xdeadbeef', '\x5c', '\x22', '\x0a', 'abc']::bytea[]) x;
SELECT pg_temp.row('date', format('%s', x), date_send(x)) FROM unnest('{1970-01-01,1969-12-31,2000-01-01,1999-12-31,2000-02-29,1900-02-28,
    0001-01-01,0001-12-31 BC,0044-03-15 BC,4714-11-24 BC,9999-12-31,10000-01-01,99999-12-31,294276-12-31,2024-02-29,5874897-12-31,
    infinity,-infinity,0004-02-29,0005-02-28 BC,0005-02-29 BC}'::date[]) x;
SELECT pg_temp.row('time', format('%s', x), time_send(x))
    FROM unnest('{00:00:00,23:59:59.999999,12:30:00,12:30:05.5,00:00:00.000001,01:02:03.04,10:20:30.123450}'::time[]) x;
SELECT pg_temp.row('timestamp', format('%s', x), timestamp_send(x)) FROM unnest('{1970-01-01 00:00,1969-12-31 23:59:59.999999,2000-01-01 00:00,
    1999-12-31 23:59:59.999999,2024-02-29 12:30:05.123456,0001-01-01 00:00,0001-12-31 23:59:59.5 BC,4714-11-24 00:00 BC,9999-12-31 23:59:59.999999,
    10000-01-01 00:00,294247-01-10 04:00:54.775806,infinity,-infinity,2024-01-01 24:00,0044-03-15 12:00 BC,1582-10-15 01:02:03.1}'::timestamp[]) x;
SELECT pg_temp.row('interval', format('%s', x), interval_send(x)) FROM unnest('{00:00,1 second,-1 second,1 day,-1 day,1 mon,1 year,-1 year,
    1 year 2 mons 3 days 04:05:06.789,-1 year -2 mons +3 days -04:05:06.789,1 mon -1 day,-1 mon +1 day,1 day -00:00:01,-1 day +00:00:01,100:00:00,
    -2147483648 mons,2147483647 mons,2147483647 days,-2147483648 days,2562047:47:16.854775,-2562047:47:16.854775,00:00:00.000001,11 mons,13 mons,
    -11 mons,2 years,1 year -1 mon,P1Y2M3DT4H5M6S,1 week,1.5 days,1.5 mons,1.5 years,3 hours ago,@ 1 day 2 hours,1-2,5 04:05,1 day 12:00:00.1234567,
    2 decades,1 century,90 minutes,1500 ms,10 us}'::interval[]) x;
SELECT pg_temp.row('uuid', format('%s', x), uuid_send(x)) FROM unnest('{00000000-0000-0000-0000-000000000000,
    a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11,ffffffff-ffff-ffff-ffff-ffffffffffff}'::uuid[]) x;
SELECT pg_temp.row('oid', format('%s', x), oidsend(x)) FROM unnest('{0,1,4294967295}'::oid[]) x;
SELECT pg_temp.row('json', x, textsend(x)) FROM unnest(ARRAY['{"a": 1}', '[]']) x;

SELECT pg_temp.row('bool[]', format('%s', x), array_send(x)) FROM (VALUES ('{}'::bool[]), ('{t,f,NULL}'), ('{{t,f},{f,t}}')) t (x);
SELECT pg_temp.row('int2[]', format('%s', x), array_send(x)) FROM (VALUES ('{1,-2,NULL}'::int2[])) t (x);
SELECT pg_temp.row('int4[]', format('%s', x), array_send(x))
    FROM (VALUES ('{}'::int4[]), ('{1}'), ('{1,NULL,3}'), ('{NULL}'), ('{{1,2},{3,4},{5,NULL}}'), ('{{{1,2},{3,4}},{{5,6},{7,8}}}')) t (x);
SELECT pg_temp.row('int8[]', format('%s', x), array_send(x)) FROM (VALUES ('{9223372036854775807,-9223372036854775808}'::int8[])) t (x);
SELECT pg_temp.row('float4[]', format('%s', x), array_send(x)) FROM (VALUES ('{1.5,NaN,-Infinity,1e20}'::float4[])) t (x);
SELECT pg_temp.row('float8[]', format('%s', x), array_send(x)) FROM (VALUES ('{1.5,NaN,-Infinity,1e20,1e-7}'::float8[])) t (x);
SELECT pg_temp.row('text[]', format('%s', x), array_send(x)) FROM (VALUES ('{}'::text[]), ('{a,b}'), (ARRAY['', ' ', 'NULL', 'null', 'a b', 'a,b', '{', '}',
    '"', '\', '\"', E'a\nb', E'\t', E'\v', 'ä', '''', 'nulls', '[1]', 'a=b', '-', 'É ']), (ARRAY[['a', NULL], ['c,d', 'e"f']])) t (x);
SELECT pg_temp.row('varchar[]', format('%s', x), array_send(x)) FROM (VALUES ('{a,"b c"}'::varchar[])) t (x);
SELECT pg_temp.row('bytea[]', format('%s', x), array_send(x)) FROM (VALUES (ARRAY['\x00', '\xff', '', NULL]::bytea[])) t (x);
SELECT pg_temp.row('date[]', format('%s', x), array_send(x)) FROM (VALUES ('{2024-01-02,NULL,0044-03-15 BC,infinity}'::date[])) t (x);
SELECT pg_temp.row('time[]', format('%s', x), array_send(x)) FROM (VALUES ('{12:30:05.5,NULL}'::time[])) t (x);
SELECT pg_temp.row('timestamp[]', format('%s', x), array_send(x)) FROM (VALUES ('{2024-01-02 03:04:05.6,NULL,-infinity}'::timestamp[])) t (x);
SELECT pg_temp.row('interval[]', format('%s', x), array_send(x)) FROM (VALUES ('{1 day,02:00:00,NULL,1 year 1 mon}'::interval[])) t (x);
SELECT pg_temp.row('numeric[]', format('%s', x), array_send(x)) FROM (VALUES ('{1.50,-2.25,NULL,1000000.00}'::numeric[])) t (x);
SELECT pg_temp.row('uuid[]', format('%s', x), array_send(x)) FROM (VALUES ('{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}'::uuid[])) t (x);

CREATE TEMP TABLE instants AS SELECT unnest('{1970-01-01 00:00Z,1969-12-31 23:59:59.999999Z,2024-01-01 12:00Z,2024-07-01 12:00Z,
    2024-03-31 00:59:59Z,2024-03-31 01:00Z,2024-10-27 00:30Z,2024-10-27 01:30Z,2024-11-03 05:30Z,2024-11-03 06:30Z,1800-01-01 00:00Z,1945-05-01 00:00Z,
    0001-01-01 00:00Z,0001-12-31 23:00Z BC,0044-03-15 12:00Z BC,4713-01-02 00:00Z BC,9999-12-31 23:59:59Z,10000-07-01 00:00Z,2150-07-01 00:00Z,
    2400-02-29 12:00Z,294247-01-09 04:00:54Z,infinity,-infinity}'::timestamptz[]) x;
SELECT pg_temp.row('timestamptz', format('%s', x), timestamptz_send(x)) FROM instants;
SET TimeZone = 'Europe/Berlin';
SELECT pg_temp.row('timestamptz', format('%s', x), timestamptz_send(x)) FROM instants;
SET TimeZone = 'America/New_York';
SELECT pg_temp.row('timestamptz', format('%s', x), timestamptz_send(x)) FROM instants;
SET TimeZone = 'Asia/Kolkata';
SELECT pg_temp.row('timestamptz', format('%s', x), timestamptz_send(x)) FROM instants;
SELECT pg_temp.row('timestamptz[]', format('%s', x), array_send(x)) FROM (SELECT array_agg(x) x FROM instants WHERE isfinite(x)) t;
SET TimeZone = 'GMT-05:30';
SELECT pg_temp.row('timestamptz', format('%s', x), timestamptz_send(x)) FROM instants;
SET TimeZone = 'Australia/Lord_Howe';
SELECT pg_temp.row('timestamptz', format('%s', x), timestamptz_send(x)) FROM instants;
