-- The last bid of each bidder on each auction. Ties are broken deterministically, but in an unspecified order.
CREATE VIEW q18 AS
SELECT auction, bidder, price, channel, url, date_time, extra
FROM (
    SELECT
        auction, bidder, price, channel, url, date_time, extra,
        ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) AS place
    FROM bid
) AS ranked
WHERE place <= 1;
