"""The stand-in answers huggingface_hub as the Hub does, where no test of ours goes that way."""

from pathlib import Path

import pytest
from huggingface_hub import CommitOperationAdd, HfApi, hf_hub_download, snapshot_download
from huggingface_hub.errors import (
    EntryNotFoundError,
    HfHubHTTPError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from huggingface_hub.utils import get_session

from tests.helpers.standin_hub import READ, WRITE


@pytest.fixture
def api(hub):
    return HfApi(endpoint=hub.endpoint, token=WRITE)


@pytest.mark.parametrize("kind", ["model", "dataset", "space"])
def test_a_repository_lives_and_dies(kind, hub, api, tmp_path):
    where = {"repo_type": kind}
    sdk = {"space_sdk": "static"} if kind == "space" else {}
    api.create_repo("tester/x", **where, **sdk)
    with pytest.raises(HfHubHTTPError, match="409"):
        api.create_repo("tester/x", **where, **sdk)
    files = [CommitOperationAdd("a/b.txt", b"text"), CommitOperationAdd("w.safetensors", b"weights")]
    made = api.create_commit("tester/x", files, commit_message="first", **where)
    api.create_tag("tester/x", tag="v1", **where)
    api.create_commit("tester/x", [CommitOperationAdd("c.txt", b"")], commit_message="next", **where)
    assert [one.title for one in api.list_repo_commits("tester/x", **where)] == ["next", "first", "initial commit"]
    assert [tag.target_commit for tag in api.list_repo_refs("tester/x", **where).tags] == [made.oid]
    options = {"revision": "v1", "cache_dir": tmp_path, "endpoint": hub.endpoint, **where}
    got = Path(snapshot_download("tester/x", **options))
    assert (got / "a" / "b.txt").read_text() == "text" and (got / "w.safetensors").read_bytes() == b"weights"
    with pytest.raises(EntryNotFoundError):
        hf_hub_download("tester/x", "c.txt", **options)
    with pytest.raises(RevisionNotFoundError):
        api.repo_info("tester/x", revision="v2", **where)
    api.delete_repo("tester/x", **where)
    with pytest.raises(RepositoryNotFoundError):
        api.repo_info("tester/x", **where)


def test_bodies_heads_and_roles_are_checked(hub, api):
    hub.create("tester/x", private=True)
    first = api.repo_info("tester/x").sha
    add = [CommitOperationAdd("a.txt", b"a")]
    api.create_commit("tester/x", add, commit_message="a", parent_commit=first)
    with pytest.raises(HfHubHTTPError, match="412"):
        api.create_commit("tester/x", [CommitOperationAdd("b.txt", b"b")], commit_message="b", parent_commit=first)
    assert get_session().put(f"{hub.endpoint}/lfs/{'0' * 64}", content=b"other").status_code == 400
    reader = HfApi(endpoint=hub.endpoint, token=READ)
    assert reader.repo_info("tester/x").private
    with pytest.raises(HfHubHTTPError, match="403"):
        reader.create_commit("tester/x", [CommitOperationAdd("b.txt", b"b")], commit_message="b")
    with pytest.raises(RepositoryNotFoundError):
        HfApi(endpoint=hub.endpoint, token=False).repo_info("tester/x")
    with pytest.raises(ValueError, match="Invalid metadata"):
        api.create_commit("tester/x", [CommitOperationAdd("README.md", b"---\na: [\n---\n")], commit_message="c")


def test_part_of_a_file(hub):
    hub.create("tester/x").write("a.txt", b"0123456789")
    url = f"{hub.endpoint}/tester/x/resolve/main/a.txt"
    part = get_session().get(url, headers={"Range": "bytes=2-4"})
    assert (part.status_code, part.content, part.headers["Content-Range"]) == (206, b"234", "bytes 2-4/10")
    assert get_session().get(url, headers={"Range": "bytes=7-"}).content == b"789"
    head = get_session().head(url)
    assert head.headers["Content-Length"] == "10" and head.headers["X-Repo-Commit"] == hub.repo("tester/x").refs["main"]
