"use strict";
// The page of a report. DATA holds the lines, cells and tables of each panel, computed beforehand; what is drawn follows
// from `state` alone, which the address keeps.
const DATA = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const state = { panel: 0, metric: null, axis: null, off: new Set(), splits: new Set(), sort: "arm", down: false, all: false };
const MARKS = { // polygons: corners, turned by so many degrees, squeezed
  s: [4, 45, 1], D: [4, 0, 1], d: [4, 0, 0.65], "^": [3, -90, 1], v: [3, 90, 1], "<": [3, 180, 1], ">": [3, 0, 1],
  p: [5, -90, 1], h: [6, -90, 1], 8: [8, 22.5, 1],
};
const DASHES = ["", "7 4", "7 3 2 3", "2 3"];
const REFERENCES = { chance: "5 4", ceiling: "8 3 2 3", "bag of words": "2 3", "1-gram baseline": "2 3", "2-gram baseline": "5 2 1 2", "1-gram baseline, rest": "6 2", "2-gram baseline, rest": "5 2 1 2", "token frequencies": "2 3" };

function element(name, attributes = {}, ...children) {
  const svg = ["svg", "g", "path", "rect", "line", "circle", "text", "pattern", "defs", "polyline"].includes(name);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) if (value !== undefined && value !== null) node.setAttribute(key, value);
  node.append(...children);
  return node;
}

function mark(arm, x, y, size, unfit) {
  const kind = arm.marker, hollow = arm.variant > 0 ? "hollow" : "solid";
  let path;
  if (kind === "P" || kind === "X") {
    const a = size * 0.4, turn = kind === "X" ? 45 : 0;
    path = `M${-a},${-size}h${2 * a}v${size - a}h${size - a}v${2 * a}h${a - size}v${size - a}h${-2 * a}v${a - size}h${a - size}v${-2 * a}h${size - a}z`;
    return element("path", { d: path, transform: `translate(${x},${y}) rotate(${turn})`, class: hollow });
  }
  if (!MARKS[kind]) return element("circle", { cx: x, cy: y, r: size * 0.9, class: hollow });
  const [corners, turn, squeeze] = MARKS[kind];
  path = Array.from({ length: corners }, (_, i) => {
    const angle = ((turn + (360 * i) / corners) * Math.PI) / 180, r = size * 1.15;
    return `${x + r * squeeze * Math.cos(angle)},${y + r * Math.sin(angle)}`;
  });
  return element("path", { d: `M${path.join("L")}z`, class: hollow });
}

const panel = () => DATA.panels[state.panel];
const label = (metric) => panel().metrics.find((one) => one.key === metric).label;
const isShare = () => panel().metrics.find((one) => one.key === state.metric).share; // 0 to 1, more is better; else a perplexity
const fixed = (value, digits = 2) => (value === null || value === undefined ? "–" : value.toFixed(digits));
function group(items, key) {
  const out = new Map();
  for (const item of items) { const k = key(item); if (!out.has(k)) out.set(k, []); out.get(k).push(item); }
  return out;
}

const armOf = (name) => panel().arms.find((arm) => arm.name === name);
const chosenMask = () => panel().splits.reduce((mask, split, i) => (state.splits.has(split) ? mask | (1 << i) : mask), 0);

// ---- curves: the lines of the chosen arms, at the points whose splits are all chosen
function lines() {
  const mask = chosenMask();
  return panel().lines[state.axis][state.metric].filter((line) => !state.off.has(line.arm)).map((line) => ({
    ...line, arm: armOf(line.arm), points: line.points.filter((point) => (point.mask & ~mask) === 0),
  })).filter((line) => line.points.length);
}

function cells() {
  return panel().cells[state.metric].filter((cell) => !state.off.has(cell.arm) && state.splits.has(cell.split)).map((cell) => ({
    ...cell, arm: armOf(cell.arm), armName: cell.arm, chance: isShare() ? cell.chance : null,
  }));
}

function references(all) { // chance, ceiling and baselines, at the points that are shown
  const shown = new Set(all.flatMap((line) => line.points.map((point) => point.x)));
  return panel().references[state.axis][state.metric].map(({ name, points }) => ({ name, line: points.filter(([x]) => shown.has(x)) }))
    .filter(({ line }) => line.length);
}

