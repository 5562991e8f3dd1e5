-- Pass-through: every bid unchanged. Measures the cost of input and output.
CREATE VIEW q0 AS
SELECT auction, bidder, price, date_time, extra
FROM bid;
