//! The changes of transactions, and their effect on the tables.

use super::model::{Keyed, Open, Rows, TAKEN_KEYS_FAIL, add};

/// The handling of a row whose key is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is as `TAKEN_KEYS_FAIL` says.
    Plain,
    /// ON CONFLICT DO NOTHING.
    Nothing,
    /// ON CONFLICT DO UPDATE: the values are added.
    Adds,
    /// The same, where the value is below the new one.
    AddsIfLess,
}

/// A statement that writes. Ranges include both ends.
#[derive(Clone, Debug)]
pub enum Write {
    /// Adds to the value of a key.
    Add { table: Keyed, k: i64, by: i64 },
    /// Adds to the values between two keys.
    AddRange { table: Keyed, low: i64, high: i64, by: i64 },
    /// Adds to the values of a group.
    AddGroup { g: i64, by: i64 },
    /// Subtracts from values above this.
    Lower { table: Keyed, than: i64, by: i64 },
    /// Sets the value of a key to what the last two reads of the transaction say, and some more.
    Derive { table: Keyed, k: i64, by: i64 },
    /// Sets the group of the rows between two keys.
    Regroup { low: i64, high: i64, g: i64 },
    /// Sets a value in `b` to the sum of a range of `a`.
    SumOfRange { k: i64, low: i64, high: i64 },
    /// Sets a value in `b` to the number of rows that a materialized view says a group has.
    CountOfGroup { k: i64, g: i64 },
    /// Inserts rows: `k`, `g` and `x`.
    Insert { table: Keyed, rows: Vec<(i64, i64, i64)>, taken: Taken },
    /// Inserts rows of `a` between two keys into `b`.
    Copy { low: i64, high: i64, taken: Taken },
    /// Inserts the sums of items by key into `b`, and adds where there are values.
    CopyItems,
    /// Deletes the row of a key.
    Remove { table: Keyed, k: i64 },
    /// Deletes the rows between two keys.
    RemoveRange { table: Keyed, low: i64, high: i64 },
    /// Deletes the row of `a` with the least key of `b` whose value is above this.
    RemoveLeast { than: i64 },
    /// Deletes the rows of `b` whose keys `a` does not have.
    RemoveMissing,
    /// Gives a row another key.
    Move { table: Keyed, from: i64, to: i64 },
    /// Adds to the keys of `a` in a range.
    Shift { low: i64, high: i64, by: i64 },
    /// Divides by the distance from a key, for the rows between two keys.
    Divide { table: Keyed, low: i64, high: i64, from: i64 },
    /// Inserts an item.
    AddItem { k: i64, x: i64 },
    /// Inserts the rows of a group of `a` as items.
    AddItems { g: i64 },
    /// Inserts the rows of `a` between two keys as items, and those of `b` with what is divided by the distance from a key.
    AddDivided { low: i64, high: i64, from: i64 },
    /// Inserts an item with the number of items of its key.
    CountItems { k: i64 },
    /// Deletes an item, which a program does without SQL.
    RemoveItem { k: i64, x: i64 },
    /// Deletes the items of a key.
    ClearItems { k: i64 },
    /// Deletes the items of keys whose values in `a` are above this.
    RemoveItems { than: i64 },
    /// Adds to the items of a key.
    AddToItems { k: i64, by: i64 },
    /// Inserts an event.
    AddEvent { at: i64, x: i64 },
    /// Adds to the values of events from a time on.
    AddToEvents { from: i64, by: i64 },
    /// Adds to the times of events from a time on.
    MoveEvents { from: i64, by: i64 },
    /// Deletes events from a time on.
    RemoveEvents { from: i64 },
}

/// The statement must fail.
#[derive(Debug)]
pub struct Refused;

/// The changed rows, as RETURNING shows them: the key, or the time, and the value.
pub type Changed = Vec<(i64, i64)>;

