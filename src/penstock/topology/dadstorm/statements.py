"""What a DADSTORM file says, statement by statement: operators, settings and commands as written.

Lines are told apart by how they begin. A line that fits nothing is a warning, because real files
contain comments that wrapped without their `%`; the same goes for a line under a comment that begins
with a keyword by chance.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from penstock.topology.dadstorm.tokens import (
    Line,
    Section,
    Setting,
    Token,
    keyword_at,
    setting_at,
    split_lines,
    values_of,
)
from penstock.topology.model import Command, Location
from penstock.topology.problems import Problem, suggest

PARAMETERS = {
    "FILTER": "field,condition,value",
    "UNIQ": "field",
    "COUNT": "",
    "DUP": "",
    "CUSTOM": "library,class,method",
}
"""The operator types and what each takes."""

COMMANDS = {
    "Start": "OPERATOR",
    "Interval": "OPERATOR MILLISECONDS",
    "Status": "",
    "Crash": "OPERATOR REPLICA",
    "Freeze": "OPERATOR REPLICA",
    "Unfreeze": "OPERATOR REPLICA",
    "Wait": "MILLISECONDS",
}
"""The commands and what each takes; a replica's URL may stand for OPERATOR REPLICA."""

_VERBS = {verb.lower(): verb for verb in COMMANDS}
_WORDS = (*COMMANDS, *Setting, *Section)
_URL = re.compile(r"\w+://\S+$")


@dataclass
class OperatorText:
    """One operator as written: its id and the tokens of each section."""

    id: Token
    sections: dict[Section, list[Token]] = field(default_factory=dict)

    def values(self, section: Section) -> tuple[Token, ...]:
        return values_of(self.sections.get(section, ()))


@dataclass(frozen=True)
class SettingText:
    """A setting as written, for example `Semantics` with `exactly-once`."""

    setting: Setting
    value: str
    line: int


@dataclass
class Script:
    """A whole file, in order; commands are not yet checked against the operators."""

    operators: list[OperatorText] = field(default_factory=list)
    settings: list[SettingText] = field(default_factory=list)
    commands: list[Command] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


def read_script(text: str, file_name: str) -> Script:
    """Take a file apart; what is wrong with it is in `problems`, nothing is raised."""
    reader = _ScriptReader(file_name)
    for line in split_lines(text):
        reader.take(line)
    reader.finish()
    return reader.script


