"use strict";
// The page: controls, a picture of one layer on a slice, the regions that speak at a point, errors, relevance.

const facts = JSON.parse(document.getElementById("facts").textContent);
const $ = (id) => document.getElementById(id);
const d = facts.features.length, GRID = d === 1 ? 400 : 61;
const COLORS = { ink: "#1f5a8a", accent: "#c2410c" };
const LAYERS = [
  ["value", "value", 0], ["gradient", "length of the gradient", 1], ["laplacian", "trace of the Hessian", 2],
  ["coverage", "coverage", 0], ["deviation", "deviation of a new observation", 0], ["error", "leave-one-out error at the data", 0],
];
const closedForm = facts.errors.some((set) => set.name === "leave-one-out");
const source = facts.live ? new Remote() : facts.model ? new Engine(facts.model, facts.smoothness) : null;
const state = { at: facts.at.slice(), axes: facts.axes.slice(), point: null, contributions: [], turn: 0 };
const sets = facts.errors.map((set) => ({
  ...set, x: unpacked(set.x), y: unpacked(set.y), residual: unpacked(set.residual), rows: set.x.shape[0], t: set.y.shape[1],
}));
const shown = (value) => (Math.abs(value) >= 1e5 || (value !== 0 && Math.abs(value) < 1e-3) ? value.toExponential(4) : value.toPrecision(6));
const output = () => Number($("output").value);
const CONFIG = { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d"] };
const MARGIN = { l: 60, r: 10, t: 30, b: 45 };

function element(name, attributes = {}, ...children) {
  const made = Object.assign(document.createElement(name), attributes);
  made.append(...children);
  return made;
}

function fill(select, names, chosen = 0) {
  select.replaceChildren(...names.map(([value, text]) => element("option", { value, textContent: text })));
  select.value = String(chosen);
}

function controls() {
  const layers = LAYERS.filter(([name, , order]) => order <= facts.smoothness || order === 0)
    .filter(([name]) => name !== "error" || closedForm)
    .filter(([name]) => name !== "deviation" || facts.sure);
  fill($("layer"), layers.map(([name, text]) => [name, text]), "value");
  fill($("output"), facts.targets.map((name, k) => [k, name]));
  $("output-label").hidden = facts.targets.length === 1;
  const names = facts.features.map((name, k) => [k, name]);
  fill($("across"), names, state.axes[0]);
  fill($("up"), names, state.axes[1] ?? 0);
  $("up-label").hidden = d === 1;
  fill($("errors-of"), sets.map((set, k) => [k, `${set.name} (${set.count} points)`]));
  $("errors-label").hidden = sets.length < 2;
  for (const id of ["layer", "output"]) $(id).addEventListener("change", draw);
  $("output").addEventListener("change", () => { errors(); sure(); if (state.point) ask(state.point); });
  $("errors-of").addEventListener("change", errors);
  $("across").addEventListener("change", () => turn(0));
  $("up").addEventListener("change", () => turn(1));
  $("coordinates").replaceChildren(...facts.features.map((name, k) => element("label", {}, `${name} `,
    element("input", { type: "number", step: "any", id: `x${k}`, value: String(Number(state.at[k].toPrecision(6))) }))));
  $("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    ask(facts.features.map((_, k) => $(`x${k}`).valueAsNumber));
  });
  if (!source) for (const id of ["across", "up", "ask"]) $(id).inert = true;
}

// Two different features: what is chosen for one leaves the other if need be.
function turn(which) {
  const chosen = [Number($("across").value), Number($("up").value)], before = state.axes[which];
  if (d > 1 && chosen[0] === chosen[1]) chosen[1 - which] = before;
  state.axes = d === 1 ? [chosen[0]] : chosen;
  $("across").value = String(state.axes[0]);
  if (d > 1) $("up").value = String(state.axes[1]);
  sliders();
  draw();
}

function sliders() {
  const others = facts.features.map((_, k) => k).filter((k) => !state.axes.includes(k));
  $("sliders").replaceChildren(...others.map((k) => {
    const [low, high] = [facts.bounds[0][k], facts.bounds[1][k]], number = element("output", { textContent: shown(state.at[k]) });
    const range = element("input", { type: "range", min: 0, max: 100, step: 1, id: `slider${k}`, disabled: !source });
    range.value = String(high > low ? Math.round(100 * (state.at[k] - low) / (high - low)) : 0);
    range.addEventListener("input", () => {
      state.at[k] = low + (high - low) * Number(range.value) / 100;
      number.textContent = shown(state.at[k]);
      draw();
    });
    return element("label", {}, `${facts.features[k]} = `, number, range);
  }));
}

