"""The explorable page, in a real browser without a window."""

import csv
import html
import json
import math
import re
import shutil
import subprocess

import pytest

from hf_posgen.report.headline_tables import headline_sections
from hf_posgen.report.page import describe, on_dark, page, write_page
from hf_posgen.results.aggregate import over_seeds
from hf_posgen.results.columns import SCORES
from hf_posgen.results.frame import frame, panels
from tests.helpers import synthetic_rows
from tests.helpers.synthetic_rows import study1, study2

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
WATCH = """<script>
const errors = [];
addEventListener("error", (event) => errors.push(event.message));
addEventListener("unhandledrejection", (event) => errors.push(String(event.reason)));
for (const kind of ["error", "warn"]) console[kind] = (...words) => errors.push(words.join(" "));
</script>"""
REPORT = """<script>
addEventListener("load", () => {
  const click = (name) => document.querySelector(`#arms [data-name="${name}"], #splits [data-name="${name}"]`).click();
  const byId = (id) => document.getElementById(id);
  const pick = (id, value) => { byId(id).value = value; byId(id).dispatchEvent(new Event("change")); };
  const drawn = () => [...document.querySelectorAll("#curves .series")].map((g) => g.dataset.arm);
  const found = (() => { %s })();
  const out = document.createElement("pre");
  out.id = "found"; out.textContent = JSON.stringify({ ...found, errors });
  document.body.append(out);
  parent.postMessage(out.textContent, "*");
});
</script>"""
PHONE = """<!doctype html><iframe src="page.html" style="width:360px;height:800px;border:0"></iframe>
<script>addEventListener("message", (event) => {
  const out = document.createElement("pre"); out.id = "found"; out.textContent = event.data; document.body.append(out);
});</script>"""


def described(panel) -> dict:
    return describe(panel, headline_sections(panel))


def browser() -> str:
    found = next((path for path in map(shutil.which, BROWSERS) if path), None)
    assert found, (
        f"the page is tested in a real browser: install one of {', '.join(BROWSERS)} (apt-get install chromium)"
    )
    return found


def browse(
    text: str, script: str, folder, phone: bool = False, options: tuple[str, ...] = (), fragment: str = ""
) -> dict:
    """Open the page, run a script in it when it has loaded, and return what it says, errors included.

    fragment: what stands after the page's address."""
    watched = text.replace("<head>", "<head>" + WATCH, 1).replace("</body>", REPORT % script + "</body>")
    (folder / "page.html").write_text(watched)
    (folder / "phone.html").write_text(PHONE)
    command = [
        browser(),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--enable-logging=stderr",
    ]
    command += [
        f"--user-data-dir={folder / 'profile'}",
        "--window-size=1200,900",
        "--virtual-time-budget=3000",
        *options,
    ]
    target = (folder / ("phone.html" if phone else "page.html")).as_uri() + fragment
    done = subprocess.run([*command, "--dump-dom", target], capture_output=True, text=True, timeout=300)
    found = re.search(r'<pre id="found">(.*?)</pre>', done.stdout, re.S)
    assert found, done.stderr[-2000:]
    return json.loads(html.unescape(found[1]))


@pytest.fixture(scope="module")
def text():
    rows = study1(2) + study2(4, unfit=(("none", 1),))
    return page([described(panel) for panel in panels(frame(rows))], "Made-up <numbers>")


