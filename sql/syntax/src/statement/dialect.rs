//! How Alluvium's SQL differs from sqlparser's generic SQL.

use std::any::TypeId;
use std::cell::Cell;

use sqlparser::ast::{
    Array, BinaryOperator, ColumnOption, Expr, FunctionArguments, Ident, LambdaFunction,
    LambdaFunctionParameter, LambdaSyntax, OneOrManyWithParens, UnaryOperator,
};
use sqlparser::dialect::{Dialect, GenericDialect};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token};

use super::lateness;
use crate::error::Position;
use crate::keyword::is_keyword;
use crate::name::CLAUSES;
use crate::syntax::call;

/// DataFusion's SQL with Feldera's table definitions, for the parser of one statement.
#[derive(Debug)]
pub struct Alluvium {
    /// How many more expressions the parser may begin.
    steps: Cell<usize>,
    /// The last place at which it has begun one.
    reached: Cell<Location>,
}

const GENERIC: GenericDialect = GenericDialect;

/// The precedence of `^`: above `*`, below `::`.
const POWER: u8 = 45;

/// The precedence of operators that the standard does not have, and of `||`: above `=` and `LIKE`, below `+`.
const OTHER: u8 = 25;

/// How often the parser may begin an expression: at least, and per token. Where one reading of the text fails it tries
/// another, and nested readings that fail would take exponential time.
const STEPS: (usize, usize) = (50_000, 4);

/// How many `IS DISTINCT FROM` and `^` may follow each other: each copies what is before it.
const COPYING_CHAIN: usize = 100;

impl Alluvium {
    /// The dialect for the parser of a statement of `tokens` tokens.
    pub fn new(tokens: usize) -> Alluvium {
        let steps = Cell::new(STEPS.0 + STEPS.1 * tokens);
        Alluvium { steps, reached: Cell::new(Location::empty()) }
    }

    /// The last place in the text at which the parser has begun an expression.
    pub(super) fn reached(&self) -> Option<Position> {
        Position::of_location(self.reached.get())
    }
}

impl Dialect for Alluvium {
    /// Enables grammar that sqlparser enables by the generic dialect's name.
    fn dialect(&self) -> TypeId {
        GENERIC.dialect()
    }

    fn is_delimited_identifier_start(&self, character: char) -> bool {
        character == '"'
    }

    fn is_identifier_start(&self, character: char) -> bool {
        character.is_alphabetic() || character == '_'
    }

    fn is_identifier_part(&self, character: char) -> bool {
        character.is_alphanumeric() || character == '_' || character == '$'
    }

    fn supports_filter_during_aggregation(&self) -> bool {
        true
    }

    fn supports_group_by_expr(&self) -> bool {
        true
    }

    fn supports_group_by_with_modifier(&self) -> bool {
        true
    }

    fn supports_left_associative_joins_without_parens(&self) -> bool {
        true
    }

    fn supports_window_function_null_treatment_arg(&self) -> bool {
        true
    }

    fn supports_window_clause_named_window_reference(&self) -> bool {
        true
    }

    fn supports_select_wildcard_except(&self) -> bool {
        true
    }

    fn supports_select_wildcard_exclude(&self) -> bool {
        true
    }

    fn supports_select_wildcard_replace(&self) -> bool {
        true
    }

    fn supports_select_expr_star(&self) -> bool {
        true
    }

    fn supports_select_wildcard_rename(&self) -> bool {
        true
    }

    fn supports_unicode_string_literal(&self) -> bool {
        true
    }

    fn supports_string_escape_constant(&self) -> bool {
        true
    }

    fn supports_numeric_literal_underscores(&self) -> bool {
        true
    }

    fn supports_nested_comments(&self) -> bool {
        true
    }

    fn supports_parens_around_table_factor(&self) -> bool {
        true
    }

    fn supports_values_as_table_factor(&self) -> bool {
        true
    }

    fn supports_array_typedef_with_brackets(&self) -> bool {
        true
    }

    fn supports_dictionary_syntax(&self) -> bool {
        true
    }

    fn support_map_literal_syntax(&self) -> bool {
        true
    }

    fn supports_map_literal_with_angle_brackets(&self) -> bool {
        true
    }

    fn supports_struct_literal(&self) -> bool {
        true
    }

    fn supports_bitwise_shift_operators(&self) -> bool {
        true
    }

    fn supports_named_fn_args_with_assignment_operator(&self) -> bool {
        true
    }

    fn supports_lambda_functions(&self) -> bool {
        true
    }

    fn supports_in_empty_list(&self) -> bool {
        true
    }

    fn allow_extract_custom(&self) -> bool {
        true
    }

    fn allow_extract_single_quotes(&self) -> bool {
        true
    }

