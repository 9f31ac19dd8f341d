"""Applications that a shell script or a command line submits."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from ballast.doctor import shell
from ballast.doctor.shell import Command, Word
from ballast.doctor.spark_version import SparkVersion, version_of_image, version_of_packages
from ballast.doctor.starts import Start, starts
from ballast.doctor.submission import (
    DRIVER_LABEL,
    EXECUTOR_LABEL,
    EXECUTOR_TEMPLATE,
    Form,
    Passed,
    Submission,
    labeled,
    properties,
)
from ballast.errors import InvalidField

_PROGRAMS = {
    "spark-submit",
    "spark3-submit",
    "spark-shell",
    "spark-sql",
    "pyspark",
    "start-connect-server.sh",
    "start-thriftserver.sh",
}
_CLIENTS = _PROGRAMS - {"spark-submit", "spark3-submit"}
"""Their driver always runs where they were started."""
_WITHOUT_VALUE = {
    "--verbose",
    "-v",
    "--supervise",
    "--help",
    "-h",
    "--version",
    "--usage-error",
    "--load-spark-defaults",
}
_SETTINGS: Mapping[str, str] = {
    "--master": "spark.master",
    "--deploy-mode": "spark.submit.deployMode",
    "--num-executors": "spark.executor.instances",
    "--executor-memory": "spark.executor.memory",
    "--executor-cores": "spark.executor.cores",
    "--driver-memory": "spark.driver.memory",
    "--driver-cores": "spark.driver.cores",
    "--driver-java-options": "spark.driver.extraJavaOptions",
    "--packages": "spark.jars.packages",
    "--jars": "spark.jars",
}
"""Options that stand for a setting, and override --conf."""
_OTHERS = {
    "--class",
    "--name",
    "--exclude-packages",
    "--repositories",
    "--py-files",
    "--files",
    "--archives",
    "--driver-library-path",
    "--driver-class-path",
    "--proxy-user",
    "--total-executor-cores",
    "--principal",
    "--keytab",
    "--queue",
    "--remote",
}
_CONF = ("--conf", "-c")
_KNOWN = {*_CONF, "--properties-file", *_SETTINGS, *_OTHERS, *_WITHOUT_VALUE}
_IMAGES = (
    "spark.kubernetes.executor.container.image",
    "spark.kubernetes.container.image",
    "spark.kubernetes.driver.container.image",
)
Settings = Mapping[str, str]
_SPACE_BEHIND_BACKSLASH = re.compile(r"\\[ \t]+$", re.MULTILINE)
_NO_HYPHEN = re.compile(r"[\u2012-\u2015\u2212]+[a-z]")
_NO_QUOTE = re.compile("[\u2018-\u201f]")
"""What text programs make of hyphens and quotes in a command that is copied from them."""


def from_script(text: str, source: str, settings_of: Callable[[str], Settings | None]) -> list[Submission]:
    """Each application that the script submits.

    `settings_of` gives the settings of a properties file, or None if it can't be read. Raises InvalidField for what
    submits nothing to Spark.
    """
    script = shell.read(text)
    found = list(starts(script, _PROGRAMS))
    submitting = {id(each.command) for each in found}
    found += [
        Start(each, "spark-submit", each.words[1:])
        for each in script.commands
        if id(each) not in submitting and _looks_like_one(each)
    ]
    found += [each for inner in script.texts for each in starts(shell.read(inner), _PROGRAMS)]
    found = sorted(filter(_submits, found), key=lambda each: each.command.line)
    if not found:
        raise InvalidField("--spark-submit", _excerpt(text), _why_not(text))
    misread = tuple(Passed(f"what stands near line {line}: its syntax") for line in script.misread)
    return [
        _Reading(source if len(found) == 1 else f"{source}: line {each.command.line}").read(
            each, settings_of, (*misread, *_broken_off(script.commands, each.command))
        )
        for each in found
    ]


def _is_program(word: str) -> bool:
    return PurePosixPath(word).name in _PROGRAMS


def _submits(start: Start) -> bool:
    """With options or an application, and for more than its help."""
    return bool({word.text for word in start.words} - _WITHOUT_VALUE)


def _looks_like_one(command: Command) -> bool:
    """The program's name is in a variable that the script does not set."""
    first, *others = command.words
    return bool(first.unknown) and any(word.text in (*_CONF, "--deploy-mode", "--master") for word in others)


def _excerpt(text: str) -> str:
    line = next((each for each in text.splitlines() if each.strip() and not each.startswith("#")), "")
    return line if len(line) <= 80 else f"{line[:79]}…"


def _why_not(text: str) -> str:
    if re.search(r"kind:\s*\w*Spark(Application|Connect)", text):
        return "it is a resource: read it with -f"
    if broken := _SPACE_BEHIND_BACKSLASH.search(text):
        number = text.count("\n", 0, broken.start()) + 1
        return f"line {number} has a space behind its last backslash, so the command ends there: delete the space"
    if "spark-submit" in text:
        return "no spark-submit in it that a shell starts with options: give the command line alone"
    return "no spark-submit in it: write the whole command, or name a file that has it"


def _broken_off(commands: Sequence[Command], submitting: Command) -> tuple[Passed, ...]:
    """Options that begin a line by themselves: the one before lacks its backslash or is a comment."""
    behind = commands[commands.index(submitting) + 1 :] if submitting in commands else ()
    until_next = itertools.takewhile(lambda each: not any(_is_program(word.text) for word in each.words), behind)
    return tuple(
        Passed(f"line {each.line}, which begins with {each.words[0].text} and which the shell takes for a new command")
        for each in until_next
        if each.words[0].text in _KNOWN
    )