@pytest.mark.browser
def test_it_renders_and_a_filter_changes_the_plot(text, tmp_path):
    found = browse(
        text,
        """
        const first = { drawn: drawn(), maps: document.querySelectorAll("#maps figure").length,
                        bands: document.querySelectorAll("#curves .band").length, title: document.title,
                        reach: document.querySelectorAll("#curves .axis").length };
        click("rope");
        const without = { drawn: drawn(), maps: document.querySelectorAll("#maps figure").length };
        click("rope"); click("longer");
        const inside = document.querySelector("#table tbody").textContent.includes("longer");
        click("longer"); pick("panel", "1");
        const second = { drawn: drawn(), title: byId("curve-title").textContent,
                         bands: document.querySelectorAll("#curves .band").length,
                         facts: byId("facts").textContent };
        pick("metric", "rest_accuracy");
        const rest = { title: byId("curve-title").textContent, key: byId("key").textContent };
        pick("axis", "length");
        const along = byId("curve-title").textContent;
        for (const arm of ["none", "rope", "alibi"]) click(arm);
        return { first, without, inside, second, rest, along, none: byId("curves").textContent };
        """,
        tmp_path,
    )
    assert found["errors"] == []
    assert found["first"]["title"] == "Made-up <numbers>"
    assert found["first"]["drawn"].count("rope") == 2 and found["first"]["bands"] == 0, "two seeds: two lines, no band"
    assert found["first"]["maps"] == 5 and found["without"]["maps"] == 4
    assert "rope" not in found["without"]["drawn"] and not found["inside"]
    assert found["second"]["drawn"].count("rope") == 1 and found["second"]["bands"] == 3
    assert found["second"]["drawn"].count("none") == 2, "the mean of those that fit, and the one that did not"
    assert (
        "an anchor token" in found["second"]["facts"] and found["second"]["title"] == "First pasted token by distance"
    )
    assert found["rest"]["title"] == "Rest of the paste by distance" and "2-gram baseline" in found["rest"]["key"]
    assert found["along"] == "Rest of the paste by length" and "No cell" in found["none"]


@pytest.mark.browser
def test_hover_and_sort_on_a_phone_in_the_dark(text, tmp_path):
    found = browse(
        text,
        """
        pick("panel", "1");
        const svg = document.querySelector("#curves svg"), at = svg.getBoundingClientRect();
        const mark = svg.querySelector('[data-arm="rope"] circle').getBoundingClientRect();
        const where = { clientX: mark.left + 2, clientY: mark.top + 2, bubbles: true };
        svg.dispatchEvent(new PointerEvent("pointermove", where));
        const tip = byId("tip"), curve = tip.textContent, box = tip.getBoundingClientRect();
        svg.dispatchEvent(new PointerEvent("pointerleave"));
        const hidden = tip.hidden;
        document.querySelector("#maps .cell").dispatchEvent(new PointerEvent("pointermove", { ...where, bubbles: false }));
        const cell = tip.textContent;
        document.querySelector("[data-sort=mean]").click();
        const lines = () => [...document.querySelectorAll("#table tbody tr")];
        const column = () => lines().map((line) => Number(line.cells[4].textContent));
        const up = column(); document.querySelector("[data-sort=mean]").click();
        const down = column(), said = document.querySelector("th[aria-sort=descending]").textContent;
        return { curve, hidden, cell, up, down, said, width: innerWidth, needs: document.documentElement.scrollWidth,
                 tip: [box.left, box.right], paper: getComputedStyle(document.body).backgroundColor };
        """,
        tmp_path,
        phone=True,
        options=("--blink-settings=preferredColorScheme=0",),
    )
    assert found["errors"] == []
    assert re.search(
        r"rope\s*distance \d+: [\d.]+ \[[\d.]+, [\d.]+\] over 4 seeds\s*200 sequences per cell, chance 0.03",
        found["curve"],
    )
    assert found["hidden"] and re.search(r"length \d+, distance \d+ \(\w+\)\s*0\.\d+ \[", found["cell"])
    assert (
        found["up"] == sorted(found["up"])
        and found["down"] == sorted(found["down"], reverse=True)
        and "mean" in found["said"]
    )
    assert found["width"] == 360 and found["needs"] <= 360, "nothing hangs over the edge of a phone"
    assert found["tip"][0] >= 0 and found["tip"][1] <= 360
    assert found["paper"] == "rgb(22, 24, 28)", "dark where the reader asks for dark"


@pytest.mark.browser
def test_full_and_selective_copies_are_two_panels(tmp_path):
    rows = [row | {"kind": "full"} for row in study2(1)]
    rows += [row | {"kind": "selective"} for row in study2(1, unfit=("none",))]
    found = browse(
        page([described(panel) for panel in panels(frame(rows))], "C and S"),
        """
        const names = [...byId("panel").options].map((one) => one.textContent), full = byId("arms").textContent;
        pick("panel", "1");
        const caption = document.querySelector("#maps svg"), words = [...caption.querySelectorAll("text")].pop();
        const inside = words.getBoundingClientRect().right <= caption.getBoundingClientRect().right;
        return { names, full, selective: byId("arms").textContent, inside };
        """,
        tmp_path,
        phone=True,
    )
    assert found["errors"] == []
    assert found["names"] == ["Study 2, delay copy, full", "Study 2, delay copy, selective"]
    assert "did not fit" in found["selective"] and "did not fit" not in found["full"]
    assert found["inside"], "the words under a map are not cut"


