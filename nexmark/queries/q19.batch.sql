-- With an order that leaves nothing open: bids of one price are in the order of rows.
SELECT auction, bidder, price, channel, url, date_time, extra, rank_number
FROM (
    SELECT
        auction, bidder, price, channel, url, date_time, extra,
        ROW_NUMBER() OVER (
            PARTITION BY auction ORDER BY price DESC, bidder, channel, url, date_time, extra
        ) AS rank_number
    FROM bid
) AS ranked
WHERE rank_number <= 10
