-- Highest bid: the highest bids of every 10 seconds. As in the usual form, a bid at the exact end of a window is
-- also compared with that window.
CREATE LOCAL VIEW q7_highest AS
SELECT MAX(price) AS price, window_end
FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
GROUP BY window_start, window_end;

CREATE VIEW q7 AS
SELECT b.auction, b.price, b.bidder, b.date_time, b.extra
FROM bid AS b
JOIN q7_highest AS h ON b.price = h.price
WHERE b.date_time BETWEEN h.window_end - INTERVAL '10' SECOND AND h.window_end;