    /// Whether a word that begins a special expression cannot be a name instead. Trying both readings takes exponential
    /// time where such expressions nest.
    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        let reserved = [Keyword::CASE, Keyword::CAST, Keyword::NOT, Keyword::TRY_CAST];
        self.steps.get() == 0
            || reserved.contains(&keyword)
            || GENERIC.is_reserved_for_identifier(keyword)
    }

    /// `^` and `**` are the power. `IS [NOT] DISTINCT FROM` binds as tightly as other comparisons; sqlparser would parse a following AND as part of its
    /// right side.
    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        left: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        if is_power(parser) && is_long(left) {
            return Some(Err(ParserError::RecursionLimitExceeded));
        }
        if is_power(parser) {
            if parser.next_token().token == Token::Mul {
                parser.advance_token();
            }
            let left = Box::new(left.clone());
            return Some(parser.parse_subexpr(precedence).map(|right| Expr::BinaryOp {
                left,
                op: BinaryOperator::PGExp,
                right: Box::new(right),
            }));
        }
        let negated = if parser.parse_keywords(&[Keyword::IS, Keyword::DISTINCT, Keyword::FROM]) {
            false
        } else if parser.parse_keywords(&[
            Keyword::IS,
            Keyword::NOT,
            Keyword::DISTINCT,
            Keyword::FROM,
        ]) {
            true
        } else {
            return None;
        };
        if is_long(left) {
            return Some(Err(ParserError::RecursionLimitExceeded));
        }
        let left = Box::new(left.clone());
        Some(parser.parse_subexpr(precedence).map(|right| match negated {
            false => Expr::IsDistinctFrom(left, Box::new(right)),
            true => Expr::IsNotDistinctFrom(left, Box::new(right)),
        }))
    }

    /// `^` and `**` are the power: it binds more tightly than `*`, as in Postgres. `||`, those of bits, `->` and `->>` bind
    /// alike, more tightly than comparisons and less than `+`, as there.
    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        match parser.peek_token_ref().token {
            Token::StringConcat
            | Token::Pipe
            | Token::Ampersand
            | Token::Sharp
            | Token::ShiftLeft
            | Token::ShiftRight
            | Token::Arrow
            | Token::LongArrow => Some(Ok(OTHER)),
            _ => is_power(parser).then_some(Ok(POWER)),
        }
    }

    /// Words of clauses are no columns; `current_role` and `current_schema` are calls; `[x + 1 FOR x IN l]` is a list; `-2 ^ 2` is the square of -2, as in Postgres; `trim(text, characters)` is a call; and `TABLE bid` is an argument of a function of relations.
    /// Ends the parser if it takes too many steps.
    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        self.reached.set(self.reached.get().max(parser.peek_token_ref().span.start));
        self.steps.set(self.steps.get().saturating_sub(1));
        if self.steps.get() == 0 {
            return Some(Err(ParserError::RecursionLimitExceeded));
        }
        // The parser follows nested intervals without a limit.
        if parser.peek_keyword(Keyword::INTERVAL)
            && is_keyword(&parser.peek_nth_token_ref(1).token, Keyword::INTERVAL)
        {
            return Some(Err(ParserError::RecursionLimitExceeded));
        }
        if parser.consume_token(&Token::Minus) {
            return Some(
                parser
                    .parse_subexpr(POWER)
                    .map(|expr| Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(expr) }),
            );
        }
        if is_trim(parser) {
            return Some(trim(parser));
        }
        if let Some(name) = called_without_brackets(parser) {
            parser.advance_token();
            let mut called = call(name, []);
            if let Expr::Function(function) = &mut called {
                function.args = FunctionArguments::None;
            }
            return Some(Ok(called));
        }
        if parser.consume_token(&Token::LBracket) {
            return Some(list(parser));
        }
        if CLAUSES.iter().any(|word| parser.peek_keyword(*word)) {
            return Some(parser.expected_ref("an expression", parser.peek_token_ref()));
        }
        let Token::Word(word) = &parser.peek_token_ref().token else { return None };
        if word.keyword != Keyword::TABLE
            || word.quote_style.is_some()
            || !matches!(parser.peek_nth_token_ref(1).token, Token::Word(_))
        {
            return None;
        }
        let prefix = word.to_ident(parser.peek_token_ref().span);
        parser.advance_token();
        Some(parser.parse_object_name(false).map(|name| {
            let parts = name.0.iter().filter_map(|part| part.as_ident().cloned()).collect();
            Expr::Prefixed { prefix, value: Box::new(Expr::CompoundIdentifier(parts)) }
        }))
    }

    /// `FOREIGN KEY REFERENCES …` on a column means `REFERENCES …`; [`lateness`] is parsed as an option.
    fn parse_column_option(
        &self,
        parser: &mut Parser<'_>,
    ) -> Result<Option<Result<Option<ColumnOption>, ParserError>>, ParserError> {
        if let Some(option) = lateness::parse(parser)? {
            return Ok(Some(Ok(Some(option))));
        }
        if parser.parse_keywords(&[Keyword::FOREIGN, Keyword::KEY])
            && !parser.peek_keyword(Keyword::REFERENCES)
        {
            return parser.expected_ref("REFERENCES", parser.peek_token_ref());
        }
        Ok(None)
    }
}

