"""A stand-in for the Hugging Face Hub: the routes that huggingface_hub uses, on loopback, in a thread, in memory.

Bodies are checked by SHA, heads by `parentCommit`, tokens by role. `fail`, `drop` and `meddle` inject faults; `requests`
and `headers` remember what was asked. No model of the Hub beyond that: no rate limits, quotas, gating or teams.
"""

import base64
import contextlib
import hashlib
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

import pytest
import yaml

WRITE, READ, OTHER = (f"hf_{name:x<34}" for name in ("writer", "reader", "stranger"))
ROLES = {WRITE: ("tester", "write"), READ: ("tester", "read"), OTHER: ("stranger", "write")}
DATE = "2026-01-01T00:00:00.000Z"
LFS_SUFFIXES = (".safetensors", ".parquet", ".bin")
NO_BRANCH = r"[\s~^:?*\[\\]|\.\.|@\{|//|/\.|^[-/.]|[/.]$|\.lock(/|$)|^(@|HEAD|[0-9a-f]{40})$"  # git check-ref-format
KINDS = {"models": "model", "datasets": "dataset", "spaces": "space"}


class Refusal(Exception):
    """An answer that is no success."""

    def __init__(self, status: int, message: str, code: str | None = None, **body):
        super().__init__(message)
        self.status, self.body = status, {"error": message} | body
        self.headers = {"X-Error-Message": message} | ({"X-Error-Code": code} if code else {})


@dataclass(frozen=True)
class Blob:
    data: bytes
    lfs: bool = False

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def git_sha(self) -> str:
        """Of the file, or of the pointer that stands for it."""
        pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{self.sha256}\nsize {len(self.data)}\n"
        data = pointer.encode() if self.lfs else self.data
        return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()

    @property
    def etag(self) -> str:
        return self.sha256 if self.lfs else self.git_sha


@dataclass(frozen=True)
class Commit:
    oid: str
    parent: str | None
    title: str
    files: dict[str, Blob]


@dataclass
class Repo:
    id: str
    kind: str
    private: bool
    commits: dict[str, Commit] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)  # branch, refs/pr/N or refs/tags/T -> oid
    pulls: list[dict] = field(default_factory=list)

    def commit(self, ref: str, title: str, files: dict[str, Blob], parent: str | None) -> Commit:
        seed = repr((parent, title, sorted((p, b.git_sha) for p, b in files.items()), len(self.commits)))
        made = Commit(hashlib.sha1(seed.encode()).hexdigest(), parent, title, files)
        self.commits[made.oid] = made
        self.refs[ref] = made.oid
        return made

    def write(self, path: str, data: bytes, ref: str = "main") -> None:
        """A commit of somebody else's."""
        head = self.at(ref)
        self.commit(ref, f"write {path}", head.files | {path: Blob(data)}, head.oid)

    def at(self, revision: str) -> Commit:
        oid = self.refs.get(revision) or self.refs.get(f"refs/tags/{revision}") or revision
        if oid not in self.commits:
            raise Refusal(404, f"Invalid rev id: {revision}", "RevisionNotFound")
        return self.commits[oid]

    def files(self, revision: str = "main") -> dict[str, bytes]:
        return {path: blob.data for path, blob in self.at(revision).files.items()}

    def history(self, revision: str = "main") -> list[Commit]:
        """Newest first."""
        found = [self.at(revision)]
        while found[-1].parent:
            found.append(self.commits[found[-1].parent])
        return found

    def open_pull(self, title: str, author: str, start: str) -> dict:
        pull = {"num": len(self.pulls) + 1, "title": title, "status": "draft", "isPullRequest": True}
        pull |= {"author": {"name": author}, "createdAt": DATE, "repo": {"name": self.id, "type": self.kind}}
        self.pulls.append(pull)
        self.refs[f"refs/pr/{pull['num']}"] = start
        return pull


@dataclass
class Fault:
    """What happens to `times` requests that match, after `skip` that pass."""

    method: str
    pattern: str
    happen: Callable[["_Handler"], str]  # returns "answered", "hung up" or "go on"
    times: int
    skip: int


