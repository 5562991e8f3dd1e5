-- Rows that are odd to write: delimiters, quotes, escapes, ends of lines, NULLs.
SET TimeZone = 'UTC';
CREATE TEMP TABLE odd (id int4, word text, bytes bytea, number numeric(12, 3), "a,""b" text[], day date, moment timestamptz, ok bool, double float8);
INSERT INTO odd
SELECT n, word, convert_to(word, 'UTF8'), n * 1.5, ARRAY[word, NULL, 'x y'], '2024-02-28'::date + n::int4, '2024-02-28 00:00Z'::timestamptz + n * '1 hour'::interval,
    n % 2 = 0, n / 3.0
FROM unnest(ARRAY['', ' ', 'plain', 'NULL', '\N', '\.', 'none', 'a,b', 'a;b', E'a\tb', E'a\nb', E'a\rb', E'a\r\nb', 'a"b', '"', '""', '''', 'it''s', 'a\b', '\', '\\',
    '\''', 'ä', '日本', '🙂', E'\b\f\v\x01', ' lead', 'trail ', '#', 'a|b', '{}', repeat('long ', 50)]) WITH ORDINALITY t (word, n);
INSERT INTO odd VALUES (100, NULL), (101, 'after');
