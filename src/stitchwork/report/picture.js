"use strict";
// The picture: one layer on a slice, coarse first and then as fine as the screen, in the window that is zoomed to; beside it another layer, or
// another model and the difference.

const PASSES = [16, 4, 2, 1]; // pixels between points, of a plane
const LIMITS = { seconds: 10, points: 1e6 }; // of a finer pass of a panel
const VEIL_STEP = 6; // pixels
const DOTS = 3000; // data points that are drawn at most
const NEAR = 0.15; // of a feature's range: how far from the slice a point fades
const CONFIG = { responsive: true, displaylogo: false, doubleClick: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "resetScale2d"] };
const MARGIN = { l: 60, r: 10, t: 34, b: 45 };

const layerName = (layer) => (layer === "value" ? facts.targets[output()] : layer === "difference" ? `difference: ${models[1].title} − ${models[0].title}` : LAYERS.find(([own]) => own === layer)[1]);

// What is shown side by side: layers of models.
function panels() {
  const layer = $("layer").value;
  if (compared) {
    const both = d === 1 && layer !== "error" ? [{ layer, of: [0, 1] }] : [{ layer, of: [0] }, { layer, of: [1] }];
    return layer === "error" ? both : [...both, { layer: "difference", from: layer, of: [0, 1] }];
  }
  const beside = $("beside").value;
  return [{ layer, of: [0] }, ...(beside === "none" || beside === layer || layer === "error" ? [] : [{ layer: beside, of: [0] }])];
}

// A picture that is stored: of a model that is too large, and of deviations, which the model in the page does not compute.
const stored = (m, layer) => (layer === "deviation" && !live ? models[m].sure : sources[m] ? null : models[m].frozen);

const isItsSlice = (picture) => !picture.axes || (picture.axes.join() === state.axes.join() && picture.at.every((value, k) => picture.axes.includes(k) || Math.abs(value - state.at[k]) <= 1e-9 * Math.abs(value)));

function comeBack(picture) {
  if (isItsSlice(picture)) return;
  state.axes = picture.axes.slice();
  picture.at.forEach((value, k) => { if (!picture.axes.includes(k)) state.at[k] = value; });
  state.window = null;
  follow();
}

// What is seen of the features of the slice.
const whole = () => ({ low: state.axes.map((k) => facts.bounds[0][k]), high: state.axes.map((k) => facts.bounds[1][k]) });
const seen = () => state.window ?? whole();

function gridOf(step, area) {
  const size = d === 1 ? [Math.max(50, Math.round(2 * area[0]))] : area.map((pixels) => Math.max(4, Math.round(pixels / step) + 1));
  return { at: state.at.slice(), axes: state.axes.slice(), ...seen(), size };
}

const along = (grid, k) => Array.from({ length: grid.size[k] }, (_, i) => grid.low[k] + (grid.high[k] - grid.low[k]) * i / Math.max(grid.size[k] - 1, 1));

function ofOutput(packed) {
  const t = packed.shape[1], all = unpacked(packed);
  return Float64Array.from({ length: packed.shape[0] }, (_, i) => all[i * t + output()]);
}

// The numbers of a layer of a model: {grid, values}, or null when something newer is wanted.
async function field(m, layer, grid, wanted) {
  const picture = stored(m, layer);
  if (!picture) {
    const values = await sources[m].layer(grid, layer, output(), wanted);
    return values && { grid, values };
  }
  const axes = picture.axes ?? facts.axes, bounds = models[m].bounds;
  const own = { at: state.at, axes, low: axes.map((k) => bounds[0][k]), high: axes.map((k) => bounds[1][k]), size: axes.map(() => picture.size) };
  return { grid: own, values: ofOutput(picture.layers[layer]) };
}

// The fields of a panel: one of each model; a difference is the second less the first.
async function fieldsOf(panel, grid, wanted) {
  const found = [];
  for (const m of panel.of) found.push(await field(m, panel.from ?? panel.layer, grid, wanted));
  if (found.some((one) => one === null)) return null;
  return panel.layer === "difference" ? [{ grid: found[0].grid, values: found[1].values.map((value, i) => value - found[0].values[i]) }] : found;
}

