"""This dialect parses PostgreSQL's own spelling of a query, and writes it without a change of words.

It parses the text that `pg_get_viewdef` prints under `quote_all_identifiers`: every name stands in quotes and every
operation in parentheses, so a word without quotes is grammar. The dialect knows the few calls and operators that the
algebra reasons about. Every other one keeps its name: it becomes a `Call` of a function, an `Infix` or `Prefix`
operator, a `Syntax` with keywords among its arguments, or an `IsTest`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, ClassVar

from sqlglot import exp
from sqlglot import parser as _parser
from sqlglot.dialects.postgres import Postgres
from sqlglot.generators.postgres import PostgresGenerator
from sqlglot.parsers.postgres import PostgresParser
from sqlglot.tokens import TokenType

from airflow_provider_pgtrickle.engine.errors import EnvironmentFault

if (_parser.__file__ or "").endswith((".so", ".pyd")):
    # Python can't extend what mypyc has compiled; the classes below would fail with a TypeError about that.
    raise EnvironmentFault(
        "sqlglot is compiled here, by the package sqlglotc, and can't be extended then",
        remedy="Uninstall sqlglotc, and install sqlglot anew: pip install --force-reinstall --no-deps sqlglot.",
    )

Call = exp.Anonymous

#: Operators to which the algebra gives no meaning: all of pg_operator but comparisons, arithmetic and `||`.
_OPERATORS = (
    "!! !~ !~* !~~ !~~* # ## #- #> #>> & && &< &<| &> *< *<= *<> *= *> *>= -> ->> -|- <-> << <<= <<| <@ <^ >> >>="
    " >^ ? ?# ?& ?- ?-| ?| ?|| @ @-@ @> @? @@ @@@ ^ ^@ | |&> |/ |>> ||/ ~ ~* ~<=~ ~<~ ~= ~>=~ ~>~ ~~ ~~*"
)

#: Aggregates and grammar that the algebra looks into.
_KNOWN = ("COUNT", "SUM", "AVG", "MIN", "MAX")
_GRAMMAR = ("ARRAY", "COALESCE", "NULLIF", "GREATEST", "LEAST")

#: Grammar that looks like a call, with keywords among its arguments.
_SYNTAX = (
    "EXTRACT", "SUBSTRING", "TRIM", "POSITION", "OVERLAY", "NORMALIZE", "XMLATTRIBUTES", "XMLCONCAT", "XMLELEMENT",
    "XMLEXISTS", "XMLFOREST", "XMLPARSE", "XMLPI", "XMLROOT", "XMLSERIALIZE", "XMLTABLE", "JSON", "JSON_ARRAY",
    "JSON_ARRAYAGG", "JSON_EXISTS", "JSON_OBJECT", "JSON_OBJECTAGG", "JSON_QUERY", "JSON_SCALAR", "JSON_SERIALIZE",
    "JSON_TABLE", "JSON_VALUE",
    "CURRENT_TIME", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP",
)  # fmt: skip
#: Words of IS tests other than IS NULL and IS DISTINCT FROM.
_TESTS = {
    "TRUE", "FALSE", "UNKNOWN", "DOCUMENT", "NORMALIZED", "NFC", "NFD", "NFKC", "NFKD", "JSON", "VALUE", "OBJECT",
    "ARRAY", "SCALAR", "WITH", "WITHOUT", "UNIQUE", "KEYS",
}  # fmt: skip
#: Function names that are keywords to PostgreSQL, so that a call of them keeps its quotes.
_KEYWORDS = {
    "between", "bigint", "bit", "boolean", "char", "character", "coalesce", "dec", "decimal", "exists", "extract",
    "float", "greatest", "grouping", "inout", "int", "integer", "interval", "least", "national", "nchar", "none",
    "normalize", "nullif", "numeric", "out", "overlay", "position", "precision", "real", "row", "setof", "smallint",
    "substring", "time", "timestamp", "treat", "trim", "values", "varchar", "all", "any", "array", "both", "case",
    "cast", "collate", "column", "current_date", "current_role", "current_time", "current_timestamp", "current_user",
    "default", "distinct", "do", "end", "except", "false", "for", "from", "having", "in", "intersect", "lateral",
    "leading", "limit", "not", "null", "offset", "on", "only", "or", "order", "placing", "primary", "select",
    "session_user", "some", "symmetric", "table", "then", "to", "trailing", "true", "union", "unique", "user", "using",
    "variadic", "when", "where", "window", "with", "asymmetric", "localtime", "localtimestamp", "current_catalog",
    "merge_action", "system_user",
}  # fmt: skip
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
#: Types that are printed in quotes under `quote_all_identifiers` alone.
_PLAIN_TYPES = {"text", "date", "uuid", "bytea", "json", "jsonb", "xml", "name", "oid", "inet", "cidr", "money"}
_TYPE_WORDS = {"double", "precision", "character", "varying", "bit", "with", "without", "time", "zone", "timestamp"}
#: What follows a constant of CYCLE.
_AFTER_MARK = ("DEFAULT", "USING")
_NAMES_AND_STRINGS = (TokenType.IDENTIFIER, TokenType.STRING)
_TYPED_STRING = re.compile(r"([^'].*?) ('(?:[^']|'')*')", re.DOTALL)
_INTERVAL_WORDS = {"year", "month", "day", "hour", "minute", "second", "to"}


class Infix(exp.Expression, exp.Binary):
    """`a <@ b`: an operator kept by its symbol."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "operator": True, "expression": True}


