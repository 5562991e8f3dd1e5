SELECT
    bidder,
    COUNT(*) AS bid_count,
    DATE_BIN(INTERVAL '10 seconds', p_time) AS starttime,
    DATE_BIN(INTERVAL '10 seconds', p_time) + INTERVAL '10 seconds' AS endtime
FROM bid
GROUP BY bidder, DATE_BIN(INTERVAL '10 seconds', p_time)