async function covered(m, grid, wanted) {
  if (!sources[m] && !models[m].frozen?.layers.coverage) return null;
  return field(m, "coverage", grid, wanted);
}

async function veilOf(panel, area, wanted) {
  if (panel.layer === "coverage" || panel.layer === "error") return null;
  const found = [];
  for (const m of panel.of) found.push(await covered(m, gridOf(VEIL_STEP, area), wanted));
  if (found.some((one) => one === null)) return null;
  return { grid: found[0].grid, values: found[0].values.map((value, i) => Math.min(value, found[found.length - 1].values[i])) };
}

async function draw() {
  const turn = ++state.turn, wanted = () => turn === state.turn, shown_ = panels();
  const picture = shown_[0].layer === "error" ? null : stored(0, shown_[0].layer);
  if (picture) comeBack(picture);
  tellStatus(picture);
  const divs = makeDivs(shown_);
  try {
    await refine(shown_, divs, wanted);
  } catch (error) {
    if (wanted()) $("status").textContent = `No answer: ${error.message}`;
    return;
  }
  if (wanted()) document.body.dataset.fine = String(turn);
}

// Coarse pictures first; a panel that would take too long stays as it is.
async function refine(shown_, divs, wanted) {
  const veils = new Map(), found = shown_.map(() => []), pace = shown_.map(() => 0);
  const isFixed = (panel) => !isDrawn(panel) || stored(0, panel.layer);
  for (const step of d === 1 ? [1] : PASSES) {
    const area = plotArea(divs[0]), grid = gridOf(step, area), points = grid.size.reduce((a, b) => a * b, 1), first = step === PASSES[0] || d === 1;
    for (const [k, panel] of shown_.entries()) {
      if (!isDrawn(panel) || (!first && (isFixed(panel) || pace[k] * points > LIMITS.seconds || points > LIMITS.points))) continue;
      const started = performance.now(), fields = await fieldsOf(panel, grid, wanted);
      if (fields === null || !wanted()) return;
      found[k] = fields;
      pace[k] = (performance.now() - started) / 1000 / points;
      if (!first) await paint(shown_, divs, found, veils);
    }
    if (!first) continue;
    await paint(shown_, divs, found, veils);
    if (!wanted()) return;
    Object.assign(document.body.dataset, { drawn: String(state.turn), ready: "yes" });
    for (const panel of shown_) if (isDrawn(panel)) veils.set(panel, await veilOf(panel, plotArea(divs[0]), wanted));
    if (!wanted()) return;
    await paint(shown_, divs, found, veils);
    if (shown_.every(isFixed)) return;
  }
}

// A stored picture beside a slice that is not its own is not drawn.
const isDrawn = (panel) => panel.layer !== "error" && !(stored(0, panel.layer) && !isItsSlice(stored(0, panel.layer)));

function tellStatus(picture) {
  const more = "`stitchwork explore` shows all of a saved model.";
  const fixed = picture === facts.sure ? "Deviations are a picture of this slice" : `${facts.frozen?.reason}, so this slice is fixed`;
  $("status").textContent = picture ? `${fixed}. ${more}` : "";
  $("whole").hidden = state.window === null;
  const [, , , text] = LAYERS.find(([own]) => own === $("layer").value);
  $("layer-hint").textContent = text;
}

function makeDivs(shown_) {
  const maps = $("maps");
  while (maps.children.length > shown_.length) { Plotly.purge(maps.lastChild); maps.lastChild.remove(); }
  while (maps.children.length < shown_.length) {
    const number = maps.children.length, div = element("div", { className: "map", id: number ? `map${number}` : "map" });
    div.setAttribute("role", "img");
    maps.append(div);
  }
  shown_.forEach((panel, k) => maps.children[k].setAttribute("aria-label", `${layerName(panel.layer)} on a slice`));
  return Array.from(maps.children);
}

