//! Reads and writes by key: how long one takes, through a handle and in SQL.
//!
//! `reads [MILLIONS OF ROWS] [MEMORY IN MIB]`: a table of so many rows of some 100 bytes, by default 1, with a primary key,
//! and a view over it with a row for each ten. An index finds ten rows at a time. With little memory the state is in files.

use std::env;
use std::ops::Bound;
use std::time::{Duration, Instant};

use alluvium::{Engine, Error, Result, Value};

const DEFINITIONS: &str = "
    CREATE TABLE events (id BIGINT PRIMARY KEY, account BIGINT, note VARCHAR);
    CREATE MATERIALIZED VIEW accounts AS
        SELECT COUNT(*) AS events, MAX(id) AS last, account FROM events GROUP BY account";

/// Numbers that visit all rows in no order.
fn scattered(number: u64, rows: u64) -> i64 {
    (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 20).wrapping_rem(rows) as i64
}

/// Does something many times with different keys, a part of them to warm up, and prints how long one takes.
fn measure(
    what: &str,
    times: u64,
    keys: u64,
    mut act: impl FnMut(i64) -> Result<usize>,
) -> Result<()> {
    let mut took = Vec::new();
    for number in 0..times + times / 4 {
        let key = scattered(number, keys);
        let start = Instant::now();
        let rows = act(key)?;
        let elapsed = start.elapsed();
        if rows == 0 {
            return Err(Error::data(format!("{what}: there is nothing for {key}")));
        }
        if number >= times / 4 {
            took.push(elapsed);
        }
    }
    took.sort_unstable();
    let at = |share: f64| -> Duration { took[(took.len() as f64 * share) as usize] };
    let longest = took.last().copied().unwrap_or_default();
    println!("{what}: median {:.1?}, 99 % {:.1?}, longest {longest:.1?}", at(0.5), at(0.99));
    Ok(())
}

fn count(engine: &Engine, sql: &str, parameters: &[Value]) -> Result<usize> {
    let rows = engine.query_with(sql, parameters)?;
    Ok(rows.iter().map(|rows| rows.num_rows()).sum())
}

fn load(engine: &Engine, rows: u64) -> Result<()> {
    engine.execute(DEFINITIONS)?;
    for start in (0..rows).step_by(500_000) {
        let end = (start + 500_000).min(rows);
        engine.execute(&format!(
            "INSERT INTO events SELECT n, n % {}, repeat('x', 60) || n
             FROM (SELECT UNNEST(range({start}, {end})) AS n)",
            rows / 10
        ))?;
    }
    engine.query("SELECT COUNT(*) FROM accounts").map(drop)
}

fn read(engine: &Engine, rows: u64) -> Result<()> {
    let (events, accounts) = (engine.view("events")?, engine.view("accounts")?);
    measure("table, get", 100_000, rows, |id| Ok(events.get(&[id.into()])?.num_rows()))?;
    measure("view, get", 100_000, rows / 10, |account| {
        Ok(accounts.get(&[account.into()])?.num_rows())
    })?;
    measure("table, range of 100", 10_000, rows - 100, |id| {
        let (low, high) = ([id.into()], [(id + 100).into()]);
        let found = events.range(Bound::Included(&low), Bound::Excluded(&high))?;
        found.map(|rows| Ok(rows?.num_rows())).sum()
    })?;
    let sql = "SELECT * FROM events WHERE id = $1";
    measure("table, SQL", 2_000, rows, |id| count(engine, sql, &[id.into()]))?;
    let sql = "SELECT * FROM accounts WHERE account = $1";
    measure("view, SQL", 2_000, rows / 10, |account| count(engine, sql, &[account.into()]))?;
    engine.execute("CREATE INDEX by_account ON events (account)")?;
    let sql = "SELECT * FROM events WHERE account = $1";
    measure("index, SQL, 10 rows", 2_000, rows / 10, |account| {
        count(engine, sql, &[account.into()])
    })?;
    let sql = "SELECT * FROM events WHERE account >= $1 ORDER BY account LIMIT 10";
    measure("index, first 10 from a value", 2_000, rows / 10, |account| {
        count(engine, sql, &[account.into()])
    })?;
    engine.execute("DROP INDEX by_account")?;
    let sql = "SELECT * FROM events WHERE id >= $1 ORDER BY id LIMIT 10";
    measure("table, first 10 from a key", 2_000, rows, |id| count(engine, sql, &[id.into()]))?;
    measure("table, SQL with a literal", 2_000, rows, |id| {
        count(engine, &format!("SELECT * FROM events WHERE id = {id}"), &[])
    })?;
    let sql = "SELECT SUM(account) FROM events";
    measure("table, sum of a column", 8, 1, |_| count(engine, sql, &[]))?;
    let sql = "SELECT * FROM events WHERE note = 'x'";
    measure("table, a scan", 8, 1, |_| Ok(1 + count(engine, sql, &[])?))
}

