"""A stand-in for the Hub on the loopback interface: enough of its HTTP interface for the client to push, branch and load.

Bodies are checked by digest. `fail` makes the next matching requests answer badly; `requests` records what came.
"""

import base64
import hashlib
import json
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

WRITE, READ = "write-token", "read-token"
LFS_SUFFIXES = (".safetensors", ".parquet", ".bin", ".png", ".pdf")


class Repo:
    """Commits are {path: bytes}; `heads` names the branches, tags and pull requests."""

    def __init__(self, private: bool):
        self.private, self.trees, self.log, self.heads = private, {}, {}, {}
        self.heads["main"] = self.add({}, None, "initial commit")

    def add(self, tree: dict, parent: str | None, title: str) -> str:
        sha = hashlib.sha1(repr((sorted(tree), parent, title, len(self.trees))).encode()).hexdigest()
        self.trees[sha], self.log[sha] = tree, (parent, title)
        return sha

    def resolve(self, revision: str) -> str | None:
        revision = urllib.parse.unquote(revision)
        return self.heads.get(revision) or (revision if revision in self.trees else None)


class StandInHub:
    def __init__(self):
        self.repos: dict[tuple[str, str], Repo] = {}
        self.lfs: dict[str, bytes] = {}
        self.requests: list[str] = []
        self.failures: list[list] = []
        handler = type("Handler", (_Handler,), {"hub": self})
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def fail(self, method: str, part: str, status: int, times: int = 1) -> None:
        """Answer `status` (0: drop the connection) to the next `times` requests whose address holds `part`."""
        self.failures.append([method, part, status, times])

    def files(self, repo_id: str, revision: str = "main", kind: str = "models") -> dict[str, bytes]:
        repo = self.repos[kind, repo_id]
        return repo.trees[repo.resolve(revision)]

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class _Handler(BaseHTTPRequestHandler):
    hub: StandInHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, status=200, body=b"", headers=None, kind="application/json"):
        if not isinstance(body, bytes):
            body = json.dumps(body).encode()
        self.send_response(status)
        for key, value in {"Content-Type": kind, "Content-Length": str(len(body)), **(headers or {})}.items():
            self.send_header(key, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def error(self, status, code, text=""):
        self.answer(status, {"error": text or code}, {"X-Error-Code": code, "X-Error-Message": text or code})

    def handle_any(self):
        length = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(length)
        self.hub.requests.append(f"{self.command} {self.path}")
        for failure in self.hub.failures:
            method, part, status, left = failure
            if left and method == self.command and part in self.path:
                failure[3] -= 1
                if status == 0:
                    self.close_connection = True
                    self.connection.close()
                    return
                self.error(status, "Injected", "injected failure")
                return
        path, _, query = self.path.partition("?")
        parts = [p for p in path.split("/") if p]
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if parts[:1] == ["api"]:
            self.api(parts[1:], body, token, urllib.parse.parse_qs(query))
        elif "resolve" in parts:
            self.resolve_file(parts, token)
        elif path.endswith("/info/lfs/objects/batch"):
            self.lfs_batch(json.loads(body))
        elif parts[:1] == ["lfs-upload"]:
            if hashlib.sha256(body).hexdigest() != parts[1]:
                return self.error(400, "BadDigest")
            self.hub.lfs[parts[1]] = body
            self.answer()
        else:
            self.error(404, "NotFound", path)

    do_GET = do_HEAD = do_POST = do_PUT = do_DELETE = handle_any

    def may(self, token: str, write: bool) -> bool:
        if token not in (WRITE, READ):
            self.error(401, "Unauthorized", "Invalid username or password.")
            return False
        if write and token != WRITE:
            self.error(403, "Forbidden", "You don't have write access.")
            return False
        return True

    def api(self, parts, body, token, query):
        if parts == ["whoami-v2"]:
            if self.may(token, False):
                self.answer(200, {"name": "tester", "type": "user", "orgs": [], "auth": {"accessToken": {"role": "write"}}})
        elif parts == ["repos", "create"]:
            if self.may(token, True):
                self.create(json.loads(body))
        elif parts == ["validate-yaml"]:
            self.answer(200, {"errors": [], "warnings": []})
        elif parts[:1] in (["models"], ["datasets"], ["spaces"]) and len(parts) >= 3:
            self.repo_call(parts, body, token, query)
        else:
            self.error(404, "NotFound")

    def create(self, asked):
        kind, name = asked.get("type", "model") + "s", asked["name"]
        repo_id = f"{asked.get('organization') or 'tester'}/{name}"
        if (kind, repo_id) in self.hub.repos:
            return self.answer(409, {"error": "exists", "url": f"{self.hub.url}/{repo_id}"})
        private = asked.get("private") or asked.get("visibility") == "private"
        self.hub.repos[kind, repo_id] = Repo(bool(private))
        self.answer(200, {"url": f"{self.hub.url}/{repo_id}", "id": repo_id})

    def repo_call(self, parts, body, token, query):
        kind, repo_id, rest = parts[0], "/".join(parts[1:3]), parts[3:]
        repo = self.hub.repos.get((kind, repo_id))
        if repo is None or (repo.private and token not in (WRITE, READ)):
            return self.error(404 if token in (WRITE, READ) else 401, "RepoNotFound")
        action = rest[0] if rest else "info"
        if action in ("info", "revision"):
            sha = repo.resolve(rest[1] if action == "revision" else "main")
            return self.info(repo, repo_id, sha) if sha else self.error(404, "RevisionNotFound")
        if action == "refs":
            branches = [{"name": n, "ref": f"refs/heads/{n}", "targetCommit": s} for n, s in repo.heads.items()]
            return self.answer(200, {"branches": branches, "tags": [], "converts": []})
        if action == "tree":
            sha = repo.resolve(rest[1])
            inside = urllib.parse.unquote("/".join(rest[2:]))
            recursive = query.get("recursive", ["false"])[0].lower() in ("true", "1")
            return self.listing(repo, sha, inside, recursive) if sha else self.error(404, "RevisionNotFound")
        if action == "paths-info":
            sha = repo.resolve(rest[1])
            asked = json.loads(body) if body[:1] == b"{" else urllib.parse.parse_qs(body.decode())
            found = self.tree(repo, sha) if sha else []
            return self.answer(200, [entry for entry in found if entry["path"] in asked["paths"]])
        if not self.may(token, True):
            return None
        if action == "preupload":
            asked = json.loads(body)["files"]
            modes = [{"path": f["path"], "uploadMode": self.mode(f["path"]), "shouldIgnore": False} for f in asked]
            return self.answer(200, {"files": modes})
        if action == "branch":
            repo.heads[urllib.parse.unquote(rest[1])] = repo.heads["main"]
            return self.answer(200, {})
        if action == "commit":
            return self.commit(repo, repo_id, urllib.parse.unquote(rest[1]), body, query)
        return self.error(404, "NotFound")

    @staticmethod
    def mode(path: str) -> str:
        return "lfs" if path.endswith(LFS_SUFFIXES) else "regular"

    def info(self, repo, repo_id, sha):
        siblings = [{"rfilename": path} for path in repo.trees[sha]]
        facts = {"id": repo_id, "modelId": repo_id, "sha": sha, "private": repo.private, "siblings": siblings, "tags": []}
        self.answer(200, facts | {"downloads": 0, "likes": 0, "lastModified": "2026-01-01T00:00:00.000Z"})

    def listing(self, repo, sha, inside, recursive):
        """Entries below a folder; without `recursive` its folders stand for what is in them."""
        prefix = f"{inside}/" if inside else ""
        below = [entry for entry in self.tree(repo, sha) if entry["path"].startswith(prefix)]
        if inside and not below:
            return self.error(404, "EntryNotFound")
        names = {entry["path"][len(prefix) :].partition("/")[0] for entry in below if "/" in entry["path"][len(prefix) :]}
        folders = [{"type": "directory", "path": prefix + n, "size": 0, "oid": "0" * 40} for n in sorted(names)]
        direct = [entry for entry in below if "/" not in entry["path"][len(prefix) :]]
        return self.answer(200, folders + (below if recursive else direct))

    def tree(self, repo, sha):
        out = []
        for path, content in repo.trees[sha].items():
            blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
            entry = {"type": "file", "path": path, "size": len(content), "oid": blob}
            if self.mode(path) == "lfs":
                entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
            out.append(entry)
        return out

    def commit(self, repo, repo_id, revision, body, query):
        lines = [json.loads(line) for line in body.decode().splitlines() if line]
        header = lines[0]["value"]
        head = repo.heads.get(revision)
        if head is None:
            return self.error(404, "RevisionNotFound")
        if header.get("parentCommit") not in (None, head):
            return self.error(412, "PreconditionFailed", "the parent is not the head")
        tree = dict(repo.trees[head])
        for line in lines[1:]:
            value = line["value"]
            if line["key"] == "file":
                tree[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                if value["oid"] not in self.hub.lfs:
                    return self.error(400, "LfsMissing")
                tree[value["path"]] = self.hub.lfs[value["oid"]]
            elif line["key"] == "deletedFile":
                tree.pop(value["path"], None)
        sha = repo.add(tree, head, header.get("summary", ""))
        answer = {"success": True, "commitOid": sha, "commitUrl": f"{self.hub.url}/{repo_id}/commit/{sha}"}
        if query.get("create_pr"):
            number = sum(name.startswith("refs/pr/") for name in repo.heads) + 1
            repo.heads[f"refs/pr/{number}"] = sha
            answer["pullRequestUrl"] = f"{self.hub.url}/{repo_id}/discussions/{number}"
        else:
            repo.heads[revision] = sha
        return self.answer(200, answer)

    def lfs_batch(self, asked):
        objects = []
        for item in asked["objects"]:
            entry = {"oid": item["oid"], "size": item["size"]}
            if item["oid"] not in self.hub.lfs:
                entry["actions"] = {"upload": {"href": f"{self.hub.url}/lfs-upload/{item['oid']}"}}
            objects.append(entry)
        self.answer(200, {"transfer": "basic", "objects": objects}, kind="application/vnd.git-lfs+json")

    def resolve_file(self, parts, token):
        kind = parts[0] if parts[0] in ("datasets", "spaces") else "models"
        parts = parts[1:] if kind != "models" else parts
        repo = self.hub.repos.get((kind, "/".join(parts[:2])))
        if repo is None or (repo.private and token not in (WRITE, READ)):
            return self.error(404 if token in (WRITE, READ) else 401, "RepoNotFound")
        sha, path = repo.resolve(parts[3]), urllib.parse.unquote("/".join(parts[4:]))
        if sha is None:
            return self.error(404, "RevisionNotFound")
        if path not in repo.trees[sha]:
            self.answer(404, b"", {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": sha})
            return None
        content = repo.trees[sha][path]
        blob = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
        headers = {"X-Repo-Commit": sha, "ETag": f'"{blob}"', "Accept-Ranges": "bytes"}
        if self.mode(path) == "lfs":
            headers |= {"X-Linked-Etag": f'"{hashlib.sha256(content).hexdigest()}"', "X-Linked-Size": str(len(content))}
        status, asked = 200, self.headers.get("Range", "")
        if asked.startswith("bytes="):
            first, _, last = asked.removeprefix("bytes=").partition("-")
            end = int(last) + 1 if last else len(content)
            headers["Content-Range"] = f"bytes {first}-{end - 1}/{len(content)}"
            status, content = 206, content[int(first) : end]
        return self.answer(status, content, headers, "application/octet-stream")
