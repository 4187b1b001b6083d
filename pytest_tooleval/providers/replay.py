"""Record and replay at the seam between the agent loop and a model API, whatever the provider.

A conversation stands where the provider would. What it gives to the loop is the same when it records and when it
replays: the reply as it stands in the cassette, with this run's paths.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias

from pytest_tooleval.cases.case import ToolUseCase
from pytest_tooleval.errors import CaseError, ProviderError
from pytest_tooleval.measures.text import common_start
from pytest_tooleval.providers.account import REDACTED
from pytest_tooleval.providers.cassette import Asked, Cassette, Exchange, Frame, Label, cassette_text
from pytest_tooleval.providers.cassette_file import RECORD_ANEW, CassetteFile
from pytest_tooleval.providers.cassette_name import cassette_path
from pytest_tooleval.providers.cassette_reader import decode_cassette
from pytest_tooleval.providers.places import Places, with_texts
from pytest_tooleval.providers.provider import ChatRequest, Provider
from pytest_tooleval.providers.request_changes import frame_changes, label_changes, message_changes
from pytest_tooleval.transcript import AssistantMessage, Message

CassetteMode: TypeAlias = Literal["record", "replay", "extend"]

_MOST_CHANGES = 8
_NOT_TO_BE_WRITTEN = (
    "it holds a value that is kept secret, as those of environment variables are whose names speak of keys or "
    "passwords; unset that variable, or run without recording"
)
_NOWHERE = Places()


class StaleCassetteError(ProviderError):
    """A run that is only to replay asks what was not recorded."""


@dataclass(frozen=True, slots=True)
class Secrecy:
    """What may not be written; see `CassetteShelf`."""

    redact: Callable[[str], str]
    holds_secret: Callable[[str], bool]

    def redacted(self, exchanges: Sequence[Exchange]) -> list[Exchange]:
        """Return exchanges without secrets in their requests."""
        return [replace(each, asked=with_texts(each.asked, self.redact, self.redact)) for each in exchanges]

    def is_clean(self, reply: AssistantMessage) -> bool:
        """Whether no text of a reply holds a secret."""
        return with_texts(reply, self._hidden, self._hidden) == reply

    def _hidden(self, text: str) -> str:
        return REDACTED if self.holds_secret(text) else text


class CassetteShelf:
    """The cassettes of one suite. Safe to use from many threads.

    Args:
        folder: where they stand.
        mode: `record` asks the provider every time, `replay` never, `extend` from where the recording no longer
            fits.
        redact: replaces secrets in what is written of a request by `[redacted]`, which fits any text in a replay.
        holds_secret: whether a text holds a secret, so that a reply with it cannot be recorded; by default whether
            `redact` changes it. One that knows values and no patterns lets a model speak of bearer tokens.
        shown: the folder's name in messages, `folder` by default.

    """

    def __init__(
        self,
        folder: Path,
        mode: CassetteMode,
        redact: Callable[[str], str] = str,
        holds_secret: Callable[[str], bool] | None = None,
        shown: Path | None = None,
    ) -> None:
        self._folder = folder.absolute()
        self._mode = mode
        self._secrecy = Secrecy(redact, holds_secret or (lambda text: redact(text) != text))
        self._shown = folder if shown is None else shown

    def conversation(
        self, case: ToolUseCase, target: str, trial: int, provider: Provider | None, places: Places = _NOWHERE
    ) -> Conversation:
        """Return what stands for the provider in one run of a case; nothing is read or asked yet.

        Args:
            case: the case.
            target: the target's name.
            trial: 1-based repetition of the case.
            provider: who is asked when the mode is not `replay`; never closed here.
            places: the folders of the run.

        Raises:
            ValueError: the mode is not `replay`, and there is no provider.

        """
        if provider is None and self._mode != "replay":
            raise ValueError(f"the mode {self._mode!r} needs a provider to ask")
        label = Label(case.id, target, trial)
        name = cassette_path(label)
        return Conversation(
            label=label,
            file=CassetteFile(self._folder / name, self._shown / name),
            provider=None if self._mode == "replay" else provider,
            recalls=self._mode != "record",
            places=places,
            secrecy=self._secrecy,
        )


class Conversation:
    """Stands for the provider in one run of a case, and is used by one thread.

    Its replies come from the cassette, from the provider, or first from the one and then from the other.
    """

    def __init__(
        self,
        label: Label,
        file: CassetteFile,
        provider: Provider | None,
        *,
        recalls: bool,
        places: Places,
        secrecy: Secrecy,
    ) -> None:
        self._label = label
        self._file = file
        self._provider = provider
        self._recalls = recalls
        self._places = places
        self._secrecy = secrecy
        self._recording: Cassette | None = None
        self._heard: tuple[Message, ...] = ()
        self._exchanges: list[Exchange] = []
        self._known = 0
        self._has_failed = False

    def cannot_run(self, case: ToolUseCase) -> str | None:
        """Return the provider's reason to skip the case; a recording has none."""
        return None if self._provider is None else self._provider.cannot_run(case)

    def reply(self, case: ToolUseCase, request: ChatRequest) -> AssistantMessage:
        """Return the recorded reply, or ask the provider.

        Raises:
            StaleCassetteError: it is only to be replayed, and nothing or something else was recorded.
            ProviderError: the cassette is damaged, the provider failed, or the reply cannot be recorded.

        """
        try:
            exchange = self._exchange(case, request)
        except BaseException:
            self._has_failed = True
            raise
        self._exchanges.append(exchange)
        played = self._places.restored(exchange.reply)
        self._heard = (*request.messages, played)
        return played

    def save(self) -> None:
        """Write the cassette if there is anything new and no reply failed; for runs that ended well.

        Raises:
            ProviderError: the file cannot be written.

        """
        known, new = self._exchanges[: self._known], self._exchanges[self._known :]
        if new and not self._has_failed:
            self._file.write(Cassette(self._label, (*known, *self._secrecy.redacted(new))))

    def close(self) -> None:
        """Do nothing: the provider belongs to whoever opened it."""

    def _exchange(self, case: ToolUseCase, request: ChatRequest) -> Exchange:
        asked = self._told(request)
        recorded = self._matching(asked, request)
        if recorded is not None:
            self._known += 1
            return recorded
        if self._provider is None:
            raise StaleCassetteError(self._why_stale(asked, request))
        self._recalls = False
        return Exchange(asked, self._answer(self._provider, case, request, asked))

    def _told(self, request: ChatRequest) -> Asked:
        """Return a request as it stands in a cassette, secrets still in it."""
        kept = common_start(self._heard, request.messages)
        try:
            added = self._places.spelled(tuple(request.messages[kept:]))
            return Asked(self._frame_of(request), len(self._heard) - kept, added)
        except (TypeError, RecursionError) as error:
            raise ProviderError(f"the request of turn {self._turn} is no JSON: {error}") from None

    def _frame_of(self, request: ChatRequest) -> Frame:
        frame = Frame(request.system, request.sampling, tuple(request.tools))
        return self._places.spelled(frame)

    @property
    def _turn(self) -> int:
        return len(self._exchanges) + 1

    def _matching(self, asked: Asked, request: ChatRequest) -> Exchange | None:
        """Return what is recorded for a request, or None when that is nothing or something else."""
        if not self._recalls:
            return None
        if not self._exchanges:
            self._recording = self._file.read()
        if self._recording is None or any(self._changes(self._recording, asked, request)):
            return None
        return self._recording.exchanges[len(self._exchanges)]

    def _changes(self, recording: Cassette, asked: Asked, request: ChatRequest) -> Iterator[str]:
        recorded = recording.exchanges
        if not self._exchanges:
            yield from label_changes(recording.label, self._label)
        if len(self._exchanges) >= len(recorded):
            yield f"the run asks for more replies than were recorded ({len(recorded)})"
            return
        was = recorded[len(self._exchanges)].asked
        yield from frame_changes(was.frame, asked.frame)
        if was.dropped != asked.dropped:
            yield f"the conversation before turn {self._turn} changed"
        before = request.messages[: len(request.messages) - len(asked.messages)]
        yield from message_changes(was.messages, asked.messages, before, self._secrecy.redact)

    def _why_stale(self, asked: Asked, request: ChatRequest) -> str:
        if self._recording is None:
            return f"there is no cassette {self._file.shown}; --tooleval-record records one"
        changes = list(self._changes(self._recording, asked, request))
        more = len(changes) - _MOST_CHANGES
        shown = [*changes[:_MOST_CHANGES], *([f"and {more} more"] if more > 0 else [])]
        return f"the cassette {self._file.shown} does not fit any more: {'; '.join(shown)}; {RECORD_ANEW}"

    def _answer(
        self, provider: Provider, case: ToolUseCase, request: ChatRequest, asked: Asked
    ) -> AssistantMessage:
        """Ask the provider, and return its reply as it is to stand in the cassette."""
        if self._known == len(self._exchanges):
            self._file.make_folder()
        reply = provider.reply(case, request)
        if not isinstance(reply, AssistantMessage):
            raise ProviderError(f"the provider returned {type(reply).__name__}; expected an AssistantMessage")
        try:
            filed = self._filed(reply, asked)
        except (AttributeError, TypeError, ValueError, RecursionError) as error:
            raise self._unrecordable(reply, f"it is no JSON: {error}") from None
        except CaseError as error:
            raise self._unrecordable(reply, _problem(error)) from None
        if not self._secrecy.is_clean(filed):
            raise self._unrecordable(reply, _NOT_TO_BE_WRITTEN)
        return filed

    def _filed(self, reply: AssistantMessage, asked: Asked) -> AssistantMessage:
        """Return what reading the cassette will give for a reply."""
        named = tuple(replace(call, raw_name=call.raw_name or call.name) for call in reply.calls)
        spelled = self._places.spelled(replace(reply, calls=named))
        text = cassette_text(Cassette(self._label, (Exchange(asked, spelled),)))
        return decode_cassette(text, self._file.shown).exchanges[0].reply

    def _unrecordable(self, reply: AssistantMessage, reason: str) -> ProviderError:
        return ProviderError(
            f"{self._file.shown}: the reply of turn {self._turn} cannot be recorded: {reason}",
            attempts=reply.attempts,
        )


def _problem(error: CaseError) -> str:
    problem = error.problems[0]
    return f"{problem.pointer}: {problem.message}" if problem.pointer else f"it {problem.message}"