@pytest.mark.browser
def test_perplexities_are_shown_by_their_ratios(tmp_path):
    rows = synthetic_rows.text() + study2(1)
    found = browse(
        page([described(panel) for panel in panels(frame(rows))], "Text and copies"),
        """
        const at = (title) => [...byId("panel").options].find((one) => one.textContent.startsWith(title)).value;
        pick("panel", at("Study 2")); const scale = byId("scale").textContent;
        pick("panel", at("Text"));
        const heights = (arm) => [...document.querySelectorAll(`#curves [data-arm=${arm}] polyline`)].at(-1)
          .getAttribute("points").split(" ").map((point) => Number(point.split(",")[1]));
        const words = (where) => [...document.querySelectorAll(where)].map((one) => one.textContent);
        const first = words("#table tbody tr:first-child td");
        const log = { title: byId("curve-title").textContent, key: byId("key").textContent, learned: heights("learned"),
                      maps: byId("maps").textContent, scale: byId("scale").textContent, first,
                      bands: document.querySelectorAll("#curves .band").length,
                      marks: words("#curves text[text-anchor=end]") };
        const svg = document.querySelector("#curves svg");
        const mark = svg.querySelector("[data-arm=rope] circle").getBoundingClientRect();
        svg.dispatchEvent(new PointerEvent("pointermove", { clientX: mark.left + 3, clientY: mark.top + 3 }));
        const tip = byId("tip").textContent;
        pick("metric", "token_accuracy");
        return { scale, log, tip, share: byId("curve-title").textContent, chance: byId("key").textContent };
        """,
        tmp_path,
    )
    assert found["errors"] == []
    log = found["log"]
    assert log["title"] == "Perplexity by length" and log["key"] == "token frequencies" and log["bands"] == 3
    steps = [a - b for a, b in zip(log["learned"], log["learned"][1:], strict=False)]
    assert (
        steps[0] > 5
        and steps[1] == pytest.approx(steps[0], rel=0.01)
        and steps[2] == pytest.approx(2 * steps[0], rel=0.01)
    )
    assert {"10", "20", "50"} <= set(log["marks"])
    assert "No grid" in log["maps"] and "accuracy" in found["scale"] and not log["scale"]
    first = log["first"]
    assert first[0] == "learned" and float(first[4]) == pytest.approx(
        sum(map(math.exp, (2.2, 2.22, 2.24))) / 3, abs=1e-3
    )
    assert float(first[6]) > float(first[4]) > 9 and first[9] == "–", "no chance beside a perplexity"
    assert "over 3 seeds" in found["tip"] and "chance" not in found["tip"]
    assert found["share"] == "Token accuracy by length" and "chance" in found["chance"]


@pytest.mark.browser
def test_an_error_in_the_page_would_be_seen(text, tmp_path):
    broken = text.replace("return openPanel(0);", "return openPanel(7);", 1)
    assert browse(broken, "return {};", tmp_path)["errors"]


def test_it_needs_no_network_and_no_name_breaks_out(tmp_path):
    rows = [row | {"arm": "</script><b>x"} for row in study1(1, arms=("rope",), unfit=())]
    text = write_page([described(panel) for panel in panels(frame(rows))], tmp_path, "t & <t>").read_text()
    assert "<title>t &amp; &lt;t&gt;</title>" in text and "</script><b>" not in text
    links = set(re.findall(r"https?://[^\s\"'`)]+", text)) - {"http://www.w3.org/2000/svg"}
    assert not links and "@import" not in text and "fetch(" not in text


