//! Definitions that read a relation which gets another name.
//!
//! They are edited where they name it. In the rest of its query the relation goes by the name that it had, so that names of
//! columns stay as they are written: `SELECT t.a FROM t` becomes `SELECT t.a FROM u AS t`.

use std::ops::ControlFlow;

use sqlparser::ast::{
    Expr, Ident, ObjectName, Query, Select, SelectItem, SelectItemQualifiedWildcardKind,
    TableFactor, Visitor,
};

use super::only;
use crate::error::{Error, Position, Result};
use crate::name;
use crate::name::fold;
use crate::statement::scopes::Scopes;
use crate::statement::source::Source;
use crate::statement::{IndexDefinition, StatementKind, ViewDefinition};
use crate::syntax::{WindowArguments, windowed};
use crate::walk::walk;

impl ViewDefinition {
    /// The same view, which reads by the name `to` the relation that went by `from`.
    ///
    /// # Errors
    /// If its text cannot be edited so. That it is the same view is for the planner to say.
    pub fn reading(&self, from: &str, to: &str) -> Result<ViewDefinition> {
        match text_reading(&self.text, from, to)?.as_deref().and_then(only) {
            Some(StatementKind::CreateView(view)) if view.name == self.name => {
                let (position, lateness) = (self.position, self.lateness.clone());
                Ok(ViewDefinition { position, lateness, ..view })
            }
            _ => Err(cannot_read(&self.name, from)),
        }
    }
}

/// The text of a view that reads another name; `None` if it does not read the relation.
fn text_reading(text: &str, from: &str, to: &str) -> Result<Option<String>> {
    let Some(StatementKind::CreateView(read)) = only(text) else { return Ok(None) };
    let (_, bare) = name::split(from);
    let (scopes, found) = Default::default();
    let mut mentions = Mentions { relation: from, bare: &bare, scopes, found };
    walk(&*read.query, &mut mentions)?;
    let mut found = mentions.found;
    if !found.iter().any(|mention| matches!(mention.kind, MentionKind::Relation { .. })) {
        return Ok(None);
    }
    found.sort_by_key(|mention| mention.position);
    found.dedup_by_key(|mention| mention.position);
    let source = Source::new(text)?;
    let (bare, to) = (name::spelled(&bare), name::written(to));
    let edits = found.into_iter().filter_map(|Mention { position, kind }| match kind {
        MentionKind::Relation { parts, has_alias } => {
            let text = if has_alias { to.clone() } else { format!("{to} AS {bare}") };
            Some((source.name_from(position, parts)?, text))
        }
        MentionKind::Qualifier => {
            let (tokens, parts) = source.name_to(position)?;
            let parts = parts.into_iter().map(|part| Ident::with_quote('"', part));
            let parts: Vec<Ident> = parts.collect();
            let is_it = parts.len() > 1 && is_named(&parts, from);
            is_it.then(|| (tokens, bare.clone()))
        }
    });
    Ok(Some(source.replaced(edits)))
}

impl IndexDefinition {
    /// The same index, whose relation has this name.
    ///
    /// # Errors
    /// If its text cannot be edited so.
    pub fn of(&self, relation: &str) -> Result<IndexDefinition> {
        let own = IndexDefinition::of_text(&self.text)?;
        let source = Source::new(&self.text)?;
        let named = source.name_from(own.relation_position, usize::MAX);
        let text = named.map(|named| source.replaced([(named, name::written(relation))]));
        match text.as_deref().and_then(only) {
            Some(StatementKind::CreateIndex(index))
                if index.relation == relation && index.name == self.name =>
            {
                Ok(IndexDefinition { position: self.position, ..index })
            }
            _ => Err(cannot_read(&self.name, &self.relation)),
        }
    }

    /// The index that a text creates, which was created before.
    ///
    /// # Errors
    /// If it creates none.
    pub fn of_text(text: &str) -> Result<IndexDefinition> {
        match only(text) {
            Some(StatementKind::CreateIndex(index)) => Ok(index),
            _ => Err(Error::new("the index was not defined by CREATE INDEX", None)),
        }
    }
}

fn cannot_read(name: &str, relation: &str) -> Error {
    let message = format!(
        "the statement that created \"{name}\" cannot be rewritten for another name of \"{relation}\": DROP it first, and create it \
         again"
    );
    Error::new(message, None)
}

/// A place where a query names the relation.
struct Mention {
    position: Position,
    kind: MentionKind,
}

enum MentionKind {
    /// It is read.
    Relation {
        /// How many parts its name has there.
        parts: usize,
        /// Whether its rows go by another name, or by none.
        has_alias: bool,
    },
    /// A column may be named with it, and with its schema before that.
    Qualifier,
}

/// Finds where a query names a relation.
struct Mentions<'a> {
    relation: &'a str,
    /// Its name without its schema.
    bare: &'a str,
    scopes: Scopes,
    found: Vec<Mention>,
}

/// Whether these are the parts of the name of a relation.
fn is_named(parts: &[Ident], relation: &str) -> bool {
    let is_file = parts.iter().any(|part| part.quote_style == Some('\''));
    let name = ObjectName::from(parts.to_vec());
    !is_file && name::of_object(&name).is_ok_and(|name| name == relation)
}