function level(values) { // the upright axis: shares as they are, perplexities by their ratios; unit: from 0 at the bottom to 1
  if (isShare()) return { unit: (v) => (v + 0.03) / 1.06, marks: [0, 0.2, 0.4, 0.6, 0.8, 1], text: (v) => v.toFixed(1) };
  const low = Math.min(...values) / 1.05, high = Math.max(...values) * 1.05, marks = [];
  for (let ten = 10 ** Math.floor(Math.log10(low)); ten <= high; ten *= 10) marks.push(...[1, 1.5, 2, 3, 5, 7].map((k) => k * ten));
  const within = marks.filter((v) => v >= low && v <= high), shown = within.length > 9 ? within.filter((v) => /^[125]0*$/.test(String(v))) : within;
  return { unit: (v) => Math.log(Math.max(v, low) / low) / Math.log(high / low), marks: shown.length > 1 ? shown : [low * 1.05, high / 1.05], text: (v) => String(Number(v.toPrecision(3))) };
}

function scales(xs, values, width, height, log) {
  const [left, right, top, bottom] = [44, 12, 22, 40], low = Math.min(...xs), high = Math.max(...xs);
  const t = log ? Math.log2 : (v) => v, span = t(high) - t(low) || 1;
  const x = (v) => left + 8 + ((t(v) - t(low)) / span) * (width - left - right - 16);
  const { unit, marks, text } = level(values), y = (v) => top + (1 - unit(v)) * (height - top - bottom);
  return { x, y, marks, text, left, right: width - right, top, bottom: height - bottom, low, high };
}

function ticks(xs, ranges, room) { // points that were evaluated: all, or the ends, the trained ends and some of the others
  const values = [...new Set(xs)].sort((a, b) => a - b);
  if (values.length <= room) return values;
  const ends = ranges.flat().filter((v) => values.includes(v)), keep = new Set([values[0], values[values.length - 1], ...ends]);
  const step = Math.ceil(values.length / Math.max(1, room - keep.size));
  values.forEach((v, i) => i % step || keep.add(v));
  return values.filter((v) => keep.has(v));
}

function apart(values, x, gap) { // without those that would be written over each other; the first and the last stay
  const out = [];
  for (const v of values) if (!out.length || x(v) - x(out[out.length - 1]) >= gap) out.push(v);
  const last = values[values.length - 1];
  if (out[out.length - 1] !== last) { while (out.length > 1 && x(last) - x(out[out.length - 1]) < gap) out.pop(); out.push(last); }
  return out;
}