impl Write {
    /// Its text; `derived` is what earlier reads of the transaction say.
    pub fn sql(&self, derived: i64) -> String {
        let update = |table: Keyed, set: String, condition: String| {
            format!("UPDATE {} SET {set} WHERE {condition}", table.name())
        };
        let between = |low: &i64, high: &i64| format!("k BETWEEN {low} AND {high}");
        match self {
            Write::Add { table, k, by } => {
                update(*table, format!("x = x + {by}"), format!("k = {k}"))
            }
            Write::AddRange { table, low, high, by } => {
                update(*table, format!("x = x + {by}"), between(low, high))
            }
            Write::AddGroup { g, by } => {
                update(Keyed::A, format!("x = x + {by}"), format!("g = {g}"))
            }
            Write::Lower { table, than, by } => {
                update(*table, format!("x = x - {by}"), format!("x > {than}"))
            }
            Write::Derive { table, k, by } => {
                update(*table, format!("x = {}", derived + by), format!("k = {k}"))
            }
            Write::Regroup { low, high, g } => {
                update(Keyed::A, format!("g = {g}"), between(low, high))
            }
            Write::SumOfRange { k, low, high } => {
                let range = between(low, high);
                let sum = format!("(SELECT COALESCE(SUM(x), 0) % 1000 FROM a WHERE {range})");
                update(Keyed::B, format!("x = {sum}"), format!("k = {k}"))
            }
            Write::CountOfGroup { k, g } => {
                let count = format!("(SELECT COALESCE(SUM(n), 0) FROM sums WHERE g = {g})");
                update(Keyed::B, format!("x = {count}"), format!("k = {k}"))
            }
            Write::Insert { table, rows, taken } => {
                let rows: Vec<_> =
                    rows.iter().map(|(k, g, x)| format!("({k}, {g}, {x})")).collect();
                let (table, rows) = (table.name(), rows.join(", "));
                format!("INSERT INTO {table} (k, g, x) VALUES {rows}{}", taken.sql(table))
            }
            Write::Copy { low, high, taken } => format!(
                "INSERT INTO b (k, g, x) SELECT k, g, x FROM a WHERE {}{}",
                between(low, high),
                taken.sql("b")
            ),
            Write::CopyItems => format!(
                "INSERT INTO b (k, g, x) SELECT k, 0, SUM(x) % 1000 FROM items GROUP BY k{}",
                Taken::Adds.sql("b")
            ),
            Write::Remove { table, k } => format!("DELETE FROM {} WHERE k = {k}", table.name()),
            Write::RemoveRange { table, low, high } => {
                format!("DELETE FROM {} WHERE {}", table.name(), between(low, high))
            }
            Write::RemoveLeast { than } => {
                format!("DELETE FROM a WHERE k = (SELECT MIN(k) FROM b WHERE x > {than})")
            }
            Write::RemoveMissing => {
                "DELETE FROM b WHERE NOT EXISTS (SELECT 1 FROM a WHERE a.k = b.k)".to_owned()
            }
            Write::Move { table, from, to } => {
                update(*table, format!("k = {to}"), format!("k = {from}"))
            }
            Write::Shift { low, high, by } => {
                update(Keyed::A, format!("k = k + {by}"), between(low, high))
            }
            Write::Divide { table, low, high, from } => {
                update(*table, format!("x = x + 12 // (k - {from})"), between(low, high))
            }
            Write::AddItem { k, x } => format!("INSERT INTO items VALUES ({k}, {x})"),
            Write::AddItems { g } => format!("INSERT INTO items SELECT k, x FROM a WHERE g = {g}"),
            Write::AddDivided { low, high, from } => {
                let range = between(low, high);
                format!(
                    "INSERT INTO items SELECT k, x FROM a WHERE {range}
                     UNION ALL SELECT k, 12 // (k - {from}) FROM b WHERE {range}"
                )
            }
            Write::CountItems { k } => {
                format!("INSERT INTO items SELECT {k}, COUNT(*) FROM items WHERE k = {k}")
            }
            Write::RemoveItem { k, x } => format!("one of the items ({k}, {x})"),
            Write::ClearItems { k } => format!("DELETE FROM items WHERE k = {k}"),
            Write::RemoveItems { than } => {
                format!("DELETE FROM items WHERE k IN (SELECT k FROM a WHERE x > {than})")
            }
            Write::AddToItems { k, by } => format!("UPDATE items SET x = x + {by} WHERE k = {k}"),
            Write::AddEvent { at, x } => format!("INSERT INTO events VALUES ({at}, {x})"),
            Write::AddToEvents { from, by } => {
                format!("UPDATE events SET x = x + {by} WHERE at >= {from}")
            }
            Write::MoveEvents { from, by } => {
                format!("UPDATE events SET at = at + {by} WHERE at >= {from}")
            }
            Write::RemoveEvents { from } => format!("DELETE FROM events WHERE at >= {from}"),
        }
    }