function plotArea(div) {
  const seen_ = div._fullLayout;
  return seen_?.xaxis ? [seen_.xaxis._length, seen_.yaxis._length] : [Math.max(100, div.clientWidth - 150), Math.max(100, div.clientHeight - 80)];
}

async function paint(shown_, divs, found, veils) {
  const scales = new Map(); // panels of the same layer have the same colours
  for (const panel of shown_) {
    const fields = shown_.flatMap((one, k) => (one.layer === panel.layer ? found[k] : [])).map(({ values }) => values);
    if (isDrawn(panel) && !scales.has(panel.layer)) scales.set(panel.layer, colorScale(panel.layer, fields, $("colors").value, naturalSize(panel.from ?? panel.layer), panel.layer === "value" ? responses() : null));
  }
  $("veil-key").hidden = ![...veils.values()].some((veil) => veil?.values.some((value) => value < 0.1));
  await Promise.all(shown_.map((panel, k) => {
    if (panel.layer !== "error" && !isDrawn(panel)) return showNote(divs[k], stored(0, panel.layer));
    const scale = scales.get(panel.layer), veil = veils.get(panel);
    const traces = panel.layer === "error" ? [errorDots(panel.of[0])] : d === 1 ? curves(panel, found[k], scale) : [image(panel, found[k][0], scale), ...(veil ? [veilImage(veil)] : []), ...dataDots()];
    if (state.asked && (d > 1 || panel.layer === "value")) traces.push(...marker(panel));
    return showPlot(divs[k], traces, layoutOf(panel, scale, veil));
  }));
}

function showNote(div, picture) {
  if (div.classList.contains("map-note")) return;
  Plotly.purge(div);
  div.classList.add("map-note");
  const back = element("button", { type: "button", className: "quiet", textContent: "Back to that slice" });
  back.addEventListener("click", () => { comeBack(picture); draw(); });
  div.replaceChildren(element("p", {}, ...withWords("In this file the deviation is a picture of one slice.")), back);
}

async function showPlot(div, traces, layout) {
  if (div.classList.contains("map-note")) { div.classList.remove("map-note"); div.replaceChildren(); }
  const fresh = !div._fullLayout, { xaxis, yaxis } = layout;
  if (!fresh && yaxis.scaleanchor && [xaxis, yaxis].some(({ range }, k) => range.some((end, n) => end !== div._fullLayout[k ? "yaxis" : "xaxis"].range[n]))) {
    div.following = true; // ranges that change by `react` would lose the aspect
    await Plotly.relayout(div, { "xaxis.range": xaxis.range.slice(), "yaxis.range": yaxis.range.slice() });
    div.following = false;
  }
  await Plotly.react(div, traces, layout, CONFIG);
  if (!fresh) return;
  div.on("plotly_relayout", (changed) => zoom(div, changed));
  div.on("plotly_doubleclick", () => { state.window = null; draw(); });
  div.on("plotly_click", ({ points: [hit] }) => {
    if (!sources[0]) return;
    const x = state.at.slice();
    x[state.axes[0]] = hit.x;
    if (d > 1) x[state.axes[1]] = hit.y;
    ask(x);
  });
}

function zoom(div, changed) {
  if (div.following || !Object.keys(changed).some((key) => /^[xy]axis\.range/.test(key))) return;
  const ends = ["xaxis", "yaxis"].slice(0, state.axes.length).map((axis) => div._fullLayout[axis].range.map(Number));
  state.window = { low: ends.map(([low]) => low), high: ends.map(([, high]) => high) };
  draw();
}

const responses = () => Float64Array.from({ length: data.rows }, (_, i) => data.y[i * facts.targets.length + output()]).sort();

// What a layer would be if the responses went once through their range within the narrowest feature.
function naturalSize(layer) {
  const order = { gradient: 1, laplacian: 2 }[layer] ?? 0, [least, most] = facts.extremes.map((row) => row[output()]);
  if (layer === "coverage") return 1;
  const spans = facts.bounds[0].map((low, k) => facts.bounds[1][k] - low).filter((span) => span > 0), narrow = spans.length ? Math.min(...spans) : 1;
  return Math.max(most - least, 1e-9 * Math.max(Math.abs(least), Math.abs(most))) / narrow ** order;
}