class _ScriptReader:
    """Reads line by line; remembers the operator that the next line may go on with."""

    def __init__(self, file_name: str) -> None:
        self.script = Script()
        self._file_name = file_name
        self._operator: OperatorText | None = None
        self._section: Section | None = None
        """The section whose values may go on in the next line."""
        self._lone_word: Line | None = None
        """A line of one unknown word: an id, if `input_ops` follows."""
        self._in_comment = False
        """True just under a comment, where a line without % may still belong to it."""

    def take(self, line: Line) -> None:
        if not line.tokens:
            self._in_comment = line.comment
            self._section = self._section if line.comment else None
            return
        self._understand(line)
        if line.comment:
            self._in_comment = True

    def finish(self) -> None:
        self._drop_lone_word()

    def _understand(self, line: Line) -> None:
        tokens = line.tokens
        keyword = keyword_at(tokens, 0)
        if keyword is not None:
            self._begin_section(line, keyword[0])
            return
        self._drop_lone_word()
        second = keyword_at(tokens, 1)
        if second is not None and second[0] is Section.INPUT_OPS:
            self._begin_operator(tokens[0], tokens[1:])
        elif (setting := setting_at(tokens, 0)) is not None:
            self._take_setting(line, *setting)
        elif not tokens[0].quoted and tokens[0].text.lower() in _VERBS:
            self._take_command(line, _VERBS[tokens[0].text.lower()])
        elif self._goes_on(tokens):
            self._fill(tokens)
        elif _count_keywords(tokens) >= (3 if self._in_comment else 1 if second else 2):
            self._begin_unusual_operator(tokens)
        elif len(tokens) == 1 and not tokens[0].quoted:
            self._lone_word = line
        else:
            self._ignore(line)

    def _begin_section(self, line: Line, section: Section) -> None:
        """A line that begins with a keyword goes on with the operator above it."""
        lone_word, self._lone_word = self._lone_word, None
        if lone_word is not None and section is Section.INPUT_OPS:
            self._begin_operator(lone_word.tokens[0], line.tokens)
            return
        if lone_word is not None:
            self._ignore(lone_word)
        taken = self._operator is None or section in self._operator.sections
        if taken and self._in_comment:
            self._ignore(line)
        elif self._operator is None:
            self._report(line.number, f"'{section}' stands outside an operator",
                         "begin the operator with its id: OP1 input_ops …")
        else:
            self._fill(line.tokens)

    def _begin_operator(self, name: Token, rest: Sequence[Token]) -> None:
        self._operator = OperatorText(name)
        self.script.operators.append(self._operator)
        self._section = None
        self._fill(rest)

    def _begin_unusual_operator(self, tokens: Sequence[Token]) -> None:
        """A line with keywords that is no text: its sections in another order, or `input_ops` misspelt."""
        if keyword_at(tokens, 1) is not None:
            self._begin_operator(tokens[0], tokens[1:])
            return
        found = tokens[1]
        self._report(found.line, f"operator {tokens[0].text}: '{found.text}' where input_ops belongs",
                     suggest(found.text, Section) or "write: OP1 input_ops SOURCE …")
        self._begin_operator(tokens[0], (Token(Section.INPUT_OPS, found.line), *tokens[2:]))

    def _fill(self, tokens: Sequence[Token]) -> None:
        """Add tokens to the sections of the current operator."""
        operator = self._operator
        assert operator is not None
        index = 0
        while index < len(tokens):
            token = tokens[index]
            # After a comma in the parameters even `routing` is a value: FILTER 2,=,routing
            is_parameter = self._section is Section.OPERATOR_SPEC and index > 0 and tokens[index - 1].is_comma
            keyword = None if is_parameter else keyword_at(tokens, index)
            if keyword is not None:
                self._section = keyword[0]
                if keyword[0] in operator.sections:
                    self._report(token.line, f"operator {operator.id.text}: {keyword[0]} is given twice",
                                 "keep one of them")
                operator.sections[keyword[0]] = []
                index += keyword[1]
                continue
            if not token.closed:
                self._report(token.line, f"operator {operator.id.text}: a quote is never closed",
                             f'write "{token.text.rstrip()}"')
            if self._section is not None:
                operator.sections[self._section].append(token)
            index += 1
        self._in_comment = False

    def _goes_on(self, tokens: Sequence[Token]) -> bool:
        """Whether a line without a keyword of its own goes on with the section above it."""
        if self._operator is None or self._section is None:
            return False
        if self._section is Section.ADDRESS and _URL.match(tokens[0].text):
            return True
        return tokens[0].is_comma or _wants_more(self._section, self._operator.sections[self._section])

    def _take_setting(self, line: Line, setting: Setting, width: int) -> None:
        value = "-".join(token.text for token in values_of(line.tokens[width:]))
        known = {Setting.SEMANTICS: ("at-most-once", "at-least-once", "exactly-once"),
                 Setting.LOGGING_LEVEL: ("full", "light")}[setting]
        spelled = value.lower().replace("_", "-")
        if spelled in known:
            if any(earlier.setting is setting for earlier in self.script.settings):
                self._report(line.number, f"{setting} is set again; the last one counts", severity="warning")
            self.script.settings.append(SettingText(setting, spelled, line.number))
            self._in_comment = False
        elif self._in_comment:
            self._ignore(line)
        else:
            found = f"not '{value}'" if value else "but it has none"
            self._report(line.number, f"{setting} takes one of {', '.join(known)}, {found}",
                         suggest(value, known))

    def _take_command(self, line: Line, verb: str) -> None:
        self._section = None
        where = Location(self._file_name, line.number)
        arguments = _command_arguments(verb, values_of(line.tokens[1:]))
        if arguments is not None:
            self.script.commands.append(Command(verb, arguments, where=where))
            self._in_comment = False
        elif self._in_comment:
            self._ignore(line)
        else:
            self._report(line.number, f"'{line.text}' is not a command",
                         f"write: {verb} {COMMANDS[verb]}".rstrip())

    def _drop_lone_word(self) -> None:
        if self._lone_word is not None:
            self._ignore(self._lone_word)
        self._lone_word = None

    def _ignore(self, line: Line) -> None:
        """Say that a line fits nothing, and what it might have been."""
        near = suggest(line.tokens[0].text, _WORDS)
        hint = "begin comments with %"
        if self._in_comment:
            hint = "begin it with % if it belongs to the comment above"
        shown = line.text if len(line.text) <= 60 else line.text[:59] + "…"
        self._report(line.number, f"'{shown}' is no operator, setting or command; ignored",
                     f"{near} otherwise {hint}" if near else hint, "warning")

    def _report(self, line: int, message: str, hint: str = "", severity: str = "error") -> None:
        where = Location(self._file_name, line)
        self.script.problems.append(
            Problem(where, message, hint, "warning" if severity == "warning" else "error"))


def _count_keywords(tokens: Sequence[Token]) -> int:
    return sum(keyword_at(tokens, index) is not None for index in range(1, len(tokens)))


def _wants_more(section: Section, tokens: Sequence[Token]) -> bool:
    """Whether a section is not complete with `tokens`, so that the next line must go on with it."""
    values = values_of(tokens)
    if not values or tokens[-1].is_comma:
        return True
    if section is Section.ROUTING:
        return len(values) == 1 and values[0].text.lower() == "hashing"
    if section is Section.OPERATOR_SPEC:
        parameters = PARAMETERS.get(values[0].text.upper(), "")
        return len(values) <= len(parameters.split(",")) if parameters else False
    return False


def _command_arguments(verb: str, values: Sequence[Token]) -> tuple[str, ...] | None:
    """The arguments in their plain form, milliseconds without `ms`; None when they do not fit the command."""
    words = [value.text for value in values]
    wanted = COMMANDS[verb].split()
    if "MILLISECONDS" in wanted and words:
        last = re.sub(r"(?i)(?<=\d)ms$", "", words.pop())
        words += [] if last.lower() == "ms" else [last]
    if "REPLICA" in wanted and len(words) == 1 and _URL.match(words[0]):
        return (words[0],)
    if len(words) != len(wanted):
        return None
    numbers = [word for word, name in zip(words, wanted, strict=True) if name != "OPERATOR"]
    return tuple(words) if all(number.isascii() and number.isdigit() for number in numbers) else None