def test_numbers_of_the_page_are_those_of_the_report():
    """Lines, cells and reference points are computed with the same functions, from the same rows."""
    for rows in (study2(1, arms=("rope",)), study2(4, unfit=(("none", 1),)), study1(2), synthetic_rows.text(40)):
        for panel in panels(frame(rows)):
            one = described(panel)
            assert json.dumps(one, allow_nan=False), "no NaN, which JSON has not"
            for axis, metric in ((axis, metric) for axis in panel.axes for metric in panel.metrics):
                seeds = panel.by_seed(axis, metric)
                for line in one["lines"][axis][metric]:
                    own = seeds[(seeds["arm"] == line["arm"]) & (seeds["fit"] == line["fit"])]
                    own = own if line["seed"] is None else own[own["seed"] == line["seed"]]
                    for point in line["points"]:
                        mean = over_seeds(own.loc[own[axis] == point["x"], metric], SCORES[metric].bounds)
                        assert point["mean"] == pytest.approx(mean.mean, abs=1e-5)
                        if line["seed"] is None:
                            assert point["n"] == mean.n
                            assert (point["low"], point["high"]) == pytest.approx((mean.low, mean.high), abs=1e-5)
                for line in one["references"][axis][metric]:
                    assert dict(line["points"]) == pytest.approx(
                        dict(panel.references(axis, metric)[line["name"]]), abs=1e-5
                    )
            metric = panel.metrics[0]
            fitted = panel.table[panel.table["fit"]].dropna(subset=[metric])
            means = fitted.fillna({"distance": -1}).groupby(["arm", "split", "length", "distance"])[metric].mean()
            places = (
                (c, (c["arm"], c["split"], c["length"], -1 if c["distance"] is None else c["distance"]))
                for c in one["cells"][metric]
            )
            cells = {place: cell["mean"] for cell, place in places if cell["fit"]}
            assert cells == pytest.approx(means.to_dict(), abs=1e-5) and len(cells)


def test_colours_on_dark_keep_their_hue():
    assert on_dark("#222222") == "#ebebeb"
    assert on_dark("#0072B2") != "#0072B2"


@pytest.mark.browser
def test_one_length_is_drawn_as_a_strip_and_arms_stand_in_one_order(tmp_path):
    """Whatever order the folders were named in: lines, maps and buttons show the arms in the order of all figures."""
    rows = [row for arm in ("rope", "alibi", "none") for row in study2(3, arms=(arm,), windows=(64,))]
    found = browse(
        page([described(panel) for panel in panels(frame(rows))], "One length"),
        """
        const names = (all) => [...document.querySelectorAll(all)].map((one) => one.dataset.arm || one.dataset.name);
        const svg = document.querySelector("#maps svg"), box = svg.getBoundingClientRect();
        const cells = [...svg.querySelectorAll(".cell")].map((one) => one.getBoundingClientRect());
        const near = svg.querySelector(".frame").getBoundingClientRect();
        return { maps: names("#maps figure"), lines: names("#curves .series"), buttons: names("#arms button"),
                 words: [...svg.querySelectorAll("text")].pop().textContent, height: box.height, count: cells.length,
                 level: new Set(cells.map((one) => one.top)).size, across: new Set(cells.map((one) => one.left)).size,
                 framed: near.width / cells[0].width };
        """,
        tmp_path,
    )
    assert found["errors"] == []
    assert found["maps"] == found["lines"] == found["buttons"] == ["none", "rope", "alibi"]
    assert (found["count"], found["level"], found["across"]) == (33, 1, 33) and found["height"] < 80
    assert found["words"] == "→ distance, ↑ length" and 4.5 < found["framed"] < 5.5


@pytest.mark.browser
def test_arrow_keys_reach_points_and_cells(text, tmp_path):
    found = browse(
        text,
        """
        pick("panel", "1");
        const tip = byId("tip");
        const press = (svg, key) => {
          svg.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
          return tip.hidden ? "" : tip.textContent;
        };
        const curves = document.querySelector("#curves svg"), map = document.querySelector("#maps svg");
        const points = ["ArrowRight", "ArrowRight", "ArrowDown", "Escape"].map((key) => press(curves, key));
        const cells = ["ArrowRight", "ArrowRight", "ArrowDown", "Escape"].map((key) => press(map, key));
        return { points, cells, reached: [curves.tabIndex, map.tabIndex] };
        """,
        tmp_path,
    )
    assert found["errors"] == [] and found["reached"] == [0, 0]
    for words in (found["points"], found["cells"]):
        assert all(words[:3]) and len(set(words[:3])) == 3 and words[3] == "", words
    assert found["points"][0].split("\n")[0] == found["points"][1].split("\n")[0], "right goes along one line"
    assert found["points"][2].split("\n")[0] != found["points"][1].split("\n")[0], "down goes to the next line"


