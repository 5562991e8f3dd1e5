-- Flights out of New York: views that stay right while the data changes.
--
-- Run it from the root of the checkout:
--
--     cargo run --bin alluvium -- run docs/tutorial/flights.sql
--
-- It reads the files in the folder data beside it, or in another one: --set DATA=FOLDER. With --output FOLDER, the
-- final contents of all views go to files.


-- 1. Tables ------------------------------------------------------------------------------------------------

-- A connector says where a table's rows come from. Nothing is read before the first statement that needs rows. By
-- then the views exist, and every row passes through them. Paths are relative to this file's folder, and the
-- columns of a CSV file are matched by its header.

-- A table with a PRIMARY KEY has one row per key. A row of a connector, or of INSERT OR REPLACE, takes the place of the one that had its key.

CREATE TABLE airlines (
    carrier VARCHAR NOT NULL PRIMARY KEY,
    name    VARCHAR NOT NULL
) WITH (
    connector = 'file', path = '${DATA:-data}/airlines.csv.gz', headers = 'true', null_value = 'NA'
);

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
) WITH (
    connector = 'file', path = '${DATA:-data}/planes.csv.gz', headers = 'true', null_value = 'NA'
);

-- A table without a primary key is a multiset: it may hold the same row several times. If its rows come from a
-- connector, it does not store them by default. Here it does ('materialized'), because they are corrected below.

CREATE TABLE flights (
    year           INTEGER NOT NULL,
    month          INTEGER NOT NULL,
    day            INTEGER NOT NULL,
    dep_time       INTEGER,              -- as a clock shows it, 517 for 5:17; NULL if it never left
    sched_dep_time INTEGER NOT NULL,
    dep_delay      INTEGER,              -- in minutes, below zero if it left early
    arr_time       INTEGER,
    sched_arr_time INTEGER NOT NULL,
    arr_delay      INTEGER,
    carrier        VARCHAR NOT NULL,
    flight         INTEGER NOT NULL,
    tailnum        VARCHAR,
    origin         VARCHAR NOT NULL,
    dest           VARCHAR NOT NULL,
    air_time       INTEGER,
    distance       INTEGER NOT NULL,     -- in miles
    hour           INTEGER NOT NULL,
    minute         INTEGER NOT NULL,
    time_hour      TIMESTAMP NOT NULL    -- the hour it was to leave, in UTC
) WITH (
    'materialized' = 'true',
    connector = 'file', path = '${DATA:-data}/flights.csv.gz', headers = 'true', null_value = 'NA'
);

CREATE TABLE weather (
    origin     VARCHAR NOT NULL,
    year       INTEGER NOT NULL,
    month      INTEGER NOT NULL,
    day        INTEGER NOT NULL,
    hour       INTEGER NOT NULL,
    temp       DOUBLE,                   -- in degrees Fahrenheit
    dewp       DOUBLE,
    humid      DOUBLE,
    wind_dir   INTEGER,
    wind_speed DOUBLE,                   -- in miles an hour
    wind_gust  DOUBLE,
    precip     DOUBLE,                   -- in inches
    pressure   DOUBLE,
    visib      DOUBLE,                   -- in miles
    time_hour  TIMESTAMP NOT NULL
) WITH (
    'materialized' = 'true',
    connector = 'file', path = '${DATA:-data}/weather.csv.gz', headers = 'true', null_value = 'NA'
);


-- 2. Views -------------------------------------------------------------------------------------------------

-- A materialized view is kept up to date from its creation on and can be read at any time. A view that is created
-- later starts with what the tables hold.

CREATE MATERIALIZED VIEW delays_by_carrier AS
SELECT a.name AS airline,
       COUNT(*) AS scheduled,
       COUNT(f.dep_time) AS departed,    -- counts what is not NULL
       AVG(f.dep_delay) AS average_delay,
       MAX(f.dep_delay) AS worst_delay
FROM flights f
JOIN airlines a ON f.carrier = a.carrier
GROUP BY a.name;

CREATE MATERIALIZED VIEW days AS
SELECT year, month, day,
       COUNT(*) AS scheduled,
       COUNT(*) - COUNT(dep_time) AS cancelled,
       SUM(distance) AS miles,
       MIN(dep_delay) AS best_delay,
       MAX(dep_delay) AS worst_delay
FROM flights
GROUP BY year, month, day;

-- Without GROUP BY there is always exactly one row.

CREATE MATERIALIZED VIEW totals AS
SELECT COUNT(*) AS flights, COUNT(tailnum) AS with_tailnum, SUM(distance) AS miles, AVG(air_time) AS average_air_time
FROM flights;

