-- A session starts with a bid that is made 10 seconds or more after the bidder's previous one.
WITH marked AS (
    SELECT
        bidder,
        date_time,
        CASE
            WHEN date_time < LAG(date_time) OVER (PARTITION BY bidder ORDER BY date_time)
                + INTERVAL '10 seconds' THEN 0
            ELSE 1
        END AS begins
    FROM bid
),
numbered AS (
    SELECT
        bidder,
        date_time,
        SUM(begins) OVER (PARTITION BY bidder ORDER BY date_time) AS session
    FROM marked
)
SELECT
    bidder,
    COUNT(*) AS bid_count,
    MIN(date_time) AS starttime,
    MAX(date_time) + INTERVAL '10 seconds' AS endtime
FROM numbered
GROUP BY bidder, session
