-- The columns that bids of one time leave no doubt about.
SELECT auction, bidder, MAX(date_time) AS date_time
FROM bid
GROUP BY auction, bidder