function axis(k, size) {
  const [low, high] = [facts.bounds[0][k], facts.bounds[1][k]];
  return Array.from({ length: size }, (_, i) => low + (high - low) * i / (size - 1));
}

// A picture that is stored: of a model that is too large, and of deviations, which the model in the page does not compute.
const stored = (layer) => (layer === "deviation" && !facts.live ? facts.sure : source ? null : facts.frozen);

function ofOutput(packed) {
  const t = packed.shape[1], all = unpacked(packed);
  return Array.from({ length: packed.shape[0] }, (_, i) => all[i * t + output()]);
}

// The slice that a stored picture shows.
function comeBack(picture) {
  if (!picture.axes || (picture.axes.join() === state.axes.join() && picture.at.every((value, k) => value === state.at[k] || picture.axes.includes(k)))) return;
  state.axes = picture.axes.slice();
  state.at = picture.at.slice();
  $("across").value = String(state.axes[0]);
  if (d > 1) $("up").value = String(state.axes[1]);
  sliders();
}

async function values(layer, axes) {
  const picture = stored(layer);
  if (picture) return ofOutput(picture.layers[layer]);
  const points = [];
  for (const across of axes[0]) {
    for (const up of axes[1] ?? [null]) {
      const x = state.at.slice();
      x[state.axes[0]] = across;
      if (up !== null) x[state.axes[1]] = up;
      points.push(x);
    }
  }
  return source.layer(points, layer, output());
}

async function draw() {
  const turn_ = ++state.turn, layer = $("layer").value, title = LAYERS.find(([name]) => name === layer)[1];
  const picture = layer === "error" ? null : stored(layer), more = "`stitchwork explore` shows all of a saved model.";
  if (picture) comeBack(picture);
  const fixed = picture === facts.sure ? "Deviations are a picture of this slice" : `${facts.frozen?.reason}, so this slice is fixed`;
  $("status").textContent = picture ? `${fixed}. ${more}` : "";
  const layout = {
    margin: MARGIN, xaxis: { title: { text: facts.features[state.axes[0]] } }, shapes: outlines(), hovermode: d === 1 ? "x" : "closest", uirevision: state.axes.join(),
    legend: { x: 0.02, y: 0.98 },
    yaxis: { title: { text: d === 1 ? (layer === "value" ? facts.targets[output()] : title) : facts.features[state.axes[1]] } },
  };
  let traces;
  try {
    traces = layer === "error" ? [errorDots()] : await fieldTraces(layer, title);
  } catch (error) {
    $("status").textContent = `No answer: ${error.message}`;
    return;
  }
  if (turn_ !== state.turn) return; // something newer was asked for meanwhile
  if (state.point && (d > 1 || layer === "value")) traces.push(marker());
  await Plotly.react("map", traces, layout, CONFIG);
  document.body.dataset.drawn = String(turn_);
}

async function fieldTraces(layer, title) {
  const size = stored(layer)?.size ?? GRID, axes = state.axes.map((k) => axis(k, size)), found = await values(layer, axes);
  const name = layer === "value" ? facts.targets[output()] : title;
  if (d === 1) {
    const dots = layer === "value" && sets[0] ? [dataDots()] : [];
    return [...dots, ...(layer === "value" ? band() : []), { x: axes[0], y: found, mode: "lines", line: { color: COLORS.ink }, name, showlegend: false }];
  }
  const z = axes[1].map((_, up) => axes[0].map((__, across) => found[across * size + up]));
  const least = Math.min(...found), most = Math.max(...found), even = least < 0 && most > 0 && layer !== "coverage";
  const bound = Math.max(-least, most), range = even ? { zmin: -bound, zmax: bound, colorscale: "RdBu", reversescale: false } : { colorscale: "Cividis" };
  const [a, b] = state.axes.map((k) => facts.features[k]);
  return [{
    type: "heatmap", x: axes[0], y: axes[1], z, ...range, colorbar: { title: { text: name, side: "right" }, thickness: 14 },
    hovertemplate: `${a} %{x:.6g}<br>${b} %{y:.6g}<br>${name} %{z:.6g}<extra></extra>`,
  }];
}

