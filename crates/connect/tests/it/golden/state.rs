//! The contents of a golden state directory: some of everything that is recorded.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use alluvium::{Engine, OutputMode, Result};
use arrow::array::RecordBatch;
use arrow::util::display::{ArrayFormatter, FormatOptions};

/// How long rows may take to arrive, on a machine that is busy with other tests.
const PATIENCE: Duration = Duration::from_secs(600);

/// Where relative paths count from: the working directory, whichever it is.
const BASE: &str = "/proc/self/cwd";

const TABLES: &str = "
    CREATE SCHEMA shop;
    CREATE FUNCTION cents(price DECIMAL(10, 2)) RETURNS BIGINT AS CAST(price * 100 AS BIGINT);
    CREATE TABLE account (id BIGINT PRIMARY KEY, owner VARCHAR, money DECIMAL(10, 2), opened DATE);
    CREATE TABLE note (n INT, words VARCHAR[], about STRUCT<a DOUBLE, b BOOLEAN>);
    CREATE TABLE reading (at TIMESTAMP LATENESS INTERVAL '10' SECOND, sensor INT, value DOUBLE)
        WITH ('append_only' = 'true', 'materialized' = 'true');
    CREATE TABLE click (id BIGINT, page VARCHAR) WITH ('append_only' = 'true', 'materialized' = 'false');
    CREATE TABLE step (a INT, b INT);
    CREATE TABLE shop.stock (item VARCHAR PRIMARY KEY, n INT DEFAULT 7);
    CREATE TABLE sale (id BIGINT, item VARCHAR, price DECIMAL(10, 2)) WITH ('materialized' = 'true', 'connector' = 'file',
        'path' = 'sale.csv', 'follow' = 'true', 'linger_ms' = '1');
    CREATE TABLE part FROM 'part.csv';
    CREATE INDEX by_owner ON account (owner);
    CREATE LOCAL VIEW rich AS SELECT id, owner, money FROM account WHERE money > 50";

/// Materialized views, whose queries answer the same when they are asked without the views.
const VIEWS: [(&str, &str); 11] = [
    ("total", "SELECT owner, COUNT(*) AS n, SUM(cents(money)) AS cents FROM account GROUP BY owner"),
    ("rich_owner", "SELECT owner, MAX(money) AS most FROM rich GROUP BY owner"),
    (
        "shop.sold",
        "SELECT sale.item, stock.n, COUNT(sale.id) AS times, SUM(sale.price) AS price
         FROM sale LEFT JOIN shop.stock AS stock ON sale.item = stock.item GROUP BY sale.item, stock.n",
    ),
    (
        "unsold",
        "SELECT item FROM shop.stock AS s WHERE NOT EXISTS (SELECT 1 FROM sale WHERE sale.item = s.item)",
    ),
    (
        "dearest",
        "SELECT item, id, price FROM (SELECT item, id, price, ROW_NUMBER() OVER (PARTITION BY item ORDER BY price DESC, id) AS r
         FROM sale) WHERE r <= 2",
    ),
    ("distinct_pages", "SELECT COUNT(DISTINCT item) AS items FROM sale"),
    (
        "so_far",
        "SELECT sensor, at, SUM(value) OVER (PARTITION BY sensor ORDER BY at) AS sum FROM reading",
    ),
    (
        "slot",
        "SELECT window_start, sensor, COUNT(*) AS n, MIN(value) AS least
         FROM TABLE(TUMBLE(TABLE reading, DESCRIPTOR(at), INTERVAL 10 SECOND)) GROUP BY window_start, sensor",
    ),
    (
        "reach",
        "WITH RECURSIVE way(a, b) AS (SELECT a, b FROM step UNION SELECT way.a, step.b FROM way JOIN step ON way.b = step.a)
         SELECT a, b FROM way",
    ),
    ("word", "SELECT w AS word, COUNT(*) AS n FROM note, UNNEST(note.words) AS u(w) GROUP BY w"),
    ("recent", "SELECT id FROM account WHERE opened > CAST(NOW() AS DATE) - INTERVAL '30' DAY"),
];

