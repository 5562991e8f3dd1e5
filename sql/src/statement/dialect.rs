//! How Alluvium's SQL differs from sqlparser's generic SQL.

use std::any::TypeId;

use sqlparser::ast::{BinaryOperator, ColumnOption, Expr, UnaryOperator};
use sqlparser::dialect::{Dialect, GenericDialect};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// DataFusion's SQL with Feldera's table definitions.
#[derive(Debug)]
pub(crate) struct Alluvium;

const GENERIC: GenericDialect = GenericDialect;

/// The precedence of `^`: above `*`, below `::`.
const POWER: u8 = 45;

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

    fn supports_unicode_string_literal(&self) -> bool {
        true
    }

    fn supports_string_escape_constant(&self) -> bool {
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

    fn supports_in_empty_list(&self) -> bool {
        true
    }

    fn allow_extract_custom(&self) -> bool {
        true
    }

    fn allow_extract_single_quotes(&self) -> bool {
        true
    }

    /// `^` is the power. `IS [NOT] DISTINCT FROM` binds as tightly as other comparisons; sqlparser would parse a following AND as part of its
    /// right side.
    fn parse_infix(
        &self,
        parser: &mut Parser<'_>,
        left: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        if parser.consume_token(&Token::Caret) {
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
        let left = Box::new(left.clone());
        Some(parser.parse_subexpr(precedence).map(|right| match negated {
            false => Expr::IsDistinctFrom(left, Box::new(right)),
            true => Expr::IsNotDistinctFrom(left, Box::new(right)),
        }))
    }

    /// `^` is the power: it binds more tightly than `*`, as in Postgres.
    fn get_next_precedence(&self, parser: &Parser<'_>) -> Option<Result<u8, ParserError>> {
        (parser.peek_token_ref().token == Token::Caret).then_some(Ok(POWER))
    }

    /// `-2 ^ 2` is the square of -2, as in Postgres; and `TABLE bid` is an argument of a function of relations.
    fn parse_prefix(&self, parser: &mut Parser<'_>) -> Option<Result<Expr, ParserError>> {
        if parser.consume_token(&Token::Minus) {
            return Some(
                parser
                    .parse_subexpr(POWER)
                    .map(|expr| Expr::UnaryOp { op: UnaryOperator::Minus, expr: Box::new(expr) }),
            );
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

    /// `FOREIGN KEY REFERENCES …` on a column means `REFERENCES …`.
    fn parse_column_option(
        &self,
        parser: &mut Parser<'_>,
    ) -> Result<Option<Result<Option<ColumnOption>, ParserError>>, ParserError> {
        if parser.peek_token_ref().token.to_string().eq_ignore_ascii_case("lateness") {
            let token = parser.next_token();
            return Err(ParserError::ParserError(format!(
                "LATENESS is not supported yet{}",
                token.span.start
            )));
        }
        if parser.parse_keywords(&[Keyword::FOREIGN, Keyword::KEY])
            && !parser.peek_keyword(Keyword::REFERENCES)
        {
            return parser.expected_ref("REFERENCES", parser.peek_token_ref());
        }
        Ok(None)
    }
}
