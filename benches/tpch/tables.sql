-- The tables of TPC-H, filled from files of the folder that stands for {folder}.
CREATE TABLE region (r_regionkey INT, r_name VARCHAR, r_comment VARCHAR)
  WITH ('connectors' = '[{"transport": {"name": "file_input", "config": {"path": "{folder}/region.csv"}}, "format": {"name": "csv", "config": {"headers": false}}}]');
CREATE TABLE nation (n_nationkey INT, n_name VARCHAR, n_regionkey INT, n_comment VARCHAR)
  WITH ('connectors' = '[{"transport": {"name": "file_input", "config": {"path": "{folder}/nation.csv"}}, "format": {"name": "csv", "config": {"headers": false}}}]');
CREATE TABLE part (
  p_partkey BIGINT, p_name VARCHAR, p_mfgr VARCHAR, p_brand VARCHAR, p_type VARCHAR, p_size INT, p_container VARCHAR,
  p_retailprice DECIMAL(15, 2), p_comment VARCHAR
) WITH ('connectors' = '[{"transport": {"name": "file_input", "config": {"path": "{folder}/part.csv"}}, "format": {"name": "csv", "config": {"headers": false}}}]');
CREATE TABLE supplier (
  s_suppkey BIGINT, s_name VARCHAR, s_address VARCHAR, s_nationkey INT, s_phone VARCHAR, s_acctbal DECIMAL(15, 2),
  s_comment VARCHAR
) WITH ('connectors' = '[{"transport": {"name": "file_input", "config": {"path": "{folder}/supplier.csv"}}, "format": {"name": "csv", "config": {"headers": false}}}]');
CREATE TABLE partsupp (
  ps_partkey BIGINT, ps_suppkey BIGINT, ps_availqty INT, ps_supplycost DECIMAL(15, 2), ps_comment VARCHAR
) WITH ('connectors' = '[{"transport": {"name": "file_input", "config": {"path": "{folder}/partsupp.csv"}}, "format": {"name": "csv", "config": {"headers": false}}}]');
CREATE TABLE customer (
  c_custkey BIGINT, c_name VARCHAR, c_address VARCHAR, c_nationkey INT, c_phone VARCHAR, c_acctbal DECIMAL(15, 2),
  c_mktsegment VARCHAR, c_comment VARCHAR
) WITH ('connectors' = '[{"transport": {"name": "file_input", "config": {"path": "{folder}/customer.csv"}}, "format": {"name": "csv", "config": {"headers": false}}}]');
CREATE TABLE orders (
  o_orderkey BIGINT, o_custkey BIGINT, o_orderstatus VARCHAR, o_totalprice DECIMAL(15, 2), o_orderdate DATE,
  o_orderpriority VARCHAR, o_clerk VARCHAR, o_shippriority INT, o_comment VARCHAR
) WITH ('connectors' = '[{"transport": {"name": "file_input", "config": {"path": "{folder}/orders.csv"}}, "format": {"name": "csv", "config": {"headers": false}}}]');
CREATE TABLE lineitem (
  l_orderkey BIGINT, l_partkey BIGINT, l_suppkey BIGINT, l_linenumber INT, l_quantity DECIMAL(15, 2),
  l_extendedprice DECIMAL(15, 2), l_discount DECIMAL(15, 2), l_tax DECIMAL(15, 2), l_returnflag VARCHAR,
  l_linestatus VARCHAR, l_shipdate DATE, l_commitdate DATE, l_receiptdate DATE, l_shipinstruct VARCHAR,
  l_shipmode VARCHAR, l_comment VARCHAR
) WITH ('connectors' = '[{"transport": {"name": "file_input", "config": {"path": "{folder}/lineitem.csv"}}, "format": {"name": "csv", "config": {"headers": false}}}]');