@pytest.mark.browser
def test_the_tip_stays_when_a_finger_lifts(text, tmp_path):
    found = browse(
        text,
        """
        const svg = document.querySelector("#curves svg"), tip = byId("tip"), cell = document.querySelector("#maps .cell");
        const send = (at, kind, pointerType) => {
          const box = (at === svg ? svg.querySelector("[data-arm=rope] circle") : at).getBoundingClientRect();
          const where = { clientX: box.left + 2, clientY: box.top + 2, pointerType, bubbles: kind !== "pointerleave" };
          at.dispatchEvent(new PointerEvent(kind, where));
          return tip.hidden;
        };
        const touched = [svg, cell].map((at) => [send(at, "pointerdown", "touch"), send(at, "pointerleave", "touch")]);
        const elsewhere = send(document.querySelector("h1") || document.body, "pointerdown", "touch");
        const mouse = [svg, cell].map((at) => [send(at, "pointermove", "mouse"), send(at, "pointerleave", "mouse")]);
        return { touched, elsewhere, mouse };
        """,
        tmp_path,
        phone=True,
    )
    assert found["errors"] == []
    assert found["touched"] == [[False, False], [False, False]], "shown, and still shown"
    assert found["elsewhere"] is True, "a touch beside the figures hides it"
    assert found["mouse"] == [[False, True], [False, True]]


@pytest.mark.browser
def test_numbers_and_the_drawing_can_be_taken_away(text, tmp_path):
    found = browse(
        text,
        """
        pick("panel", "1"); click("alibi");
        const files = [], kept = URL.createObjectURL;
        URL.createObjectURL = (blob) => { files.push({ type: blob.type, size: blob.size }); return kept.call(URL, blob); };
        HTMLAnchorElement.prototype.click = function () { files.at(-1).name = this.download; };
        byId("csv").click(); byId("svg").click();
        const parsed = new DOMParser().parseFromString(svgText(), "image/svg+xml");
        return { files, csv: csvText(), broken: parsed.querySelectorAll("parsererror").length,
                 lines: [...parsed.querySelectorAll("[data-arm]")].map((one) => one.dataset.arm),
                 styled: parsed.querySelector("polyline").getAttribute("style") };
        """,
        tmp_path,
    )
    assert found["errors"] == []
    assert [(file["name"], file["type"]) for file in found["files"]] == [
        ("cells.csv", "text/csv"),
        ("curves.svg", "image/svg+xml"),
    ]
    lines = list(csv.DictReader(found["csv"].splitlines()))
    assert found["files"][0]["size"] == len(found["csv"].encode()) and found["files"][1]["size"] > 1000
    assert {line["arm"] for line in lines} == {"none", "rope"}, "what is shown"
    assert all(0 <= float(line["mean"]) <= 1 and line["fit"] in ("true", "false") for line in lines)
    assert not found["broken"] and set(found["lines"]) == {"none", "rope"} and "stroke:" in found["styled"]


@pytest.mark.browser
def test_the_address_keeps_what_is_shown(text, tmp_path):
    state = """({ panel: byId("panel").value, metric: byId("metric").value, axis: byId("axis").value,
      drawn: [...new Set(drawn())],
      splits: [...document.querySelectorAll("#splits [aria-pressed=true]")].map((one) => one.dataset.name),
      hash: location.hash })"""
    chosen = 'pick("panel", "1"); pick("metric", "rest_accuracy"); pick("axis", "length");'
    chosen += ' click("rope"); click("farther");'
    first = browse(text, f"{chosen} return {state};", tmp_path)
    again = browse(text, f"return {state};", tmp_path, fragment=first["hash"])
    assert first["errors"] == again["errors"] == []
    assert again == first and first["hash"]
    assert (again["panel"], again["metric"], again["axis"]) == ("1", "rest_accuracy", "length")
    assert "rope" not in again["drawn"] and "farther" not in again["splits"] and "both" in again["splits"]
    other = browse(text, f"return {state};", tmp_path, fragment="#panel=not+there&score=no&without=nobody")
    assert other["errors"] == [] and other["panel"] == "0", "an address of another report opens this one as it is"
