"""Errors, by kind. They are those of PEP 249, and more precise ones below them."""


class Error(Exception):
    """An error of Alluvium.

    ``sqlstate`` is its kind as Postgres has it; ``line`` and ``column``, both counted from one, say where in the SQL it is, if it is
    somewhere in it. The text of the error then shows that line, with a caret.
    """

    message: str
    sqlstate: str | None
    line: int | None
    column: int | None

    def __init__(
        self,
        message: str = "",
        *,
        sqlstate: str | None = None,
        line: int | None = None,
        column: int | None = None,
        sql: str | None = None,
    ) -> None:
        super().__init__(_shown(message, line, column, sql))
        self.message = message
        self.sqlstate = sqlstate
        self.line = line
        self.column = column


class InterfaceError(Error):
    """The package is used wrongly: a closed handle, a handle in a forked process, rows of no known kind."""


class DatabaseError(Error):
    """An error of the engine."""


class ProgrammingError(DatabaseError):
    """The SQL cannot be parsed, or names something that does not exist."""


class NotSupportedError(DatabaseError):
    """The SQL needs something that is not supported."""


class DataError(DatabaseError):
    """The statement is fine, but not with this data: an overflow, a text that is no number."""


class IntegrityError(DatabaseError):
    """The data breaks a rule of its table: a key, NOT NULL, CHECK."""


class OperationalError(DatabaseError):
    """Something that the statement needs is not there, not allowed, or in the way."""


class InternalError(DatabaseError):
    """The engine has stopped because of a fault of its own. Open a new one."""


class SourceError(OperationalError):
    """A source cannot be read, or a sink written."""


class DeniedError(OperationalError):
    """The statement may not do this."""


class ViewFailedError(OperationalError):
    """A view has failed, or one that it reads, and is not kept up to date any more."""


class ConflictError(OperationalError):
    """Another transaction stands in the way. This one may succeed if it is run again."""


class BehindError(OperationalError):
    """A subscription has ended because it was further behind than it may be."""


class GoneError(OperationalError):
    """The changes since an epoch are not kept any more."""


class TimedOutError(OperationalError):
    """The statement took longer than it may."""


class InterruptedError(OperationalError):
    """The call was ended by :meth:`Database.interrupt`."""


class StateError(OperationalError):
    """A state directory cannot be opened: it is damaged, or another process has it."""


class Warning(Exception):  # noqa: A001 (its name in PEP 249)
    """Raised by nothing; PEP 249 has it."""


def _shown(message: str, line: int | None, column: int | None, sql: str | None) -> str:
    if line is None or column is None:
        return message
    placed = f"{line}:{column}: {message}"
    lines = (sql or "").splitlines()
    if not 0 < line <= len(lines):
        return placed
    text = lines[line - 1]
    start = column - 100 if len(text) > 200 and column > 100 else 0
    shown = text[start : start + 200]
    caret = "".join("\t" if character == "\t" else " " for character in shown[: column - 1 - start])
    return f"{placed}\n{shown}\n{caret}^"