    /// The columns that RETURNING shows.
    pub fn returning(&self) -> &'static str {
        match self {
            Write::AddEvent { .. }
            | Write::AddToEvents { .. }
            | Write::MoveEvents { .. }
            | Write::RemoveEvents { .. } => " RETURNING at, x",
            _ => " RETURNING k, x",
        }
    }

    /// Makes the change. If it must fail nothing is changed.
    pub fn apply(&self, open: &mut Open, derived: i64) -> Result<Changed, Refused> {
        match self {
            Write::Add { table, k, by } => {
                update(open, *table, |key, _| key == *k, |(k, g, x)| Ok((k, g, x + by)))
            }
            Write::AddRange { table, low, high, by } => {
                update(open, *table, |k, _| is_in(k, *low, *high), |(k, g, x)| Ok((k, g, x + by)))
            }
            Write::AddGroup { g: of, by } => {
                update(open, Keyed::A, |_, (g, _)| g == *of, |(k, g, x)| Ok((k, g, x + by)))
            }
            Write::Lower { table, than, by } => {
                update(open, *table, |_, (_, x)| x > *than, |(k, g, x)| Ok((k, g, x - by)))
            }
            Write::Derive { table, k, by } => {
                update(open, *table, |key, _| key == *k, |(k, g, _)| Ok((k, g, derived + by)))
            }
            Write::Regroup { low, high, g } => {
                update(open, Keyed::A, |k, _| is_in(k, *low, *high), |(k, _, x)| Ok((k, *g, x)))
            }
            Write::SumOfRange { k, low, high } => {
                let range = open.now.keyed(Keyed::A).range(*low..=*high);
                let sum: i64 = range.map(|(_, (_, x))| x).sum();
                update(open, Keyed::B, |key, _| key == *k, |(k, g, _)| Ok((k, g, sum % 1000)))
            }
            Write::CountOfGroup { k, g } => {
                let count = open.before.sums().get(g).map_or(0, |(n, _)| *n);
                update(open, Keyed::B, |key, _| key == *k, |(k, g, _)| Ok((k, g, count)))
            }
            Write::Insert { table, rows, taken } => {
                insert(open.now.keyed_mut(*table), *table, rows.iter().copied(), *taken)
            }
            Write::Copy { low, high, taken } => {
                let range = open.now.keyed(Keyed::A).range(*low..=*high);
                let rows: Vec<_> = range.map(|(k, (g, x))| (*k, *g, *x)).collect();
                insert(open.now.keyed_mut(Keyed::B), Keyed::B, rows.into_iter(), *taken)
            }
            Write::CopyItems => {
                let sums = open.now.items_by_key();
                let rows = sums.into_iter().map(|(k, (_, s))| (k, 0, s % 1000));
                insert(open.now.keyed_mut(Keyed::B), Keyed::B, rows, Taken::Adds)
            }
            Write::Remove { table, k } => {
                Ok(remove(open.now.keyed_mut(*table), |key, _| key == *k))
            }
            Write::RemoveRange { table, low, high } => {
                Ok(remove(open.now.keyed_mut(*table), |k, _| is_in(k, *low, *high)))
            }
            Write::RemoveLeast { than } => {
                let mut above = open.now.keyed(Keyed::B).iter().filter(|(_, (_, x))| x > than);
                let least = above.next().map(|(k, _)| *k);
                Ok(remove(open.now.keyed_mut(Keyed::A), |k, _| Some(k) == least))
            }
            Write::RemoveMissing => {
                let keys = open.now.keyed(Keyed::A).clone();
                Ok(remove(open.now.keyed_mut(Keyed::B), |k, _| !keys.contains_key(&k)))
            }
            Write::Move { table, from, to } => {
                update(open, *table, |k, _| k == *from, |(_, g, x)| Ok((*to, g, x)))
            }
            Write::Shift { low, high, by } => {
                update(open, Keyed::A, |k, _| is_in(k, *low, *high), |(k, g, x)| Ok((k + by, g, x)))
            }
            Write::Divide { table, low, high, from } => {
                let divided = |(k, g, x): (i64, i64, i64)| {
                    12_i64.checked_div(k - from).map(|part| (k, g, x + part)).ok_or(Refused)
                };
                update(open, *table, |k, _| is_in(k, *low, *high), divided)
            }
            Write::AddItem { k, x } => {
                open.insert_item((*k, *x));
                Ok(vec![(*k, *x)])
            }
            Write::AddItems { g: of } => {
                let group = open.now.keyed(Keyed::A).iter().filter(|(_, (g, _))| g == of);
                let items: Changed = group.map(|(k, (_, x))| (*k, *x)).collect();
                items.iter().for_each(|item| open.insert_item(*item));
                Ok(items)
            }
            Write::AddDivided { low, high, from } => {
                let range = |table| open.now.keyed(table).range(*low..=*high);
                let mut items: Changed = range(Keyed::A).map(|(k, (_, x))| (*k, *x)).collect();
                for (k, _) in range(Keyed::B) {
                    items.push((*k, 12_i64.checked_div(k - from).ok_or(Refused)?));
                }
                items.iter().for_each(|item| open.insert_item(*item));
                Ok(items)
            }
            Write::CountItems { k } => {
                let count = open.now.items_by_key().get(k).map_or(0, |(n, _)| *n);
                open.insert_item((*k, count));
                Ok(vec![(*k, count)])
            }
            Write::RemoveItem { k, x } => {
                open.delete_item((*k, *x));
                Ok(vec![(*k, *x)])
            }
            Write::ClearItems { k: of } => Ok(change_items(open, |k| k == *of, |_| None)),
            Write::RemoveItems { than } => {
                let rows = open.now.keyed(Keyed::A).clone();
                let is_above = |k: i64| rows.get(&k).is_some_and(|(_, x)| x > than);
                Ok(change_items(open, is_above, |_| None))
            }
            Write::AddToItems { k: of, by } => {
                Ok(change_items(open, |k| k == *of, |(k, x)| Some((k, x + by))))
            }
            Write::AddEvent { at, x } => {
                open.insert_event(*at, *x);
                Ok(vec![(*at, *x)])
            }
            Write::AddToEvents { from, by } => {
                change_events(open, *from, |(at, x)| Some((at, x + by)))
            }
            Write::MoveEvents { from, by } => {
                change_events(open, *from, |(at, x)| Some((at + by, x)))
            }
            Write::RemoveEvents { from } => change_events(open, *from, |_| None),
        }
    }
}

