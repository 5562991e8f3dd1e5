-- Average selling price by seller: for each auction of a seller, in the order of winning bids, the mean of its
-- price and those of the 10 auctions before it; ties are ordered by price. Systems whose windows need append-only
-- input reject this query, because the winning bid changes as bids arrive. Here it is a window over changing rows.
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
