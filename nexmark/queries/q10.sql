-- Log to the file system: every bid, with its date and minute. Usually the sink partitions its files by these two
-- columns; here they are columns of the output.
CREATE VIEW q10 AS
SELECT
    auction, bidder, price, date_time, extra,
    TO_CHAR(date_time, '%Y-%m-%d') AS dt,
    TO_CHAR(date_time, '%H:%M') AS hm
FROM bid;
