-- With an order that leaves nothing open: of bids of one time, the first row.
SELECT auction, bidder, price, channel, url, date_time, extra
FROM (
    SELECT
        auction, bidder, price, channel, url, date_time, extra,
        ROW_NUMBER() OVER (
            PARTITION BY bidder, auction ORDER BY date_time DESC, price, channel, url, extra
        ) AS place
    FROM bid
) AS ranked
WHERE place <= 1
