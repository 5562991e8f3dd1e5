-- Currency conversion: every bid with its price in euros. Prices become DOUBLE, because the literal 0.908 is one
-- here; elsewhere it is a decimal.
CREATE VIEW q1 AS
SELECT auction, bidder, 0.908 * price AS price, date_time, extra
FROM bid;
