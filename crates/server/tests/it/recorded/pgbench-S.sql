--- 4
select count(*) from pgbench_branches
--- 4
select o.n, p.partstrat, pg_catalog.count(i.inhparent) from pg_catalog.pg_class as c join pg_catalog.pg_namespace as n on (n.oid = c.relnamespace) cross join lateral (select pg_catalog.array_position(pg_catalog.current_schemas(true), n.nspname)) as o(n) left join pg_catalog.pg_partitioned_table as p on (p.partrelid = c.oid) left join pg_catalog.pg_inherits as i on (c.oid = i.inhparent) where c.relname = 'pgbench_accounts' and o.n is not null group by 1, 2 order by 1 asc limit 1
--- 4
vacuum pgbench_branches
--- 4
vacuum pgbench_tellers
--- 4
truncate pgbench_history
--- 1
SELECT abalance FROM pgbench_accounts WHERE aid = 35543;
--- 1
SELECT abalance FROM pgbench_accounts WHERE aid = 70754;
--- 1
SELECT abalance FROM pgbench_accounts WHERE aid = 32862;
--- 1
SELECT abalance FROM pgbench_accounts WHERE aid = 63041;
--- 1
SELECT abalance FROM pgbench_accounts WHERE aid = 80921;
--- 1 | $1 = '1437'
SELECT abalance FROM pgbench_accounts WHERE aid = $1;
--- 1 | $1 = '19765'
SELECT abalance FROM pgbench_accounts WHERE aid = $1;
--- 1 | $1 = '82183'
SELECT abalance FROM pgbench_accounts WHERE aid = $1;
--- 1 | $1 = '4498'
SELECT abalance FROM pgbench_accounts WHERE aid = $1;
--- 1 | $1 = '34147'
SELECT abalance FROM pgbench_accounts WHERE aid = $1;
--- 1 | $1 = '29298'
SELECT abalance FROM pgbench_accounts WHERE aid = $1;
--- 1 | $1 = '68406'
SELECT abalance FROM pgbench_accounts WHERE aid = $1;
--- 1 | $1 = '33521'
SELECT abalance FROM pgbench_accounts WHERE aid = $1;
--- 1 | $1 = '91620'
SELECT abalance FROM pgbench_accounts WHERE aid = $1;
--- 1 | $1 = '70721'
SELECT abalance FROM pgbench_accounts WHERE aid = $1;
--- 5
BEGIN;
--- 1
UPDATE pgbench_accounts SET abalance = abalance + -3897 WHERE aid = 14551;
--- 1
SELECT abalance FROM pgbench_accounts WHERE aid = 14551;
--- 1
UPDATE pgbench_tellers SET tbalance = tbalance + -3897 WHERE tid = 7;
--- 1
UPDATE pgbench_branches SET bbalance = bbalance + -3897 WHERE bid = 1;
--- 1
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (7, 1, 14551, -3897, CURRENT_TIMESTAMP);
--- 5
END;
--- 1
UPDATE pgbench_accounts SET abalance = abalance + 2380 WHERE aid = 77353;
--- 1
SELECT abalance FROM pgbench_accounts WHERE aid = 77353;
--- 1
UPDATE pgbench_tellers SET tbalance = tbalance + 2380 WHERE tid = 2;
--- 1
UPDATE pgbench_branches SET bbalance = bbalance + 2380 WHERE bid = 1;
--- 1
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (2, 1, 77353, 2380, CURRENT_TIMESTAMP);
--- 1
UPDATE pgbench_accounts SET abalance = abalance + -1845 WHERE aid = 15983;
--- 1
SELECT abalance FROM pgbench_accounts WHERE aid = 15983;
--- 1
UPDATE pgbench_tellers SET tbalance = tbalance + -1845 WHERE tid = 3;
--- 1
UPDATE pgbench_branches SET bbalance = bbalance + -1845 WHERE bid = 1;
--- 1
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (3, 1, 15983, -1845, CURRENT_TIMESTAMP);
--- 1
UPDATE pgbench_accounts SET abalance = abalance + 1827 WHERE aid = 33116;
--- 1
SELECT abalance FROM pgbench_accounts WHERE aid = 33116;
--- 1
UPDATE pgbench_tellers SET tbalance = tbalance + 1827 WHERE tid = 4;
--- 1
UPDATE pgbench_branches SET bbalance = bbalance + 1827 WHERE bid = 1;
--- 1
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (4, 1, 33116, 1827, CURRENT_TIMESTAMP);
--- 1
UPDATE pgbench_accounts SET abalance = abalance + -1283 WHERE aid = 67215;
--- 1
SELECT abalance FROM pgbench_accounts WHERE aid = 67215;
--- 1
UPDATE pgbench_tellers SET tbalance = tbalance + -1283 WHERE tid = 8;
--- 1
UPDATE pgbench_branches SET bbalance = bbalance + -1283 WHERE bid = 1;
--- 1
INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES (8, 1, 67215, -1283, CURRENT_TIMESTAMP);
