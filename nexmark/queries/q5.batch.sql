-- Each bid is in five windows of 10 seconds: the one that starts in the same 2 seconds, and the four before it.
WITH windows AS (
    SELECT bid.auction, DATE_BIN(INTERVAL '2 seconds', bid.date_time) - earlier.by AS window_start
    FROM bid
    CROSS JOIN (
        VALUES
            (INTERVAL '0 seconds'), (INTERVAL '2 seconds'), (INTERVAL '4 seconds'),
            (INTERVAL '6 seconds'), (INTERVAL '8 seconds')
    ) AS earlier (by)
),
counts AS (
    SELECT auction, window_start, COUNT(*) AS num FROM windows GROUP BY auction, window_start
),
most AS (
    SELECT window_start, MAX(num) AS num FROM counts GROUP BY window_start
)
SELECT counts.auction, counts.num
FROM counts
JOIN most ON counts.window_start = most.window_start AND counts.num = most.num
