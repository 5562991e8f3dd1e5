-- Calculation: bids in a price range, with the time of day in words and the number of occurrences of a letter.
-- Other implementations count with a user-defined function; here SQL functions do it. Prices are as in q1.
CREATE VIEW q14 AS
SELECT
    auction,
    bidder,
    0.908 * price AS price,
    CASE
        WHEN EXTRACT(HOUR FROM date_time) BETWEEN 8 AND 18 THEN 'dayTime'
        WHEN EXTRACT(HOUR FROM date_time) <= 6 OR EXTRACT(HOUR FROM date_time) >= 20 THEN 'nightTime'
        ELSE 'otherTime'
    END AS bidtimetype,
    date_time,
    extra,
    CHARACTER_LENGTH(extra) - CHARACTER_LENGTH(REPLACE(extra, 'c', '')) AS c_counts
FROM bid
WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000;
