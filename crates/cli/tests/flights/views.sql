-- Views over all flights that left New York in 2013, in SQL that DuckDB supports as well.
--
-- expected.py writes the contents of each materialized view, computed by DuckDB, to expected/. The test runs this file
-- with `alluvium run --output` and compares.

CREATE TABLE airlines (
    carrier VARCHAR NOT NULL PRIMARY KEY,
    name    VARCHAR NOT NULL
) WITH (connector = 'file', path = '${DATA}/airlines.csv.gz', headers = 'true', null_value = 'NA');

CREATE TABLE airports (
    faa   VARCHAR NOT NULL PRIMARY KEY,
    name  VARCHAR NOT NULL,
    lat   DOUBLE,
    lon   DOUBLE,
    alt   INTEGER,
    tz    INTEGER,
    dst   VARCHAR,
    tzone VARCHAR
) WITH (connector = 'file', path = '${DATA}/airports.csv.gz', headers = 'true', null_value = 'NA');

CREATE TABLE planes (
    tailnum      VARCHAR NOT NULL PRIMARY KEY,
    year         INTEGER,
    type         VARCHAR,
    manufacturer VARCHAR,
    model        VARCHAR,
    engines      INTEGER,
    seats        INTEGER,
    speed        INTEGER,
    engine       VARCHAR
) WITH (connector = 'file', path = '${DATA}/planes.csv.gz', headers = 'true', null_value = 'NA');

CREATE TABLE weather (
    origin     VARCHAR NOT NULL,
    year       INTEGER NOT NULL,
    month      INTEGER NOT NULL,
    day        INTEGER NOT NULL,
    hour       INTEGER NOT NULL,
    temp       DOUBLE,
    dewp       DOUBLE,
    humid      DOUBLE,
    wind_dir   INTEGER,
    wind_speed DOUBLE,
    wind_gust  DOUBLE,
    precip     DOUBLE,
    pressure   DOUBLE,
    visib      DOUBLE,
    time_hour  TIMESTAMP NOT NULL
) WITH (connector = 'file', path = '${DATA}/weather.csv.gz', headers = 'true', null_value = 'NA');

CREATE TABLE flights (
    year           INTEGER NOT NULL,
    month          INTEGER NOT NULL,
    day            INTEGER NOT NULL,
    dep_time       INTEGER,
    sched_dep_time INTEGER NOT NULL,
    dep_delay      INTEGER,
    arr_time       INTEGER,
    sched_arr_time INTEGER NOT NULL,
    arr_delay      INTEGER,
    carrier        VARCHAR NOT NULL,
    flight         INTEGER NOT NULL,
    tailnum        VARCHAR,
    origin         VARCHAR NOT NULL,
    dest           VARCHAR NOT NULL,
    air_time       INTEGER,
    distance       INTEGER NOT NULL,
    hour           INTEGER NOT NULL,
    minute         INTEGER NOT NULL,
    time_hour      TIMESTAMP NOT NULL
) WITH (connector = 'file', path = '${DATA}/flights.csv.gz', headers = 'true', null_value = 'NA');


-- Aggregates -----------------------------------------------------------------------------------------------

CREATE MATERIALIZED VIEW totals AS
SELECT COUNT(*) AS flights, COUNT(tailnum) AS with_tailnum, SUM(distance) AS miles, AVG(air_time) AS air_time,
       MIN(dep_delay) AS least, MAX(dep_delay) AS most
FROM flights;

CREATE MATERIALIZED VIEW delays_by_carrier AS
SELECT a.name AS airline, COUNT(*) AS scheduled, COUNT(f.dep_time) AS departed,
       AVG(f.dep_delay) AS average_delay, MAX(f.dep_delay) AS worst_delay
FROM flights f JOIN airlines a ON f.carrier = a.carrier
GROUP BY a.name;

CREATE MATERIALIZED VIEW frequent_routes AS
SELECT origin, dest, COUNT(*) AS flights, AVG(air_time) AS air_time
FROM flights
GROUP BY origin, dest
HAVING COUNT(*) > 2000 AND MIN(distance) > 500;


-- Joins ----------------------------------------------------------------------------------------------------