impl Taken {
    fn sql(self, table: &str) -> String {
        let adds = format!(" ON CONFLICT (k) DO UPDATE SET x = {table}.x + excluded.x");
        match self {
            Taken::Plain => String::new(),
            Taken::Nothing => " ON CONFLICT DO NOTHING".to_owned(),
            Taken::Adds => adds,
            Taken::AddsIfLess => format!("{adds} WHERE {table}.x < excluded.x"),
        }
    }
}

fn is_in(k: i64, low: i64, high: i64) -> bool {
    low <= k && k <= high
}

/// Changes the rows for which `is` holds: all of them, or none.
fn update(
    open: &mut Open,
    table: Keyed,
    is: impl Fn(i64, (i64, i64)) -> bool,
    change: impl Fn((i64, i64, i64)) -> Result<(i64, i64, i64), Refused>,
) -> Result<Changed, Refused> {
    let rows = open.now.keyed_mut(table);
    let old = rows.iter().filter(|(k, row)| is(**k, **row)).map(|(k, (g, x))| (*k, *g, *x));
    let old: Vec<_> = old.collect();
    let new: Vec<_> = old.iter().map(|row| change(*row)).collect::<Result<_, _>>()?;
    let mut changed = rows.clone();
    changed.retain(|k, row| !is(*k, *row));
    let inserted = insert(&mut changed, table, new.into_iter(), Taken::Plain)?;
    *rows = changed;
    Ok(inserted)
}

