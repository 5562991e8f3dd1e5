//! Random programs: tables, views over views, and transactions, judged as the files are.
//!
//! A program is made from its number alone, so one that fails can be run again: `ALLUVIUM_PROGRAMS=7..8`.
//! Expressions are such that none fails and that SQLite means the same.

use alluvium_sql::statement::parse;

use super::trial::Trial;

/// Programs per number of workers.
const PROGRAMS: u64 = 12;

/// Transactions of a program.
const TRANSACTIONS: usize = 25;

#[test]
fn random_programs_hold() {
    let numbers = std::env::var("ALLUVIUM_PROGRAMS").ok();
    let numbers = numbers.and_then(|numbers| {
        let (first, last) = numbers.split_once("..")?;
        Some(first.parse().ok()?..last.parse().ok()?)
    });
    let numbers = numbers.unwrap_or(0..PROGRAMS);
    for (number, workers) in
        numbers.flat_map(|number| (1..=3).map(move |workers| (number, workers)))
    {
        run(number, workers);
    }
}

fn run(number: u64, workers: usize) {
    let mut program = Program::new(number);
    let mut trial = Trial::new(workers, true);
    let mut session = trial.engine().session();
    let mut history = Vec::new();
    for statement in program.statements() {
        history.push(statement.sql.clone());
        let parsed = parse(&statement.sql).next().expect("a statement is there");
        let outcome = parsed.map_err(alluvium::Error::from).and_then(|parsed| {
            session.run(&parsed)?;
            trial.follow(&parsed);
            Ok(())
        });
        if statement.judged {
            trial.judge();
        }
        if statement.watched {
            trial.watch_again();
        }
        let objections = trial.objections();
        assert!(
            outcome.is_ok() && objections.is_empty(),
            "program {number} on {workers} workers: {outcome:?} {objections:#?}\n{};",
            history.join(";\n")
        );
    }
}

/// A statement, and what to do after it.
struct Step {
    sql: String,
    /// Whether every view is judged.
    judged: bool,
    /// Whether a second subscription to every view is opened.
    watched: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Type {
    Integer,
    Text,
    Real,
}

struct Relation {
    name: String,
    columns: Vec<(String, Type)>,
}

struct Program {
    state: u64,
    relations: Vec<Relation>,
}

impl Program {
    fn new(number: u64) -> Self {
        let table = |name: &str, columns: &[(&str, Type)]| Relation {
            name: name.to_owned(),
            columns: columns.iter().map(|(name, kind)| ((*name).to_owned(), *kind)).collect(),
        };
        let relations = vec![
            table("t0", &[("k", Type::Integer), ("a", Type::Integer), ("s", Type::Text)]),
            table("t1", &[("a", Type::Integer), ("s", Type::Text), ("x", Type::Real)]),
            table("t2", &[("i", Type::Integer), ("j", Type::Text), ("b", Type::Integer)]),
        ];
        Self { state: number.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1, relations }
    }

    fn statements(&mut self) -> Vec<Step> {
        let step = |sql: String, judged| Step { sql, judged, watched: false };
        let mut steps = vec![
            step("CREATE TABLE t0 (k INT PRIMARY KEY, a INT, s TEXT)".to_owned(), false),
            step("CREATE TABLE t1 (a INT, s TEXT, x DOUBLE)".to_owned(), false),
            step("CREATE TABLE t2 (i INT, j TEXT, b INT, PRIMARY KEY (i, j))".to_owned(), false),
        ];
        for transaction in 0..TRANSACTIONS {
            if self.below(3) == 0 && self.relations.len() < 12 {
                let view = self.view();
                steps.push(step(view, true));
            }
            // Not judging leaves several epochs in flight.
            let judged = self.below(3) > 0;
            let writes = 1 + self.below(4);
            if writes > 1 {
                steps.push(step("BEGIN".to_owned(), false));
            }
            for _ in 0..writes {
                let write = self.write();
                steps.push(step(write, judged && writes == 1));
            }
            if writes > 1 {
                let end = if self.below(6) == 0 { "ROLLBACK" } else { "COMMIT" };
                steps.push(step(end.to_owned(), judged));
            }
            if transaction == TRANSACTIONS / 2 {
                steps.last_mut().expect("there is a step").watched = true;
            }
        }
        steps.last_mut().expect("there is a step").judged = true;
        steps
    }

