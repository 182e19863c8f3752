"use strict";
// The page of a report. DATA holds the rows of each panel in columns; what is drawn follows from `state` alone.
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
const mean = (values) => values.reduce((a, b) => a + b, 0) / values.length;

function group(rows, key) {
  const out = new Map();
  for (const row of rows) { const k = key(row); if (!out.has(k)) out.set(k, []); out.get(k).push(row); }
  return out;
}

function overSeeds(values) { // mean and Student's t interval, from three seeds on
  const m = mean(values), n = values.length;
  if (n < 3) return { mean: m, low: null, high: null, n };
  const spread = Math.sqrt(values.reduce((a, v) => a + (v - m) ** 2, 0) / (n - 1) / n) * DATA.t[Math.min(n - 2, DATA.t.length - 1)];
  return { mean: m, low: Math.max(0, m - spread), high: isShare() ? Math.min(1, m + spread) : m + spread, n };
}

function rows() { // the chosen rows, as objects
  const p = panel(), columns = p.columns, at = Object.fromEntries(columns.map((name, i) => [name, i]));
  const chosen = [];
  for (const raw of p.rows) {
    const arm = p.arms[raw[at.arm]], split = p.splits[raw[at.split]];
    if (state.off.has(arm.name) || !state.splits.has(split)) continue;
    const value = raw[at[state.metric]];
    if (value === null) continue;
    chosen.push({
      arm, split, value, low: raw[at[state.metric + "_low"]], high: raw[at[state.metric + "_high"]],
      seed: raw[at.seed], fit: raw[at.fit], length: raw[at.length], distance: raw[at.distance], count: raw[at.count],
      chance: raw[at.chance], refs: raw[at.refs], on: raw[at["on_" + state.axis]],
    });
  }
  return chosen;
}

// ---- curves: one entry per arm, fit and (below three seeds) seed
function lines(chosen) {
  const out = [];
  const along = chosen.filter((row) => row.on && row[state.axis] !== null);
  for (const [, mine] of group(along, (row) => row.arm.name)) {
    const arm = mine[0].arm;
    const perSeed = [];
    for (const [, one] of group(mine, (row) => `${row.fit} ${row.seed}`)) {
      const points = [...group(one, (row) => row[state.axis])].map(([x, cells]) => point(x, cells));
      perSeed.push({ arm, fit: one[0].fit, seed: one[0].seed, points: points.sort((a, b) => a.x - b.x) });
    }
    const fitted = perSeed.filter((one) => one.fit);
    out.push(...perSeed.filter((one) => !one.fit || fitted.length < 3));
    if (fitted.length >= 3) {
      const points = [...group(fitted.flatMap((one) => one.points), (p) => p.x)].map(([x, ps]) => ({
        x, ...overSeeds(ps.map((p) => p.mean)), count: ps[0].count, cells: ps[0].cells, chance: ps[0].chance,
      }));
      out.push({ arm, fit: true, seed: null, points: points.sort((a, b) => a.x - b.x) });
    }
  }
  return out;
}

function point(x, cells) {
  const single = cells.length === 1;
  return { x, mean: mean(cells.map((row) => row.value)), low: null, high: null, n: 1, count: cells[0].count, cells: cells.length,
    chance: cells[0].chance, own: single && cells[0].low !== null ? [cells[0].low, cells[0].high] : null };
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

function ticks(low, high, log, room) {
  let out = [];
  if (log) for (let i = Math.ceil(Math.log2(low)); 2 ** i <= high; i++) out.push(2 ** i);
  else {
    const step = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000].find((s) => (high - low) / s <= room) || high;
    for (let v = Math.ceil(low / step) * step; v <= high; v += step) out.push(v);
  }
  while (out.length > room) out = out.filter((_, i) => i % 2 === 0);
  return out;
}