/// Inserts rows: all of them, or none.
fn insert(
    rows: &mut Rows,
    table: Keyed,
    new: impl Iterator<Item = (i64, i64, i64)>,
    taken: Taken,
) -> Result<Changed, Refused> {
    let (mut all, mut changed) = (rows.clone(), Changed::new());
    for (k, g, x) in new {
        let row = match (all.get(&k), taken) {
            (Some(_), Taken::Plain) if TAKEN_KEYS_FAIL => return Err(Refused),
            (None, _) | (_, Taken::Plain) => (g, x),
            (Some((_, old)), Taken::AddsIfLess) if *old >= x => continue,
            (Some(_), Taken::Nothing) => continue,
            (Some((g, old)), Taken::Adds | Taken::AddsIfLess) => (*g, old + x),
        };
        let before = all.insert(k, row);
        if taken == Taken::Nothing && !table.can_be(&all) {
            match before {
                Some(before) => all.insert(k, before),
                None => all.remove(&k),
            };
            continue;
        }
        changed.push((k, row.1));
    }
    if !table.can_be(&all) {
        return Err(Refused);
    }
    *rows = all;
    Ok(changed)
}

fn remove(rows: &mut Rows, is: impl Fn(i64, (i64, i64)) -> bool) -> Changed {
    let mut removed = Changed::new();
    rows.retain(|k, row| {
        let goes = is(*k, *row);
        if goes {
            removed.push((*k, row.1));
        }
        !goes
    });
    removed
}

/// Changes the items of keys for which `is` holds, or deletes them.
fn change_items(
    open: &mut Open,
    is: impl Fn(i64) -> bool,
    change: impl Fn((i64, i64)) -> Option<(i64, i64)>,
) -> Changed {
    let mut changed = Changed::new();
    for (item, copies) in open.now.items.clone() {
        if is(item.0) {
            add(&mut open.now.items, item, -(copies as i64));
            changed.extend(vec![item; copies as usize]);
        }
    }
    change_each(&mut changed, change, |item| open.insert_item(item));
    changed
}

/// Changes the events from a time on, or deletes them. It must fail if one of them is late before or after.
fn change_events(
    open: &mut Open,
    from: i64,
    change: impl Fn((i64, i64)) -> Option<(i64, i64)>,
) -> Result<Changed, Refused> {
    let mut changed = Changed::new();
    for (event, copies) in open.now.events.clone() {
        if event.0 >= from {
            let is_late =
                |(at, _): (i64, i64)| open.fixed_below.is_some_and(|waterline| at < waterline);
            if is_late(event) || change(event).is_some_and(is_late) {
                return Err(Refused);
            }
            changed.extend(vec![event; copies as usize]);
        }
    }
    changed.iter().for_each(|event| add(&mut open.now.events, *event, -1));
    change_each(&mut changed, change, |(at, x)| open.insert_event(at, x));
    Ok(changed)
}

/// Rows that were deleted are inserted as they are now.
fn change_each(
    rows: &mut Changed,
    change: impl Fn((i64, i64)) -> Option<(i64, i64)>,
    mut insert: impl FnMut((i64, i64)),
) {
    for row in rows {
        if let Some(new) = change(*row) {
            *row = new;
            insert(new);
        }
    }
}