function drawCurves() {
  const box = $("curves"), p = panel(), all = lines();
  box.replaceChildren(); $("key").replaceChildren();
  if (!all.length) return box.append(element("p", { class: "empty" }, `No cell of the chosen encodings and splits lies along ${state.axis}.`));
  const width = Math.max(280, box.clientWidth), height = Math.max(240, Math.min(400, width * 0.5));
  const xs = all.flatMap((line) => line.points.map((q) => q.x)), log = state.axis === "length" && Math.max(...xs) > 4 * Math.min(...xs) && Math.min(...xs) > 0;
  const refs = references(all), heights = [...all.flatMap((line) => line.points.flatMap((q) => [q.mean, q.low ?? q.mean, q.high ?? q.mean])), ...refs.flatMap((one) => one.line.map(([, v]) => v))];
  const s = scales(xs, heights, width, height, log), clamp = (v) => Math.min(s.right, Math.max(s.left, v));
  const svg = element("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${label(state.metric)} by ${state.axis}` });
  for (const [low, high] of p.ranges[state.axis]) {
    if (high < s.low || low > s.high) continue;
    const a = clamp(s.x(Math.max(low, s.low)) - 5), b = clamp(s.x(Math.min(high, s.high)) + 5);
    svg.append(element("rect", { class: "shade", x: a, y: s.top, width: b - a, height: s.bottom - s.top, opacity: p.ranges[state.axis].length > 1 ? 0.6 : 1 }));
    const middle = Math.max(s.left + 22, (a + b) / 2);
    svg.append(element("text", { class: "note", x: middle, y: s.top - 6, "text-anchor": "middle" }, "trained"));
  }
  for (const v of s.marks) svg.append(element("line", { class: "grid", x1: s.left, x2: s.right, y1: s.y(v), y2: s.y(v) }), element("text", { x: s.left - 6, y: s.y(v) + 4, "text-anchor": "end" }, s.text(v)));
  for (const v of apart(ticks(xs, p.ranges[state.axis], Math.floor(width / 34)), s.x, 8 + 7 * String(Math.max(...xs)).length)) svg.append(element("line", { class: "axis", x1: s.x(v), x2: s.x(v), y1: s.bottom, y2: s.bottom + 4 }), element("text", { class: "tick", x: s.x(v), y: s.bottom + 17, "text-anchor": "middle" }, String(v)));
  svg.append(element("path", { class: "axis", d: `M${s.left},${s.top}V${s.bottom}H${s.right}` }), element("text", { x: (s.left + s.right) / 2, y: height - 6, "text-anchor": "middle" }, `${state.axis} (tokens)`));
  drawReferences(svg, refs, s);
  const hits = [];
  for (const line of [...all].sort((a, b) => a.fit - b.fit)) {
    const g = element("g", { class: `arm series${line.fit ? "" : " unfit"}`, style: `--c:${line.arm.colour};--d:${line.arm.dark}`, "data-arm": line.arm.name });
    const banded = line.points.filter((q) => (q.low ?? null) !== null);
    if (banded.length > 1) g.append(element("path", { class: "band", fill: "currentColor", opacity: 0.18, d: `M${banded.map((q) => `${s.x(q.x)},${s.y(q.high)}`).join("L")}L${[...banded].reverse().map((q) => `${s.x(q.x)},${s.y(q.low)}`).join("L")}z` }));
    g.append(element("polyline", { fill: "none", stroke: "currentColor", "stroke-width": line.fit ? 1.8 : 1.1, "stroke-dasharray": line.fit ? DASHES[line.arm.variant % 4] : "2 3", points: line.points.map((q) => `${s.x(q.x)},${s.y(q.mean)}`).join(" ") }));
    for (const q of line.points) { g.append(mark(line.arm, s.x(q.x), s.y(q.mean), line.fit ? 4 : 3)); hits.push({ line, q, x: s.x(q.x), y: s.y(q.mean) }); }
    svg.append(g);
  }
  const ring = element("circle", { class: "ring", r: 7, visibility: "hidden" });
  svg.append(ring);
  const point = (hit, where) => {
    ring.setAttribute("cx", hit.x); ring.setAttribute("cy", hit.y); ring.setAttribute("visibility", "visible");
    showTip(where, describe(hit.line, hit.q));
  };
  const leave = () => { ring.setAttribute("visibility", "hidden"); hideTip(); };
  const near = (event) => {
    const at = svg.getBoundingClientRect(), px = event.clientX - at.left, py = event.clientY - at.top;
    const best = hits.reduce((a, b) => (Math.hypot(b.x - px, b.y - py) < Math.hypot(a.x - px, a.y - py) ? b : a));
    if (Math.hypot(best.x - px, best.y - py) > 36) return leave();
    point(best, event);
  };
  svg.addEventListener("pointermove", near); svg.addEventListener("pointerdown", near);
  svg.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") leave(); }); // a finger lifts to read
  walk(svg, hits, (hit) => {
    const at = svg.getBoundingClientRect();
    point(hit, { clientX: at.left + hit.x, clientY: at.top + hit.y });
  }, leave);
  box.append(svg);
}

// Arrow keys: left and right along a line, up and down to the nearest point of the next line; Escape leaves.
function walk(svg, hits, show, leave) {
  let at = -1;
  svg.setAttribute("tabindex", "0");
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") { at = -1; return leave(); }
    if (!step) return;
    event.preventDefault();
    if (at < 0) at = 0;
    else if (event.key === "ArrowRight" || event.key === "ArrowLeft") at = (at + step + hits.length) % hits.length;
    else {
      const groups = [...new Set(hits.map((hit) => hit.line))], to = groups[(groups.indexOf(hits[at].line) + step + groups.length) % groups.length];
      const x = hits[at].x;
      at = hits.reduce((best, hit, i) => (hit.line === to && (best < 0 || Math.abs(hit.x - x) < Math.abs(hits[best].x - x)) ? i : best), -1);
    }
    show(hits[at]);
  });
  svg.addEventListener("blur", leave);
}

