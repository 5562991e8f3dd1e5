CREATE TABLE t (id INTEGER, g INTEGER, i INTEGER, n BIGINT, x DOUBLE, d DECIMAL(10, 2), s VARCHAR, w VARCHAR,
    dt DATE, ts TIMESTAMP, b BOOLEAN, l INTEGER[], ls VARCHAR[]);
INSERT INTO t VALUES
    (1, 1, 7, 100, 2.5, 12.34, 'hello world', 'wor', '2024-02-29', '2024-02-29 13:45:56.789', true, [3, 1, 2], ['a', 'b']),
    (2, 1, -7, 3, -0.5, -1.50, 'Ab,Cd,12', 'b', '2023-12-31', '2023-12-31 23:59:59', false, [5], ['x']),
    (3, 2, 0, 255, 100.0, 0.00, '', 'x', '1970-01-01', '1970-01-01 00:00:00', true, [], []),
    (4, 2, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL),
    (5, 2, 12, 5000000000, 3.7, 99.99, 'naïve ÄÖ', 'ö', '2000-01-03', '2000-01-03 06:07:08.000009', false, [NULL, 2], ['q', NULL]);
