-- Pass-through: every bid as it is. What it costs to bring rows in and out.
CREATE VIEW q0 AS
SELECT auction, bidder, price, date_time, extra
FROM bid;
