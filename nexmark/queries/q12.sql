-- Processing time windows: the number of bids per bidder in each 10 seconds of processing time. The column p_time
-- is the time at which a bid is inserted. The clock of the harness follows the events, so the result is the same in
-- every run.
CREATE VIEW q12 AS
SELECT bidder, COUNT(*) AS bid_count, window_start AS starttime, window_end AS endtime
FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(p_time), INTERVAL '10' SECOND))
GROUP BY bidder, window_start, window_end;
