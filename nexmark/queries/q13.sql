-- Bounded side input: every bid with a value from a small table. Usually this is a lookup when a bid arrives, and
-- later changes of the table have no effect; here it is an ordinary join. The table does not change, so the results
-- are the same.
CREATE VIEW q13 AS
SELECT b.auction, b.bidder, b.price, b.date_time, s.value
FROM bid AS b
JOIN side_input AS s ON b.auction % 10000 = s."key";