class Prefix(exp.Unary):
    """`|/ a`: an operator before its one operand, kept by its symbol."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "operator": True}


class IsTest(exp.Expression, exp.Predicate):
    """`a IS NOT TRUE`: a test whose words follow the value."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "words": True}


class Reading(exp.Expression, exp.Condition):
    """`now() - interval '7 days'`: an expression over the clock and constants; unbound, it is written as it stands."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class Constant(exp.Expression):
    """A literal or an array that is too long to be parsed, kept as the text that PostgreSQL prints of it."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True}


class Syntax(exp.Expression, exp.Func):
    """`SUBSTRING(a FROM 2 FOR 3)`: arguments and the words between them, in order.

    `outputs`: the names that JSON_TABLE and XMLTABLE themselves give to their columns.
    """

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": True, "outputs": False}
    is_var_len_args = True


class RowsFrom(exp.Expression, exp.Func):
    """`ROWS FROM (f(a), g(b) AS (x int))`: functions side by side; one whose columns are defined is a `Defined`."""

    arg_types: ClassVar[dict[str, bool]] = {"expressions": True}


class Defined(exp.Expression):
    """`f(a) AS (x int, y text)`: a call with the columns that its record has."""

    arg_types: ClassVar[dict[str, bool]] = {"this": True, "expressions": True}


class RowsQuery(exp.Values):
    """`WITH … VALUES (1), (2) ORDER BY 1 LIMIT 1`: rows that are written out where a query stands."""

    arg_types: ClassVar[dict[str, bool]] = {**exp.Values.arg_types, "with_": False}


@dataclass(frozen=True)
class Search:
    """`SEARCH DEPTH FIRST BY a, b SET place`."""

    is_breadth: bool
    by: tuple[str, ...]
    place: str


@dataclass(frozen=True)
class Cycle:
    """`CYCLE a, b SET mark TO 'Y' DEFAULT 'N' USING path`; value and default are the text of constants."""

    by: tuple[str, ...]
    mark: str
    value: str
    default: str
    path: str


@dataclass(frozen=True)
class Walk:
    """What a WITH item has behind its query."""

    text: str
    search: Search | None
    cycle: Cycle | None

    @property
    def added(self) -> tuple[str, ...]:
        """The columns that it adds to the item's own, in PostgreSQL's order."""
        found = (self.search.place,) if self.search else ()
        return (*found, self.cycle.mark, self.cycle.path) if self.cycle else found


def raw_type(text: str) -> exp.DataType:
    """Return a type for the text that PostgreSQL prints of it."""
    return exp.DataType(this=exp.DType.USERDEFINED, kind=exp.var(text))