    fn write(&mut self) -> String {
        let table = self.below(3);
        match (table, self.below(6)) {
            (0, 0..=2) => format!(
                "INSERT INTO t0 VALUES {}",
                self.rows(&[Type::Integer, Type::Integer, Type::Text], 1)
            ),
            (1, 0..=2) => format!(
                "INSERT INTO t1 VALUES {}",
                self.rows(&[Type::Integer, Type::Text, Type::Real], 0)
            ),
            (_, 0..=2) => format!(
                "INSERT INTO t2 VALUES {}",
                self.rows(&[Type::Integer, Type::Text, Type::Integer], 2)
            ),
            (_, 3) => {
                let condition = self.condition(&format!("t{table}"), table);
                format!("DELETE FROM t{table} WHERE {condition}")
            }
            _ => {
                // Not a key: SQLite changes keys row by row.
                let (column, kind) =
                    [("a", Type::Integer), ("x", Type::Real), ("b", Type::Integer)][table];
                let condition = self.condition(&format!("t{table}"), table);
                let value = match self.below(2) {
                    0 => self.value(kind),
                    _ => format!("{column} + 1"),
                };
                format!("UPDATE t{table} SET {column} = {value} WHERE {condition}")
            }
        }
    }

    /// Rows for VALUES; the first `key` columns are not NULL.
    fn rows(&mut self, types: &[Type], key: usize) -> String {
        let rows = 1 + self.below(5);
        let mut row = || {
            let value = |(place, kind): (usize, &Type)| loop {
                let value = self.value(*kind);
                if place >= key || value != "NULL" {
                    return value;
                }
            };
            let values: Vec<_> = types.iter().enumerate().map(value).collect();
            format!("({})", values.join(", "))
        };
        (0..rows).map(|_| row()).collect::<Vec<_>>().join(", ")
    }

    fn value(&mut self, kind: Type) -> String {
        if self.below(6) == 0 {
            return "NULL".to_owned();
        }
        match kind {
            Type::Integer => (self.below(7) as i64 - 2).to_string(),
            Type::Text => ["''", "'a'", "'b'", "'B'", "'abcdefghij'", "'abcdefghik'"]
                [self.below(6)]
            .to_owned(),
            Type::Real => ["0.0", "0.5", "-1.25", "2.0", "1e10"][self.below(5)].to_owned(),
        }
    }

    /// A new view over what there is already.
    fn view(&mut self) -> String {
        let name = format!("v{}", self.relations.len());
        let (query, types) = self.query();
        let columns: Vec<_> =
            types.iter().enumerate().map(|(place, kind)| (format!("c{place}"), *kind)).collect();
        let kind = ["MATERIALIZED ", "MATERIALIZED ", "", "LOCAL "][self.below(4)];
        self.relations.push(Relation { name: name.clone(), columns });
        format!("CREATE {kind}VIEW {name} AS {query}")
    }

