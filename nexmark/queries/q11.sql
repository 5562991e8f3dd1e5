-- User sessions: the number of bids per bidder and session. A session ends after 10 seconds without a bid.
CREATE VIEW q11 AS
SELECT bidder, COUNT(*) AS bid_count, window_start AS starttime, window_end AS endtime
FROM TABLE(SESSION(TABLE bid, DESCRIPTOR(date_time), DESCRIPTOR(bidder), INTERVAL '10' SECOND))
GROUP BY bidder, window_start, window_end;