CREATE MATERIALIZED VIEW fleet_age AS
SELECT a.name AS airline, COUNT(*) AS flights, MIN(p.year) AS oldest, AVG(f.year - p.year) AS average_age
FROM flights f
JOIN planes p ON f.tailnum = p.tailnum
JOIN airlines a ON f.carrier = a.carrier
JOIN airports d ON f.dest = d.faa
WHERE d.tz < -5
GROUP BY a.name;

CREATE MATERIALIZED VIEW knock_on AS
SELECT late.carrier, COUNT(*) AS later_flights, AVG(later.dep_delay) AS average_delay
FROM flights late
JOIN flights later ON late.tailnum = later.tailnum
                  AND late.month = later.month AND late.day = later.day
                  AND late.sched_dep_time < later.sched_dep_time
WHERE late.arr_delay > 60
GROUP BY late.carrier;

CREATE MATERIALIZED VIEW same_tailnum AS
SELECT n.carrier AS north, s.carrier AS south, COUNT(*) AS pairs
FROM (SELECT DISTINCT carrier, tailnum FROM flights WHERE origin = 'LGA' AND dep_time IS NULL) AS n
JOIN (SELECT DISTINCT carrier, tailnum FROM flights WHERE origin = 'EWR' AND dep_time IS NULL) AS s
  ON n.tailnum IS NOT DISTINCT FROM s.tailnum
GROUP BY n.carrier, s.carrier;


-- Windows --------------------------------------------------------------------------------------------------

CREATE LOCAL VIEW days AS
SELECT origin, CAST(DATE_TRUNC('day', time_hour) AS DATE) AS day, COUNT(*) AS flights, SUM(distance) AS miles
FROM flights
GROUP BY origin, CAST(DATE_TRUNC('day', time_hour) AS DATE);


-- Set operations -------------------------------------------------------------------------------------------

CREATE MATERIALIZED VIEW disruptions AS
SELECT kind, COUNT(*) AS times, MIN(time_hour) AS first_time, MAX(time_hour) AS last_time
FROM (
    SELECT 'cancelled' AS kind, time_hour FROM flights WHERE dep_time IS NULL
    UNION ALL
    SELECT 'left 3 hours late', time_hour FROM flights WHERE dep_delay >= 180
    UNION ALL
    SELECT 'arrived 3 hours late', time_hour FROM flights WHERE arr_delay >= 180
) AS disruptions
GROUP BY kind;

CREATE MATERIALIZED VIEW all_codes AS
SELECT carrier AS code FROM flights UNION SELECT dest FROM flights UNION SELECT origin FROM weather;


-- Times, texts and conditions ------------------------------------------------------------------------------

CREATE MATERIALIZED VIEW weeks AS
SELECT DATE_TRUNC('week', time_hour) AS week, COUNT(*) AS flights, COUNT(dep_time) AS departed
FROM flights
GROUP BY DATE_TRUNC('week', time_hour);

CREATE MATERIALIZED VIEW hours AS
SELECT DATE_TRUNC('hour', f.time_hour + INTERVAL '30' MINUTE) AS hour, EXTRACT(DOW FROM f.time_hour) AS weekday,
       COUNT(*) AS flights, AVG(f.dep_delay) AS average_delay
FROM flights f
WHERE f.time_hour >= TIMESTAMP '2013-06-01 00:00:00' AND f.time_hour < TIMESTAMP '2013-06-15 00:00:00'
GROUP BY DATE_TRUNC('hour', f.time_hour + INTERVAL '30' MINUTE), EXTRACT(DOW FROM f.time_hour);

CREATE MATERIALIZED VIEW makers AS
SELECT UPPER(SUBSTR(manufacturer, 1, 1)) || LOWER(SUBSTR(manufacturer, 2)) AS maker,
       CASE WHEN seats IS NULL THEN 'unknown' WHEN seats < 50 THEN 'small' WHEN seats < 200 THEN 'middle' ELSE 'large' END
           AS size,
       COUNT(*) AS planes, MAX(LENGTH(model)) AS longest_model, MIN(TRIM(REPLACE(model, '-', ' '))) AS first_model
