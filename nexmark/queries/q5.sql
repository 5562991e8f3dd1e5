-- Hot items: which auctions had the most bids in the last 10 seconds, every 2 seconds? All auctions that tie for
-- the first place are returned.
CREATE LOCAL VIEW q5_counts AS
SELECT auction, COUNT(*) AS num, window_start, window_end
FROM TABLE(HOP(TABLE bid, DESCRIPTOR(date_time), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
GROUP BY auction, window_start, window_end;

CREATE LOCAL VIEW q5_most AS
SELECT MAX(num) AS num, window_start, window_end
FROM q5_counts
GROUP BY window_start, window_end;

CREATE VIEW q5 AS
SELECT c.auction, c.num
FROM q5_counts AS c
JOIN q5_most AS m
    ON c.window_start = m.window_start AND c.window_end = m.window_end AND c.num = m.num;