// Where a new observation lies, with the confidence that was asked for.
function band() {
  if (!facts.sure?.band) return [];
  const x = axis(0, facts.sure.size), [lower, upper] = facts.sure.band.map(ofOutput), percent = Math.round(100 * facts.sure.confidence);
  const edge = { x, mode: "lines", line: { width: 0 }, showlegend: false, hoverinfo: "skip" };
  return [{ ...edge, y: lower }, { ...edge, y: upper, fill: "tonexty", fillcolor: "rgba(31, 90, 138, 0.18)", name: `${percent} % of new observations`, showlegend: true }];
}

function sure() {
  $("sure-section").hidden = !facts.sure;
  if (!facts.sure) return;
  const { nominal, curves } = facts.sure, colors = [COLORS.ink, COLORS.accent];
  const lines = curves.map((one, k) => ({ x: nominal, y: ofOutput(one.actual), mode: "lines+markers", name: one.name, line: { color: colors[k] } }));
  Plotly.react("sure", [{ x: [0, 1], y: [0, 1], mode: "lines", line: { color: "#8c8c8c" }, hoverinfo: "skip", showlegend: false }, ...lines],
    { margin: MARGIN, xaxis: { title: { text: "confidence level" }, range: [0, 1] }, yaxis: { title: { text: "share inside" }, range: [0, 1] }, legend: { x: 0.02, y: 0.98 } }, CONFIG);
}

const column = (set, k) => Array.from({ length: set.rows }, (_, i) => set.x[i * d + k]);
const response = (set, array) => Array.from({ length: set.rows }, (_, i) => array[i * set.t + output()]);

function dataDots() {
  return { x: column(sets[0], 0), y: response(sets[0], sets[0].y), mode: "markers", marker: { color: "#8c8c8c", size: 4 }, showlegend: false, hoverinfo: "skip" };
}

function errorDots() {
  const set = sets.find((one) => one.name === "leave-one-out"), size = response(set, set.residual).map(Math.abs);
  const log = size.map((value) => Math.log10(Math.max(value, 1e-16)));
  const place = d === 1 ? { x: column(set, 0), y: size } : { x: column(set, state.axes[0]), y: column(set, state.axes[1]) };
  return {
    ...place, type: "scatter", mode: "markers", text: size.map(shown), hovertemplate: "%{text}<extra></extra>", showlegend: false,
    marker: { size: 6, color: log, colorscale: "Cividis", showscale: true, colorbar: { title: { text: "log₁₀ |error|", side: "right" }, thickness: 14 } },
  };
}

function marker() {
  const x = [state.point.at[state.axes[0]]], y = [d === 1 ? state.point.value : state.point.at[state.axes[1]]];
  return { x, y, mode: "markers", marker: { symbol: "x", size: 11, color: COLORS.accent }, showlegend: false, hoverinfo: "skip" };
}