FROM planes
WHERE engine LIKE 'Turbo%' AND manufacturer NOT LIKE '%(%'
GROUP BY 1, 2;

CREATE MATERIALIZED VIEW schools AS
SELECT POSITION(' ' IN name) > 8 AS long_word, LPAD(CAST(tz AS VARCHAR), 4, '*') AS zone, COUNT(*) AS airports,
       SUM(COALESCE(NULLIF(alt, 0), -1)) AS altitudes, MAX(GREATEST(lat, lon, 40)) AS most
FROM airports
GROUP BY POSITION(' ' IN name) > 8, LPAD(CAST(tz AS VARCHAR), 4, '*');


-- Large results, compared by a hash of their rows ----------------------------------------------------------

CREATE MATERIALIZED VIEW planes_every_day AS
SELECT DISTINCT tailnum, month, day FROM flights;
-- Aggregates -----------------------------------------------------------------------------------------------

CREATE MATERIALIZED VIEW punctuality AS
SELECT carrier, origin,
       COUNT(*) FILTER (WHERE dep_delay IS NULL) AS cancelled,
       COUNT(*) FILTER (WHERE dep_delay <= 0) AS on_time,
       SUM(dep_delay) FILTER (WHERE dep_delay > 60) AS minutes_of_the_late,
       AVG(arr_delay) FILTER (WHERE distance > 1000) AS average_of_the_long,
       MAX(air_time) FILTER (WHERE dest = 'LAX') AS longest_to_los_angeles
FROM flights
GROUP BY carrier, origin;

CREATE MATERIALIZED VIEW variety AS
SELECT origin, COUNT(DISTINCT dest) AS destinations, COUNT(DISTINCT tailnum) AS planes,
       SUM(DISTINCT distance) AS different_miles, COUNT(*) AS flights
FROM flights
GROUP BY origin;

CREATE MATERIALIZED VIEW variety_at_night AS
SELECT month, COUNT(DISTINCT carrier) FILTER (WHERE hour >= 21) AS carriers,
       COUNT(DISTINCT dest) FILTER (WHERE hour < 6) AS early_destinations
FROM flights
GROUP BY month;

CREATE MATERIALIZED VIEW months_and_origins AS
SELECT origin, month, COUNT(*) AS flights, SUM(distance) AS miles
FROM flights
GROUP BY ROLLUP (origin, month);

CREATE MATERIALIZED VIEW carriers_and_origins AS
SELECT carrier, origin, GROUPING(carrier) AS all_carriers, GROUPING(origin) AS all_origins,
       COUNT(*) AS flights, AVG(dep_delay) AS average_delay
FROM flights
GROUP BY CUBE (carrier, origin);

CREATE MATERIALIZED VIEW seasons AS
SELECT month, hour, origin, COUNT(*) AS flights, MAX(dep_delay) AS worst_delay
FROM flights
GROUP BY GROUPING SETS ((month, origin), (hour), ());

CREATE MATERIALIZED VIEW temperatures AS
SELECT origin, month, MEDIAN(temp) AS median, STDDEV_SAMP(temp) AS deviation, VAR_POP(temp) AS variance,
       CORR(temp, dewp) AS with_dew_point, MIN(temp) AS coldest, MAX(temp) AS warmest
FROM weather
GROUP BY origin, month;

CREATE MATERIALIZED VIEW networks AS
SELECT carrier, COUNT(*) AS routes, STRING_AGG(route, ' ' ORDER BY route) AS list
FROM (SELECT DISTINCT carrier, origin || '-' || dest AS route FROM flights WHERE distance > 1500) AS routes
GROUP BY carrier;

CREATE MATERIALIZED VIEW always_and_ever AS
SELECT dest, BOOL_AND(distance > 500) AS always_far, BOOL_OR(dep_delay > 600) AS ever_very_late
FROM flights
WHERE dep_delay IS NOT NULL
GROUP BY dest;

CREATE MATERIALIZED VIEW delay_shape AS
SELECT month, REGR_SLOPE(arr_delay, dep_delay) AS slope, COVAR_SAMP(arr_delay, dep_delay) AS covariance,
       STDDEV_POP(arr_delay) AS deviation