function drawReferences(svg, refs, s) {
  for (const { name, line } of refs) {
    const looks = { class: `ref${name in { chance: 1, ceiling: 1 } ? "" : " look"}`, "stroke-dasharray": REFERENCES[name] };
    svg.append(element("polyline", { ...looks, points: line.map(([x, v]) => `${s.x(x)},${s.y(v)}`).join(" ") }));
    $("key").append(element("span", {}, element("svg", { width: 30, height: 8 }, element("line", { ...looks, x1: 0, x2: 30, y1: 4, y2: 4 })), name));
  }
}

const chance = (one) => (isShare() ? `, chance ${fixed(one.chance, 3)}` : ""); // no perplexity

function describe(line, q) {
  const who = line.fit ? line.arm.name : `${line.arm.name}: did not fit`;
  const value = (q.low ?? null) === null ? fixed(q.mean, 3) : `${fixed(q.mean, 3)} [${fixed(q.low, 3)}, ${fixed(q.high, 3)}] over ${q.n} seeds`;
  const own = q.own ? `\n[${fixed(q.own[0], 3)}, ${fixed(q.own[1], 3)}] over sequences` : "";
  const seed = line.seed === null ? "" : `, seed ${line.seed}`;
  const cells = q.cells > 1 ? `, ${q.cells} cells` : "";
  return `${who}${seed}\n${state.axis} ${q.x}: ${value}${own}\n${q.count ?? "?"} sequences per cell${cells}${chance(q)}`;
}

// ---- maps
function colour(value, fit) {
  if (!fit) { const v = Math.round(175 + 65 * value); return `rgb(${v},${v},${v})`; }
  const at = Math.min(0.9999, Math.max(0, value)) * (DATA.viridis.length - 1), i = Math.floor(at), f = at - i;
  return `rgb(${DATA.viridis[i].map((c, k) => Math.round(c + (DATA.viridis[i + 1][k] - c) * f)).join()})`;
}

function drawMaps(cells) {
  const box = $("maps");
  box.replaceChildren(); $("scale").replaceChildren();
  const lengths = [...new Set(cells.map((c) => c.length))].sort((a, b) => a - b);
  const distances = [...new Set(cells.map((c) => c.distance))].filter((d) => d !== null).sort((a, b) => a - b);
  if (!distances.length || lengths.length * distances.length < 2) return box.append(element("p", { class: "empty" }, "No grid of lengths and distances in the chosen splits."));
  if (!isShare()) return box.append(element("p", { class: "empty" }, "Maps are of accuracies: choose another score."));
  const flat = Math.min(lengths.length, distances.length) === 1, room = Math.max(280, box.clientWidth);
  const width = flat ? room : Math.min(room, Math.max(room < 460 ? (room - 16) / 2 : 210, lengths.length * 30 + 50));
  const sides = lengths.length > 1 ? ["length", "distance", lengths, distances] : ["distance", "length", distances, lengths]; // one length: a strip
  for (const [, mine] of group(cells, (c) => c.armName)) box.append(map(mine, ...sides, width));
  const stops = DATA.viridis.map((c) => `rgb(${c.join()})`).join();
  $("scale").replaceChildren("accuracy 0", element("i", { style: `background:linear-gradient(90deg,${stops})` }), "1");
}

