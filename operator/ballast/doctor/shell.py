"""Commands of a shell script, with the variables expanded that the script itself sets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import tree_sitter_bash
from tree_sitter import Language, Node, Parser

_PLACEHOLDER = re.compile(r"\{\{.*?\}\}|\{%.*?%\}|(?<!<)<[A-Za-z](?:[\w -]*\w)?>", re.DOTALL)
"""What a template engine, or the reader of a manual, fills in: no shell would read it. <<EOF > file redirects."""
_JOINED = re.compile(r"(<<-?[ \t]*(['\"]?)\w+\2)(?=>)")
"""The parser takes <<EOF>file for one word."""
_STANDS_FOR = "__BALLAST_PLACEHOLDER_"
_HIDDEN = re.compile(rf"(\$\{{{_STANDS_FOR}\d+\}})")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED_IN_STRING = re.compile(r'\\([$`"\\])')
_ANSI_C = re.compile(
    r"\\(?:(?P<octal>[0-7]{1,3})|x(?P<hex>[0-9a-fA-F]{1,2})|u(?P<short>[0-9a-fA-F]{1,4})|U(?P<long>[0-9a-fA-F]{1,8})"
    r"|(?P<one>[abeEfnrtv\\'\"?]))"
)
_ANSI_C_ONE = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_CONDITIONAL = {
    "if_statement",
    "elif_clause",
    "else_clause",
    "while_statement",
    "for_statement",
    "c_style_for_statement",
    "case_statement",
    "case_item",
    "function_definition",
    "subshell",
}
_RUNS_ARGUMENTS = re.compile(r"(?:[{;&|!\n]|\b(?:if|then|else|do|eval|exec|nohup|sudo|time))\s*[\"']?\$\{?[@*]")
_RUN = ("command", "pipeline")
_OTHER_LANGUAGE = re.compile(
    r"python[\d.]*|ipython|pyspark|spark-shell|spark-sql|scala|beeline|psql|mysql|node|perl|ruby"
)
_ASSIGNS = {"declaration_command", "unset_command"}
_POSITIONAL = ("@", "*")


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    """As the program gets it. What is not known in it stays as it is written."""
    unknown: tuple[str, ...] = ()
    """Expansions in it that the script does not tell, as they are written."""
    many: bool = False
    """It is an expansion alone, and may stand for no word or for several."""
    assumed: tuple[str, ...] = ()
    """Expansions with a default, such as ${N:-4}: the default was taken."""


@dataclass(frozen=True, slots=True)
class Command:
    words: tuple[Word, ...]
    line: int


@dataclass(frozen=True, slots=True)
class Script:
    commands: tuple[Command, ...]
    texts: tuple[str, ...] = ()
    """Here-documents, which may be scripts themselves."""
    runners: frozenset[str] = frozenset()
    """Functions that run their arguments."""
    misread: tuple[int, ...] = ()
    """Lines whose syntax was not understood."""


_Variables = dict[str, list[Word]]


def read(text: str, unknown: Sequence[str] = ()) -> Script:
    """Every syntax of the shell is accepted. What is not understood is named in the result.

    `unknown` are the parts of the text whose value is not known, in their order.
    """
    originals: dict[str, str] = {}

    def hide(written: str) -> str:
        stand_in = f"${{{_STANDS_FOR}{len(originals)}}}"
        originals[stand_in] = written
        return stand_in

    for written in unknown:
        text = text.replace(written, hide(written), 1)
    source = _PLACEHOLDER.sub(lambda found: hide(found[0]), text.replace("\r\n", "\n"))
    source = _JOINED.sub(r"\1 ", source)
    tree = Parser(Language(tree_sitter_bash.language())).parse(source.encode())
    reader = _Reader(originals)
    reader.visit(tree.root_node, {})
    return Script(
        commands=tuple(reader.commands),
        texts=tuple(reader.texts),
        runners=frozenset(_runners(tree.root_node)),
        misread=tuple(sorted(set(reader.misread))),
    )


@dataclass(slots=True)
class _Builder:
    """Joins the parts of one argument to words, as the shell's word splitting does."""

    words: list[Word] = field(default_factory=list)
    text: str = ""
    unknown: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    begun: bool = False
    parts: int = 0
    many: bool = False
    one_word: bool = False
    """The value of an assignment, which is not split."""

    def literal(self, text: str) -> None:
        self.text += text
        self.begun = True
        self.parts += 1

    def hidden(self, written: str, *, many: bool) -> None:
        self.text += written
        self.unknown += (written,)
        self.begun = True
        self.parts += 1
        self.many = many

    def end(self) -> None:
        if self.begun:
            alone = self.many and self.parts == 1
            self.words.append(Word(self.text, self.unknown, many=alone, assumed=self.assumed))
        self.text, self.unknown, self.assumed, self.begun, self.parts, self.many = "", (), (), False, 0, False

    def value(self, word: Word, *, split: bool) -> None:
        """What a variable holds: in quotes it stays one word."""
        self.assumed += word.assumed
        if not split:
            self._part(word.text, word.unknown)
            self.many = word.many
            return
        # What is not known is hidden first: as it is written it may hold spaces.
        text = word.text
        for position, written in enumerate(word.unknown):
            text = text.replace(written, f"\0{position}\0", 1)
        pieces = text.split()
        if not pieces or text[0].isspace():
            self.end()
        for position, piece in enumerate(pieces):
            if position:
                self.end()
            inside = [word.unknown[int(each)] for each in re.findall(r"\0(\d+)\0", piece)]
            self._part(re.sub(r"\0(\d+)\0", lambda found: word.unknown[int(found[1])], piece), inside)
            self.many = bool(inside)
        if pieces and text[-1].isspace():
            self.end()

    def _part(self, text: str, unknown: Sequence[str]) -> None:
        self.text += text
        self.unknown += tuple(unknown)
        self.begun = True
        self.parts += 1 if text in unknown or not unknown else 2


