-- Local item suggestion: who sells in category 10, in three states?
-- The generator writes the states in lower case.
CREATE VIEW q3 AS
SELECT p.name, p.city, p.state, a.id
FROM auction AS a
JOIN person AS p ON a.seller = p.id
WHERE a.category = 10 AND p.state IN ('or', 'id', 'ca');