FROM flights
GROUP BY month;


-- Joins ----------------------------------------------------------------------------------------------------

CREATE MATERIALIZED VIEW unknown_planes AS
SELECT f.carrier, COUNT(*) AS flights, COUNT(p.tailnum) AS of_known_planes, MIN(p.year) AS oldest
FROM flights f LEFT JOIN planes p ON f.tailnum = p.tailnum
GROUP BY f.carrier;

CREATE MATERIALIZED VIEW recent_planes AS
SELECT f.origin, p.manufacturer, COUNT(*) AS flights
FROM flights f LEFT JOIN planes p ON f.tailnum = p.tailnum AND p.year >= 2010
GROUP BY f.origin, p.manufacturer;

CREATE MATERIALIZED VIEW airports_reached AS
SELECT a.tzone, COUNT(*) AS rows, COUNT(f.dest) AS flights, COUNT(DISTINCT f.dest) AS airports
FROM flights f RIGHT JOIN airports a ON f.dest = a.faa
GROUP BY a.tzone;

CREATE MATERIALIZED VIEW hours_with_weather_or_flights AS
SELECT COALESCE(f.origin, w.origin) AS origin, COUNT(f.time_hour) AS with_flights, COUNT(w.time_hour) AS with_weather,
       COUNT(*) AS hours, SUM(f.flights) AS flights, AVG(w.temp) AS temp
FROM (SELECT origin, time_hour, COUNT(*) AS flights FROM flights GROUP BY origin, time_hour) AS f
FULL JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour
GROUP BY COALESCE(f.origin, w.origin);

CREATE MATERIALIZED VIEW codes_of_both_kinds AS
SELECT a.carrier, b.faa, a.name AS airline, b.name AS airport
FROM airlines a FULL JOIN airports b ON a.carrier = SUBSTR(b.faa, 1, 2) AND b.alt > 5000
WHERE a.carrier IS NOT NULL OR b.alt > 7000;

CREATE MATERIALIZED VIEW delays_by_weather AS
SELECT sky, COUNT(*) AS departed, AVG(dep_delay) AS average_delay, MAX(dep_delay) AS worst_delay
FROM (
    SELECT f.dep_delay,
           CASE WHEN w.visib < 2 THEN 'fog' WHEN w.precip > 0 THEN 'rain or snow'
                WHEN w.wind_speed > 20 THEN 'wind' WHEN w.origin IS NULL THEN 'unknown' ELSE 'fair' END AS sky
    FROM flights f
    LEFT JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour
    WHERE f.dep_delay IS NOT NULL
) AS departures
GROUP BY sky;

CREATE MATERIALIZED VIEW every_hour AS
SELECT o.origin, h.hour, COUNT(f.flight) AS flights
FROM (SELECT DISTINCT origin FROM flights) AS o
CROSS JOIN (SELECT DISTINCT hour FROM weather) AS h
LEFT JOIN flights f ON f.origin = o.origin AND f.hour = h.hour
GROUP BY o.origin, h.hour;

CREATE MATERIALIZED VIEW delay_bands AS
SELECT b.name, COUNT(f.flight) AS flights, AVG(f.distance) AS distance
FROM (VALUES ('early', -1000, -1), ('on time', 0, 0), ('late', 1, 180), ('very late', 181, 2000), ('never', 5000, 6000))
     AS b (name, low, high)
LEFT JOIN flights f ON f.dep_delay BETWEEN b.low AND b.high
GROUP BY b.name;


-- Subqueries -----------------------------------------------------------------------------------------------

CREATE MATERIALIZED VIEW old_planes AS
SELECT carrier, COUNT(*) AS flights, SUM(distance) AS miles
FROM flights
WHERE tailnum IN (SELECT tailnum FROM planes WHERE year < 1985)
GROUP BY carrier;

CREATE MATERIALIZED VIEW planes_of_bad_days AS
SELECT manufacturer, model, COUNT(*) AS planes
FROM planes p
WHERE EXISTS (SELECT 1 FROM flights f WHERE f.tailnum = p.tailnum AND f.dep_delay > 300 AND f.year - p.year > 10)
GROUP BY manufacturer, model;

