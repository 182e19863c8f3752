"""What goes wrong on the way to the Hub: one sentence each, whether to try again, and no token anywhere."""

import json
import re
from dataclasses import dataclass

import httpx2
from huggingface_hub.errors import HfHubHTTPError, OfflineModeIsEnabled, RepositoryNotFoundError

TOKEN = re.compile(r"\b(hf|api_org)_[A-Za-z0-9]{30,}\b")  # what an access token looks like


class PushError(RuntimeError):
    """Publishing failed, for the reason that its message gives in one sentence; it never holds a token."""


@dataclass(frozen=True)
class Trouble:
    """What went wrong.

    sentence: for the user. again: it may pass by itself. wait: seconds that the Hub asks for, if it does."""

    sentence: str
    again: bool = False
    wait: float | None = None


def scrub(text: str, token: str | None) -> str:
    """Return the text without the token in use and without anything that looks like one."""
    return TOKEN.sub("[token]", text.replace(token, "[token]") if token else text)


def diagnose(error: BaseException, repo_id: str, endpoint: str) -> Trouble | None:
    """Return what an exception of the Hub's client means; None for one that is no trouble with the Hub."""
    if isinstance(error, HfHubHTTPError):
        return _answered(error, repo_id, endpoint)
    if isinstance(error, OfflineModeIsEnabled):
        return Trouble("offline mode is on: unset HF_HUB_OFFLINE to publish")
    if isinstance(error, httpx2.TransportError):
        return Trouble(f"{endpoint} can't be reached ({type(error).__name__}): check the network", again=True)
    if isinstance(error, json.JSONDecodeError):
        return Trouble(f"{endpoint} answered with something that is no JSON", again=True)
    if isinstance(error, ValueError) and "metadata" in str(error):
        return Trouble(f"the Hub refuses the card of {repo_id}: {_line(error)}")
    wrapped = diagnose(error.__cause__, repo_id, endpoint) if error.__cause__ else None
    if wrapped:  # uploads run in threads, which wrap what stopped them
        return wrapped
    if isinstance(error, ConnectionError | TimeoutError | RuntimeError) and not isinstance(error, PushError):
        return Trouble(f"the upload to {endpoint} broke off: {_line(error)}", again=True)  # as hf_xet, in Rust, says it
    if isinstance(error, PermissionError) and type(error).__module__.startswith("hf_xet"):
        return Trouble(
            f"the access token may not write to {repo_id}: it needs write access there{_quoted(_line(error))}"
        )
    return None


def _answered(error: HfHubHTTPError, repo_id: str, endpoint: str) -> Trouble:
    status, message = error.response.status_code, _line(error.server_message or "")
    if status == 429:
        return Trouble(f"{endpoint} asks for fewer requests (429): try again later", True, _requested_wait(error))
    if status >= 500 or status == 408:
        return Trouble(f"{endpoint} answered {status}: try again later", True, _requested_wait(error))
    if status in (409, 412):
        return Trouble(f"{repo_id} keeps changing while it is pushed to ({status}): try again later", again=True)
    if isinstance(error, RepositoryNotFoundError):
        return Trouble(f"there is no repository {repo_id} that this token may see")
    if status == 401:
        return Trouble(
            f"{endpoint} does not accept the access token: log in with `hf auth login`, "
            f"or make a token with write access at {endpoint}/settings/tokens"
        )
    if status == 403:
        return Trouble(f"the access token may not write to {repo_id}: it needs write access there{_quoted(message)}")
    return Trouble(f"{endpoint} answered {status} for {repo_id}{_quoted(message)}")


def _requested_wait(error: HfHubHTTPError) -> float | None:
    """Return the seconds of `Retry-After`, at most five minutes."""
    seconds = error.response.headers.get("Retry-After", "")
    return min(float(seconds), 300.0) if seconds.isdigit() else None


def _quoted(message: str) -> str:
    return f" ({message})" if message else ""


def _line(text) -> str:
    return " ".join(str(text).split()).rstrip(".")