const titled = (text) => ({ text, font: { size: 14 }, x: 0.02, xanchor: "left", y: 0.98, yanchor: "top" });

function layoutOf(panel, scale, veil) {
  const { low, high } = seen(), { paper, text, grid, muted } = look(), axis = { gridcolor: grid, zerolinecolor: grid, linecolor: grid };
  const constant = scale?.kind === "constant" ? ` · constant: ${shown(scale.constant)}` : "";
  const title = d === 1 && !compared && !constant ? "" : `${compared && panel.of.length === 1 ? `${models[panel.of[0]].title}: ` : ""}${layerName(panel.layer)}${constant}`;
  const layout = {
    margin: MARGIN, paper_bgcolor: paper, plot_bgcolor: paper, font: { color: text }, title: titled(title), hovermode: d === 1 ? "x" : "closest", legend: { x: 0.02, y: 0.98, bgcolor: "rgba(0,0,0,0)" },
    dragmode: window.matchMedia("(pointer: coarse)").matches ? false : "zoom", modebar: { bgcolor: "rgba(0,0,0,0)", color: muted, activecolor: text },
    xaxis: { ...axis, title: { text: facts.features[state.axes[0]] }, range: [low[0], high[0]] },
    yaxis: { ...axis, title: { text: d === 1 ? layerName(panel.layer) : facts.features[state.axes[1]] } },
    shapes: [...(d === 1 && veil ? emptyStretches(veil) : []), ...panel.of.flatMap(outlines)],
  };
  if (d > 1) Object.assign(layout.yaxis, { range: [low[1], high[1]] }, mapAspect());
  else Object.assign(layout.yaxis, scale?.kind === "constant" ? { range: [scale.zmin, scale.zmax], fixedrange: true } : { autorange: true, fixedrange: true }, scale?.kind === "log" ? { type: "log", exponentformat: "power" } : { type: "linear" });
  if (d > 1) layout.xaxis.constrain = "domain";
  return layout;
}

// Degrees of longitude and latitude have the same length on a map as on the ground, at its middle.
function mapAspect() {
  const [across, up] = state.axes, { longitude, latitude } = facts.map ?? {};
  if (facts.map == null || ![across, up].includes(longitude) || ![across, up].includes(latitude)) return {};
  const middle = 0.5 * (facts.bounds[0][latitude] + facts.bounds[1][latitude]), ratio = 1 / Math.max(Math.cos(middle * Math.PI / 180), 0.1);
  return { scaleanchor: "x", scaleratio: up === latitude ? ratio : 1 / ratio, constrain: "domain" };
}

function image(panel, { grid, values }, scale) {
  const [x, y] = [along(grid, 0), along(grid, 1)], [a, b] = grid.axes.map((k) => facts.features[k]), n = y.length;
  const rows = (pick) => y.map((_, up) => x.map((__, across) => pick(values[across * n + up])));
  const z = rows(scale.kind === "constant" ? () => scale.constant : scale.forward), raw = scale.kind === "linear" || scale.kind === "constant" ? null : rows((v) => v);
  const label = panel.layer === "difference" ? "difference" : layerName(panel.layer);
  return {
    type: "heatmap", x, y, z, zmin: scale.zmin, zmax: scale.zmax, colorscale: scale.colorscale, zsmooth: scale.kind === "constant" ? false : "fast", ...(raw && { customdata: raw }),
    colorbar: { thickness: 12, outlinewidth: 0, tickfont: { size: 11 }, ...scale.ticks }, hovertemplate: `${plain(a)} %{x:.6g}<br>${plain(b)} %{y:.6g}<br>${plain(label)} %{${raw ? "customdata" : "z"}:.6g}<extra></extra>`,
  };
}

const plain = (text) => text.replaceAll("<", "‹").replaceAll("%{", "% {");

