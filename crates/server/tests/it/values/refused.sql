-- Texts that are no values: type, text, and the code of the error.
CREATE FUNCTION pg_temp.code(kind text, value text) RETURNS text LANGUAGE plpgsql AS
    $$ BEGIN EXECUTE format('SELECT %L::%s', value, kind); RETURN '00000'; EXCEPTION WHEN OTHERS THEN RETURN SQLSTATE; END $$;

SELECT concat_ws(chr(9), kind, value, pg_temp.code(kind, value)) FROM (VALUES
    ('bool', ''), ('bool', 'maybe'), ('bool', 'o'), ('bool', '2'), ('bool', 'truee'), ('bool', ' TRUE '), ('bool', 'of'), ('bool', 'YE'),
    ('int2', ''), ('int2', 'x'), ('int2', '32768'), ('int2', '-32769'), ('int2', '1.5'), ('int2', ' 7 '), ('int2', '+7'), ('int2', '- 7'), ('int2', '1e3'),
    ('int4', '2147483648'), ('int4', '0x10'), ('int4', '1_000'), ('int4', '--1'),
    ('int8', '9223372036854775808'), ('int8', '99999999999999999999999'), ('int8', 'NaN'), ('int8', '-9223372036854775808'),
    ('float4', '1e39'), ('float4', '1e-46'), ('float4', 'x'), ('float4', ''), ('float4', '1e-45'), ('float4', ' inf '), ('float4', '1.5.5'),
    ('float8', '1e309'), ('float8', '-1e400'), ('float8', '1e-400'), ('float8', 'nan'), ('float8', '-inf'), ('float8', '.5'), ('float8', '5.'),
    ('float8', '.'), ('float8', '1e'), ('float8', '1 2'), ('float8', '0e-500'),
    ('numeric', ''), ('numeric', 'x'), ('numeric', '1.2.3'), ('numeric', '1e'), ('numeric', '.'), ('numeric', ' 1 '), ('numeric', '+1'), ('numeric', '1e3'),
    ('numeric', '1 2'), ('numeric', '- 1'), ('numeric', '1e-3'), ('numeric', '5.'),
    ('date', ''), ('date', '2023-02-29'), ('date', '2024-13-01'), ('date', '2024-00-01'), ('date', '2024-01-32'), ('date', '2024/01/02'), ('date', '20240102'),
    ('date', '2024-1-2'), ('date', 'x'), ('date', '2024-01-02x'), ('date', '0000-01-01'), ('date', '2024-01-02 10:00'), ('date', 'Infinity'),
    ('time', '25:00'), ('time', '12:60'), ('time', '12:30:61'), ('time', 'x'), ('time', ''), ('time', '12:30:60'), ('time', '1:2:3'), ('time', '10:20'),
    ('timestamp', '2024-01-02 25:00'), ('timestamp', '2024-02-30 10:00'), ('timestamp', 'x'), ('timestamp', '2024-01-02T03:04:05Z'),
    ('timestamp', '2024-01-02 24:00:00'), ('timestamp', '2024-01-02 23:59:60'), ('timestamp', '294277-01-01'), ('timestamp', '2024-01-02 03:04:05.1234567'),
    ('timestamp', '2024-01-02 3:4'), ('timestamp', '2024-01-02 10:20+02'), ('timestamp', '20240102T102030'), ('timestamp', '2024-01-02 BC'),
    ('timestamptz', '2024-01-02 10:20+99'), ('timestamptz', '2024-01-02 10:20 Nowhere/City'), ('timestamptz', '2024-01-02 10:20 Europe/Berlin'),
    ('timestamptz', '2024-01-02 10:20-02:30'), ('timestamptz', '2024-01-02 10:20+0230'), ('timestamptz', '2024-01-02'), ('timestamptz', '2024-01-02 10:20 utc'),
    ('interval', ''), ('interval', 'x'), ('interval', '1 parsec'), ('interval', '1 day x'), ('interval', '3000000000 days'), ('interval', '1:60'),
    ('interval', '1 2:03:04'), ('interval', 'P1DT2H'), ('interval', '90'),
    ('bytea', '\x0'), ('bytea', '\xzz'), ('bytea', '\1'), ('bytea', '\999'), ('bytea', '\x 00 ff '), ('bytea', 'a\\b\001'), ('bytea', '\'),
    ('uuid', ''), ('uuid', 'a0eebc99'), ('uuid', '{a0eebc999c0b4ef8bb6d6bb9bd380a11}'), ('uuid', 'A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11'),
    ('int4[]', ''), ('int4[]', '{'), ('int4[]', '{1'), ('int4[]', '{1,}'), ('int4[]', '{,1}'), ('int4[]', '{1} x'), ('int4[]', '{x}'), ('int4[]', '1,2'),
    ('int4[]', '{1,{2}}'), ('int4[]', ' { 1 , 2 } '), ('int4[]', '[0:1]={1,2}'), ('int4[]', '{"1",null}'), ('int4[]', '{99999999999}'), ('int4[]', '{{1},{2}}'),
    ('text[]', '{a"b}'), ('text[]', '{"a}'), ('text[]', '{a\'), ('text[]', '{a b, c }'), ('text[]', '{\"}'), ('text[]', '{"a" }'), ('text[]', '{{{{{{{a}}}}}}}')
) t (kind, value);
