-- The columns that are the same for all bids of one time.
SELECT auction, bidder, MAX(date_time) AS date_time
FROM bid
GROUP BY auction, bidder