class _Reader:
    """Follows a script from top to bottom. A value that a branch or a loop may change is not known behind it."""

    def __init__(self, originals: Mapping[str, str]) -> None:
        self._originals = originals
        self.commands: list[Command] = []
        self.texts: list[str] = []
        self.misread: list[int] = []

    def visit(self, node: Node, known: _Variables) -> None:
        if node.type == "ERROR" or node.is_missing:
            self.misread.append(node.start_point.row + 1)
        if node.type in _CONDITIONAL:
            self._branch(node.named_children, known, loop=node)
        elif node.type == "list":
            first, *others = node.named_children
            self.visit(first, known)
            self._branch(others, known)
        elif node.type == "variable_assignment":
            self._assign(node, known)
        elif node.type in _ASSIGNS:
            self._declare(node, known)
        elif node.type == "command":
            self._command(node, known)
        elif node.type == "heredoc_body":
            if not _read_as_another_language(node):
                self.texts.append(_text(node))
        else:
            for child in node.named_children:
                self.visit(child, known)

    def _branch(self, nodes: Iterable[Node], known: _Variables, *, loop: Node | None = None) -> None:
        inside = {name: list(words) for name, words in known.items()}
        variable = loop.child_by_field_name("variable") if loop is not None else None
        if variable is not None:
            inside.pop(_text(variable), None)
            known.pop(_text(variable), None)
        if loop is not None and loop.type == "function_definition":
            for name in _POSITIONAL:
                inside.pop(name, None)
        for each in nodes:
            self.visit(each, inside)
        for name in {*inside, *known}:
            before, after = known.get(name), inside.get(name)
            if before == after:
                continue
            more = f"what a branch adds to {name}"
            if before and after and after[: len(before)] == before:
                known[name] = [*before, Word(more, (more,), many=True)]
            elif before and after and len(before) == len(after) == 1 and after[0].text.startswith(before[0].text):
                known[name] = [Word(f"{before[0].text} {more}", (*before[0].unknown, more))]
            elif name in _POSITIONAL and loop is not None and loop.type == "function_definition":
                continue
            else:
                known.pop(name, None)

    def _declare(self, node: Node, known: _Variables) -> None:
        for child in node.named_children:
            if child.type == "variable_assignment":
                self._assign(child, known)
            elif child.type == "variable_name" and node.type == "unset_command":
                known[_text(child)] = []

    def _assign(self, node: Node, known: _Variables) -> None:
        target, value = node.child_by_field_name("name"), node.child_by_field_name("value")
        if target is None:
            return
        name = _text(target)
        if target.type == "subscript":
            known.pop(name.partition("[")[0], None)
            return
        appends = any(child.type == "+=" for child in node.children)
        if value is not None and value.type == "array":
            words = [word for each in value.named_children for word in self.words(each, known)]
            if not appends:
                known[name] = words
            elif name in known:
                known[name] = [*known[name], *words]
            return
        word = self._one(value, known) if value is not None else Word("")
        if not appends:
            known[name] = [word]
        elif name in known:
            first = known[name][0] if known[name] else Word("")
            joined = Word(first.text + word.text, first.unknown + word.unknown, assumed=first.assumed + word.assumed)
            known[name] = [joined, *known[name][1:]]

    def _one(self, node: Node, known: _Variables) -> Word:
        """The value of an assignment is not split into words."""
        builder = _Builder(one_word=True)
        self._add(node, known, builder, quoted=True)
        builder.end()
        return replace(builder.words[0], many=False) if builder.words else Word("")

    def _command(self, node: Node, known: _Variables) -> None:
        words: list[Word] = []
        for child in node.named_children:
            if child.type in ("variable_assignment", "file_redirect", "herestring_redirect"):
                continue
            inner = child.named_children[0] if child.type == "command_name" and child.named_children else child
            words += self.words(inner, known)
        if len(words) > 1 and (words[0].text, words[1].text) == ("set", "--"):
            known["@"] = known["*"] = words[2:]
        elif words:
            self.commands.append(Command(tuple(words), node.start_point.row + 1))

    def words(self, node: Node, known: _Variables) -> list[Word]:
        builder = _Builder()
        self._add(node, known, builder, quoted=False)
        builder.end()
        return builder.words

    def _add(self, node: Node, known: _Variables, builder: _Builder, *, quoted: bool) -> None:
        kind, text = node.type, _text(node)
        if kind == "comment":
            return
        if kind == "concatenation":
            for child in node.children:
                self._add(child, known, builder, quoted=quoted)
        elif kind in ("string", "translated_string"):
            self._string(node, known, builder)
        elif kind == "raw_string":
            self._raw(text[1:-1], builder)
        elif kind == "ansi_c_string":
            self._raw(_ANSI_C.sub(_decoded, text[2:-1]), builder)
        elif kind == "simple_expansion":
            self._expand(text, text[1:], known, builder, quoted=quoted)
        elif kind == "expansion":
            self._braces(node, known, builder, quoted=quoted)
        elif "$" in _ESCAPED.sub("", text) or "`" in text or kind == "process_substitution":
            self._run(node, known)
            builder.hidden(self._shown(text), many=not quoted)
        else:
            builder.literal(_ESCAPED.sub(lambda found: "" if found[1] == "\n" else found[1], text))

    def _run(self, node: Node, known: _Variables) -> None:
        """What is between $( and ) runs, too; what it prints is not known."""
        if node.type == "command_substitution":
            for child in node.named_children:
                self.visit(child, dict(known))

    def _raw(self, text: str, builder: _Builder) -> None:
        """No expansion of the shell's, but a template engine fills in its own within quotes, too."""
        first, *others = _HIDDEN.split(text)
        builder.literal(first)
        for stand_in, literal in zip(others[::2], others[1::2], strict=True):
            builder.hidden(self._shown(stand_in), many=False)
            if literal:
                builder.literal(literal)

    def _string(self, node: Node, known: _Variables, builder: _Builder) -> None:
        source, at = node.text or b"", node.start_byte
        end = 1
        builder.literal("")
        builder.parts -= 1
        for child in node.named_children:
            if child.type == "string_content":
                continue
            self._plain(source[end : child.start_byte - at], builder)
            self._add(child, known, builder, quoted=True)
            end = child.end_byte - at
        self._plain(source[end:-1].removeprefix(b'"') if node.type == "translated_string" else source[end:-1], builder)

    def _plain(self, part: bytes, builder: _Builder) -> None:
        if part:
            text = part.decode(errors="replace").replace("\\\n", "")
            builder.literal(_ESCAPED_IN_STRING.sub(r"\1", text))

    def _braces(self, node: Node, known: _Variables, builder: _Builder, *, quoted: bool) -> None:
        text = _text(node)
        plain = re.fullmatch(r"\$\{(\w+|[@*])(\[[@*]\])?\}", text)
        if plain is not None:
            everything = bool(plain[2]) or plain[1] in _POSITIONAL
            self._expand(text, plain[1], known, builder, quoted=quoted, everything=everything)
            return
        default = re.fullmatch(r"\$\{(\w+)(:?[-=])(.*)\}", text, re.DOTALL)
        if default is None:
            builder.hidden(self._shown(text), many=not quoted)
            return
        name = default[1]
        if name in known and (known[name] or ":" not in default[2]):
            self._expand(text, name, known, builder, quoted=quoted)
            return
        inner = read(f"x {default[3]}").commands
        words = inner[0].words[1:] if inner else ()
        if any(word.unknown for word in words):
            builder.hidden(self._shown(text), many=not quoted)
            return
        value = Word(" ".join(word.text for word in words), assumed=(self._shown(text),))
        if "=" in default[2]:
            known[name] = [value]
        builder.value(value, split=not quoted)

    def _expand(
        self, text: str, name: str, known: _Variables, builder: _Builder, *, quoted: bool, everything: bool = False
    ) -> None:
        everything = everything or name in _POSITIONAL
        values = known.get(name)
        if values is None:
            builder.hidden(self._shown(text), many=everything or not quoted)
            return
        if not everything:
            builder.value(values[0] if values else Word(""), split=not quoted)
            return
        joined = quoted and (builder.one_word or text in ("$*", "${*}") or text.endswith("[*]}"))
        for position, word in enumerate(values):
            if position and joined:
                builder.literal(" ")
            elif position:
                builder.end()
            builder.value(word, split=not quoted)

    def _shown(self, text: str) -> str:
        for placeholder, original in self._originals.items():
            text = text.replace(placeholder, original)
        return " ".join(text.split())


def _text(node: Node) -> str:
    return (node.text or b"").decode(errors="replace")


def _runners(node: Node) -> Iterator[str]:
    if node.type == "function_definition" and _RUNS_ARGUMENTS.search(_text(node)):
        yield _text(node.named_children[0])
    for child in node.named_children:
        yield from _runners(child)


def _read_as_another_language(body: Node) -> bool:
    """A here-document whose command, or the pipe behind it, is the interpreter of another language."""
    redirect = body.parent
    statement = redirect.parent if redirect is not None else None
    if redirect is None or statement is None:
        return False
    around = [each for each in (*statement.named_children, *redirect.named_children) if each.type in _RUN]
    return any(_OTHER_LANGUAGE.fullmatch(word.rpartition("/")[2]) for each in around for word in _text(each).split())


def _decoded(escape: re.Match[str]) -> str:
    """Text that is no escape of the shell's stays as it is."""
    if escape["one"]:
        return _ANSI_C_ONE.get(escape["one"], escape["one"])
    if escape["octal"]:
        return chr(int(escape["octal"], 8) & 0xFF)
    code = int(escape["hex"] or escape["short"] or escape["long"], 16)
    return chr(code) if code < 0x110000 else escape[0]