function map(mine, across, up, xs, ys, width) { // across, up: "length" or "distance", with the values to show in xs and ys
  const arm = mine[0].arm, tall = Math.max(10, Math.min(26, 240 / ys.length)), left = 38, height = tall * ys.length + 36;
  const w = (width - left - 6) / xs.length, fit = mine.some((c) => c.fit);
  const svg = element("svg", { width, height, role: "img", "aria-label": `${arm.name}: ${across} by ${up}` });
  const id = `hatch-${arm.name.replace(/[^a-z0-9]/gi, "_")}`;
  svg.append(element("defs", {}, element("pattern", { id, width: 6, height: 6, patternUnits: "userSpaceOnUse", patternTransform: "rotate(45)" }, element("line", { class: "hatch", y2: 6, "stroke-width": 2 }))));
  svg.append(element("rect", { x: left, y: 4, width: w * xs.length, height: tall * ys.length, fill: `url(#${id})` }));
  const X = (i) => left + w * i, Y = (j) => 4 + tall * (ys.length - 1 - j);
  const hits = [];
  for (const c of [...mine].sort((a, b) => b[up] - a[up] || a[across] - b[across])) {
    const rect = element("rect", { class: "cell", x: X(xs.indexOf(c[across])), y: Y(ys.indexOf(c[up])), width: w + 0.5, height: tall + 0.5, fill: colour(c.mean, c.fit) });
    for (const kind of ["pointermove", "pointerdown"]) rect.addEventListener(kind, (event) => showTip(event, describeCell(c)));
    rect.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") hideTip(); });
    hits.push({ line: c[up], x: X(xs.indexOf(c[across])), at: rect, c });
    svg.append(rect);
    const inCell = { x: X(xs.indexOf(c[across])) + w / 2, y: Y(ys.indexOf(c[up])) + tall / 2 + 4, "text-anchor": "middle" };
    if (w >= 30 && tall >= 16) svg.append(element("text", { ...inCell, class: c.fit && c.mean < 0.6 ? "light" : "dark" }, c.mean.toFixed(2)));
  }
  walk(svg, hits, (hit) => {
    const { left: x, top: y } = hit.at.getBoundingClientRect();
    showTip({ clientX: x, clientY: y }, describeCell(hit.c));
  }, hideTip);
  frame(svg, across, up, xs, ys, X, Y, w, tall, arm);
  const everyX = Math.ceil((xs.length * 30) / (width - left)), everyY = Math.ceil((ys.length * 14) / (tall * ys.length));
  xs.forEach((v, i) => i % everyX || svg.append(element("text", { x: X(i) + w / 2, y: height - 18, "text-anchor": "middle" }, String(v))));
  ys.forEach((v, j) => j % everyY || svg.append(element("text", { x: left - 5, y: Y(j) + tall / 2 + 4, "text-anchor": "end" }, String(v))));
  svg.append(element("text", { x: 0, y: height - 4 }, `→ ${across}, ↑ ${up}`));
  const caption = element("figcaption", { class: `arm${fit ? "" : " unfit"}`, style: `--c:${arm.colour};--d:${arm.dark}` }, fit ? arm.name : `${arm.name} (did not fit)`);
  return element("figure", { "data-arm": arm.name }, caption, svg);
}

function frame(svg, across, up, xs, ys, X, Y, w, tall, arm) {
  const inside = (values, [low, high]) => values.map((v, i) => [v, i]).filter(([v]) => v >= low && v <= high).map(([, i]) => i);
  const [a, b] = [[across, xs], [up, ys]].map(([axis, values]) => (arm.trained[axis][0] === null ? values.map((_, i) => i) : inside(values, arm.trained[axis])));
  if (!a.length || !b.length) return;
  svg.append(element("rect", { class: "frame", x: X(a[0]), y: Y(b[b.length - 1]), width: w * (a[a.length - 1] - a[0] + 1), height: tall * (b[b.length - 1] - b[0] + 1) }));
}

function describeCell(c) {
  const interval = (c.low ?? null) !== null ? ` [${fixed(c.low, 3)}, ${fixed(c.high, 3)}] over ${c.n} seeds` : c.own ? ` [${fixed(c.own[0], 3)}, ${fixed(c.own[1], 3)}] over sequences` : ` (${c.n} seeds)`;
  return `${c.armName}${c.fit ? "" : ": did not fit"}\nlength ${c.length}, distance ${c.distance ?? "mixed"} (${c.split})\n${fixed(c.mean, 3)}${interval}\n${c.count ?? "?"} sequences${chance(c)}`;
}

// ---- table
const COLUMNS = [["armName", "arm"], ["split", "split"], ["length", "length"], ["distance", "distance"], ["mean", "mean"], ["low", "low"], ["high", "high"], ["n", "seeds"], ["count", "sequences"], ["chance", "chance"]];

