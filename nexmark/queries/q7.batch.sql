WITH highest AS (
    SELECT MAX(price) AS price, DATE_BIN(INTERVAL '10 seconds', date_time) AS window_start
    FROM bid
    GROUP BY DATE_BIN(INTERVAL '10 seconds', date_time)
)
SELECT b.auction, b.price, b.bidder, b.date_time, b.extra
FROM bid AS b
JOIN highest AS h ON b.price = h.price
WHERE b.date_time BETWEEN h.window_start AND h.window_start + INTERVAL '10 seconds'
