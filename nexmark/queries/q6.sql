-- Average selling price by seller: of each seller's auctions, in the order of their winning bids, the mean of
-- this one's price and those of the 10 before it; those of one time are in the order of their prices.
-- Systems that need append-only input for a window refuse it: which bid wins changes as bids come in. Here it is
-- a window over changing rows.
CREATE LOCAL VIEW q6_winning AS
SELECT seller, price, date_time
FROM (
    SELECT
        a.seller,
        b.price,
        b.date_time,
        ROW_NUMBER() OVER (PARTITION BY a.id, a.seller ORDER BY b.price DESC, b.date_time) AS place
    FROM auction AS a
    JOIN bid AS b ON a.id = b.auction
    WHERE b.date_time BETWEEN a.date_time AND a.expires
) AS ranked
WHERE place = 1;

CREATE VIEW q6 AS
SELECT
    seller,
    AVG(price) OVER (
        PARTITION BY seller ORDER BY date_time, price ROWS BETWEEN 10 PRECEDING AND CURRENT ROW
    ) AS average
FROM q6_winning;