function veilImage({ grid, values }) {
  const [x, y] = [along(grid, 0), along(grid, 1)], n = y.length;
  return { type: "heatmap", x, y, z: y.map((_, up) => x.map((__, across) => values[across * n + up])), zmin: 0, zmax: 1, colorscale: VEIL, showscale: false, hoverinfo: "skip", zsmooth: "fast" };
}

// Stretches of a line without data, in grey.
function emptyStretches({ grid, values }) {
  const x = along(grid, 0), found = [];
  values.forEach((value, i) => {
    if (!(value < 0.1)) return;
    if (found.length && found[found.length - 1].end === i - 1) found[found.length - 1].end = i; else found.push({ start: i, end: i });
  });
  return found.map(({ start, end }) => ({ type: "rect", layer: "below", yref: "paper", y0: 0, y1: 1, x0: x[Math.max(0, start - 1)], x1: x[Math.min(x.length - 1, end + 1)], line: { width: 0 }, fillcolor: "#8a8f96", opacity: 0.3 }));
}

function curves(panel, found, scale) {
  const { ink, second } = look(), value = panel.layer === "value";
  const lines = found.map(({ grid, values }, k) => ({ x: along(grid, 0), y: scale.kind === "constant" ? Array.from(values, () => scale.constant) : Array.from(values), mode: "lines", line: { color: k ? second : ink, dash: k ? "dash" : "solid" }, name: compared && found.length > 1 ? models[k].title : layerName(panel.layer), showlegend: found.length > 1 }));
  const dots = value && $("dots").checked ? [lineDots()] : [];
  return [...dots, ...(value && !compared ? band() : []), ...lines];
}

// Where a new observation lies, with the confidence that was asked for.
function band() {
  if (!facts.sure?.band) return [];
  const { size, confidence } = facts.sure, [lower, upper] = facts.sure.band.map((end) => Array.from(ofOutput(end)));
  const x = along({ low: [facts.bounds[0][0]], high: [facts.bounds[1][0]], size: [size] }, 0);
  const edge = { x, mode: "lines", line: { width: 0 }, showlegend: false, hoverinfo: "skip" };
  return [{ ...edge, y: lower }, { ...edge, y: upper, fill: "tonexty", fillcolor: look().band, name: `${Math.round(100 * confidence)} % of new observations`, showlegend: true }];
}

function lineDots() {
  const { x, y, rows } = data, t = facts.targets.length, every = Math.max(1, Math.ceil(rows / DOTS)), chosen = Array.from({ length: Math.ceil(rows / every) }, (_, i) => i * every);
  return { x: chosen.map((i) => x[i]), y: chosen.map((i) => y[i * t + output()]), mode: "markers", marker: { color: look().muted, size: 4, opacity: 0.7 }, name: "data", showlegend: false, hoverinfo: "skip" };
}

// The data on the slice, fainter the farther from it they are; some of them where they are very many.
function dataDots() {
  if (!$("dots").checked) return [];
  const { x, rows } = data, [low, high] = facts.bounds, others = facts.features.map((_, k) => k).filter((k) => !state.axes.includes(k) && high[k] > low[k]);
  const near = [];
  for (let i = 0; i < rows; i++) {
    let far = 0;
    for (const k of others) far += ((x[i * d + k] - state.at[k]) / (NEAR * (high[k] - low[k]))) ** 2;
    if (far < 4) near.push([i, Math.exp(-0.5 * far)]);
  }
  const every = Math.max(1, Math.ceil(near.length / DOTS)), chosen = near.filter((_, n) => n % every === 0), many = chosen.length > 800, full = many ? 0.55 : 0.8;
  const color = (kind, part) => look()[kind].replace("OPACITY", (full * part).toFixed(2));
  return [{
    x: chosen.map(([i]) => x[i * d + state.axes[0]]), y: chosen.map(([i]) => x[i * d + state.axes[1]]), mode: "markers", name: "data", showlegend: false, hoverinfo: "skip",
    marker: { size: many ? 3 : 5, color: chosen.map(([i, part]) => color(data.later?.[i] ? "later" : "dot", part)), line: { width: 0.6, color: chosen.map(([, part]) => color("rim", part)) } },
  }];
}

