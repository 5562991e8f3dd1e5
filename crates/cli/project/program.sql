-- {name}: the orders of a shop, and views that stay right while orders come, change and go.
--
--     alluvium run program.sql


-- A table. Its rows come from a file, whose header names the columns; paths are relative to the folder of this file.
-- The file is read when a statement needs rows: by then the views exist, and every row passes through them.

CREATE TABLE orders (
    id       BIGINT NOT NULL PRIMARY KEY,
    day      DATE NOT NULL,
    customer VARCHAR NOT NULL,
    product  VARCHAR NOT NULL,
    pieces   INTEGER NOT NULL,
    price    DECIMAL(10, 2) NOT NULL      -- of one piece
) WITH (
    connector = 'file', path = 'data/orders.csv', headers = 'true'
);


-- A materialized view. Each change of the table changes the rows that depend on it; nothing is refreshed.

CREATE MATERIALIZED VIEW products AS
SELECT product, COUNT(*) AS orders, SUM(pieces) AS pieces, SUM(pieces * price) AS revenue
FROM orders
GROUP BY product;


-- An output: a view that is also written to a file, when the program ends.

CREATE MATERIALIZED VIEW customers WITH (connector = 'file', path = 'customers.csv', headers = 'true') AS
SELECT customer, COUNT(*) AS orders, SUM(pieces * price) AS revenue, MAX(day) AS last_day
FROM orders
GROUP BY customer;


-- The first query starts the table's source and waits until the file has been read.

SELECT * FROM products ORDER BY revenue DESC;


-- Tables and views change like any others. Every statement is a transaction.

UPDATE orders SET pieces = 1 WHERE id = 17;
DELETE FROM orders WHERE customer = 'Noor';

SELECT * FROM products ORDER BY revenue DESC;


-- How a view is kept up to date: EXPLAIN VIEW products;
