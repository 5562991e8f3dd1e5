-- Processing time windows: how many bids did each bidder make in each 10 seconds of the time of arrival?
-- A bid is stamped when it is inserted, by the clock of whoever inserts it (column p_time); the harness's clock goes
-- by the events, so that the answer is the same in every run.
CREATE VIEW q12 AS
SELECT bidder, COUNT(*) AS bid_count, window_start AS starttime, window_end AS endtime
FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(p_time), INTERVAL '10' SECOND))
GROUP BY bidder, window_start, window_end;