const column = (set, k) => Array.from({ length: set.rows }, (_, i) => set.x[i * d + k]);
const response = (set, array) => Array.from({ length: set.rows }, (_, i) => array[i * set.t + output()]);

function errorDots(m) {
  const set = sets.find((one) => one.model === m && one.name === "leave-one-out"), size = response(set, set.residual).map(Math.abs);
  const log = size.map((value) => Math.log10(Math.max(value, 1e-16)));
  const place = d === 1 ? { x: column(set, 0), y: size } : { x: column(set, state.axes[0]), y: column(set, state.axes[1]) };
  return {
    ...place, type: "scatter", mode: "markers", text: size.map(shown), hovertemplate: "%{text}<extra></extra>", showlegend: false,
    marker: { size: 6, color: log, colorscale: ONE_HUE, showscale: true, line: { width: 0.5, color: look().muted }, colorbar: { title: { text: "log₁₀ |error|", side: "right" }, thickness: 12, outlinewidth: 0 } },
  };
}

function marker(panel) {
  const answers = panel.of.map((m) => state.answers[m]).filter(Boolean), at = state.at;
  const style = { mode: "markers", marker: { symbol: "x", size: 11, color: look().accent, line: { width: 1, color: "#fff" } }, showlegend: false, hoverinfo: "skip" };
  if (d > 1) return [{ ...style, x: [at[state.axes[0]]], y: [at[state.axes[1]]] }];
  return answers.map((answer) => ({ ...style, x: [at[0]], y: [answer.value] }));
}

// Where the balls of the speaking regions meet the slice: see Slice.cut.
function outlines(m) {
  const M = models[m].metric, u = state.axes, others = facts.features.map((_, k) => k).filter((k) => !u.includes(k));
  return (state.answers[m]?.contributions ?? []).filter((one) => one.radius < 1e200).flatMap((one) => {
    const o = others.map((k) => state.at[k] - one.center[k]);
    const b = u.map((i) => others.reduce((total, k, n) => total + M[i][k] * o[n], 0));
    const most = Math.max(...u.map((i) => M[i][i])) || 1; // a feature that the metric does not see must not make it singular
    const inverse = inverse2(u.map((i) => u.map((j) => M[i][j] + (i === j ? 1e-12 * most : 0))));
    const shift = inverse.map((row) => row.reduce((total, value, n) => total + value * b[n], 0));
    const inner = others.reduce((total, k, n) => total + others.reduce((part, l, m) => part + o[n] * M[k][l] * o[m], 0), 0);
    const left = one.radius ** 2 - inner + shift.reduce((total, value, n) => total + value * b[n], 0);
    if (!(left > 0)) return [];
    const center = u.map((k, n) => one.center[k] - shift[n]), line = { color: look().accent, width: 0.5 + 4 * one.share };
    const half = cholesky2(inverse).map((row) => row.map((value) => value * Math.sqrt(left)));
    if (d === 1) return [{ type: "rect", yref: "paper", y0: 0, y1: 1, x0: center[0] - half[0][0], x1: center[0] + half[0][0], line, fillcolor: look().accent, opacity: 0.12 }];
    const path = Array.from({ length: 73 }, (_, i) => {
      const [c, s] = [Math.cos(i * Math.PI / 36), Math.sin(i * Math.PI / 36)];
      return center.map((value, n) => value + half[n][0] * c + half[n][1] * s).join(",");
    });
    return [{ type: "path", path: `M${path.join("L")}Z`, line }];
  });
}

function inverse2(M) {
  if (M.length === 1) return [[1 / M[0][0]]];
  const det = M[0][0] * M[1][1] - M[0][1] * M[1][0];
  return [[M[1][1] / det, -M[0][1] / det], [-M[1][0] / det, M[0][0] / det]];
}

function cholesky2(M) {
  const a = Math.sqrt(M[0][0]);
  if (M.length === 1) return [[a]];
  const b = M[1][0] / a;
  return [[a, 0], [b, Math.sqrt(M[1][1] - b * b)]];
}