    fn query(&mut self) -> (String, Vec<Type>) {
        match self.below(8) {
            0 => {
                let kind = [Type::Integer, Type::Text][self.below(2)];
                let (a, b) = (self.one_column(kind), self.one_column(kind));
                let operation =
                    ["UNION", "UNION ALL", "INTERSECT", "EXCEPT", "EXCEPT"][self.below(5)];
                (format!("{a} {operation} {b}"), vec![kind])
            }
            1 => {
                let relation = self.below(self.relations.len());
                let (select, types) = self.projection(&[("r", relation)]);
                (
                    format!("SELECT DISTINCT {select} FROM {} AS r", self.relations[relation].name),
                    types,
                )
            }
            2 | 3 => {
                let relation = self.below(self.relations.len());
                let condition = match self.below(3) {
                    0 => self.condition("r", relation),
                    _ => self.subquery(relation),
                };
                let (select, types) = self.projection(&[("r", relation)]);
                (
                    format!(
                        "SELECT {select} FROM {} AS r WHERE {condition}",
                        self.relations[relation].name
                    ),
                    types,
                )
            }
            4 | 5 => self.join(),
            _ => self.aggregate(),
        }
    }

    fn one_column(&mut self, kind: Type) -> String {
        let relation = self.below(self.relations.len());
        let condition = self.condition("r", relation);
        let column = self.column("r", relation, kind);
        format!(
            "SELECT {column} AS c0 FROM {} AS r WHERE {condition}",
            self.relations[relation].name
        )
    }

    /// A condition on `r` that asks for the rows of another relation.
    fn subquery(&mut self, relation: usize) -> String {
        let other = self.below(self.relations.len());
        let from = format!("{} AS q", self.relations[other].name);
        let kind = [Type::Integer, Type::Text][self.below(2)];
        let (own, its) = (self.column("r", relation, kind), self.column("q", other, kind));
        let not = ["", "NOT "][self.below(2)];
        let number = self.column("r", relation, Type::Integer);
        let less = format!("{number} <= {}", self.column("q", other, Type::Integer));
        match self.below(6) {
            0 => format!("{own} {not}IN (SELECT {its} FROM {from})"),
            1 => format!("{not}EXISTS (SELECT 1 FROM {from} WHERE {its} = {own})"),
            2 => format!("{not}EXISTS (SELECT 1 FROM {from} WHERE {its} = {own} AND {less})"),
            3 => format!("{number} IS NULL OR {own} IN (SELECT {its} FROM {from} WHERE {less})"),
            4 => format!("{own} {not}IN (SELECT {its} FROM {from} WHERE {its} IS NOT NULL)"),
            _ => format!("(SELECT COUNT(*) FROM {from} WHERE {its} = {own}) < 2"),
        }
    }

    fn join(&mut self) -> (String, Vec<Type>) {
        let names = ["l", "r", "z"];
        let sides: Vec<(&str, usize)> = names[..2 + self.below(2)]
            .iter()
            .map(|name| (*name, self.below(self.relations.len())))
            .collect();
        let (select, types) = self.projection(&sides);
        let mut from = format!("{} AS l", self.relations[sides[0].1].name);
        for place in 1..sides.len() {
            let (name, relation) = sides[place];
            let (other, other_relation) = sides[self.below(place)];
            let kind = [Type::Integer, Type::Text][self.below(2)];
            let left = self.column(other, other_relation, kind);
            let right = self.column(name, relation, kind);
            let equal = ["=", "=", "=", "IS NOT DISTINCT FROM"][self.below(4)];
            let residual = match self.below(3) {
                0 => {
                    let (a, b) = (
                        self.column(other, other_relation, Type::Integer),
                        self.column(name, relation, Type::Integer),
                    );
                    format!(" AND {a} <= {b}")
                }
                _ => String::new(),
            };
            let join = ["JOIN", "JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"][self.below(5)];
            from += &format!(
                " {join} {} AS {name} ON ({left} {equal} {right}){residual}",
                self.relations[relation].name
            );
        }
        (format!("SELECT {select} FROM {from}"), types)
    }