@dataclass(slots=True)
class _Reading:
    source: str
    conf: dict[str, str] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    passed: list[Passed] = field(default_factory=list)

    def read(
        self,
        start: Start,
        settings_of: Callable[[str], Settings | None],
        passed: Sequence[Passed],
    ) -> Submission:
        options, arguments = self._options(start.words)
        self._refuse_typography((*(value for _, value in options), *arguments[:1]))
        main_class = ""
        for name, value in options:
            if name == "--properties-file":
                self._properties_file(value, settings_of)
        for name, value in options:
            if name in _CONF:
                self._conf(name, value)
            elif name == "--class":
                main_class = value.text
        for name, value in options:
            if name in _SETTINGS:
                self._set(_SETTINGS[name], value)
            elif name not in _CONF and name != "--properties-file":
                self._named(value, hides=False)
        self.passed += passed
        if EXECUTOR_TEMPLATE in self.conf:
            self.passed.append(Passed(f"the pod template {self.conf[EXECUTOR_TEMPLATE]}"))
        everything = {**self.conf, **self.unread}
        client = start.program in _CLIENTS or self.conf.get("spark.submit.deployMode", "client") == "client"
        return Submission(
            source=self.source,
            form=Form.COMMAND,
            conf=self.conf,
            unread=self.unread,
            executor_labels=labeled(everything, EXECUTOR_LABEL),
            driver_labels=labeled(everything, DRIVER_LABEL),
            packages=packages_of(everything),
            arguments=tuple(word.text for word in arguments),
            passed=tuple(dict.fromkeys(self.passed)),
            version=version_in(self.conf),
            client_mode=client and "spark.submit.deployMode" not in self.unread,
            python=start.program == "pyspark" or any(word.text.endswith(".py") for word in arguments[:1]),
            main_class=main_class,
            main_file=next((word.text for word in arguments if not word.unknown), ""),
        )

    def _options(self, words: Sequence[Word]) -> tuple[list[tuple[str, Word]], Sequence[Word]]:
        """Names and values, and the application with its arguments."""
        options: list[tuple[str, Word]] = []
        at = 0
        while at < len(words):
            word, behind = words[at], words[at + 1] if at + 1 < len(words) else None
            if word.unknown and not word.text.startswith("-"):
                lone = word.many or word.text in word.unknown
                if not (lone and (behind is None or word.many or behind.text.partition("=")[0] in _KNOWN)):
                    break
                # Options, or the application: a word that may be several ends nothing by itself.
                self._named(word)
                at += 1
                if behind is not None and not behind.text.startswith("-") and not behind.unknown:
                    break
                continue
            if not word.text.startswith("-"):
                break
            name, separator, value = word.text.partition("=")
            at += 1
            if separator and name.startswith("--"):
                options.append((name, Word(value, word.unknown, assumed=word.assumed)))
            elif word.text == "--load-spark-defaults":
                self.passed.append(Passed("spark-defaults.conf of the Spark that submits"))
            elif word.text not in _WITHOUT_VALUE and behind is not None:
                options.append((word.text, behind))
                at += 1
        rest = words[at:]
        for word in rest:
            self._named(word, hides=False)
        return options, rest

    def _refuse_typography(self, words: Sequence[Word]) -> None:
        """Raises InvalidField for what was copied from a text program: the rest of the command is not what it seems."""
        for word in words:
            if _NO_HYPHEN.match(word.text) or _NO_QUOTE.match(word.text):
                told = 'it begins with a dash or a quote that no shell knows: write - and " instead'
                raise InvalidField(self.source, word.text, told)

    def _named(self, word: Word, *, hides: bool = True) -> None:
        self.passed += [Passed(each, hides) for each in word.unknown]
        self.passed += [Passed(f"{each}, read as its default", hides=False) for each in word.assumed]

    def _properties_file(self, value: Word, settings_of: Callable[[str], Settings | None]) -> None:
        settings = None if value.unknown else settings_of(value.text)
        if settings is None:
            self.passed.append(Passed(f"the properties file {value.text}"))
        else:
            self.conf.update(settings)

    def _conf(self, option: str, value: Word) -> None:
        key, separator, text = value.text.partition("=")
        hidden = value.unknown and (not separator or any(each in key for each in value.unknown))
        if hidden:
            self._named(value)
        elif not separator:
            raise InvalidField(f"{self.source}: {option}", value.text, "write KEY=VALUE")
        else:
            self._set(key, Word(text, value.unknown, assumed=value.assumed))

    def _set(self, key: str, value: Word) -> None:
        self._named(value, hides=False)
        (self.unread if value.unknown else self.conf)[key] = value.text
        (self.conf if value.unknown else self.unread).pop(key, None)


def from_properties(text: str, source: str) -> Submission:
    conf = properties(text)
    passed = [Passed(f"the pod template {conf[EXECUTOR_TEMPLATE]}")] if EXECUTOR_TEMPLATE in conf else []
    return Submission(
        source=source,
        form=Form.PROPERTIES,
        conf=conf,
        executor_labels=labeled(conf, EXECUTOR_LABEL),
        driver_labels=labeled(conf, DRIVER_LABEL),
        packages=packages_of(conf),
        passed=tuple(passed),
        version=version_in(conf),
        client_mode=conf.get("spark.submit.deployMode") == "client",
    )


def packages_of(conf: Settings) -> str:
    return " ".join(filter(None, (conf.get("spark.jars.packages"), conf.get("spark.jars"))))


def version_in(conf: Settings) -> SparkVersion | None:
    """By the packages that come with Spark, or by the image's tag."""
    key = "spark.jars.packages"
    told = version_of_packages(conf.get(key, ""), key)
    return told or next(filter(None, (version_of_image(conf.get(each, ""), each) for each in _IMAGES)), None)
