-- Auction top 10: the ten highest bids of each auction, with their ranks. Ties are broken deterministically, but in
-- an unspecified order.
CREATE VIEW q19 AS
SELECT auction, bidder, price, channel, url, date_time, extra, rank_number
FROM (
    SELECT
        auction, bidder, price, channel, url, date_time, extra,
        ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rank_number
    FROM bid
) AS ranked
WHERE rank_number <= 10;