function drawTable(cells) {
  const shown = cells.map((c) => ({ ...c, low: c.low ?? c.own?.[0] ?? null, high: c.high ?? c.own?.[1] ?? null }));
  const rank = (c) => (state.sort === "armName" ? panel().arms.findIndex((arm) => arm.name === c.armName) : c[state.sort]);
  shown.sort((a, b) => {
    const x = rank(a), y = rank(b);
    if (x === null || y === null) return (x === null) - (y === null);
    return (x < y ? -1 : x > y ? 1 : 0) * (state.down ? -1 : 1);
  });
  const head = element("tr");
  for (const [key, name] of COLUMNS) {
    const here = key === state.sort, button = element("button", { type: "button", "data-sort": key }, name + (here ? (state.down ? " ▾" : " ▴") : ""));
    button.addEventListener("click", () => { state.down = here && !state.down; state.sort = key; draw(); document.querySelector(`[data-sort=${key}]`).focus(); });
    head.append(element("th", { scope: "col", "aria-sort": here ? (state.down ? "descending" : "ascending") : "none" }, button));
  }
  const body = shown.slice(0, state.all ? shown.length : 200).map((c) => {
    const line = element("tr", { class: c.fit ? "" : "unfit" });
    for (const [key] of COLUMNS) {
      const value = c[key];
      const text = ["mean", "low", "high", "chance"].includes(key) ? fixed(value, 3) : value === null || value === undefined ? "–" : String(value);
      line.append(element("td", {}, key === "armName" && !c.fit ? `${text} (did not fit)` : text));
    }
    return line;
  });
  $("table").tHead.replaceChildren(head); $("table").tBodies[0].replaceChildren(...body);
  $("more").replaceChildren(`${shown.length} cells. Intervals: over seeds from three on; of a single seed, over its sequences.`);
  if (body.length < shown.length) {
    const button = element("button", { type: "button" }, `Show all ${shown.length}`);
    button.addEventListener("click", () => { state.all = true; draw(); });
    $("more").append(" ", button);
  }
}

// ---- the report's tables, as they are
function drawTables() {
  const blocks = panel().tables.flatMap(({ title, head, lines: rows, notes }) => {
    const table = element("table", {}, element("thead", {}, element("tr", {}, ...head.map((name) => element("th", { scope: "col" }, name)))),
      element("tbody", {}, ...rows.map((row) => element("tr", {}, ...row.map((text) => element("td", {}, text))))));
    return [element("h2", {}, title), ...(rows.length ? [element("div", { class: "scroll" }, table)] : []), ...notes.map((note) => element("p", { class: "note" }, note))];
  });
  $("tables").replaceChildren(...blocks);
}

