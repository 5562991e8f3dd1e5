-- Highest bid: the highest bids of every 10 seconds.
-- A bid at the very end of a window is compared with that window as well as with its own, as the usual form does.
CREATE LOCAL VIEW q7_highest AS
SELECT MAX(price) AS price, window_end
FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
GROUP BY window_start, window_end;

CREATE VIEW q7 AS
SELECT b.auction, b.price, b.bidder, b.date_time, b.extra
FROM bid AS b
JOIN q7_highest AS h ON b.price = h.price
WHERE b.date_time BETWEEN h.window_end - INTERVAL '10' SECOND AND h.window_end;