CREATE MATERIALIZED VIEW airports_not_reached AS
SELECT tz, dst, COUNT(*) AS airports, MAX(alt) AS highest
FROM airports a
WHERE NOT EXISTS (SELECT 1 FROM flights f WHERE f.dest = a.faa)
GROUP BY tz, dst;

CREATE MATERIALIZED VIEW flights_of_unlisted_planes AS
SELECT carrier, COUNT(*) AS flights
FROM flights
WHERE tailnum NOT IN (SELECT tailnum FROM planes)
GROUP BY carrier;

CREATE MATERIALIZED VIEW not_in_with_null AS
SELECT COUNT(*) AS none
FROM planes
WHERE tailnum NOT IN (SELECT tailnum FROM flights WHERE month = 1);

CREATE MATERIALIZED VIEW busy_days AS
SELECT month, day, COUNT(*) AS flights
FROM flights
GROUP BY month, day
HAVING COUNT(*) > (SELECT COUNT(*) FROM flights) / 340.0;

CREATE MATERIALIZED VIEW longer_than_usual AS
SELECT f.carrier, COUNT(*) AS flights
FROM flights f
WHERE f.air_time > (SELECT AVG(g.air_time) + 30 FROM flights g WHERE g.origin = f.origin AND g.dest = f.dest)
GROUP BY f.carrier;

CREATE MATERIALIZED VIEW with_last_flight AS
SELECT a.name, (SELECT MAX(f.time_hour) FROM flights f WHERE f.dest = a.faa) AS last_flight
FROM airports a
WHERE a.tz = -10 OR a.faa IN ('BOS', 'LAX', 'SFO');


-- Top-k ----------------------------------------------------------------------------------------------------

CREATE MATERIALIZED VIEW busiest_routes AS
SELECT origin, dest, COUNT(*) AS flights
FROM flights
GROUP BY origin, dest
ORDER BY flights DESC, origin, dest
LIMIT 20;

CREATE MATERIALIZED VIEW second_page AS
SELECT tailnum, COUNT(*) AS flights
FROM flights
WHERE tailnum IS NOT NULL
GROUP BY tailnum
ORDER BY flights DESC, tailnum
LIMIT 10 OFFSET 10;

CREATE MATERIALIZED VIEW worst_delays AS
SELECT carrier, month, day, flight, dep_delay, place
FROM (
    SELECT carrier, month, day, flight, dep_delay,
           ROW_NUMBER() OVER (PARTITION BY carrier ORDER BY dep_delay DESC, month, day, flight) AS place
    FROM flights
    WHERE dep_delay IS NOT NULL
) AS ranked
WHERE place <= 3;

CREATE MATERIALIZED VIEW longest_routes AS
SELECT origin, dest, distance, place
FROM (
    SELECT origin, dest, distance, RANK() OVER (PARTITION BY origin ORDER BY distance DESC) AS place
    FROM (SELECT DISTINCT origin, dest, distance FROM flights) AS routes
) AS ranked
WHERE place <= 5;

CREATE MATERIALIZED VIEW busiest_hours AS
SELECT origin, hour, flights, place
FROM (
    SELECT origin, hour, COUNT(*) AS flights, DENSE_RANK() OVER (PARTITION BY origin ORDER BY COUNT(*) DESC) AS place
    FROM flights
    GROUP BY origin, hour
) AS ranked
WHERE place <= 4;

CREATE MATERIALIZED VIEW first_of_the_day AS
SELECT DISTINCT ON (origin, month, day) origin, month, day, carrier, flight, dep_time
FROM flights
WHERE dep_time IS NOT NULL AND month <= 2
ORDER BY origin, month, day, dep_time, carrier, flight;


-- Windows --------------------------------------------------------------------------------------------------

CREATE MATERIALIZED VIEW miles_so_far AS
SELECT origin, day, SUM(miles) OVER (PARTITION BY origin ORDER BY day) AS miles
FROM days;

