//! Functions that programs register.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeMap;
use std::sync::Arc;

use alluvium::arrow::array::{ArrayRef, AsArray, Int64Array, StringArray};
use alluvium::arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use alluvium::functions::{
    Accumulator, AccumulatorArgs, AggregateUDF, AggregateUDFImpl, ColumnarValue, DataFusionError,
    Result as FunctionResult, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl,
    ScalarValue, Signature, Volatility, create_udf,
};
use alluvium::{Builder, Engine, Error, Outcome};

use crate::support::{lines, query, settled};

/// A scalar function of one text.
fn of_text(
    name: &str,
    volatility: Volatility,
    result: DataType,
    call: impl Fn(&StringArray) -> FunctionResult<ArrayRef> + Send + Sync + 'static,
) -> ScalarUDF {
    let call = move |arguments: &[ColumnarValue]| {
        let arrays = ColumnarValue::values_to_arrays(arguments)?;
        Ok(ColumnarValue::Array(call(arrays[0].as_string::<i32>())?))
    };
    create_udf(name, vec![DataType::Utf8], result, volatility, Arc::new(call))
}

fn each(
    texts: &StringArray,
    call: impl Fn(&str) -> FunctionResult<String>,
) -> FunctionResult<ArrayRef> {
    let called = texts.iter().map(|text| text.map(&call).transpose());
    Ok(Arc::new(called.collect::<FunctionResult<StringArray>>()?))
}

/// Lower case with hyphens; fails for 'bad' and panics for 'worse'.
fn slug() -> ScalarUDF {
    of_text("slug", Volatility::Immutable, DataType::Utf8, |texts| {
        each(texts, |text| match text {
            "bad" => Err(DataFusionError::Execution("no slug of 'bad'".to_owned())),
            "worse" => panic!("no slug at all"),
            text => Ok(text.to_lowercase().replace(' ', "-")),
        })
    })
    .with_aliases(["slugged"])
}

/// A function that does not do what it announces: what it does, the text says.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Liar(Signature);