class Canonical(Postgres):
    """It parses what `pg_get_viewdef` prints, and writes what PostgreSQL reads as the same query."""

    class Tokenizer(Postgres.Tokenizer):
        KEYWORDS: ClassVar[dict[str, TokenType]] = {
            **Postgres.Tokenizer.KEYWORDS,
            **dict.fromkeys(_OPERATORS.split(), TokenType.OPERATOR),
        }

    class Parser(PostgresParser):
        FUNCTIONS: ClassVar[dict[str, Any]] = {
            name: build for name, build in PostgresParser.FUNCTIONS.items() if name in (*_KNOWN, *_GRAMMAR)
        }
        FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            "CAST": PostgresParser.FUNCTION_PARSERS["CAST"],
            **{name: lambda self, name=name: self._parse_syntax(name) for name in _SYNTAX},
        }
        NO_PAREN_FUNCTION_PARSERS: ClassVar[dict[str, Any]] = {
            **{k: v for k, v in PostgresParser.NO_PAREN_FUNCTION_PARSERS.items() if k in ("ANY", "CASE", "VARIADIC")},
            "COLLATION": lambda self: self._parse_collation_for(),
        }
        RANGE_PARSERS: ClassVar[dict[TokenType, Any]] = {
            **{
                kind: parse
                for kind, parse in PostgresParser.RANGE_PARSERS.items()
                if kind in (TokenType.IN, TokenType.IS, TokenType.OVERLAPS)
            },
            TokenType.OPERATOR: lambda self, this: self._parse_infix(this),
        }
        UNARY_PARSERS: ClassVar[dict[TokenType, Any]] = {
            TokenType.NOT: PostgresParser.UNARY_PARSERS[TokenType.NOT],
            TokenType.DASH: PostgresParser.UNARY_PARSERS[TokenType.DASH],
            TokenType.PLUS: lambda self: self.expression(Prefix(this=self._parse_unary(), operator="+")),
            TokenType.OPERATOR: lambda self: self._parse_prefix(),
        }
        BITWISE: ClassVar[dict[TokenType, Any]] = {}
        EXPONENT: ClassVar[dict[TokenType, Any]] = {}
        JSON_OPERATORS: ClassVar[dict[TokenType, Any]] = {}

        # -- operators -----------------------------------------------------------------------------

        def _symbol(self) -> str | None:
            """Return the operator just read: its symbol, or OPERATOR(schema.symbol) as it was written."""
            token = self._prev
            if token.text.upper() != "OPERATOR":
                return str(token.text)
            while self._curr and self._prev.token_type != TokenType.R_PAREN:
                self._advance()
            return str(self._find_sql(token, self._prev))

        def _parse_infix(self, this: exp.Expr | None) -> exp.Expr | None:
            symbol = self._symbol()
            if symbol is None:
                return None
            return self.expression(Infix(this=this, operator=symbol, expression=self._parse_bitwise()))

        def _parse_prefix(self) -> exp.Expr | None:
            symbol = self._symbol()
            return None if symbol is None else self.expression(Prefix(this=self._parse_unary(), operator=symbol))

        def _parse_is(self, this: exp.Expr | None) -> exp.Expr | None:
            following = self._next if self._curr.token_type == TokenType.NOT else self._curr
            if following.text.upper() not in _TESTS or following.token_type == TokenType.IDENTIFIER:
                return super()._parse_is(this)
            words = []
            while self._curr.token_type == TokenType.NOT or self._curr.text.upper() in _TESTS:
                words.append(self._curr.text.upper())
                self._advance()
            return self.expression(IsTest(this=this, words=" ".join(words)))

        # -- calls ---------------------------------------------------------------------------------

        def _parse_function_call(
            self,
            functions: dict[str, Any] | None = None,
            anonymous: bool = False,
            optional_parens: bool = True,
            any_token: bool = False,
        ) -> exp.Expr | None:
            token, is_qualified = self._curr, self._prev.token_type == TokenType.DOT
            is_quoted = bool(token) and token.token_type == TokenType.IDENTIFIER
            known = is_quoted and not is_qualified and token.text.upper() in _KNOWN and token.text.islower()
            call = super()._parse_function_call(
                functions, anonymous or (is_quoted and not known), optional_parens, any_token
            )
            if is_quoted and call is not None:
                _bare(call)
            return call

        def _parse_syntax(self, name: str) -> exp.Expr:
            outputs: list[str] = []
            parts = self._parse_parts(name, outputs, False)
            return self.expression(Syntax(this=name, expressions=parts, outputs=outputs))

        def _parse_parts(self, name: str, outputs: list[str], in_columns: bool) -> list[exp.Expr]:
            """Parse what stands between a syntax's parentheses; the columns that it defines go into `outputs`."""
            parts: list[exp.Expr] = []
            while self._curr and self._curr.token_type != TokenType.R_PAREN:
                begins = not parts or (isinstance(parts[-1], exp.Var) and parts[-1].name == ",")
                if in_columns and begins and self._curr.token_type == TokenType.IDENTIFIER:
                    outputs.append(self._curr.text)
                    parts.append(exp.to_identifier(self._curr.text, quoted=True))
                    self._advance()
                    if self._curr.text.upper() != "FOR":
                        parts.append(self._parse_raw_type())
                elif self._is_word(bool(parts) or name != "EXTRACT"):
                    word = self._curr.text.upper()
                    parts.append(exp.var(self._curr.text))
                    self._advance()
                    if word in ("AS", "RETURNING", "NAME"):
                        parts.append(self._parse_raw_type())
                    elif word in ("COLUMNS", "XMLNAMESPACES") and self._match(TokenType.L_PAREN):
                        inner = self._parse_parts(name, outputs, word == "COLUMNS")
                        self._match_r_paren()
                        parts.append(Syntax(this="", expressions=inner))
                    elif word == "COLUMNS":
                        parts += self._parse_parts(name, outputs, True)
                else:
                    part = self._parse_bitwise()
                    if part is None:
                        self.raise_error("Expected an argument")
                    else:
                        parts.append(part)
            return parts

        def _is_word(self, is_argument_allowed: bool) -> bool:
            """Whether the next token is a word or a comma of the syntax and no argument, whose names are in quotes."""
            kind = self._curr.token_type
            if kind in (TokenType.COMMA, TokenType.COLON):
                return True
            if kind in (TokenType.IDENTIFIER, TokenType.STRING, TokenType.NUMBER, TokenType.L_PAREN):
                return not is_argument_allowed
            text = self._curr.text
            if text.upper() == "EXISTS" and self._next and self._next.text.upper() == "PATH":
                return True
            return text.replace(" ", "").isalpha() and text.upper() not in _ARGUMENT_WORDS

        def _parse_collation_for(self) -> exp.Expr | None:
            if not self._match(TokenType.FOR):
                return None
            argument = self._parse_wrapped(self._parse_bitwise)
            return self.expression(Syntax(this="COLLATION FOR ", expressions=[argument]))

        # -- types ---------------------------------------------------------------------------------

        def _parse_dcolon(self) -> exp.Expr | None:
            return self._parse_raw_type()

        def _parse_raw_type(self) -> exp.DataType:
            first = self._curr
            if first is None:
                self.raise_error("Expected a type")
            self._advance()
            while self._curr and self._curr.token_type == TokenType.DOT:
                self._advance(2)
            if first.token_type != TokenType.IDENTIFIER:
                words = _TYPE_WORDS | _INTERVAL_WORDS if first.text.lower() == "interval" else _TYPE_WORDS
                self._skip_modifiers()
                while self._curr and self._curr.text.lower() in words and self._curr.token_type != TokenType.IDENTIFIER:
                    self._advance()
            self._skip_modifiers()
            while self._curr and self._curr.token_type == TokenType.L_BRACKET:
                while self._prev.token_type != TokenType.R_BRACKET or self._curr.token_type == TokenType.L_BRACKET:
                    self._advance()
            return raw_type(_printed(self._find_sql(first, self._prev)))

        def _skip_modifiers(self) -> None:
            if self._curr and self._curr.token_type == TokenType.L_PAREN:
                while self._prev.token_type != TokenType.R_PAREN:
                    self._advance()

        # -- clauses -------------------------------------------------------------------------------

        def _parse_window(self, this: exp.Expr | None, alias: bool = False) -> Any:
            """Mark OVER (w), which copies a window, while OVER w is that window: to PostgreSQL they are different."""
            window = super()._parse_window(this, alias)
            if window is not this and isinstance(window, exp.Window) and self._prev.token_type == TokenType.R_PAREN:
                window.meta[IN_PARENTHESES] = True
            return window

        def _parse_lateral(self) -> Any:
            """Parse a FROM item that begins with LATERAL or ROWS FROM."""
            ahead = self._next if self._curr and self._curr.token_type == TokenType.LATERAL else self._curr
            if not ahead or ahead.text.upper() != "ROWS" or ahead.token_type == TokenType.IDENTIFIER:
                return super()._parse_lateral()
            kind = exp.Lateral if self._match(TokenType.LATERAL) else exp.Table
            self._advance(2)
            rows = self.expression(RowsFrom(expressions=self._parse_wrapped_csv(self._parse_row_source)))
            ordinality = self._match_pair(TokenType.WITH, TokenType.ORDINALITY)
            return self.expression(kind(this=rows, ordinality=ordinality, alias=self._parse_table_alias()))

        def _parse_table(self, *args: Any, **options: Any) -> Any:
            """Parse a FROM item; one in parentheses may be a join that begins with LATERAL."""
            is_wrapped = self._curr and self._curr.token_type == TokenType.L_PAREN and self._next
            if not is_wrapped or self._next.token_type != TokenType.LATERAL:
                return super()._parse_table(*args, **options)
            self._advance()
            lateral = self._parse_lateral()
            lateral.set("joins", list(iter(self._parse_join, None)))
            self._match_r_paren()
            return self.expression(exp.Subquery(this=lateral))

        def _parse_unnest(self, with_alias: bool = True) -> exp.Unnest | None:
            """Leave UNNEST (a, b) to be parsed as any function: sqlglot takes the column of WITH ORDINALITY away."""
            return None

        def _parse_row_source(self) -> exp.Expr | None:
            call = self._parse_bitwise()
            if call is None or not self._match(TokenType.ALIAS):
                return call
            return self.expression(
                Defined(this=call, expressions=self._parse_wrapped_csv(self._parse_function_parameter))
            )

        def _parse_function_parameter(self) -> exp.Expr | None:
            """Parse a column alias, or a column's definition: name, type and collation."""
            name = self._parse_id_var()
            first = self._curr
            if name is None or first is None or first.token_type in (TokenType.COMMA, TokenType.R_PAREN):
                return name
            kind = self._parse_raw_type()
            if self._match(TokenType.COLLATE):
                self._parse_table_parts()
                kind = raw_type(self._find_sql(first, self._prev))
            return self.expression(exp.ColumnDef(this=name, kind=kind))

        def _parse_derived_table_values(self, allow_value_synonym: bool = False) -> exp.Values | None:
            """Parse VALUES, also in parentheses; if ORDER BY or UNION follows inside these, it is a query."""
            start = self._index
            if self._match_pair(TokenType.L_PAREN, TokenType.VALUES):
                self._parse_csv(self._parse_value)
                is_whole = self._match(TokenType.R_PAREN)
                self._retreat(start)
                return super()._parse_derived_table_values(allow_value_synonym) if is_whole else None
            if not self._match(TokenType.VALUES):
                return None
            rows = self.expression(RowsQuery(expressions=self._parse_csv(self._parse_value)))
            return self._parse_query_modifiers(rows)

        def _parse_table_sample(self, as_modifier: bool = False) -> exp.TableSample | None:
            """Parse TABLESAMPLE, of which nothing is asked but that it is there."""
            if not self._match(TokenType.TABLE_SAMPLE):
                return None
            method = self._parse_table_parts()
            seed = self._parse_wrapped(self._parse_bitwise) if self._match_text_seq("REPEATABLE") else None
            return self.expression(exp.TableSample(method=method, seed=seed))

        def _values_to_select(self, values: exp.Values) -> Any:
            # VALUES stay what they are, because a SELECT would be another query to PostgreSQL.
            return values

        def _parse_using_identifiers(self) -> list[exp.Expr]:
            names = super()._parse_using_identifiers()
            if names and self._match(TokenType.ALIAS) and (alias := self._parse_id_var()) is not None:
                names[-1].meta[JOIN_ALIAS] = alias.name
            return names

        def _parse_cte(self) -> Any:
            """Keep SEARCH … SET column, CYCLE … SET column [TO …] USING column with their WITH item."""
            cte = super()._parse_cte()
            first = self._curr
            if cte is None or first is None or first.text.upper() not in ("SEARCH", "CYCLE"):
                return cte
            search = self._parse_search() if self._match_text_seq("SEARCH") else None
            cycle = self._parse_cycle() if self._match_text_seq("CYCLE") else None
            cte.meta[_WALK] = Walk(self._find_sql(first, self._prev), search, cycle)
            return cte

        def _parse_search(self) -> Search:
            is_breadth = bool(self._match_text_seq("BREADTH"))
            self._match_text_seq("DEPTH")
            self._match_text_seq("FIRST", "BY")
            by = self._parse_names()
            self._match_text_seq("SET")
            return Search(is_breadth, by, self._parse_name())

        def _parse_cycle(self) -> Cycle:
            by = self._parse_names()
            self._match_text_seq("SET")
            mark = self._parse_name()
            value, default = "true", "false"
            if self._match_text_seq("TO"):
                value = self._parse_constant_text()
                self._match_text_seq("DEFAULT")
                default = self._parse_constant_text()
            self._match_text_seq("USING")
            return Cycle(by, mark, value, default, self._parse_name())

        def _parse_names(self) -> tuple[str, ...]:
            return tuple(name.name for name in self._parse_csv(self._parse_id_var) if name is not None)

        def _parse_name(self) -> str:
            name = self._parse_id_var()
            assert name is not None  # PostgreSQL has read it before
            return str(name.name)

        def _parse_constant_text(self) -> str:
            """Return the text of a constant, and of `text 'Y'`, as which alone PostgreSQL reads a typed one here, the
            text of the cast."""
            first = self._curr
            while self._curr and (
                self._curr.token_type in _NAMES_AND_STRINGS or self._curr.text.upper() not in _AFTER_MARK
            ):
                self._advance()
            text = str(self._find_sql(first, self._prev))
            typed = _TYPED_STRING.fullmatch(text)
            return f"{typed[2]}::{typed[1]}" if typed else text

    class Generator(PostgresGenerator):
        # DISTINCT in agg(DISTINCT a, b) applies to all arguments, so it is written as it stands.
        MULTI_ARG_DISTINCT = True
        TRANSFORMS: ClassVar[dict[Any, Any]] = {
            **PostgresGenerator.TRANSFORMS,
            Infix: lambda self, e: f"{self.sql(e, 'this')} {e.args['operator']} {self.sql(e, 'expression')}",
            Prefix: lambda self, e: f"{e.args['operator']} {self.sql(e, 'this')}",
            Constant: lambda self, e: e.this,
            Reading: lambda self, e: self.sql(e, "this"),
            exp.CurrentTime: lambda self, e: "CURRENT_TIME",
            IsTest: lambda self, e: f"{self.sql(e, 'this')} IS {e.args['words']}",
            Syntax: lambda self, e: f"{e.this}({' '.join(self.sql(x) for x in e.expressions)})",
            RowsFrom: lambda self, e: f"ROWS FROM ({self.expressions(e, flat=True)})",
            Defined: lambda self, e: f"{self.sql(e, 'this')} AS ({self.expressions(e, flat=True)})",
            exp.TableSample: lambda self, e: f" TABLESAMPLE {self.sql(e, 'method')}{self._repeatable(e)}",
            RowsQuery: lambda self, e: self.prepend_ctes(e, self.values_sql(e)),
        }

        def _repeatable(self, sample: exp.TableSample) -> str:
            seed = self.sql(sample, "seed")
            return f" REPEATABLE ({seed})" if seed else ""

        def array_sql(self, expression: exp.Array) -> str:
            rows = expression.expressions[0] if expression.expressions else None
            if isinstance(rows, exp.Values):
                return f"ARRAY({self.sql(rows)})"
            return super().array_sql(expression)

        def cte_sql(self, expression: exp.CTE) -> str:
            walk = walk_of(expression)
            return super().cte_sql(expression) + (f" {walk.text}" if walk else "")

        def window_sql(self, expression: exp.Window) -> str:
            text = super().window_sql(expression)
            named = f" OVER {self.sql(expression, 'alias')}"
            if expression.meta.get(IN_PARENTHESES) and expression.args.get("alias") and text.endswith(named):
                return f"{text.removesuffix(named)} OVER ({self.sql(expression, 'alias')})"
            return text

        def windowspec_sql(self, expression: exp.WindowSpec) -> str:
            if expression.args.get("end"):
                return super().windowspec_sql(expression)
            start = f"{self.sql(expression, 'start')} {self.sql(expression, 'start_side')}".rstrip()
            exclude = self.sql(expression, "exclude")
            return f"{self.sql(expression, 'kind')} {start}{f' EXCLUDE {exclude}' if exclude else ''}"

        def lateral_sql(self, expression: exp.Lateral) -> str:
            return super().lateral_sql(expression) + self.expressions(expression, key="joins", sep="", flat=True)

        def join_sql(self, expression: exp.Join, join_op: str | None = None) -> str:
            text = super().join_sql(expression, join_op)
            alias = using_alias(expression)
            return f"{text} AS {self.sql(exp.to_identifier(alias, quoted=True))}" if alias else text