impl Mentions<'_> {
    fn relation(&mut self, parts: &[Ident], has_alias: bool) {
        let is_of_with = matches!(parts, [part] if self.scopes.define(&fold(part)));
        if !is_of_with && is_named(parts, self.relation) {
            let kind = MentionKind::Relation { parts: parts.len(), has_alias };
            self.add(parts.first(), kind);
        }
    }

    fn qualifier(&mut self, relation: Option<&Ident>) {
        if relation.is_some_and(|relation| fold(relation) == self.bare) {
            self.add(relation, MentionKind::Qualifier);
        }
    }

    fn add(&mut self, first: Option<&Ident>, kind: MentionKind) {
        let position = first.and_then(|first| Position::of_span(first.span));
        self.found.extend(position.map(|position| Mention { position, kind }));
    }
}

fn idents(name: &ObjectName) -> Vec<Ident> {
    name.0.iter().filter_map(|part| part.as_ident().cloned()).collect()
}

impl Visitor for Mentions<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        self.scopes.enter(query);
        ControlFlow::Continue(())
    }

    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<Error> {
        self.scopes.leave(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<Error> {
        for item in &select.projection {
            if let SelectItem::QualifiedWildcard(
                SelectItemQualifiedWildcardKind::ObjectName(name),
                _,
            ) = item
            {
                self.qualifier(idents(name).last());
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<Error> {
        match factor {
            TableFactor::Table { name, alias, args: None, .. } => {
                let parts = idents(name);
                // `s.t` is read as `s.t AS t`, where nothing stands.
                let last = parts.last().map(|part| part.span);
                let has_alias = alias.as_ref().is_some_and(|alias| Some(alias.name.span) != last);
                self.relation(&parts, has_alias);
            }
            _ => {
                // The rows of a call do not go by the name of the relation that it is about.
                let call = windowed(factor).and_then(|(function, name, arguments)| {
                    WindowArguments::read(function, arguments, Position::of(name)).ok()
                });
                match call.as_ref().map(WindowArguments::relation) {
                    Some(Expr::Identifier(part)) => {
                        self.relation(std::slice::from_ref(part), true);
                    }
                    Some(Expr::CompoundIdentifier(parts)) => self.relation(parts, true),
                    _ => {}
                }
            }
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expression: &Expr) -> ControlFlow<Error> {
        if let Expr::CompoundIdentifier(parts) = expression
            && let [relation, _, ..] = &parts[..]
        {
            self.qualifier(Some(relation));
        }
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(query: &str) -> ViewDefinition {
        let text = format!("CREATE VIEW v AS {query}");
        match only(&text) {
            Some(StatementKind::CreateView(view)) => view,
            other => panic!("{text} is {other:?}"),
        }
    }

    fn reading(query: &str, from: &str, to: &str) -> String {
        let text = view(query).reading(from, to).unwrap().text;
        text.strip_prefix("CREATE VIEW v AS ").unwrap().to_owned()
    }

    #[test]
    fn a_relation_is_named_otherwise_where_it_is_read() {
        let cases = [
            ("SELECT a, t.b FROM t", "SELECT a, t.b FROM u AS t"),
            (
                "SELECT x.a FROM t x JOIN T AS y ON x.a = y.a",
                "SELECT x.a FROM u x JOIN u AS y ON x.a = y.a",
            ),
            (
                "SELECT t.a /* t */ FROM public.t -- of t\n WHERE t.b",
                "SELECT t.a /* t */ FROM u AS t -- of t\n WHERE t.b",
            ),
            ("SELECT 't', \"t\".a FROM \"t\"", "SELECT 't', \"t\".a FROM u AS t"),
            ("SELECT public.t.a, public.t.* FROM public.t", "SELECT t.a, t.* FROM u AS t"),
            (
                "WITH t AS (SELECT a FROM t) SELECT a FROM t",
                "WITH t AS (SELECT a FROM u AS t) SELECT a FROM t",
            ),
            (
                "WITH RECURSIVE t AS (SELECT 1 AS a UNION SELECT a FROM t) SELECT a FROM t, public.t AS o",
                "WITH RECURSIVE t AS (SELECT 1 AS a UNION SELECT a FROM t) SELECT a FROM t, u AS o",
            ),
            (
                "SELECT (SELECT max(a) FROM t) FROM s.t WHERE a IN (SELECT a FROM t)",
                "SELECT (SELECT max(a) FROM u AS t) FROM s.t WHERE a IN (SELECT a FROM u AS t)",
            ),
            (
                "SELECT s.a FROM (SELECT * FROM t) s, LATERAL (SELECT t.b FROM t) r",
                "SELECT s.a FROM (SELECT * FROM u AS t) s, LATERAL (SELECT t.b FROM u AS t) r",
            ),
        ];
        for (query, expected) in cases {
            assert_eq!(reading(query, "t", "u"), expected);
        }
        assert_eq!(
            reading("SELECT a FROM s.\"T t\", t", "s.T t", "s.\"u.u\""),
            "SELECT a FROM s.\"u.u\" AS \"T t\", t"
        );
    }

    #[test]
    fn what_is_not_read_is_an_error() {
        let error = view("SELECT 1 AS t").reading("t", "u").unwrap_err().to_string();
        assert!(error.contains("\"v\"") && error.contains("\"t\""), "{error}");
    }

    #[test]
    fn an_index_is_of_a_relation_of_another_name() {
        let index = IndexDefinition::of_text("CREATE INDEX i ON s.t -- t\n (t)").unwrap();
        let text = index.of("s.U").unwrap().text;
        assert_eq!(text, "CREATE INDEX i ON s.\"U\" -- t\n (t)");
    }
}