-- A join on two columns: the weather at the airport in the hour of departure.

CREATE MATERIALIZED VIEW delays_by_weather AS
SELECT sky, COUNT(*) AS departed, AVG(dep_delay) AS average_delay, MAX(dep_delay) AS worst_delay
FROM (
    SELECT f.dep_delay,
           CASE WHEN w.visib < 2 THEN 'fog'
                WHEN w.precip > 0 THEN 'rain or snow'
                WHEN w.wind_speed > 20 THEN 'wind'
                ELSE 'fair' END AS sky
    FROM flights f
    JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour
    WHERE f.dep_delay IS NOT NULL
) AS departures
GROUP BY sky;

-- The same join, grouped by airline and hour of the day. A LEFT JOIN keeps flights without a weather report. An
-- aggregate with FILTER covers only some of the rows.

CREATE MATERIALIZED VIEW delays_by_carrier_and_hour AS
SELECT a.name AS airline, f.hour,
       COUNT(*) AS departed,
       AVG(f.dep_delay) AS average_delay,
       COUNT(*) FILTER (WHERE w.visib < 2 OR w.precip > 0) AS in_bad_weather,
       AVG(f.dep_delay) FILTER (WHERE w.visib < 2 OR w.precip > 0) AS average_delay_then,
       AVG(w.wind_speed) AS average_wind
FROM flights f
JOIN airlines a ON f.carrier = a.carrier
LEFT JOIN weather w ON f.origin = w.origin AND f.time_hour = w.time_hour
WHERE f.dep_delay IS NOT NULL
GROUP BY a.name, f.hour;

-- With a limit, a view holds the first rows. When one of them is deleted, the next one takes its place.

CREATE MATERIALIZED VIEW busiest_routes AS
SELECT origin, dest, COUNT(*) AS flights, AVG(air_time) AS average_air_time
FROM flights
GROUP BY origin, dest
ORDER BY flights DESC, origin, dest
LIMIT 10;

-- The first rows of each group: the three aircraft of each airline with the most delay.

CREATE MATERIALIZED VIEW late_aircraft AS
SELECT carrier, place, tailnum, manufacturer, model, late_flights, minutes
FROM (
    SELECT l.carrier, l.tailnum, p.manufacturer, p.model, l.late_flights, l.minutes,
           ROW_NUMBER() OVER (PARTITION BY l.carrier ORDER BY l.minutes DESC, l.tailnum) AS place
    FROM (
        SELECT carrier, tailnum, COUNT(*) AS late_flights, SUM(arr_delay) AS minutes
        FROM flights
        WHERE arr_delay > 60
        GROUP BY carrier, tailnum
    ) AS l
    LEFT JOIN planes p ON l.tailnum = p.tailnum
) AS ranked
WHERE place <= 3;

-- A join of three tables.

CREATE MATERIALIZED VIEW fleet_age AS
SELECT a.name AS airline, COUNT(*) AS flights, MIN(p.year) AS oldest, MAX(p.year) AS newest,
       AVG(f.year - p.year) AS average_age
FROM flights f
JOIN planes p ON f.tailnum = p.tailnum
JOIN airlines a ON f.carrier = a.carrier
WHERE p.year IS NOT NULL
GROUP BY a.name;

-- A view on a view: which planes an airline flies, then how many.

CREATE MATERIALIZED VIEW fleet AS
SELECT DISTINCT carrier, tailnum FROM flights WHERE tailnum IS NOT NULL;

CREATE MATERIALIZED VIEW fleet_size AS
SELECT carrier, COUNT(*) AS planes FROM fleet GROUP BY carrier;

-- A self-join: how a plane that arrives an hour late delays its later flights of the day.

CREATE MATERIALIZED VIEW knock_on AS
SELECT late.carrier, COUNT(*) AS later_flights, AVG(later.dep_delay) AS average_delay
FROM flights late
JOIN flights later ON late.tailnum = later.tailnum
                  AND late.year = later.year AND late.month = later.month AND late.day = later.day
                  AND late.sched_dep_time < later.sched_dep_time
WHERE late.arr_delay > 60
GROUP BY late.carrier;

-- A union of several kinds of rows.

CREATE MATERIALIZED VIEW disruptions AS
SELECT 'cancelled' AS kind, carrier, time_hour FROM flights WHERE dep_time IS NULL
UNION ALL
SELECT 'left 3 hours late', carrier, time_hour FROM flights WHERE dep_delay >= 180
UNION ALL
SELECT 'arrived 3 hours late', carrier, time_hour FROM flights WHERE arr_delay >= 180;