/// Views that have more than an answer.
const OTHERS: &str = "
    CREATE MATERIALIZED VIEW clicks AS SELECT page, COUNT(*) AS n FROM click GROUP BY page;
    CREATE VIEW plain AS SELECT owner, COUNT(*) AS n FROM account GROUP BY owner;
    CREATE MATERIALIZED VIEW of_plain AS SELECT MAX(n) AS most FROM plain;
    CREATE MATERIALIZED VIEW failing AS SELECT id, 100 / (id - 3) AS q FROM account;
    CREATE MATERIALIZED VIEW closed WITH ('emit_final' = 'at') AS
        SELECT DATE_TRUNC('second', at) AS at, COUNT(*) AS n FROM reading GROUP BY DATE_TRUNC('second', at);
    DECLARE RECURSIVE VIEW even (place INT);
    DECLARE RECURSIVE VIEW odd (place INT);
    CREATE VIEW odd AS SELECT DISTINCT step.b AS place FROM even JOIN step ON even.place = step.a;
    CREATE MATERIALIZED VIEW even AS SELECT DISTINCT place FROM
        (SELECT 1 AS place UNION ALL SELECT step.b FROM odd JOIN step ON odd.place = step.a);
    LATENESS newest.n 5;
    CREATE MATERIALIZED VIEW newest AS SELECT n, COUNT(*) AS c FROM note GROUP BY n;
    CREATE INDEX by_page ON clicks (n);
    CREATE VIEW dear WITH ('connectors' = '[
        {\"transport\": {\"name\": \"file_output\", \"config\": {\"path\": \"dear.csv\", \"mode\": \"changes\"}}}]')
        AS SELECT id, item FROM sale WHERE price > 5";

/// Roles, as the first checkpoint has them.
const ROLES: &str = "
    CREATE ROLE root SUPERUSER LOGIN PASSWORD 'SCRAM-SHA-256$4096:0aez83I/ieY32PZ/abYJkA==$PXonUyAdLeWyT1Fwc8ooDQzPzmmAHGx1NinO8gIXXgY=:ac1bqeYmYSW/+7o6v4IIx9GXHRhGDf7feKeNmZFg/Bk=';
    CREATE ROLE readers; CREATE ROLE ada LOGIN CONNECTION LIMIT 7 VALID UNTIL '2040-01-01' IN ROLE readers; CREATE ROLE gone;
    GRANT SELECT ON total, account TO readers; GRANT INSERT, UPDATE, DELETE ON account TO ada; GRANT USAGE ON SCHEMA shop TO ada;
    ALTER TABLE step OWNER TO ada";

/// Statements about roles after the last checkpoint.
const ROLES_BEHIND: &str = "
    CREATE ROLE \"Bob's\" LOGIN CREATEROLE; GRANT ada TO \"Bob's\"; REVOKE DELETE ON account FROM ada;
    DROP ROLE gone; GRANT SELECT ON shop.sold TO PUBLIC";

/// Questions about roles.
const OF_ROLES: [&str; 2] = [
    "SELECT name, superuser, create_role, login, connection_limit, valid_until, has_password, member_of FROM alluvium.roles",
    "SELECT kind, name, role, privilege FROM alluvium.grants",
];

/// Further questions.
const QUESTIONS: [&str; 13] = [
    "SELECT * FROM account",
    "SELECT * FROM note",
    "SELECT * FROM reading",
    "SELECT * FROM step",
    "SELECT * FROM shop.stock",
    "SELECT * FROM sale",
    "SELECT * FROM part",
    "SELECT * FROM made",
    "SELECT id FROM account WHERE owner = 'ada'",
    "SELECT view, expression, row, message FROM alluvium.errors",
    "SELECT name, late_rows, waterline FROM alluvium.tables",
    "SELECT * FROM renamed",
    "SELECT * FROM plain",
];

/// Materialized views of [`OTHERS`].
const ASKED: [&str; 6] = ["clicks", "of_plain", "failing", "closed", "even", "newest"];

pub fn open(workers: usize) -> Result<Engine> {
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
    alluvium_connect::formats(Engine::builder().workers(workers))
        .clock(move || now)
        .checkpoints(Duration::MAX, u64::MAX)
        .state("file:state")
        .open()
}

fn execute(engine: &Engine, sql: &str) {
    let mut session = engine.session();
    session.set_base(BASE);
    session.execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

fn append(path: &str, text: &str) {
    let mut file = OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

/// Waits until so many sales are there.
pub fn wait_for_sales(engine: &Engine, rows: usize) {
    engine.start().unwrap();
    let start = Instant::now();
    loop {
        let found = lines(&engine.query("SELECT id FROM sale").unwrap()).len();
        match found == rows {
            true => return,
            false => assert!(found < rows && start.elapsed() < PATIENCE, "{found} of {rows} rows"),
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Makes a directory, and returns its answers.
pub fn make() -> Answers {
    append("sale.csv", "id,item,price\n1,nut,1.50\n2,bolt,7.25\nx,nut,1\n");
    append("part.csv", "name,weight\nwheel,7\naxle,11\n");
    append("stock.csv", "item,n\nnut,100\ncam,many\n");
    let engine = open(1).unwrap();
    execute(&engine, TABLES);
    for (name, query) in VIEWS {
        execute(&engine, &format!("CREATE MATERIALIZED VIEW {name} AS {query}"));
    }
    execute(&engine, OTHERS);
    let written = "/proc/self/cwd/total.jsonl";
    engine.output("total", written, None, &[], OutputMode::Changes).unwrap();
    wait_for_sales(&engine, 2);
    execute(
        &engine,
        "INSERT INTO account VALUES (1, 'ada', 100.50, '2023-11-01'), (2, 'bob', 20, '2022-01-01'), (3, NULL, -7.25, NULL);
         INSERT INTO note VALUES (1, ['a', 'b'], {a: 1.5, b: true}), (1, ['a', 'b'], {a: 1.5, b: true}), (9, [], NULL), (20, NULL, NULL);
         INSERT INTO reading VALUES ('2023-01-01 00:00:01', 1, 0.1), ('2023-01-01 00:00:02.5', 2, -3), ('2023-01-01 00:00:31', 1, 0.2);
         INSERT INTO click VALUES (1, 'home'), (2, 'home'), (3, 'help');
         INSERT INTO step VALUES (1, 2), (2, 3), (3, 1), (4, 5);
         CREATE TABLE gone (n INT); INSERT INTO gone VALUES (1);
         CREATE TABLE before_it_was_renamed (n INT PRIMARY KEY, m INT); INSERT INTO before_it_was_renamed VALUES (1, 2);
         COPY shop.stock FROM 'stock.csv'",
    );
    let mut session = engine.session();
    session.set_key("the first key");
    session.execute("INSERT INTO shop.stock (item) VALUES ('bolt')").unwrap();
    execute(&engine, ROLES);
    execute(&engine, "CHECKPOINT");
    append("sale.csv", "3,nut,2.00\n4,cog,9\n");
    wait_for_sales(&engine, 4);
    execute(
        &engine,
        "UPDATE account SET money = money + 1 WHERE id = 1; DELETE FROM step WHERE a = 3;
         INSERT INTO note VALUES (14, ['late'], NULL), (16, ['c'], NULL);
         INSERT INTO reading VALUES ('2023-01-01 00:00:05', 1, 5), ('2023-01-01 00:00:25', 2, 1)",
    );
    execute(&engine, "CHECKPOINT");
    // After the last checkpoint.
    append("sale.csv", "5,nut,8.00\ny,,\n6,bolt,\n7,\"a \"\"b\"\"\nc\",0.01\n");
    wait_for_sales(&engine, 7);
    execute(
        &engine,
        "CREATE TABLE made AS SELECT id, owner FROM account WHERE money > 0; DROP TABLE gone;
         ALTER TABLE before_it_was_renamed RENAME TO renamed; ALTER TABLE renamed ADD COLUMN s VARCHAR DEFAULT 'new';
         DELETE FROM note WHERE n = 9; INSERT INTO click VALUES (4, 'help'), (5, 'end');
         INSERT INTO account VALUES (4, 'ada', 60, '2023-11-10') ON CONFLICT (id) DO UPDATE SET money = 0;
         INSERT INTO reading VALUES ('2023-01-01 00:00:45', 1, 1.25), ('2023-01-01 00:00:20', 2, 1);
         INSERT INTO step VALUES (5, 1)",
    );
    let mut session = engine.session();
    session.set_key("the last key");
    session.execute("INSERT INTO shop.stock VALUES ('cog', NULL)").unwrap();
    let mut failed = engine.session();
    failed.execute("BEGIN; INSERT INTO account VALUES (77, 'nobody', 0, NULL); ROLLBACK").unwrap();
    drop((session, failed));
    execute(&engine, ROLES_BEHIND);
    check_views(&engine);
    answers(engine)
}

/// Writes to every table.
pub fn write_more(engine: &Engine) {
    append("sale.csv", "8,cog,12.50\n");
    wait_for_sales(engine, 8);
    execute(
        engine,
        "INSERT INTO account VALUES (5, 'eve', 55, '2023-11-12'); UPDATE account SET owner = 'bob' WHERE id = 3;
         DELETE FROM account WHERE id = 2; INSERT OR REPLACE INTO account VALUES (1, 'again', 0, NULL);
         INSERT INTO note VALUES (21, ['a', 'z'], {a: 0, b: NULL}); DELETE FROM note WHERE n = 20;
         INSERT INTO reading VALUES ('2023-01-01 00:00:50', 3, 1), ('2023-01-01 00:00:03', 3, 1);
         INSERT INTO click VALUES (6, 'end'); INSERT INTO step VALUES (3, 4); DELETE FROM step WHERE a = 1;
         INSERT INTO shop.stock VALUES ('rod', 1); INSERT INTO part VALUES ('hub', 2);
         INSERT INTO made VALUES (9, 'x'); INSERT INTO renamed (n, m) VALUES (2, 3)",
    );
}

/// Compares views with their queries.
pub fn check_views(engine: &Engine) {
    for (name, query) in VIEWS {
        let ask = |sql: &str| lines(&engine.query(sql).unwrap());
        assert_eq!(ask(&format!("SELECT * FROM {name}")), ask(query), "{name}");
    }
}

/// The answers of an engine, and the contents of its outputs once it has ended.
pub fn answers(engine: Engine) -> Answers {
    let views = VIEWS.map(|(name, _)| name).into_iter().chain(ASKED);
    let of_views = views.map(|name| format!("SELECT * FROM {name}"));
    let questions = of_views.chain(QUESTIONS.map(str::to_owned));
    let mut all: Vec<_> = questions
        .map(|sql| (lines(&engine.query(&sql).unwrap()), sql))
        .map(|(a, q)| (q, a))
        .collect();
    for key in ["the first key", "the last key", "another key"] {
        all.push((key.to_owned(), vec![format!("{:?}", engine.committed(key).unwrap())]));
    }
    let relations = engine.relations().unwrap().into_iter();
    let relations =
        relations.map(|it| format!("{} {:?} {}", it.name, it.kind, it.schema.fields().len()));
    all.push(("relations".to_owned(), relations.collect()));
    let functions = engine.functions().into_iter().map(|it| it.name);
    all.push(("functions".to_owned(), functions.collect()));
    all.push(("schemas".to_owned(), engine.schemas()));
    drop(engine);
    for file in ["dear.csv", "total.jsonl"] {
        let text = fs::read_to_string(file).unwrap();
        let mut written: Vec<String> = text.lines().map(str::to_owned).collect();
        written.sort();
        all.push((file.to_owned(), written));
    }
    Answers(all)
}

/// The roles of an engine with [`ROLES`], and what some of them may do.
pub fn roles(engine: &Engine) -> Answers {
    let mut all: Vec<_> =
        OF_ROLES.map(|sql| (sql.to_owned(), lines(&engine.query(sql).unwrap()))).into();
    for role in ["root", "ada", "Bob's", "readers", "gone"] {
        let tried = [
            "SELECT * FROM total",
            "SELECT * FROM shop.sold",
            "SELECT * FROM shop.stock",
            "SELECT * FROM step",
            "UPDATE account SET owner = owner WHERE false",
            "DELETE FROM account WHERE false",
        ];
        let may = |sql: &&str| {
            let mut session = engine.session();
            let result = session.set_role(role).and_then(|()| session.execute(sql));
            let result = result.map_or_else(|error| error.to_string(), |_| "may".to_owned());
            format!("{sql}: {result}")
        };
        all.push((role.to_owned(), tried.iter().map(may).collect()));
    }
    Answers(all)
}

/// Rows as sorted lines.
fn lines(batches: &[RecordBatch]) -> Vec<String> {
    let mut lines: Vec<String> = batches.iter().flat_map(batch_lines).collect();
    lines.sort();
    lines
}

fn batch_lines(batch: &RecordBatch) -> Vec<String> {
    let options = FormatOptions::default().with_null("NULL");
    let columns: Vec<_> = batch
        .columns()
        .iter()
        .map(|column| ArrayFormatter::try_new(column.as_ref(), &options).unwrap())
        .collect();
    let line = |row| {
        let cells = columns.iter().map(|column| column.value(row).to_string());
        cells.collect::<Vec<_>>().join(" | ").replace('\n', "\\n")
    };
    (0..batch.num_rows()).map(line).collect()
}

/// Questions with their answers.
#[derive(Debug, PartialEq, Eq)]
pub struct Answers(Vec<(String, Vec<String>)>);

impl Answers {
    pub fn names(&self) -> Vec<&str> {
        self.0.iter().map(|(question, _)| &**question).collect()
    }

    /// Reads a file: a question on a line, its answer indented below.
    pub fn read(path: &Path) -> Self {
        let mut all: Vec<(String, Vec<String>)> = Vec::new();
        for line in fs::read_to_string(path).unwrap().lines() {
            match line.strip_prefix("  ") {
                None => all.push((line.to_owned(), Vec::new())),
                Some(row) => all.last_mut().unwrap().1.push(row.to_owned()),
            }
        }
        Self(all)
    }

    pub fn write(&self, path: &Path) {
        let mut text = String::new();
        for (question, answer) in &self.0 {
            text.push_str(&format!("{question}\n"));
            answer.iter().for_each(|row| text.push_str(&format!("  {row}\n")));
        }
        fs::write(path, text).unwrap();
    }
}
