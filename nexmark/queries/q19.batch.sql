-- The columns that bids of one price leave no doubt about.
SELECT auction, price, rank_number
FROM (
    SELECT
        auction, price, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rank_number
    FROM bid
) AS ranked
WHERE rank_number <= 10