/// Whether `^` or `**` follows.
fn is_power(parser: &Parser<'_>) -> bool {
    let is_star = |token: &Token| *token == Token::Mul;
    let first = &parser.peek_token_ref().token;
    *first == Token::Caret || (is_star(first) && is_star(&parser.peek_nth_token_ref(1).token))
}

/// Whether a call of TRIM follows that is not made of words.
fn is_trim(parser: &Parser<'_>) -> bool {
    let token = |number| &parser.peek_nth_token_ref(number).token;
    let words = [Keyword::BOTH, Keyword::LEADING, Keyword::TRAILING, Keyword::FROM];
    is_keyword(token(0), Keyword::TRIM)
        && *token(1) == Token::LParen
        && !words.iter().any(|word| is_keyword(token(2), *word))
}

/// The name of a function that follows without the brackets of a call, as Postgres has it. The parser knows the others.
fn called_without_brackets(parser: &Parser<'_>) -> Option<Ident> {
    let (token, next) = (parser.peek_token_ref(), &parser.peek_nth_token_ref(1).token);
    let words = [Keyword::CURRENT_ROLE, Keyword::CURRENT_SCHEMA];
    match &token.token {
        Token::Word(word) if words.iter().any(|keyword| is_keyword(&token.token, *keyword)) => {
            let is_name = matches!(next, Token::LParen | Token::Period);
            (!is_name).then(|| word.to_ident(token.span))
        }
        _ => None,
    }
}

/// `TRIM(text)`, `TRIM(characters FROM text)` or `TRIM(text, characters)`.
fn trim(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    let span = parser.peek_token_ref().span;
    parser.advance_token();
    parser.advance_token();
    let first = parser.parse_expr()?;
    let trimmed = |trim_what, expr| Expr::Trim {
        trim_where: None,
        trim_what,
        expr: Box::new(expr),
        trim_characters: None,
    };
    let expression = if parser.parse_keyword(Keyword::FROM) {
        trimmed(Some(Box::new(first)), parser.parse_expr()?)
    } else if parser.consume_token(&Token::Comma) {
        let characters = parser.parse_expr()?;
        let name = Ident::with_span(span, "trim");
        call(name, [first, characters])
    } else {
        trimmed(None, first)
    };
    parser.expect_token(&Token::RParen)?;
    Ok(expression)
}

/// The elements after the bracket of `[1, 2]`, or of `[x + 1 FOR x IN l IF x > 0]`, which is
/// `list_transform(list_filter(l, x -> x > 0), x -> x + 1)`.
fn list(parser: &mut Parser<'_>) -> Result<Expr, ParserError> {
    let span = parser.peek_token_ref().span;
    let mut elem = Vec::new();
    if parser.consume_token(&Token::RBracket) {
        return Ok(Expr::Array(Array { elem, named: false }));
    }
    elem.push(parser.parse_expr()?);
    if parser.parse_keyword(Keyword::FOR) {
        let name = parser.parse_identifier()?;
        parser.expect_keyword(Keyword::IN)?;
        let mut list = parser.parse_expr()?;
        let lambda = |body| {
            let parameter = LambdaFunctionParameter { name: name.clone(), data_type: None };
            Expr::Lambda(LambdaFunction {
                params: OneOrManyWithParens::One(parameter),
                body: Box::new(body),
                syntax: LambdaSyntax::LambdaKeyword,
            })
        };
        if parser.parse_keyword(Keyword::IF) {
            let condition = lambda(parser.parse_expr()?);
            list = call(Ident::with_span(span, "list_filter"), [list, condition]);
        }
        parser.expect_token(&Token::RBracket)?;
        let element = lambda(elem.remove(0));
        return Ok(call(Ident::with_span(span, "list_transform"), [list, element]));
    }
    while parser.consume_token(&Token::Comma) {
        elem.push(parser.parse_expr()?);
    }
    parser.expect_token(&Token::RBracket)?;
    Ok(Expr::Array(Array { elem, named: false }))
}

/// Whether an expression is a chain of operators that copy what is before them, and long enough.
fn is_long(mut expression: &Expr) -> bool {
    for _ in 0..COPYING_CHAIN {
        expression = match expression {
            Expr::IsDistinctFrom(left, _)
            | Expr::IsNotDistinctFrom(left, _)
            | Expr::BinaryOp { left, op: BinaryOperator::PGExp, .. } => left,
            _ => return false,
        };
    }
    true
}
