-- Casts to types of Postgres: x::oid calls oid(x), and x::oid[] calls _oid(x).
CREATE FUNCTION oid(arg) AS CAST(arg AS UINTEGER);
CREATE FUNCTION _oid(arg) AS CAST(arg AS UINTEGER[]);
CREATE FUNCTION name(arg) AS CAST(arg AS VARCHAR);
CREATE FUNCTION _name(arg) AS CAST(arg AS VARCHAR[]);
CREATE FUNCTION xid(arg) AS CAST(arg AS BIGINT);
CREATE FUNCTION pg_node_tree(arg) AS CAST(arg AS VARCHAR);
CREATE FUNCTION unknown(arg) AS CAST(arg AS VARCHAR);
CREATE FUNCTION cstring(arg) AS CAST(arg AS VARCHAR);
CREATE FUNCTION aclitem(arg) AS CAST(arg AS VARCHAR);
CREATE FUNCTION _aclitem(arg) AS CAST(arg AS VARCHAR[]);
CREATE FUNCTION int2vector(arg) AS as_vector(CAST(arg AS SMALLINT[]));
CREATE FUNCTION oidvector(arg) AS as_vector(CAST(arg AS UINTEGER[]));
CREATE FUNCTION regproc(arg) AS function_reference(arg);
CREATE FUNCTION regprocedure(arg) AS function_reference(arg);

-- Types have no modifiers but that of numeric.
CREATE FUNCTION format_type(arg, arg2) AS shown_type(CAST(arg AS BIGINT), CAST(arg2 AS BIGINT));
CREATE FUNCTION quote_ident(arg) AS quoted_name(arg);
CREATE FUNCTION quote_literal(arg) AS '''' || replace(CAST(arg AS VARCHAR), '''', '''''') || '''';
CREATE FUNCTION regexp_split_to_table(arg, arg2) AS unnest(regexp_split_to_array(arg, arg2));
CREATE FUNCTION _pg_expandarray(arg) AS unnest(numbered_elements(arg));