fn write(engine: &Engine, rows: u64) -> Result<()> {
    let mut session = engine.session();
    let insert = "INSERT INTO events VALUES ($1, $2, 'note')";
    measure("INSERT of a row", 2_000, 1 << 40, |id| {
        let id = id + rows as i64;
        session.execute_with(insert, &[id.into(), (id % 1000).into()]).map(|_| 1)
    })?;
    let update = "UPDATE events SET account = account + 1 WHERE id = $1";
    measure("UPDATE by key", 2_000, rows, |id| {
        session.execute_with(update, &[id.into()]).map(|_| 1)
    })?;
    let delete = "DELETE FROM events WHERE id = $1";
    measure("DELETE by key", 2_000, rows, |id| {
        session.execute_with(delete, &[id.into()]).map(|_| 1)
    })?;
    session.execute("BEGIN")?;
    measure("UPDATE by key, in one transaction", 2_000, rows, |id| {
        session.execute_with(update, &[id.into()]).map(|_| 1)
    })?;
    session.execute("COMMIT").map(drop)
}

const LOADED: &str = "
    CREATE TABLE sales (id BIGINT PRIMARY KEY, shop BIGINT, amount BIGINT);
    CREATE TABLE shops (id BIGINT PRIMARY KEY, name VARCHAR);
    CREATE TABLE visits (shop BIGINT, day BIGINT);
    INSERT INTO shops SELECT n, 'shop ' || n FROM (SELECT UNNEST(range(0, 100000)) AS n);
    CREATE MATERIALIZED VIEW totals AS SELECT shop, SUM(amount) AS total FROM sales GROUP BY shop;
    CREATE MATERIALIZED VIEW least AS SELECT shop, MIN(amount) AS least FROM sales GROUP BY shop;
    CREATE MATERIALIZED VIEW named AS
        SELECT sales.id, name, amount FROM sales JOIN shops ON shops.id = sales.shop;
    CREATE MATERIALIZED VIEW days AS SELECT DISTINCT shop, day FROM visits";

/// How long the first transactions take after a load in one transaction, each until its result can be read.
fn after_load(engine: &Engine, rows: u64) -> Result<()> {
    engine.execute(LOADED)?;
    let mut session = engine.session();
    let start = Instant::now();
    session.execute("BEGIN")?;
    for first in (0..rows).step_by(1_000_000) {
        let end = (first + 1_000_000).min(rows);
        session.execute(&format!(
            "INSERT INTO sales SELECT n, n * 7919 % 100000, n % 1000
             FROM (SELECT UNNEST(range({first}, {end})) AS n);
             INSERT INTO visits SELECT n * 7919 % 100000, n % 30
             FROM (SELECT UNNEST(range({first}, {end})) AS n)"
        ))?;
    }
    session.execute("COMMIT")?;
    let shops = engine.view("totals")?;
    shops.get(&[1_i64.into()])?;
    println!("load of {rows} rows into two tables: {:.1?}", start.elapsed());
    let mut took = Vec::new();
    for number in 0..500_i64 {
        let start = Instant::now();
        session.execute("BEGIN")?;
        let values = [(rows as i64 + number).into(), number.into()];
        session.execute_with("INSERT INTO sales VALUES ($1, $2, 5)", &values)?;
        session.execute_with("INSERT INTO visits VALUES ($1, 31)", &values[1..])?;
        session.execute("COMMIT")?;
        shops.get(&[number.into()])?;
        took.push((start.elapsed(), number));
    }
    let first = took[..4].iter().map(|(took, _)| *took).collect::<Vec<_>>();
    took.sort_unstable();
    println!(
        "transactions after it: {first:.1?}, longest {:.1?}, median {:.1?}",
        &took[took.len() - 4..],
        took[took.len() / 2].0
    );
    Ok(())
}

fn main() -> Result<()> {
    let mut arguments = env::args().skip(1);
    let mut number = || arguments.next().and_then(|number| number.parse::<u64>().ok());
    let (millions, memory) = (number().unwrap_or(1), number());
    let rows = millions * 1_000_000;
    for workers in [1, 2] {
        let open = || {
            let builder = Engine::builder().workers(workers);
            match memory {
                Some(mib) => builder.memory(Some((mib << 20) as usize)).open_in_memory(),
                None => builder.open_in_memory(),
            }
        };
        let engine = open()?;
        load(&engine, rows)?;
        let state = engine.state();
        println!(
            "{rows} rows, {workers} workers: {} MiB in memory, {} MiB in files",
            state.memory_bytes >> 20,
            state.disk_bytes >> 20
        );
        read(&engine, rows)?;
        write(&engine, rows)?;
        drop(engine);
        after_load(&open()?, rows)?;
    }
    Ok(())
}
