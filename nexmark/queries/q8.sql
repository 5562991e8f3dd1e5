-- Monitor new users: who entered the system and opened an auction within the same 10 seconds?
CREATE LOCAL VIEW q8_people AS
SELECT DISTINCT id, name, window_start, window_end
FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(date_time), INTERVAL '10' SECOND));

CREATE LOCAL VIEW q8_sellers AS
SELECT DISTINCT seller, window_start, window_end
FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(date_time), INTERVAL '10' SECOND));

CREATE VIEW q8 AS
SELECT p.id, p.name, p.window_start
FROM q8_people AS p
JOIN q8_sellers AS s
    ON p.id = s.seller AND p.window_start = s.window_start AND p.window_end = s.window_end;