CREATE MATERIALIZED VIEW disruptions_by_kind AS
SELECT kind, COUNT(*) AS times, MIN(time_hour) AS first_time, MAX(time_hour) AS last_time
FROM disruptions
GROUP BY kind;


-- 3. Reading the views -------------------------------------------------------------------------------------

-- The first SELECT starts the connectors and waits until their files have been read. After that, reading a view
-- computes nothing; the queries below only filter and sort.

SELECT * FROM totals;
SELECT * FROM delays_by_carrier ORDER BY average_delay DESC;
SELECT * FROM days WHERE cancelled > 10 ORDER BY cancelled DESC, year, month, day LIMIT 10;
SELECT * FROM delays_by_weather ORDER BY average_delay DESC;
SELECT * FROM delays_by_carrier_and_hour WHERE departed > 100 ORDER BY average_delay DESC, airline, hour LIMIT 10;
SELECT * FROM busiest_routes ORDER BY flights DESC, origin, dest;
SELECT * FROM late_aircraft WHERE place = 1 ORDER BY minutes DESC, carrier;
SELECT * FROM fleet_age ORDER BY average_age DESC;
SELECT * FROM fleet_size ORDER BY planes DESC, carrier;
SELECT * FROM knock_on ORDER BY later_flights DESC, carrier;
SELECT * FROM disruptions_by_kind ORDER BY kind;


-- 4. Corrections -------------------------------------------------------------------------------------------

-- Every statement is a transaction of its own. Each of these changes a few rows of several views, and costs work in
-- proportion to them.

-- The worst delay of all was a typing error. When a maximum is removed, the view finds the next one.

UPDATE flights SET dep_delay = 13, arr_delay = -16
WHERE carrier = 'HA' AND flight = 51 AND month = 1 AND day = 9;

-- An airline is renamed, and with it everything grouped by its name. Its key exists, so the row is replaced.

INSERT OR REPLACE INTO airlines VALUES ('EV', 'Atlantic Southeast Airlines');

-- A day of one airline was reported by mistake.

DELETE FROM flights WHERE carrier = 'YV' AND month = 1 AND day = 24;

-- The instruments of one airport failed: its flights of that day no longer count under any weather.

DELETE FROM weather WHERE origin = 'LGA' AND month = 1 AND day = 16;

-- A new airline, its plane and its flights become visible together, or not at all.

BEGIN;
INSERT INTO airlines VALUES ('ZA', 'Zephyr Air');
INSERT INTO planes (tailnum, year, manufacturer, seats) VALUES ('N1ZA', 2012, 'AIRBUS', 180);
INSERT INTO flights (year, month, day, dep_time, sched_dep_time, dep_delay, arr_time, sched_arr_time, arr_delay,
                     carrier, flight, tailnum, origin, dest, air_time, distance, hour, minute, time_hour)
VALUES (2013, 1, 24,  905,  700, 125, 1010,  810, 120, 'ZA', 1, 'N1ZA', 'JFK', 'BOS', 45, 187,  7, 0, '2013-01-24T12:00:00'),
       (2013, 1, 24, 1415, 1200, 135, 1525, 1310, 135, 'ZA', 3, 'N1ZA', 'JFK', 'BOS', 46, 187, 12, 0, '2013-01-24T17:00:00'),
       (2013, 1, 24, NULL, 1800, NULL, NULL, 1910, NULL, 'ZA', 5, 'N1ZA', 'JFK', 'BOS', NULL, 187, 18, 0, '2013-01-24T23:00:00');
COMMIT;

-- A transaction that is rolled back has no effect.

BEGIN;
DELETE FROM flights WHERE origin = 'EWR';
ROLLBACK;


-- 5. The views again ---------------------------------------------------------------------------------------

SELECT * FROM totals;
SELECT * FROM delays_by_carrier ORDER BY average_delay DESC;
SELECT * FROM days WHERE cancelled > 10 ORDER BY cancelled DESC, year, month, day LIMIT 10;
SELECT * FROM delays_by_weather ORDER BY average_delay DESC;
SELECT * FROM delays_by_carrier_and_hour WHERE departed > 100 ORDER BY average_delay DESC, airline, hour LIMIT 10;
SELECT * FROM busiest_routes ORDER BY flights DESC, origin, dest;
SELECT * FROM late_aircraft WHERE place = 1 ORDER BY minutes DESC, carrier;
SELECT * FROM fleet_age ORDER BY average_age DESC;
SELECT * FROM fleet_size ORDER BY planes DESC, carrier;
SELECT * FROM knock_on ORDER BY later_flights DESC, carrier;
SELECT * FROM disruptions_by_kind ORDER BY kind;

-- How a view is kept up to date.

EXPLAIN VIEW delays_by_carrier_and_hour;