// Where the balls of the speaking regions meet the slice: see Slice.cut.
function outlines() {
  const M = facts.metric, u = state.axes, others = facts.features.map((_, k) => k).filter((k) => !u.includes(k));
  return state.contributions.filter((one) => one.radius < 1e200).flatMap((one) => {
    const o = others.map((k) => state.at[k] - one.center[k]);
    const b = u.map((i) => others.reduce((total, k, n) => total + M[i][k] * o[n], 0));
    const most = Math.max(...u.map((i) => M[i][i])) || 1; // a feature that the metric does not see must not make it singular
    const inverse = inverse2(u.map((i) => u.map((j) => M[i][j] + (i === j ? 1e-12 * most : 0))));
    const shift = inverse.map((row) => row.reduce((total, value, n) => total + value * b[n], 0));
    const inner = others.reduce((total, k, n) => total + others.reduce((part, l, m) => part + o[n] * M[k][l] * o[m], 0), 0);
    const left = one.radius ** 2 - inner + shift.reduce((total, value, n) => total + value * b[n], 0);
    if (!(left > 0)) return [];
    const center = u.map((k, n) => one.center[k] - shift[n]), line = { color: COLORS.accent, width: 0.5 + 4 * one.share };
    const half = cholesky2(inverse).map((row) => row.map((value) => value * Math.sqrt(left)));
    if (d === 1) return [{ type: "rect", yref: "paper", y0: 0, y1: 1, x0: center[0] - half[0][0], x1: center[0] + half[0][0], line, fillcolor: COLORS.accent, opacity: 0.12 }];
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

async function ask(x) {
  if (!x.every(Number.isFinite)) { $("status").textContent = "Every coordinate must be a number."; return; }
  let answer;
  try {
    answer = await source.point(x, output());
  } catch (error) {
    $("status").textContent = `No answer: ${error.message}`;
    return;
  }
  state.point = { at: x, value: answer.value };
  state.contributions = answer.contributions;
  x.forEach((value, k) => { $(`x${k}`).value = String(Number(value.toPrecision(8))); });
  // The slice goes through the point, so that its regions are seen.
  state.at = x.slice();
  sliders();
  tell(answer);
  draw();
}

function tell(answer) {
  const gradient = answer.gradient ? `gradient (${answer.gradient.map(shown).join(", ")})` : "";
  const trace = answer.laplacian === null ? "" : `trace of the Hessian ${shown(answer.laplacian)}`;
  const numbers = [`${facts.targets[output()]} = ${shown(answer.value)}`, gradient, trace, `coverage ${shown(answer.coverage)}`, answer.deviation == null ? "" : `deviation of a new observation ${shown(answer.deviation)}`].filter(Boolean).join(" · ");
  const head = element("tr", {}, ...["share", "says", "level", "region", "kernel", "degree", "bandwidth", "ridge"].map((text) => element("th", { textContent: text })));
  const rows = answer.contributions.map((one) => {
    const share = element("td", { className: "share", textContent: `${(100 * one.share).toPrecision(3)} %` });
    share.style.setProperty("--part", `${100 * one.share}%`);
    const cells = [shown(one.value), one.level, one.region, one.kernel ?? "your own", one.degree ?? "", one.bandwidth === undefined ? "" : shown(one.bandwidth), one.ridge === undefined ? "" : one.ridge.toExponential(1)];
    return element("tr", {}, share, ...cells.map((text) => element("td", { textContent: String(text) })));
  });
  $("contributions").replaceChildren(element("h2", { textContent: `${answer.contributions.length} regions speak at this point` }),
    element("p", { textContent: numbers }), element("div", { className: "scroll" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows))));
}

function errors() {
  const set = sets[Number($("errors-of").value)];
  if (!set) { $("calibration").textContent = "A model of your own has no leave-one-out errors in closed form."; return; }
  const y = response(set, set.y), residual = response(set, set.residual), predicted = y.map((value, i) => value - residual[i]);
  const ends = [Math.min(...y), Math.max(...y)], name = facts.targets[output()];
  Plotly.react("calibration", [
    { x: ends, y: ends, mode: "lines", line: { color: "#8c8c8c" }, hoverinfo: "skip", showlegend: false },
    { x: predicted, y, mode: "markers", marker: { size: 4, color: COLORS.ink, opacity: 0.5 }, showlegend: false },
  ], { margin: { ...MARGIN, t: 40 }, title: { text: `${set.name}: RMSE ${shown(set.rmse[output()])}`, font: { size: 14 } }, xaxis: { title: { text: `${name}, predicted` } }, yaxis: { title: { text: name } } }, CONFIG);
  Plotly.react("residuals", [{ x: residual, type: "histogram", marker: { color: COLORS.ink } }],
    { margin: { ...MARGIN, t: 40 }, title: { text: "residuals", font: { size: 14 } }, xaxis: { title: { text: `${name} less prediction` } }, yaxis: { title: { text: "points" } } }, CONFIG);
}

function relevance() {
  const order = facts.relevance.map((_, k) => k).sort((a, b) => facts.relevance[a] - facts.relevance[b]);
  Plotly.react("relevance", [{ type: "bar", orientation: "h", x: order.map((k) => facts.relevance[k]), y: order.map((k) => facts.features[k]), marker: { color: COLORS.accent } }],
    { margin: { ...MARGIN, l: 110 }, xaxis: { title: { text: "share of squared distances" } }, yaxis: { type: "category" } }, CONFIG);
}

async function start() {
  $("about").textContent = facts.live ? "Live: every picture is computed when asked for, on this machine."
    : facts.model ? "The whole model is inside this file, which needs no network." : "";
  $("summary").replaceChildren(...facts.summary.map(([name, text]) => element("tr", {}, element("th", { textContent: name }), element("td", { textContent: text }))));
  controls();
  sliders();
  relevance();
  errors();
  sure();
  await draw();
  if (source) {
    $("map").on("plotly_click", ({ points: [hit] }) => {
      const x = state.at.slice();
      x[state.axes[0]] = hit.x;
      if (d > 1) x[state.axes[1]] = hit.y;
      ask(x);
    });
  }
  document.body.dataset.ready = "yes";
}

start();