class StandInHub:
    """The state, and the faults to inject. `endpoint` is its address."""

    def __init__(self):
        self.repos: dict[tuple[str, str], Repo] = {}
        self.objects: dict[str, bytes] = {}
        self.collections: dict[str, dict] = {}
        self.requests: list[tuple[str, str, int]] = []  # method, path, status (0: hung up)
        self.headers: list[dict] = []
        self.faults: list[Fault] = []
        self.lock = threading.RLock()
        handler = type("Handler", (_Handler,), {"hub": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()

    def environment(self, home, token: str | None = None) -> dict[str, str]:
        """What a subprocess needs to take this for the Hub."""
        env = {"HF_ENDPOINT": self.endpoint, "HF_HUB_DISABLE_XET": "1", "HF_HOME": str(home)}
        env |= {"HF_HUB_DISABLE_TELEMETRY": "1", "HF_HUB_DISABLE_PROGRESS_BARS": "1"}
        return env | ({"HF_TOKEN": token} if token else {})

    def repo(self, name: str, kind: str = "models") -> Repo:
        return self.repos[kind, name]

    def create(self, name: str, kind: str = "models", private: bool = False) -> Repo:
        repo = self.repos[kind, name] = Repo(name, KINDS[kind], private)
        attributes = "".join(f"*{s} filter=lfs diff=lfs merge=lfs -text\n" for s in LFS_SUFFIXES)
        repo.commit("main", "initial commit", {".gitattributes": Blob(attributes.encode())}, None)
        return repo

    def count(self, method: str, pattern: str) -> int:
        return sum(m == method and re.search(pattern, path) is not None for m, path, _ in self.requests)

    def fail(self, method: str, pattern: str, status: int, times: int = 1, skip: int = 0, **headers) -> None:
        """Answer with an error page that is no JSON, as proxies do."""
        names = {name.replace("_", "-"): str(value) for name, value in headers.items()}

        def happen(handler):
            handler.body()
            handler.answer(status, b"<html>try later</html>", {"Content-Type": "text/html"} | names)
            return "answered"

        self.faults.append(Fault(method, pattern, happen, times, skip))

    def drop(self, method: str, pattern: str, when: str = "middle", times: int = 1, skip: int = 0) -> None:
        """Hang up: in the "middle" of the body, or "after" the request took effect (its answer is lost)."""

        def happen(handler):
            if when == "after":
                with contextlib.suppress(Refusal):
                    handler.respond()
            else:
                handler.rfile.read(int(handler.headers.get("Content-Length") or 0) // 2)
            return "hung up"

        self.faults.append(Fault(method, pattern, happen, times, skip))

    def meddle(self, method: str, pattern: str, act: Callable[[], None], times: int = 1, skip: int = 0) -> None:
        """Do something just before a request is served: another writer, say."""

        def happen(handler):
            act()
            return "go on"

        self.faults.append(Fault(method, pattern, happen, times, skip))

    def fault_for(self, method: str, path: str) -> Fault | None:
        for fault in self.faults:
            if fault.times and fault.method == method and re.search(fault.pattern, path):
                if fault.skip:
                    fault.skip -= 1
                    continue
                fault.times -= 1
                return fault
        return None


class _Handler(BaseHTTPRequestHandler):
    hub: StandInHub
    protocol_version = "HTTP/1.1"
    wbufsize, disable_nagle_algorithm = -1, True  # an answer in one packet, or each costs 40 ms

    def log_message(self, *_):
        pass

    def serve(self):
        self.url, self._body = urlsplit(self.path), None
        self.query = {key: values[-1] for key, values in parse_qs(self.url.query).items()}
        self.hub.headers.append(dict(self.headers))
        with self.hub.lock:
            fault = self.hub.fault_for(self.command, self.path)
        outcome = fault.happen(self) if fault else "go on"
        if outcome == "hung up":
            self.hub.requests.append((self.command, self.path, 0))
            self.close_connection = True
            self.connection.shutdown(2)
        elif outcome == "go on":
            try:
                self.answer(*self.respond())
            except Refusal as refusal:
                self.answer(refusal.status, json.dumps(refusal.body).encode(), refusal.headers)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = serve

    def body(self) -> bytes:
        if self._body is None:
            self._body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return self._body

    def json(self) -> dict:
        return json.loads(self.body() or b"{}")

    def answer(self, status: int, body: bytes, headers: dict | None = None) -> None:
        self.hub.requests.append((self.command, self.path, status))
        self.send_response(status)
        headers = {"Content-Type": "application/json", "Content-Length": str(len(body))} | (headers or {})
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def respond(self) -> tuple:
        """(status, body, headers) of the route that matches; `Refusal` otherwise."""
        self.body()
        for methods, pattern, route in ROUTES:
            match = re.fullmatch(pattern, self.url.path)
            if match and self.command in methods.split():
                parts = {key: unquote(value or "") for key, value in match.groupdict().items()}
                if "kind" in parts:
                    parts["kind"] = parts["kind"] or "models"
                with self.hub.lock:
                    found = route(self, **parts)
                return found if isinstance(found, tuple) else (200, json.dumps(found).encode())
        raise Refusal(404, f"the stand-in has no route {self.command} {self.path}")

    def user(self, write: bool = False) -> tuple[str, str] | None:
        """(name, role) behind the token; None without one."""
        given = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if given and given not in ROLES:
            raise Refusal(401, "Invalid credentials in Authorization header")
        if write and not given:
            raise Refusal(401, "Invalid username or password.")
        if write and ROLES[given][1] != "write":
            raise Refusal(403, "Forbidden: you must use a write token to upload to a repository.")
        return ROLES.get(given)

    def own(self, namespace: str) -> None:
        name, _ = self.user(write=True)
        if namespace not in ((name, "lab") if name == "tester" else (name,)):
            raise Refusal(403, f"You don't have the rights to create a model under the namespace {namespace!r}")

    def find(self, kind: str, id: str, write: bool = False) -> Repo:
        repo, user = self.hub.repos.get((kind, id)), self.user(write)
        if repo is None or (repo.private and (user is None or user[0] != "tester")):
            raise Refusal(404 if user else 401, "Repository not found", "RepoNotFound")
        if write:
            self.own(id.split("/")[0])
        return repo

    def find_to_write(self, kind: str, id: str, revision: str) -> Repo:
        """Anybody with a write token may propose; only owners change branches."""
        self.user(write=True)
        return self.find(kind, id, write="create_pr" not in self.query and not revision.startswith("refs/pr/"))

    def address(self, kind: str, id: str) -> str:
        return f"{self.hub.endpoint}/{'' if kind == 'models' else kind + '/'}{id}"


def whoami(h: _Handler):
    if h.user() is None:
        raise Refusal(401, "Invalid username or password.")
    name, role = h.user()
    orgs = [{"name": "lab", "type": "org"}] if name == "tester" else []
    access = {"type": "access_token", "accessToken": {"displayName": "test", "role": role}}
    return {"type": "user", "name": name, "orgs": orgs, "auth": access}


def _asked_repo(h: _Handler) -> tuple[str, str]:
    asked, (user, _) = h.json(), h.user(write=True)
    namespace = asked.get("organization") or user
    h.own(namespace)
    return f"{asked.get('type') or 'model'}s", f"{namespace}/{asked['name']}"


def create_repo(h: _Handler):
    kind, id = _asked_repo(h)
    if (kind, id) in h.hub.repos:
        raise Refusal(409, "You already created this repo", url=h.address(kind, id))
    h.hub.create(id, kind, private=h.json().get("visibility") == "private")
    return {"url": h.address(kind, id), "name": id}


def delete_repo(h: _Handler):
    if h.hub.repos.pop(_asked_repo(h), None) is None:
        raise Refusal(404, "Repository not found", "RepoNotFound")
    return {}


def validate_yaml(h: _Handler):
    """The rules that bite: it is YAML, and the entries of a model-index and their data sets have names."""
    match = re.match(r"---\n(.*?)\n---", h.json()["content"], re.S)
    try:
        data = yaml.safe_load(match[1]) if match else {}
        named = [entry["name"] for entry in data.get("model-index", [])]
        sets = [result["dataset"] for entry in data.get("model-index", []) for result in entry["results"]]
        named += [one[key] for one in sets for key in ("name", "type")]
        if not all(named):
            raise KeyError("name")
    except (yaml.YAMLError, KeyError, AttributeError) as error:
        raise Refusal(400, "Invalid metadata", errors=[{"message": repr(error)}], warnings=[]) from None
    return {"errors": [], "warnings": []}


def info(h: _Handler, kind: str, id: str, revision: str = "main"):
    repo = h.find(kind, id)
    made = repo.at(revision)
    siblings = [{"rfilename": path} for path in sorted(made.files)]
    facts = {"id": id, "_id": id, "sha": made.oid, "private": repo.private, "siblings": siblings, "tags": []}
    return facts | {"downloads": 0, "likes": 0, "lastModified": DATE}


def _entry(path: str, blob: Blob) -> dict:
    lfs = {"lfs": {"oid": blob.sha256, "size": len(blob.data), "pointerSize": 130}} if blob.lfs else {}
    return {"type": "file", "path": path, "size": len(blob.data), "oid": blob.git_sha} | lfs


def _folder(path: str) -> dict:
    return {"type": "directory", "path": path, "size": 0, "oid": hashlib.sha1(path.encode()).hexdigest()}


def _folders(files: dict) -> set[str]:
    return {"/".join(path.split("/")[:i]) for path in files for i in range(1, path.count("/") + 1)}


def tree(h: _Handler, kind: str, id: str, revision: str, path: str = ""):
    files, deep = h.find(kind, id).at(revision).files, h.query.get("recursive", "").lower() in ("true", "1")
    if path and path not in _folders(files):
        raise Refusal(404, f"{path} does not exist on {revision}", "EntryNotFound")
    entries = [_folder(p) for p in sorted(_folders(files))] + [_entry(p, files[p]) for p in sorted(files)]
    prefix = f"{path}/" if path else ""
    inside = [entry for entry in entries if entry["path"].startswith(prefix)]
    return [entry for entry in inside if deep or "/" not in entry["path"].removeprefix(prefix)]


def paths_info(h: _Handler, kind: str, id: str, revision: str):
    files = h.find(kind, id).at(revision).files
    asked = parse_qs(h.body().decode()).get("paths", [])
    return [_entry(p, files[p]) for p in asked if p in files] + [_folder(p) for p in asked if p in _folders(files)]


def refs(h: _Handler, kind: str, id: str):
    out = {"branches": [], "converts": [], "tags": [], "pullRequests": []}
    for ref, oid in h.find(kind, id).refs.items():
        part = {"refs/pr": "pullRequests", "refs/tags": "tags"}.get("/".join(ref.split("/")[:2]), "branches")
        full = ref if ref.startswith("refs/") else f"refs/heads/{ref}"
        if part == "pullRequests" and h.query.get("include_prs") != "1":
            continue
        out[part].append({"name": ref.removeprefix("refs/tags/"), "ref": full, "targetCommit": oid})
    return out


def commits(h: _Handler, kind: str, id: str, revision: str):
    found = h.find(kind, id).history(revision)
    return [{"id": c.oid, "title": c.title, "message": "", "authors": [{"user": "x"}], "date": DATE} for c in found]


def branch(h: _Handler, kind: str, id: str, name: str):
    repo = h.find(kind, id, write=True)
    if re.search(NO_BRANCH, name) or name.startswith("refs/"):
        raise Refusal(400, f"Invalid branch name: {name}")
    if h.command == "DELETE":
        repo.refs.pop(name)
        return {}
    if name in repo.refs:
        raise Refusal(409, f"Reference already exists: {name}")
    repo.refs[name] = repo.at(h.json().get("startingPoint") or "main").oid
    return {}


def tag(h: _Handler, kind: str, id: str, revision: str):
    repo, name = h.find(kind, id, write=True), f"refs/tags/{h.json()['tag']}"
    if name in repo.refs:
        raise Refusal(409, "Tag reference exists already")
    repo.refs[name] = repo.at(revision).oid
    return {}


def preupload(h: _Handler, kind: str, id: str, revision: str):
    files = h.find_to_write(kind, id, revision).at(revision).files

    def plan(path: str) -> dict:
        mode = "lfs" if path.endswith(LFS_SUFFIXES) else "regular"
        oid = files[path].etag if path in files else None
        return {"path": path, "uploadMode": mode, "shouldIgnore": False, "oid": oid}

    return {"files": [plan(one["path"]) for one in h.json()["files"]]}


def lfs_batch(h: _Handler, kind: str, id: str):
    h.find_to_write(kind, id, h.json().get("ref", {}).get("name", "refs/pr/"))

    def plan(one: dict) -> dict:
        upload = {"href": f"{h.hub.endpoint}/lfs/{one['oid']}", "header": {}}
        return one if one["oid"] in h.hub.objects else one | {"actions": {"upload": upload}}

    return {"transfer": "basic", "objects": [plan(one) for one in h.json()["objects"]]}


def lfs_put(h: _Handler, oid: str):
    if hashlib.sha256(h.body()).hexdigest() != oid:
        raise Refusal(400, "the body's SHA-256 is not the object's id")
    h.hub.objects[oid] = h.body()
    return {}


def commit(h: _Handler, kind: str, id: str, revision: str):
    pull, repo = "create_pr" in h.query, h.find_to_write(kind, id, revision)
    lines = [json.loads(line) for line in h.body().splitlines()]
    header, head = lines[0]["value"], repo.at(revision)
    if header.get("parentCommit", head.oid) != head.oid:
        raise Refusal(412, "A commit has happened since. Please refresh and try again.")
    files = dict(head.files)
    for line in lines[1:]:
        _apply(h.hub, files, line["key"], line["value"])
    extra = {}
    if pull:
        number = repo.open_pull(header["summary"], h.user(write=True)[0], head.oid)["num"]
        revision, extra = f"refs/pr/{number}", {"pullRequestUrl": f"{h.address(kind, id)}/discussions/{number}"}
    elif revision not in repo.refs:
        raise Refusal(404, f"{revision} is no branch", "RevisionNotFound")
    made = repo.commit(revision, header["summary"], files, head.oid)
    return {"success": True, "commitOid": made.oid, "commitUrl": f"{h.address(kind, id)}/commit/{made.oid}"} | extra


def _apply(hub: StandInHub, files: dict[str, Blob], key: str, value: dict) -> None:
    path = value["path"]
    if key == "file":
        files[path] = Blob(base64.b64decode(value["content"]))
    elif key == "lfsFile":
        if value["oid"] not in hub.objects or len(hub.objects[value["oid"]]) != value["size"]:
            raise Refusal(400, f"the LFS object of {path} was never uploaded")
        files[path] = Blob(hub.objects[value["oid"]], lfs=True)
    elif key == "deletedFile":
        if files.pop(path, None) is None:
            raise Refusal(404, "A file with this name doesn't exist", "EntryNotFound")
    elif key == "deletedFolder":
        for inside in [one for one in files if one.startswith(path.rstrip("/") + "/")]:
            del files[inside]


def discussions(h: _Handler, kind: str, id: str):
    repo = h.find(kind, id)
    if h.command == "GET":
        return {"discussions": repo.pulls, "count": len(repo.pulls), "start": 0}
    name, _ = h.user(write=True)
    return {"num": repo.open_pull(h.json()["title"], name, repo.refs["main"])["num"]}


def discussion(h: _Handler, kind: str, id: str, num: str, resource: str = ""):
    pulls = h.find(kind, id).pulls
    if not 0 < int(num) <= len(pulls):
        raise Refusal(404, "Discussion not found")
    pull = pulls[int(num) - 1]
    if resource == "status":
        h.user(write=True)
        pull["status"] = h.json()["status"]
        event = {"id": "1", "type": "status-change", "createdAt": DATE, "data": {"status": pull["status"]}}
        return {"newStatus": event}
    return pull | {"changes": {"base": "refs/heads/main"}, "filesWithConflicts": [], "events": []}


def resolve(h: _Handler, kind: str, id: str, revision: str, path: str):
    found = h.find(kind, id).at(revision)
    if path not in found.files:
        raise Refusal(404, "Entry not found", "EntryNotFound")
    blob = found.files[path]
    data, status = blob.data, 200
    headers = {"X-Repo-Commit": found.oid, "ETag": f'"{blob.etag}"', "Content-Type": "application/octet-stream"}
    if blob.lfs:
        headers |= {"X-Linked-Etag": f'"{blob.sha256}"', "X-Linked-Size": str(len(data))}
    span = re.fullmatch(r"bytes=(\d+)-(\d*)", h.headers.get("Range") or "")
    if span:
        start, stop = int(span[1]), min(int(span[2] or len(data)), len(data) - 1)
        headers["Content-Range"] = f"bytes {start}-{stop}/{len(data)}"
        data, status = data[start : stop + 1], 206
    return status, data, headers


def collections(h: _Handler, slug: str = "", items: str = ""):
    hub = h.hub
    if h.command == "POST" and not slug:
        asked = h.json()
        h.own(asked["namespace"])
        slug = f"{asked['namespace']}/{re.sub('[^a-z0-9]+', '-', asked['title'].lower())}-0123456789abcdef01234567"
        if slug in hub.collections:
            raise Refusal(409, "This collection already exists", slug=slug)
        made = asked | {"slug": slug, "owner": {"name": asked["namespace"]}, "items": [], "lastUpdated": DATE}
        hub.collections[slug] = made | {"position": 0, "theme": "green", "upvotes": 0}
    elif h.command == "POST":
        h.own(slug.split("/")[0])
        item, have = h.json()["item"], hub.collections[slug]["items"]
        if any((one["id"], one["type"]) == (item["id"], item["type"]) for one in have):
            raise Refusal(409, "Item already in collection")
        if (item["type"] + "s", item["id"]) not in hub.repos:
            raise Refusal(404, "Item not found", "RepoNotFound")
        have.append(item | {"_id": str(len(have)), "position": len(have)})
    return hub.collections[slug]


_API = r"/api/(?P<kind>models|datasets|spaces)/(?P<id>[^/]+/[^/]+)"
_PLAIN = r"/(?:(?P<kind>datasets|spaces)/)?(?P<id>[^/]+/[^/]+?)"
ROUTES = [
    ("GET", r"/api/whoami-v2", whoami),
    ("POST", r"/api/repos/create", create_repo),
    ("DELETE", r"/api/repos/delete", delete_repo),
    ("POST", r"/api/validate-yaml", validate_yaml),
    ("POST", r"/api/collections", collections),
    ("GET", r"/api/collections/(?P<slug>[^/]+/[^/]+)", collections),
    ("POST", r"/api/collections/(?P<slug>[^/]+/[^/]+)/(?P<items>items?)", collections),
    ("GET", _API, info),
    ("GET", _API + r"/revision/(?P<revision>[^/]+)", info),
    ("GET", _API + r"/tree/(?P<revision>[^/]+)(?:/(?P<path>.+))?", tree),
    ("POST", _API + r"/paths-info/(?P<revision>[^/]+)", paths_info),
    ("GET", _API + r"/refs", refs),
    ("GET", _API + r"/commits/(?P<revision>[^/]+)", commits),
    ("POST DELETE", _API + r"/branch/(?P<name>[^/]+)", branch),
    ("POST", _API + r"/tag/(?P<revision>[^/]+)", tag),
    ("POST", _API + r"/preupload/(?P<revision>[^/]+)", preupload),
    ("POST", _API + r"/commit/(?P<revision>[^/]+)", commit),
    ("GET POST", _API + r"/discussions", discussions),
    ("GET", _API + r"/discussions/(?P<num>\d+)", discussion),
    ("POST", _API + r"/discussions/(?P<num>\d+)/(?P<resource>status)", discussion),
    ("POST", _PLAIN + r"\.git/info/lfs/objects/batch", lfs_batch),
    ("PUT", r"/lfs/(?P<oid>[0-9a-f]{64})", lfs_put),
    ("GET HEAD", _PLAIN + r"/resolve/(?P<revision>[^/]+)/(?P<path>.+)", resolve),
]


@pytest.fixture(name="hub")
def hub_fixture(monkeypatch):
    """A fresh stand-in, for this process too where `endpoint=hub.endpoint` is passed: no xet, no token of the machine's."""
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", "/nonexistent/token")
    stand_in = StandInHub()
    yield stand_in
    stand_in.close()