// ---- to take away
function save(name, type, text) {
  const link = element("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function svgText() { // with the styles that the page gives it
  const svg = $("curves").querySelector("svg"), copy = svg.cloneNode(true), from = [svg, ...svg.querySelectorAll("*")];
  const names = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family", "color"];
  [copy, ...copy.querySelectorAll("*")].forEach((node, i) => {
    const style = getComputedStyle(from[i]);
    node.setAttribute("style", names.map((name) => `${name}:${style.getPropertyValue(name)}`).join(";"));
  });
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  return new XMLSerializer().serializeToString(copy);
}

function csvText() {
  const quote = (value) => (/[",\n\r]/.test(String(value ?? "")) ? `"${String(value).replaceAll('"', '""')}"` : String(value ?? ""));
  const body = cells().map((cell) => [...COLUMNS.map(([key]) => cell[key]), cell.own?.[0], cell.own?.[1], cell.fit].map(quote).join(","));
  return [[...COLUMNS.map(([, name]) => name), "low over sequences", "high over sequences", "fit"].join(","), ...body].join("\r\n") + "\r\n";
}

$("svg").addEventListener("click", () => $("curves").querySelector("svg") && save("curves.svg", "image/svg+xml", svgText()));
$("csv").addEventListener("click", () => save("cells.csv", "text/csv", csvText()));

// ---- tip and controls
function showTip(event, text) {
  const tip = $("tip");
  tip.textContent = text; tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const x = Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 4)), y = event.clientY + 16 + height > innerHeight ? event.clientY - height - 12 : event.clientY + 16;
  tip.style.left = `${x}px`; tip.style.top = `${Math.max(4, y)}px`;
}
function hideTip() { $("tip").hidden = true; }

function toggle(set, name, text, extra, onIsMember) {
  const on = () => set.has(name) === onIsMember, button = element("button", { type: "button", "aria-pressed": on(), "data-name": name }, ...extra, text);
  button.addEventListener("click", () => { set.has(name) ? set.delete(name) : set.add(name); button.setAttribute("aria-pressed", on()); draw(); });
  return button;
}

function choose(id, options, value) {
  $(id).replaceChildren(...options.map(([key, text]) => element("option", { value: key }, text)));
  $(id).value = value;
}

function openPanel(index, words = new URLSearchParams()) {
  const p = DATA.panels[index], among = (value, all, other) => (all.includes(value) ? value : other);
  Object.assign(state, {
    panel: index, metric: among(words.get("score"), p.metrics.map((one) => one.key), p.shown),
    axis: among(words.get("against"), ["length", "distance"], p.axes[p.axes.length - 1] || "length"),
    off: new Set(words.getAll("without").filter((name) => p.arms.some((arm) => arm.name === name))), all: false, sort: "armName", down: false,
  });
  const splits = words.getAll("split").filter((split) => p.splits.includes(split));
  state.splits = new Set(words.has("panel") ? splits : p.splits.filter((split) => split !== "validation" || !p.splits.includes("test")));
  choose("metric", p.metrics.map((one) => [one.key, one.label]), state.metric);
  choose("axis", [["length", "length"], ["distance", "distance"]], state.axis);
  $("splits").replaceChildren(element("legend", {}, "Splits"), ...p.splits.map((split) => toggle(state.splits, split, split, [], true)));
  $("arms").replaceChildren(element("legend", {}, "Encodings"), ...p.arms.map((arm) => {
    const fit = arm.fitted > 0, size = element("svg", { width: 14, height: 14, class: `arm${fit ? "" : " unfit"}`, style: `--c:${arm.colour};--d:${arm.dark}` }, mark(arm, 7, 7, 5));
    const button = toggle(state.off, arm.name, arm.name, [size], false);
    if (arm.fitted < arm.seeds) button.append(element("small", {}, fit ? `${arm.fitted} of ${arm.seeds} seeds fit` : "did not fit"));
    return button;
  }));
  $("facts").textContent = p.facts;
  drawTables();
  draw();
}

// ---- the address keeps what is shown, so that a reload or a link shows the same
function keep() {
  const p = panel(), words = new URLSearchParams({ panel: p.title, score: state.metric, against: state.axis });
  for (const name of state.off) words.append("without", name);
  for (const split of state.splits) words.append("split", split);
  try { history.replaceState(null, "", `#${words}`); } catch { /* a frame or a file may not allow it */ }
}

function restore() {
  const words = new URLSearchParams(location.hash.slice(1)), index = DATA.panels.findIndex((p) => p.title === words.get("panel"));
  if (index < 0) return openPanel(0);
  $("panel").value = index;
  openPanel(index, words);
}

function draw() {
  hideTip();
  $("curve-title").textContent = `${label(state.metric)[0].toUpperCase()}${label(state.metric).slice(1)} by ${state.axis}`;
  const shown = cells();
  drawCurves(); drawMaps(shown); drawTable(shown);
  keep();
}

choose("panel", DATA.panels.map((p, i) => [i, p.title]), 0);
$("panel").addEventListener("change", (event) => openPanel(Number(event.target.value)));
$("metric").addEventListener("change", (event) => { state.metric = event.target.value; draw(); });
$("axis").addEventListener("change", (event) => { state.axis = event.target.value; draw(); });
$("controls").addEventListener("submit", (event) => event.preventDefault());
addEventListener("scroll", hideTip, { passive: true });
addEventListener("pointerdown", (event) => { if (!event.target.closest("svg")) hideTip(); });
addEventListener("hashchange", restore);
let lastWidth = innerWidth;
addEventListener("resize", () => { if (innerWidth !== lastWidth) { lastWidth = innerWidth; draw(); } });
restore();
