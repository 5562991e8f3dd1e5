-- The columns that are the same for all bids of one price.
SELECT auction, price, rank_number
FROM (
    SELECT
        auction, price, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rank_number
    FROM bid
) AS ranked
WHERE rank_number <= 10