impl ScalarUDFImpl for Liar {
    fn name(&self) -> &str {
        "liar"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> FunctionResult<DataType> {
        unreachable!("the field says more")
    }

    fn return_field_from_args(&self, _: ReturnFieldArgs<'_>) -> FunctionResult<FieldRef> {
        Ok(Arc::new(Field::new("liar", DataType::Int64, false)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> FunctionResult<ColumnarValue> {
        let rows = arguments.number_rows;
        let texts = arguments.args[0].to_array(rows)?;
        let lies = ["type", "length", "null"];
        let mut texts = texts.as_string::<i32>().iter().flatten();
        let result: ArrayRef = match texts.find(|text| lies.contains(text)).unwrap_or_default() {
            "type" => Arc::new(StringArray::from(vec!["1"; rows])),
            "length" => Arc::new(Int64Array::from(vec![1; rows + 1])),
            "null" => Arc::new(Int64Array::new_null(rows)),
            _ => Arc::new(Int64Array::from(vec![1; rows])),
        };
        Ok(ColumnarValue::Array(result))
    }
}

/// The product of numbers, which is one for none; fails if it does not fit, and panics for 13.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Product(Signature);

impl AggregateUDFImpl for Product {
    fn name(&self) -> &str {
        "product_of"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> FunctionResult<DataType> {
        Ok(DataType::Int64)
    }

    fn is_nullable(&self) -> bool {
        false
    }

    fn default_value(&self, _: &DataType) -> FunctionResult<ScalarValue> {
        Ok(1_i64.into())
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> FunctionResult<Box<dyn Accumulator>> {
        Ok(Box::new(Multiplied(1)))
    }
}

#[derive(Debug)]
struct Multiplied(i64);

impl Accumulator for Multiplied {
    fn update_batch(&mut self, values: &[ArrayRef]) -> FunctionResult<()> {
        for number in values[0].as_primitive::<Int64Type>().iter().flatten() {
            assert_ne!(number, 13, "13 is out of luck");
            let product = self.0.checked_mul(number);
            self.0 = product.ok_or_else(|| DataFusionError::Execution("too much".to_owned()))?;
        }
        Ok(())
    }

    fn evaluate(&mut self) -> FunctionResult<ScalarValue> {
        Ok(self.0.into())
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> FunctionResult<Vec<ScalarValue>> {
        Ok(vec![self.0.into()])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> FunctionResult<()> {
        self.update_batch(states)
    }
}

/// The longest text, of several the first in order; NULL without any. It says that it is a number if there is the text
/// 'number'.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Longest(Signature);

impl AggregateUDFImpl for Longest {
    fn name(&self) -> &str {
        "longest"
    }

    fn signature(&self) -> &Signature {
        &self.0
    }

    fn return_type(&self, _: &[DataType]) -> FunctionResult<DataType> {
        Ok(DataType::Utf8)
    }

    fn accumulator(&self, _: AccumulatorArgs<'_>) -> FunctionResult<Box<dyn Accumulator>> {
        Ok(Box::new(Longer(None)))
    }
}

#[derive(Debug)]
struct Longer(Option<String>);

/// The longer text, or the first in order.
fn longer(one: &str, other: &str) -> bool {
    (other.len(), one) < (one.len(), other)
}

impl Accumulator for Longer {
    fn update_batch(&mut self, values: &[ArrayRef]) -> FunctionResult<()> {
        for text in values[0].as_string::<i32>().iter().flatten() {
            if self.0.as_deref().is_none_or(|longest| longer(text, longest)) {
                self.0 = Some(text.to_owned());
            }
        }
        Ok(())
    }

    fn evaluate(&mut self) -> FunctionResult<ScalarValue> {
        match self.0.as_deref() {
            Some("number") => Ok(6_i64.into()),
            text => Ok(ScalarValue::Utf8(text.map(str::to_owned))),
        }
    }

    fn size(&self) -> usize {
        size_of_val(self)
    }

    fn state(&mut self) -> FunctionResult<Vec<ScalarValue>> {
        Ok(vec![self.evaluate()?])
    }

    fn merge_batch(&mut self, states: &[ArrayRef]) -> FunctionResult<()> {
        self.update_batch(states)
    }
}

fn product_of() -> AggregateUDF {
    Product(Signature::exact(vec![DataType::Int64], Volatility::Immutable)).into()
}

fn longest() -> AggregateUDF {
    Longest(Signature::exact(vec![DataType::Utf8], Volatility::Immutable)).into()
}

fn builder(workers: usize) -> Builder {
    let liar = Liar(Signature::exact(vec![DataType::Utf8], Volatility::Immutable));
    let of_now = |name, volatility| {
        of_text(name, volatility, DataType::Utf8, |texts| Ok(Arc::new(texts.clone())))
    };
    Engine::builder()
        .workers(workers)
        .function(slug())
        .function(liar)
        .function(of_now("steady", Volatility::Stable))
        .function(of_now("moody", Volatility::Volatile))
        .aggregate(product_of())
        .aggregate(longest())
}

fn engine(workers: usize, sql: &str) -> Engine {
    let engine = builder(workers).open_in_memory().unwrap();
    engine.execute(sql).unwrap();
    engine
}

const TABLE: &str = "CREATE TABLE t (id BIGINT PRIMARY KEY, k VARCHAR, name VARCHAR, n BIGINT)";

/// The rows of a table by id: a key, a name and a number.
type Model = BTreeMap<i64, (String, Option<String>, Option<i64>)>;

/// The rows of the view `by_slug` below over these rows.
fn by_slug(model: &Model) -> Vec<String> {
    let mut groups: BTreeMap<Option<String>, (i64, i64, Option<&str>)> = BTreeMap::new();
    for (_, name, n) in model.values() {
        let slug = name.as_ref().map(|name| name.to_lowercase().replace(' ', "-"));
        let (count, product, longest) = groups.entry(slug).or_insert((0, 1, None));
        *count += 1;
        *product *= n.unwrap_or(1);
        if let Some(name) = name
            && longest.is_none_or(|longest| longer(name, longest))
        {
            *longest = Some(name);
        }
    }
    let text = |text: Option<&str>| text.unwrap_or("NULL").to_owned();
    let line = |(slug, (count, product, longest)): (Option<String>, (i64, i64, Option<&str>))| {
        format!("{} {count} {product} {}", text(slug.as_deref()), text(longest))
    };
    let mut lines: Vec<String> = groups.into_iter().map(line).collect();
    lines.sort();
    lines
}

#[test]
fn views_and_queries_call_them_whatever_changes_and_with_any_number_of_workers() {
    const QUERIES: [(&str, &str); 8] = [
        (
            "by_slug",
            "SELECT slug(name) AS s, COUNT(*) AS c, product_of(n) AS p, longest(name) AS l FROM t GROUP BY slug(name)",
        ),
        ("long", "SELECT id, slugged(name) AS s FROM t WHERE slug(name) > 'b' AND slug(k) = 'k1'"),
        ("of_all", "SELECT product_of(n) FILTER (WHERE n > 1) AS p, longest(DISTINCT name) AS l FROM t"),
        (
            "windows",
            "SELECT id, longest(name) OVER (PARTITION BY k ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS l,
                 product_of(n) OVER (PARTITION BY k ORDER BY id) AS p FROM t",
        ),
        (
            "distinct_products",
            "SELECT k, product_of(DISTINCT n) AS p, product_of(n) AS q, longest(DISTINCT name) AS l FROM t GROUP BY k",
        ),
        (
            "of_union",
            "SELECT product_of(DISTINCT n) AS p, longest(name) AS l FROM
                 (SELECT n, name FROM t UNION ALL SELECT n, k FROM t UNION ALL SELECT 3, 'x')",
        ),
        (
            "ordered",
            "SELECT longest(l ORDER BY id DESC) AS l FROM
                 (SELECT id, name AS l FROM t UNION ALL SELECT id, k FROM t)",
        ),
        (
            "nested",
            "SELECT a.id, (SELECT product_of(b.n) FROM t b WHERE b.k = slug(a.name)) AS p FROM t a",
        ),
    ];
    for workers in 1..=3 {
        let engine = engine(workers, TABLE);
        for (name, query) in QUERIES {
            engine.execute(&format!("CREATE MATERIALIZED VIEW {name} AS {query}")).unwrap();
        }
        assert_eq!(settled(&engine, "SELECT * FROM of_all"), ["1 NULL"], "of no rows");
        let (mut model, mut seed) = (Model::new(), 7_u64);
        let mut lot = |below: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            (seed >> 33) % below
        };
        for _ in 0..40 {
            for _ in 0..1 + lot(4) {
                let id = lot(12) as i64;
                let key = ["k1", "k2", "a-b"][lot(3) as usize];
                let name = ["A b", "a B", "K1", "zz z", "b"].get(lot(6) as usize).copied();
                let n = [1, 2, -1, 3].get(lot(5) as usize).copied();
                let sql = |text: Option<&str>| text.map_or("NULL".to_owned(), |t| format!("'{t}'"));
                engine.execute(&format!("DELETE FROM t WHERE id = {id}")).unwrap();
                model.remove(&id);
                if lot(4) > 0 {
                    let number = n.map_or("NULL".to_owned(), |n| n.to_string());
                    let name = sql(name);
                    let insert = format!("INSERT INTO t VALUES ({id}, '{key}', {name}, {number})");
                    engine.execute(&insert).unwrap();
                    let name = Some(name.trim_matches('\'').to_owned()).filter(|n| n != "NULL");
                    model.insert(id, (key.to_owned(), name, n));
                }
            }
            assert_eq!(settled(&engine, "SELECT * FROM by_slug"), by_slug(&model));
            for (name, sql) in QUERIES {
                assert_eq!(
                    query(&engine, &format!("SELECT * FROM {name}")),
                    query(&engine, sql),
                    "{name}"
                );
            }
        }
        assert_eq!(query(&engine, "SELECT COUNT(*) FROM alluvium.errors"), ["0"]);
        engine.execute("DELETE FROM t").unwrap();
        assert_eq!(settled(&engine, "SELECT * FROM of_all"), ["1 NULL"], "all rows are gone");
    }
}

#[test]
fn all_kinds_of_statements_call_them() {
    let engine = engine(1, TABLE);
    engine.execute("INSERT INTO t VALUES (1, slug('A B'), 'x', 2)").unwrap();
    engine
        .execute("INSERT INTO t SELECT product_of(n) * 2, slug('C'), longest(name), 1 FROM t")
        .unwrap();
    engine.execute("UPDATE t SET k = slug(upper(k)) || '!', n = n + liar(name)").unwrap();
    assert_eq!(query(&engine, "SELECT * FROM t"), ["1 a-b! x 3", "4 c! x 2"]);
    let deleted = engine
        .execute("DELETE FROM t WHERE slug(k) = 'c!' RETURNING slug(name)")
        .unwrap()
        .remove(0);
    let Outcome::Rows(rows) = deleted else { panic!("{deleted:?}") };
    assert_eq!(lines(&rows.into_batches().unwrap()), ["x"]);
    let rows = engine.query_with("SELECT moody(slug($1))", &["Q R".into()]).unwrap();
    assert_eq!(lines(&rows), ["q-r"]);
    let explained = engine.execute("EXPLAIN SELECT longest(slug(k)) FROM t").unwrap();
    let [Outcome::Text(explained)] = &explained[..] else { panic!("{explained:?}") };
    assert!(explained.contains("longest(slug("), "{explained}");
}

#[test]
fn errors_and_panics_are_errors_of_the_statement_in_queries() {
    let engine = engine(1, TABLE);
    engine
        .execute("INSERT INTO t VALUES (1, 'k', 'bad', 13), (2, 'k', 'worse', 4611686018427387904)")
        .unwrap();
    let failures = [
        ("SELECT slug(name) FROM t WHERE id = 1", "no slug of 'bad'"),
        ("SELECT slug(name) FROM t WHERE id = 2", "slug() panicked: no slug at all"),
        ("SELECT slug('worse')", "slug() panicked: no slug at all"),
        ("SELECT product_of(n) FROM t WHERE id = 1", "product_of() panicked"),
        ("SELECT product_of(n) OVER (ORDER BY id) FROM t WHERE id = 1", "13 is out of luck"),
        ("SELECT product_of(n + n) FROM t WHERE id = 2", "overflow"),
        (
            "SELECT product_of(n - 1) FROM (SELECT n FROM t WHERE id = 2 UNION ALL SELECT n FROM t WHERE id = 2)",
            "too much",
        ),
        ("SELECT liar('type')", "liar() returned VARCHAR where it had announced BIGINT"),
        ("SELECT liar('length' || name) FROM t", "liar"),
        (
            "SELECT liar(k) FROM (SELECT 'length' AS k FROM t)",
            "liar() returned 3 values for 2 rows",
        ),
        ("SELECT liar('null')", "liar() returned NULL"),
        (
            "SELECT longest(v) FROM (VALUES ('number')) AS x (v)",
            "longest() returned BIGINT where it had announced VARCHAR",
        ),
        ("UPDATE t SET k = slug(name)", "no slug"),
    ];
    for (sql, text) in failures.iter().filter(|(sql, _)| !sql.contains("'length' ||")) {
        match engine.execute(sql) {
            Err(Error::Data { message, .. } | Error::Sql { message, .. }) => {
                assert!(message.contains(text), "{sql}: {message}");
            }
            other => panic!("{sql}: {other:?}"),
        }
    }
    assert_eq!(query(&engine, "SELECT slug('Still there')"), ["still-there"]);
}

#[test]
fn errors_and_panics_are_errors_of_the_row_or_the_group_in_views() {
    for workers in [1, 3] {
        let engine = engine(
            workers,
            &format!(
                "{TABLE};
                 CREATE MATERIALIZED VIEW slugs AS SELECT id, slug(name) AS s FROM t;
                 CREATE MATERIALIZED VIEW lies AS SELECT id, liar(name) AS l FROM t;
                 CREATE MATERIALIZED VIEW products AS SELECT k, product_of(n) AS p FROM t GROUP BY k;
                 CREATE MATERIALIZED VIEW longests AS SELECT k, longest(name) AS l FROM t GROUP BY k;
                 CREATE MATERIALIZED VIEW running AS
                     SELECT id, product_of(n) OVER (PARTITION BY k ORDER BY id) AS p FROM t"
            ),
        );
        engine
            .execute(
                "INSERT INTO t VALUES (1, 'a', 'Good', 2), (2, 'a', 'bad', 3), (3, 'b', 'worse', 13), (4, 'b', 'type', 4),
                     (5, 'c', 'length', 5), (6, 'c', 'null', 6), (7, 'd', 'number', 7), (8, 'e', 'x', 8)",
            )
            .unwrap();
        assert_eq!(
            settled(&engine, "SELECT * FROM slugs"),
            ["1 good", "4 type", "5 length", "6 null", "7 number", "8 x"]
        );
        assert_eq!(query(&engine, "SELECT id FROM lies"), ["1", "2", "3", "7", "8"]);
        assert_eq!(query(&engine, "SELECT * FROM products"), ["a 6", "c 30", "d 7", "e 8"]);
        assert_eq!(
            query(&engine, "SELECT * FROM longests"),
            ["a Good", "b worse", "c length", "e x"]
        );
        assert_eq!(query(&engine, "SELECT id FROM running"), ["1", "2", "5", "6", "7", "8"]);
        let messages = |view: &str| {
            let sql = format!("SELECT DISTINCT message FROM alluvium.errors WHERE view = '{view}'");
            query(&engine, &sql).join("; ")
        };
        assert_eq!(messages("slugs"), "no slug of 'bad'; slug() panicked: no slug at all");
        for text in ["returned VARCHAR", "returned 2 values for 1 rows", "returned NULL"] {
            assert!(messages("lies").contains(text), "{text}: {}", messages("lies"));
        }
        assert!(messages("products").contains("product_of() panicked"), "{}", messages("products"));
        assert!(messages("running").contains("product_of() panicked"), "{}", messages("running"));
        assert!(
            messages("longests").contains("longest() returned BIGINT"),
            "{}",
            messages("longests")
        );
        // Without the rows there are no errors.
        engine.execute("DELETE FROM t WHERE id BETWEEN 2 AND 7").unwrap();
        assert_eq!(settled(&engine, "SELECT COUNT(*) FROM alluvium.errors"), ["0"]);
        assert_eq!(query(&engine, "SELECT * FROM running"), ["1 2", "8 8"]);
    }
}

#[test]
fn views_refuse_those_that_are_not_immutable_and_say_so() {
    let engine = engine(1, TABLE);
    let at = "CREATE MATERIALIZED VIEW v AS SELECT id, ".len() as u64 + 1;
    for call in ["steady(name)", "moody(name)", "\"moody\"(name)"] {
        let error =
            engine.execute(&format!("CREATE MATERIALIZED VIEW v AS SELECT id, {call} AS x FROM t"));
        let error = error.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("cannot be used in a view") && text.contains("Immutable"), "{text}");
        assert_eq!(error.position(), Some((1, at)));
    }
    let error = engine.execute("CREATE MATERIALIZED VIEW v AS SELECT \"random\"() AS x FROM t");
    assert!(error.unwrap_err().to_string().contains("another value at each call"));
    assert_eq!(query(&engine, "SELECT moody('x') || steady('y')"), ["xy"]);
}

#[test]
fn clauses_that_a_function_does_not_have_are_refused() {
    let engine = engine(1, TABLE);
    for (sql, text) in [
        ("SELECT slug(DISTINCT name) FROM t", "DISTINCT in a call of slug()"),
        ("SELECT slug(name) FILTER (WHERE n > 1) FROM t", "FILTER in a call of slug()"),
        ("SELECT slug(name) OVER () FROM t", "OVER in a call of slug()"),
        ("SELECT slug() FROM t", "slug"),
        ("SELECT product_of(name, n) FROM t", "product_of"),
        ("SELECT slugger(name) FROM t", "no function \"slugger\""),
    ] {
        for sql in [sql.to_owned(), format!("CREATE MATERIALIZED VIEW v AS {sql}")] {
            let error = engine.execute(&sql).unwrap_err();
            assert!(matches!(error, Error::Sql { .. }), "{sql}: {error:?}");
            assert!(error.to_string().contains(text), "{sql}: {error}");
        }
    }
}

#[test]
fn names_that_are_taken_or_cannot_be_called_are_refused() {
    let named = |name: &str| {
        let same = |texts: &StringArray| Ok(Arc::new(texts.clone()) as ArrayRef);
        of_text(name, Volatility::Immutable, DataType::Utf8, same)
    };
    let refused = |builder: Builder| match builder.open_in_memory() {
        Err(Error::Start { message, .. }) => message,
        Err(other) => panic!("{other}"),
        Ok(_) => "it is taken".to_owned(),
    };
    for name in ["lower", "sum", "list_transform", "row_number", "nvl2", "len", "unnest", "tumble"]
    {
        let message = refused(Engine::builder().function(named(name)));
        assert!(message.contains("built-in") && message.contains(name), "{message}");
    }
    for name in ["", "Slug", "a b", "a.b", "1st", "case", "exists", "\"q\"", "x(", "a--"] {
        let message = refused(Engine::builder().function(named(name)));
        assert!(message.contains("SQL cannot call"), "{name}: {message}");
    }
    let twice = refused(builder(1).function(named("longest")));
    assert!(twice.contains("two functions of the name longest()"), "{twice}");
    let twice = refused(builder(1).function(named("other").with_aliases(["slugged"])));
    assert!(twice.contains("two functions of the name slugged()"), "{twice}");
}

#[test]
fn state_is_opened_again_with_the_functions_and_refused_without_them() {
    for checkpoint in ["", "; CHECKPOINT"] {
        let directory = tempfile::tempdir().unwrap();
        let state = || format!("file:{}", directory.path().display());
        let engine = builder(2).state(state()).open().unwrap();
        engine
            .execute(&format!(
                "{TABLE};
                 CREATE VIEW slugs AS SELECT id, slug(name) AS s FROM t;
                 CREATE MATERIALIZED VIEW v AS SELECT s, longest(s) AS l, COUNT(*) AS c FROM slugs GROUP BY s;
                 INSERT INTO t VALUES (1, 'k', 'A b', 1), (2, 'k', 'a B', 2), (3, 'k', NULL, 3){checkpoint}"
            ))
            .unwrap();
        drop(engine);
        for builder in [Engine::builder(), Engine::builder().function(slug())] {
            let message = builder.state(state()).open().map(drop).unwrap_err().to_string();
            let named = match message.contains("slug()") {
                true => message.contains("the view \"slugs\" calls slug()"),
                false => message.contains("the view \"v\" calls longest()"),
            };
            assert!(named && message.contains("not registered"), "{message}");
        }
        let engine = builder(3).state(state()).open().unwrap();
        assert_eq!(query(&engine, "SELECT * FROM v"), ["NULL NULL 1", "a-b a-b 2"]);
        engine
            .execute("DELETE FROM t WHERE id = 1; INSERT INTO t VALUES (4, 'k', 'C', 1)")
            .unwrap();
        assert_eq!(settled(&engine, "SELECT * FROM v"), ["NULL NULL 1", "a-b a-b 1", "c c 1"]);
    }
}

/// Text that looks like a call and is none, or none that a program registers, is not missed when a directory is opened again.
#[test]
fn views_without_functions_of_the_program_are_opened_again() {
    let directory = tempfile::tempdir().unwrap();
    let open = || {
        let state = format!("file:{}", directory.path().display());
        Engine::builder().workers(1).state(state).open()
    };
    open()
        .unwrap()
        .execute(
            "CREATE TABLE e (k VARCHAR, ts TIMESTAMP, n BIGINT, l BIGINT[]);
             CREATE VIEW a AS SELECT window_start, COUNT(*) AS c
                 FROM TUMBLE(TABLE e, DESCRIPTOR(ts), INTERVAL '1' HOUR) GROUP BY window_start;
             CREATE VIEW b AS SELECT x.n, y.n AS m FROM e x LEFT ASOF JOIN e y MATCH_CONDITION (x.ts >= y.ts) ON x.k = y.k;
             CREATE VIEW c AS SELECT k, u FROM e, UNNEST(l) AS t (u);
             CREATE VIEW d AS SELECT k, GROUPING(k) AS g, SUM(n) AS s FROM e GROUP BY ROLLUP (k);
             CREATE VIEW f AS SELECT TRIM(k) AS t, EXTRACT(HOUR FROM ts) AS h, SUBSTRING(k FROM 2) AS s, k LIKE 'a%' AS i,
                 list_transform(l, x -> x + 1) AS m, struct_pack(a := n) AS p, POSITION('a' IN k) AS q, nvl2(k, 1, 2) AS v FROM e;
             CREATE VIEW h AS SELECT TUMBLE_START(ts, INTERVAL '1' HOUR) AS s, COUNT(*) AS c
                 FROM e GROUP BY TUMBLE(ts, INTERVAL '1' HOUR);
             CREATE VIEW o AS SELECT * FROM e ORDER BY n FETCH FIRST 2 ROWS WITH TIES;
             CREATE VIEW r AS SELECT n FROM e WHERE ts > NOW() - INTERVAL '1' HOUR AND regexp_like(k, 'x')",
        )
        .unwrap();
    open().unwrap();
}

#[test]
fn a_function_of_other_types_has_its_views_computed_again() {
    let length = |result: DataType| {
        let of = result.clone();
        of_text("weight", Volatility::Immutable, result, move |texts| {
            let lengths: Int64Array =
                texts.iter().map(|text| text.map(|text| text.len() as i64)).collect();
            Ok(alluvium::arrow::compute::cast(&lengths, &of)?)
        })
    };
    let directory = tempfile::tempdir().unwrap();
    let open = |result: DataType| {
        let state = format!("file:{}", directory.path().display());
        Engine::builder().workers(2).function(length(result)).state(state).open().unwrap()
    };
    let engine = open(DataType::Int64);
    engine
        .execute(&format!(
            "{TABLE};
             CREATE MATERIALIZED VIEW v AS SELECT weight(name) AS w, COUNT(*) AS c FROM t GROUP BY 1;
             INSERT INTO t VALUES (1, 'k', 'abc', 1), (2, 'k', 'xyz', 2); CHECKPOINT"
        ))
        .unwrap();
    drop(engine);
    let engine = open(DataType::Utf8);
    engine.execute("INSERT INTO t VALUES (3, 'k', 'abcd', 1)").unwrap();
    assert_eq!(settled(&engine, "SELECT w || '!', c FROM v"), ["3! 2", "4! 1"]);
}

#[test]
fn texts_of_a_megabyte_pass_through_them() {
    let engine = engine(
        2,
        &format!(
            "{TABLE};
             CREATE MATERIALIZED VIEW v AS SELECT k, longest(slug(name)) AS l, COUNT(*) AS c FROM t GROUP BY k"
        ),
    );
    let insert = |id: i64, letter: char, length: usize| {
        let text = letter.to_string().repeat(length);
        engine.execute(&format!("INSERT INTO t VALUES ({id}, 'k', '{text}', 1)")).unwrap();
    };
    (0..6).for_each(|id| insert(id, (b'A' + id as u8) as char, 1 << 20));
    insert(9, 'Z', (1 << 20) + 1);
    let shown = "SELECT length(l), left(l, 1), c FROM v";
    assert_eq!(settled(&engine, shown), ["1048577 z 7"]);
    engine.execute("DELETE FROM t WHERE id = 9").unwrap();
    assert_eq!(settled(&engine, shown), ["1048576 a 6"]);
}