function drawCurves(chosen) {
  const box = $("curves"), p = panel(), all = lines(chosen);
  box.replaceChildren(); $("key").replaceChildren();
  if (!all.length) return box.append(element("p", { class: "empty" }, `No cell of the chosen encodings and splits lies along ${state.axis}.`));
  const width = Math.max(280, box.clientWidth), height = Math.max(240, Math.min(400, width * 0.5));
  const xs = all.flatMap((line) => line.points.map((q) => q.x)), log = state.axis === "length" && Math.max(...xs) > 4 * Math.min(...xs) && Math.min(...xs) > 0;
  const refs = references(chosen), heights = [...all.flatMap((line) => line.points.flatMap((q) => [q.mean, q.low ?? q.mean, q.high ?? q.mean])), ...refs.flatMap((one) => one.line.map(([, v]) => v))];
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
  for (const v of ticks(s.low, s.high, log, Math.floor(width / 55))) svg.append(element("line", { class: "axis", x1: s.x(v), x2: s.x(v), y1: s.bottom, y2: s.bottom + 4 }), element("text", { x: s.x(v), y: s.bottom + 17, "text-anchor": "middle" }, String(v)));
  svg.append(element("path", { class: "axis", d: `M${s.left},${s.top}V${s.bottom}H${s.right}` }), element("text", { x: (s.left + s.right) / 2, y: height - 6, "text-anchor": "middle" }, `${state.axis} (tokens)`));
  drawReferences(svg, refs, s);
  const hits = [];
  const under = [...new Set(all.map((line) => line.arm.name))].reverse(); // what lies under another line stays visible beside it
  for (const line of [...all].sort((a, b) => a.fit - b.fit)) {
    const g = element("g", { class: `arm series${line.fit ? "" : " unfit"}`, style: `--c:${line.arm.colour};--d:${line.arm.dark}`, "data-arm": line.arm.name });
    const banded = line.points.filter((q) => q.low !== null);
    if (banded.length > 1) g.append(element("path", { class: "band", fill: "currentColor", opacity: 0.18, d: `M${banded.map((q) => `${s.x(q.x)},${s.y(q.high)}`).join("L")}L${[...banded].reverse().map((q) => `${s.x(q.x)},${s.y(q.low)}`).join("L")}z` }));
    g.append(element("polyline", { fill: "none", stroke: "currentColor", "stroke-width": line.fit ? 1.6 + 0.5 * Math.min(4, under.indexOf(line.arm.name)) : 1.1, "stroke-dasharray": line.fit ? DASHES[line.arm.variant % 4] : "2 3", points: line.points.map((q) => `${s.x(q.x)},${s.y(q.mean)}`).join(" ") }));
    for (const q of line.points) { g.append(mark(line.arm, s.x(q.x), s.y(q.mean), line.fit ? 4 : 3)); hits.push({ line, q, x: s.x(q.x), y: s.y(q.mean) }); }
    svg.append(g);
  }
  const ring = element("circle", { class: "ring", r: 7, visibility: "hidden" });
  svg.append(ring);
  const near = (event) => {
    const at = svg.getBoundingClientRect(), px = event.clientX - at.left, py = event.clientY - at.top;
    const best = hits.reduce((a, b) => (Math.hypot(b.x - px, b.y - py) < Math.hypot(a.x - px, a.y - py) ? b : a));
    if (Math.hypot(best.x - px, best.y - py) > 36) { ring.setAttribute("visibility", "hidden"); return hideTip(); }
    ring.setAttribute("cx", best.x); ring.setAttribute("cy", best.y); ring.setAttribute("visibility", "visible");
    showTip(event, describe(best.line, best.q));
  };
  svg.addEventListener("pointermove", near); svg.addEventListener("pointerdown", near);
  svg.addEventListener("pointerleave", () => { ring.setAttribute("visibility", "hidden"); hideTip(); });
  box.append(svg);
}