CANONICAL = Canonical()

JOIN_ALIAS = "pgtrickle_join_alias"
"""The key under which the last column of USING (…) AS alias keeps that alias."""
IN_PARENTHESES = "pgtrickle_in_parentheses"
"""The mark on a window that names another one in parentheses."""
_WALK = "pgtrickle_walk"
"""The key under which a WITH item keeps its SEARCH and CYCLE."""
#: Words without quotes with which an argument may begin.
_ARGUMENT_WORDS = {"NULL", "TRUE", "FALSE", "CASE", "NOT", "ARRAY", "ROW", "EXISTS", "CAST", *_GRAMMAR, *_SYNTAX}


def walk_of(cte: exp.Expr) -> Walk | None:
    """Return the SEARCH and CYCLE of a WITH item."""
    found: Walk | None = cte.meta.get(_WALK)
    return found


def without_walk(cte: exp.CTE) -> exp.CTE:
    """Return a copy of a WITH item without SEARCH and CYCLE."""
    copy = cte.copy()
    copy.meta.pop(_WALK, None)
    return copy


def using_alias(join: exp.Join) -> str | None:
    names = join.args.get("using")
    alias: str | None = names[-1].meta.get(JOIN_ALIAS) if names else None
    return alias


def _bare(call: exp.Expr) -> None:
    """Take the quotes from the name of a call where PostgreSQL needs none."""
    innermost = call
    while isinstance(innermost, (exp.Window, exp.Filter, exp.WithinGroup, exp.Bracket)):
        innermost = innermost.this
    name = innermost.this if isinstance(innermost, exp.Anonymous) else None
    if isinstance(name, exp.Identifier) and _PLAIN.fullmatch(name.name) and name.name not in _KEYWORDS:
        innermost.set("this", name.name)


def _printed(text: str) -> str:
    """Return a type as `format_type` prints it without `quote_all_identifiers`."""
    bare = text[1:].split('"', 1)[0] if text.startswith('"') else ""
    return text.replace(f'"{bare}"', bare, 1) if bare in _PLAIN_TYPES else text
