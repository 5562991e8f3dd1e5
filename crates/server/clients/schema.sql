CREATE TABLE place (
    id BIGINT PRIMARY KEY,
    name VARCHAR NOT NULL
);
CREATE TABLE sample (
    id BIGINT PRIMARY KEY,
    flag BOOLEAN,
    small SMALLINT,
    whole INTEGER,
    single REAL,
    double DOUBLE PRECISION,
    amount NUMERIC(12, 2),
    name VARCHAR NOT NULL,
    bytes BYTEA,
    day DATE,
    at TIME,
    moment TIMESTAMP,
    instant TIMESTAMP WITH TIME ZONE,
    list INTEGER[]
);
INSERT INTO sample VALUES
    (1, true, 2, 3, 1.5, 2.5, 12.34, 'Grüße', x'00ff', DATE '2026-11-28', TIME '12:34:56.789', TIMESTAMP '2026-11-28 12:34:56.789',
     TIMESTAMPTZ '2026-11-28 12:34:56.789+00', ARRAY[1, 2, 3]),
    (2, NULL, NULL, NULL, NULL, NULL, NULL, '', NULL, NULL, NULL, NULL, NULL, NULL);
CREATE VIEW named AS SELECT id, name FROM sample WHERE name <> '';
CREATE MATERIALIZED VIEW total AS SELECT SUM(id) AS total, COUNT(*) AS n FROM place;
CREATE INDEX sample_day ON sample (day);