function references(chosen) { // what strategies that ignore the distance reach, by point
  const along = chosen.filter((row) => row.on && row[state.axis] !== null);
  return (panel().references[state.metric] || []).map((name) => {
    const points = [...group(along, (row) => row[state.axis])].map(([x, cells]) => [x, cells.map((row) => row.refs[name]).filter((v) => v !== null && v !== undefined)]);
    return { name, line: points.filter(([, values]) => values.length).map(([x, values]) => [x, mean(values)]).sort((a, b) => a[0] - b[0]) };
  }).filter(({ line }) => line.length);
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
  const value = q.low === null ? fixed(q.mean, 3) : `${fixed(q.mean, 3)} [${fixed(q.low, 3)}, ${fixed(q.high, 3)}] over ${q.n} seeds`;
  const own = q.own ? `\n[${fixed(q.own[0], 3)}, ${fixed(q.own[1], 3)}] over sequences` : "";
  const seed = line.seed === null ? "" : `, seed ${line.seed}`;
  const cells = q.cells > 1 ? `, ${q.cells} cells` : "";
  return `${who}${seed}\n${state.axis} ${q.x}: ${value}${own}\n${q.count ?? "?"} sequences per cell${cells}${chance(q)}`;
}

// ---- maps
function cellsOf(chosen) { // arm, length, distance, split → the seeds that fit, or all of an arm that never did
  return [...group(chosen, (row) => `${row.arm.name}|${row.length}|${row.distance}|${row.split}`).values()].map((mine) => {
    const fitted = mine.filter((row) => row.fit), shown = fitted.length ? fitted : mine, first = mine[0];
    const own = shown.length === 1 && first.low !== null ? [shown[0].low, shown[0].high] : null;
    return { arm: first.arm, armName: first.arm.name, split: first.split, length: first.length, distance: first.distance, fit: fitted.length > 0, own, count: first.count, chance: isShare() ? first.chance : null, ...overSeeds(shown.map((row) => row.value)) };
  });
}

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
  for (const c of mine) {
    const rect = element("rect", { class: "cell", x: X(xs.indexOf(c[across])), y: Y(ys.indexOf(c[up])), width: w + 0.5, height: tall + 0.5, fill: colour(c.mean, c.fit) });
    rect.addEventListener("pointermove", (event) => showTip(event, tellCell(c)));
    rect.addEventListener("pointerdown", (event) => showTip(event, tellCell(c)));
    rect.addEventListener("pointerleave", hideTip);
    svg.append(rect);
    const inCell = { x: X(xs.indexOf(c[across])) + w / 2, y: Y(ys.indexOf(c[up])) + tall / 2 + 4, "text-anchor": "middle" };
    if (w >= 30 && tall >= 16) svg.append(element("text", { ...inCell, class: c.fit && c.mean < 0.6 ? "light" : "dark" }, c.mean.toFixed(2)));
  }
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

function tellCell(c) {
  const interval = c.low !== null ? ` [${fixed(c.low, 3)}, ${fixed(c.high, 3)}] over ${c.n} seeds` : c.own ? ` [${fixed(c.own[0], 3)}, ${fixed(c.own[1], 3)}] over sequences` : ` (${c.n} seeds)`;
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

function openPanel(index) {
  const p = DATA.panels[index];
  Object.assign(state, { panel: index, metric: p.shown, axis: p.axes[p.axes.length - 1] || "length", off: new Set(), all: false, sort: "armName", down: false });
  state.splits = new Set(p.splits.filter((split) => split !== "validation" || !p.splits.includes("test")));
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
  draw();
}

function draw() {
  hideTip();
  $("curve-title").textContent = `${label(state.metric)[0].toUpperCase()}${label(state.metric).slice(1)} by ${state.axis}`;
  const chosen = rows(), cells = cellsOf(chosen);
  drawCurves(chosen); drawMaps(cells); drawTable(cells);
}

choose("panel", DATA.panels.map((p, i) => [i, p.title]), 0);
$("panel").addEventListener("change", (event) => openPanel(Number(event.target.value)));
$("metric").addEventListener("change", (event) => { state.metric = event.target.value; draw(); });
$("axis").addEventListener("change", (event) => { state.axis = event.target.value; draw(); });
$("controls").addEventListener("submit", (event) => event.preventDefault());
addEventListener("scroll", hideTip, { passive: true });
let lastWidth = innerWidth;
addEventListener("resize", () => { if (innerWidth !== lastWidth) { lastWidth = innerWidth; draw(); } });
openPanel(0);