    fn aggregate(&mut self) -> (String, Vec<Type>) {
        let relation = self.below(self.relations.len());
        let name = self.relations[relation].name.clone();
        let mut types = Vec::new();
        let mut select = Vec::new();
        let keys = self.below(3);
        for _ in 0..keys {
            let kind = self.kind();
            let key = self.column("r", relation, kind);
            select.push(key);
            types.push(kind);
        }
        let group = select.clone();
        let kind = self.kind();
        let number = self.column("r", relation, Type::Integer);
        let real = self.column("r", relation, Type::Real);
        let any = self.column("r", relation, kind);
        let aggregates = [
            ("COUNT(*)".to_owned(), Type::Integer),
            (format!("COUNT({any})"), Type::Integer),
            (format!("SUM({number})"), Type::Integer),
            (format!("AVG({number})"), Type::Real),
            (format!("SUM({real})"), Type::Real),
            (format!("MIN({any})"), kind),
            (format!("MAX({any})"), kind),
        ];
        for _ in 0..1 + self.below(3) {
            let (aggregate, kind) = aggregates[self.below(aggregates.len())].clone();
            select.push(aggregate);
            types.push(kind);
        }
        let select: Vec<_> =
            select.iter().enumerate().map(|(place, item)| format!("{item} AS c{place}")).collect();
        let mut query = format!("SELECT {} FROM {name} AS r", select.join(", "));
        if keys > 0 {
            query += &format!(" GROUP BY {}", group.join(", "));
        }
        if self.below(4) == 0 {
            query += &format!(" HAVING COUNT(*) > {}", self.below(3));
        }
        (query, types)
    }

    /// One to three expressions over some relations, named by their places.
    fn projection(&mut self, sides: &[(&str, usize)]) -> (String, Vec<Type>) {
        let mut items = Vec::new();
        let mut types = Vec::new();
        for place in 0..1 + self.below(3) {
            let (name, relation) = sides[self.below(sides.len())];
            let kind = self.kind();
            let column = self.column(name, relation, kind);
            let item = match (kind, self.below(4)) {
                (Type::Integer, 0) => format!("{column} % 3"),
                (Type::Integer, 1) => format!("COALESCE({column}, -1)"),
                (Type::Text, 0) => format!("UPPER({column})"),
                (Type::Text, 1) => {
                    format!("CASE WHEN {column} > 'a' THEN {column} ELSE 'small' END")
                }
                _ => column,
            };
            items.push(format!("{item} AS c{place}"));
            types.push(kind);
        }
        (items.join(", "), types)
    }

    fn condition(&mut self, name: &str, relation: usize) -> String {
        let number = self.column(name, relation, Type::Integer);
        let text = self.column(name, relation, Type::Text);
        let constant = self.below(5) as i64 - 1;
        match self.below(6) {
            0 => format!("{number} = {constant}"),
            1 => format!("{number} > {constant} AND {text} IS NOT NULL"),
            2 => format!("{text} LIKE 'a%' OR {number} IN (1, 2)"),
            3 => format!("NOT ({text} = 'a' AND {number} < {constant})"),
            4 => format!("{number} IS NULL"),
            _ => format!("{number} BETWEEN 0 AND {constant}"),
        }
    }

    /// A column of this type, or a constant if there is none.
    fn column(&mut self, name: &str, relation: usize, kind: Type) -> String {
        let columns = self.relations[relation].columns.iter().filter(|column| column.1 == kind);
        let columns: Vec<String> = columns.map(|column| format!("{name}.{}", column.0)).collect();
        match columns.len() {
            0 if kind == Type::Text => "'none'".to_owned(),
            // Not a bare number, which would be a place in GROUP BY.
            0 if kind == Type::Real => "CAST(2.5 AS DOUBLE)".to_owned(),
            0 => "CAST(7 AS INT)".to_owned(),
            length => columns[self.below(length)].clone(),
        }
    }

    fn kind(&mut self) -> Type {
        [Type::Integer, Type::Text, Type::Real][self.below(3)]
    }

    /// A number below `bound`, by xorshift.
    fn below(&mut self, bound: usize) -> usize {
        self.state ^= self.state << 13;
        self.state ^= self.state >> 7;
        self.state ^= self.state << 17;
        (self.state >> 33) as usize % bound
    }
}
