-- The last bid: of each bidder on each auction. Of several at
-- one time it is always the same one, but which is open.
CREATE VIEW q18 AS
SELECT auction, bidder, price, channel, url, date_time, extra
FROM (
    SELECT
        auction, bidder, price, channel, url, date_time, extra,
        ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) AS place
    FROM bid
) AS ranked
WHERE place <= 1;