CREATE MATERIALIZED VIEW week_average AS
SELECT origin, day, flights,
       AVG(flights) OVER (PARTITION BY origin ORDER BY day ROWS BETWEEN 6 PRECEDING AND CURRENT ROW) AS average,
       MAX(flights) OVER (PARTITION BY origin ORDER BY day ROWS BETWEEN 3 PRECEDING AND 3 FOLLOWING) AS most
FROM days;

CREATE MATERIALIZED VIEW growth AS
SELECT origin, day, flights - LAG(flights, 7) OVER (PARTITION BY origin ORDER BY day) AS than_a_week_before,
       LEAD(flights) OVER (PARTITION BY origin ORDER BY day) AS next_day
FROM days;

CREATE MATERIALIZED VIEW returns AS
SELECT carrier, COUNT(*) AS flights, AVG(distance) AS distance
FROM (
    SELECT carrier, distance, origin,
           LAG(origin) OVER (PARTITION BY tailnum ORDER BY time_hour, sched_dep_time, flight, origin, carrier) AS before
    FROM flights
    WHERE tailnum IS NOT NULL
) AS steps
WHERE origin <> before
GROUP BY carrier;

CREATE MATERIALIZED VIEW carrier_places AS
SELECT carrier, flights, RANK() OVER (ORDER BY flights DESC) AS place, NTILE(4) OVER (ORDER BY flights DESC, carrier) AS quarter,
       PERCENT_RANK() OVER (ORDER BY flights) AS percent, CUME_DIST() OVER (ORDER BY flights) AS below,
       SUM(flights) OVER () AS of_all
FROM (SELECT carrier, COUNT(*) AS flights FROM flights GROUP BY carrier) AS carriers;

CREATE MATERIALIZED VIEW extremes_of_months AS
SELECT DISTINCT origin, EXTRACT(MONTH FROM day) AS month,
       FIRST_VALUE(day) OVER (PARTITION BY origin, EXTRACT(MONTH FROM day) ORDER BY flights DESC, day) AS busiest,
       FIRST_VALUE(day) OVER (PARTITION BY origin, EXTRACT(MONTH FROM day) ORDER BY flights, day) AS quietest
FROM days;


-- Set operations -------------------------------------------------------------------------------------------

CREATE MATERIALIZED VIEW from_everywhere AS
SELECT dest, carrier FROM flights WHERE origin = 'EWR'
INTERSECT
SELECT dest, carrier FROM flights WHERE origin = 'JFK'
INTERSECT
SELECT dest, carrier FROM flights WHERE origin = 'LGA';

CREATE MATERIALIZED VIEW only_from_newark AS
SELECT dest FROM flights WHERE origin = 'EWR'
EXCEPT
SELECT dest FROM flights WHERE origin <> 'EWR';

CREATE MATERIALIZED VIEW as_often_in_both_months AS
SELECT carrier, dest, COUNT(*) AS flights
FROM (
    SELECT carrier, dest FROM flights WHERE month = 1
    INTERSECT ALL
    SELECT carrier, dest FROM flights WHERE month = 7
) AS common
GROUP BY carrier, dest;

CREATE MATERIALIZED VIEW more_in_july AS
SELECT carrier, dest, COUNT(*) AS flights
FROM (
    SELECT carrier, dest FROM flights WHERE month = 7
    EXCEPT ALL
    SELECT carrier, dest FROM flights WHERE month = 1
) AS more
GROUP BY carrier, dest;


-- Large results, compared by a hash of their rows ----------------------------------------------------------

CREATE MATERIALIZED VIEW late_flights AS
SELECT f.month, f.day, f.carrier, a.name AS airline, f.flight, f.tailnum, f.origin, f.dest, d.name AS destination,
       f.dep_delay, f.arr_delay, f.dep_delay - f.arr_delay AS made_up
FROM flights f
LEFT JOIN airlines a ON f.carrier = a.carrier
LEFT JOIN airports d ON f.dest = d.faa
WHERE f.dep_delay > 30;

CREATE MATERIALIZED VIEW flights_with_all AS
SELECT f.time_hour, f.carrier, f.flight, f.origin, f.dest, f.air_time, p.manufacturer, p.seats, w.wind_dir, w.month AS weather_month
FROM flights f
LEFT JOIN planes p ON f.tailnum = p.tailnum
LEFT JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour;
