-- Average price for a category: the mean, over the auctions of each category, of the highest bid so far that was
-- made while the auction was open. Auctions without such a bid are ignored.
CREATE LOCAL VIEW q4_highest AS
SELECT a.id, a.category, MAX(b.price) AS final
FROM auction AS a
JOIN bid AS b ON a.id = b.auction
WHERE b.date_time BETWEEN a.date_time AND a.expires
GROUP BY a.id, a.category;

CREATE VIEW q4 AS
SELECT category, AVG(final) AS average
FROM q4_highest
GROUP BY category;
