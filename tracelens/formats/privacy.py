"""What must not enter a case: keys and tokens never, prompts, answers and e-mail addresses only with ``--keep-text``.

The formats leave out what they know to be private.  This is the net under them, at the one place where every column of every
format passes: it looks at the text itself, whole columns at a time, behind a search for a few literal words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl

MASK: Final = "***"
"""What stands for a secret; that there was one is kept."""

_WORDS: Final = r"(?:api|access)[_-]?key|(?:hf|hub|access|auth|refresh|session|id|api|bearer|csrf)[_-]?token|secret(?:[_-]?\w+)?|passw(?:or)?d|passphrase|credentials?|private[_-]?key|signature|set-cookie|cookie"
_NAMED: Final = rf"""(?:{_WORDS})\\?["']?\s*[:=]\s*"""
_UNSET: Final = "\ue000"
"""Stands before None and its like while secrets are masked: that a key is not set is no secret."""
_SECRETS: Final = (
    # Authorization: Bearer abc, "authorization": "Basic abc"
    (
        r"""(?i)((?:proxy-)?authorization\\?["']?\s*[:=]\s*\\?["']?(?:(?:bearer|basic|token|digest|apikey|\*+)\s+)?)[^\s"',;\\]+""",
        "${1}" + MASK,
    ),
    (r"(?i)\b(bearer\s+)[A-Za-z0-9._~+/=-]{6,}", "${1}" + MASK),
    # api_key=abc, 'api_key': ['abc'], --api-key abc, OPENAI_API_KEY=abc
    (rf"(?i)({_NAMED})(None|null|true|false)\b", "${1}" + _UNSET + "${2}"),
    (rf"""(?i)({_NAMED}b?\\?")(?:[^"\\]|\\.)*""", "${1}" + MASK),
    (rf"""(?i)({_NAMED}b?\\?')(?:[^'\\]|\\.)*""", "${1}" + MASK),
    (rf"(?i)({_NAMED}\[)[^\]]+", "${1}" + f'"{MASK}"'),
    (rf"""(?i)({_NAMED})[^\s,;&"'()\[\]{{}}\\{_UNSET}][^\s,;&"'()\[\]{{}}]*""", "${1}" + MASK),
    (rf"""(?i)(--(?:{_WORDS})\s+["']?)[^\s"']+""", "${1}" + MASK),
    # token='abc', "token": "abc", ?token=abc, ?key=abc
    (r"""(?i)(\btoken\\?["']?\s*[:=]\s*\\?["'])[^"'\\\s]{8,}""", "${1}" + MASK),
    (r"""(?i)([?&;](?:token|key|sig|auth|code|pwd|pass|apikey)=)[^&\s"'#;]+""", "${1}" + MASK),
    # keys that are known by how they begin
    (
        r"\b(sk|pk|rk|hf|gh[pousr]|github_pat|glpat|nvapi|xox[abprs]|gsk|r8|whsec|dop_v1)([_-])(?:[A-Za-z0-9]+[_-])*[A-Za-z0-9]{10,}",
        "${1}${2}" + MASK,
    ),
    (r"\b(AKIA|ASIA|AIza)[0-9A-Za-z_-]{12,}", "${1}" + MASK),
    (r"\beyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?", MASK),
    (_UNSET, ""),
)
_ENDS: Final = ("=", ":", "'", '"', "\\", " =", " :")
"""What follows a name, where a value follows that."""
_SECRET_SIGNS: Final = (
    "authorization", "bearer", "api_key", "api-key", "apikey", "-token ", "secret", "passw", "passphrase", "credential", "private_key",
    "access_key", "access-key", "accesskey", "private-key", "cookie", "signature", "key=", "sig=", "auth=", "code=", "pwd=", "pass=",
    "sk-", "sk_", "pk-", "pk_", "rk-", "rk_", "hf_", "hf-", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat", "glpat", "nvapi", "xox",
    "gsk_", "r8_", "whsec", "dop_v1", "akia", "asia", "aiza", "eyj", *(f"token{end}" for end in _ENDS),
)  # fmt: skip

_EMAIL: Final = r"[A-Za-z0-9][A-Za-z0-9._%+-]*@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)*\.[A-Za-z]{2,}"
EMAIL_MASK: Final = "[e-mail]"
_LOGIN: Final = (r"(://[^\s/:@]*:)[^\s/@]+@", "${1}" + MASK + "@")
"""A password in an address."""

_SAID: Final = ("prompt", "prompts", "messages", "content", "generated_text", "output_text", "input_text", "completion", "reasoning", "reasoning_content")  # fmt: skip
"""Names of what was said, wherever they stand."""
_UNREAD: Final = (*_SAID, "message", "text", "input", "inputs", "output", "outputs", "response", "question", "answer", "query", "instruction", "system", "user", "assistant")  # fmt: skip
"""The same in a line that nobody understood."""


def _speech(names: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[tuple[str, str], ...]]:
    """Literal signs of text that was said, and the patterns to mask it."""
    named = rf"""\b(?:{"|".join(names)})\\?["']?\s*[:=]\s*\[?"""
    return tuple(f"{name}{end}" for name in names for end in _ENDS), (
        (rf"""(?i)({named}\\?")(?:[^"\\]|\\.)*""", "${1}" + MASK),
        (rf"""(?i)({named}\\?')(?:[^'\\]|\\.)*""", "${1}" + MASK),
    )


_SPEECH: Final = _speech(_SAID)
_UNREAD_SPEECH: Final = _speech(_UNREAD)
_ALL_SIGNS: Final = [*_SECRET_SIGNS, "@", *_SPEECH[0], *_UNREAD_SPEECH[0]]
_REST: Final = (
    rf"""(?is)(["']?\b(?:{"|".join(_UNREAD)})\\?["']?\s*[:=]\s*)[^\s*\d\[{{(<"'\\].*""",
    "${1}" + MASK,
)
"""Where no quotation marks tell its end, the line ends with what was said."""

_KEYED: Final = rf"(?i)^(?:.*[._-])?(?:{_WORDS}|token|authorization)$"
_NO_VALUE: Final = ("None", "none", "null", "", "False", "True", "[]", "['']")


def scrubbed(
    tables: Mapping[str, pl.DataFrame], *, keep_text: bool, prompt_key: int = 0
) -> dict[str, pl.DataFrame]:
    """The tables of a chunk, free of what a case may not hold; rows and columns stay as they are."""
    if not _shows_signs([frame[name] for frame in tables.values() for name in _texts(frame)]):
        return {name: _keys(frame) for name, frame in tables.items()}
    return {name: _scrubbed(name, frame, keep_text, prompt_key) for name, frame in tables.items()}


def scrubbed_text(text: str) -> str:
    """One text, free of the same."""
    return str(_told(pl.Series([text]), keep_text=False, is_free=True, is_unread=False)[0])


def _scrubbed(table: str, frame: pl.DataFrame, keep_text: bool, prompt_key: int) -> pl.DataFrame:
    changed: list[pl.Series] = []
    for name in _suspects(frame):
        column = frame[name]
        clean = _told(column, keep_text, is_free=not name.endswith("_id"), is_unread=name == "excerpt")
        if name.endswith("_id") and clean is not column:
            clean = _as_number(column, clean, prompt_key)
        if clean is not column:
            changed.append(clean)
    return _keys(frame.with_columns(changed) if changed else frame)


def _texts(frame: pl.DataFrame) -> list[str]:
    return [name for name, kind in frame.schema.items() if kind == pl.String]


def _shows_signs(columns: Sequence[pl.Series]) -> bool:
    """Whether any sign of anything private is in some columns of text.

    They are searched as one: to make the search ready takes as long as to search some ten thousand cells.
    """
    texts = [column.alias("") for column in columns]
    return bool(texts) and bool(
        pl.concat(texts, rechunk=False).str.contains_any(_ALL_SIGNS, ascii_case_insensitive=True).any()
    )


def _suspects(frame: pl.DataFrame) -> list[str]:
    """The columns of text in which any sign of anything private is found; most have none, and one search tells."""
    texts = _texts(frame)
    if not _shows_signs([frame[name] for name in texts]):
        return []
    return [name for name in texts if _shows_signs([frame[name]])]


def _told(column: pl.Series, keep_text: bool, *, is_free: bool, is_unread: bool) -> pl.Series:
    """A column without secrets; without e-mail addresses and without what was said, unless that is to be kept."""
    column = _masked(column, _SECRET_SIGNS, _SECRETS)
    column = _masked(column, ("@",), (_LOGIN,) if keep_text else (_LOGIN, (_EMAIL, EMAIL_MASK)))
    if keep_text or not is_free:
        return column
    if not is_unread:
        return _masked(column, *_SPEECH)
    signs, patterns = _UNREAD_SPEECH
    return _masked(column, signs, (*patterns, _REST))


def _masked(column: pl.Series, signs: tuple[str, ...], patterns: tuple[tuple[str, str], ...]) -> pl.Series:
    """The column with the patterns replaced, in those rows that show a sign of them; itself where none does."""
    shown = column.str.contains_any(list(signs), ascii_case_insensitive=True).fill_null(value=False)
    places = shown.arg_true()
    if places.is_empty():
        return column
    texts = column.gather(places)
    clean = texts
    for pattern, put in patterns:
        clean = clean.str.replace_all(pattern, put)
    return column if (clean == texts).all() else column.clone().scatter(places, clean)


def _as_number(column: pl.Series, clean: pl.Series, prompt_key: int) -> pl.Series:
    """An id that holds something private becomes a keyed number: ids that were equal stay equal, others differ."""
    differs = column.is_not_null() & (column != clean)
    numbers = column.hash(prompt_key & 0xFFFFFFFFFFFFFFFF).cast(pl.String)
    return pl.select(
        pl.when(differs).then(pl.lit("private-") + numbers).otherwise(column).alias(column.name)
    ).to_series()


def _keys(frame: pl.DataFrame) -> pl.DataFrame:
    """Rows of key and value: the value of a secret key is known to be there, not what it is."""
    if "key" not in frame.columns or "value" not in frame.columns or frame.schema["value"] != pl.String:
        return frame
    secret = pl.col("key").str.contains(_KEYED) & ~pl.col("value").is_in(_NO_VALUE)
    return frame.with_columns(value=pl.when(secret).then(pl.lit(MASK)).otherwise(pl.col("value")))
