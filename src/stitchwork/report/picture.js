"use strict";
// The picture: one layer on a slice, coarse first and then as fine as the screen, in the window that is zoomed to; beside it another layer, or
// another model and the difference.

const PASSES = [16, 8, 4, 2, 1]; // pixels between points, of a plane
const AT_ONCE_SECONDS = 2; // if the finest pass takes no longer, those between are left out
const LIMITS = { seconds: 20, points: 2e6 }; // of a finer pass of a panel
const VEIL_STEP = 6; // pixels
const DIFFERENCE = 41; // points along a side of the grid that the range of a difference is found on
const DOTS = 3000; // data points that are drawn at most
const NEAR = 0.15; // of a feature's range: how far from the slice a point fades

const isLine = () => state.axes.length === 1;
const layerName = (layer) => (layer === "value" ? facts.targetLabels[output()] : layer === "difference" ? `difference: ${models[1].title} − ${models[0].title}` : LAYERS.find(([own]) => own === layer)[1]);

// What is shown side by side: layers of models.
function panels() {
  const layer = $("layer").value;
  if (compared) {
    const both = isLine() && layer !== "error" ? [{ layer, of: [0, 1] }] : [{ layer, of: [0] }, { layer, of: [1] }];
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
  const size = isLine() ? [Math.max(50, Math.round(2 * area[0]))] : area.map((pixels) => Math.max(4, Math.round(pixels / step) + 1));
  return { at: state.at.slice(), axes: state.axes.slice(), ...seen(), size };
}

const along = (grid, k) => Array.from({ length: grid.size[k] }, (_, i) => grid.low[k] + (grid.high[k] - grid.low[k]) * i / Math.max(grid.size[k] - 1, 1));

function ofOutput(packed) {
  const t = packed.shape[1], all = unpacked(packed);
  return Float64Array.from({ length: packed.shape[0] }, (_, i) => all[i * t + output()]);
}

// The numbers of a layer of a model: {grid, values}, or null when something newer is wanted.
async function field(m, layer, grid, wanted, progress) {
  const picture = stored(m, layer);
  if (!picture) {
    const values = await sources[m].layer(grid, layer, output(), wanted, progress);
    return values && { grid, values };
  }
  const axes = picture.axes ?? facts.axes, bounds = models[m].bounds;
  const own = { at: state.at, axes, low: axes.map((k) => bounds[0][k]), high: axes.map((k) => bounds[1][k]), size: axes.map(() => picture.size) };
  return { grid: own, values: ofOutput(picture.layers[layer]), stored: true };
}

const difference = ([a, b]) => ({ grid: a.grid, values: b.values.map((value, i) => value - a.values[i]) });

// The fields of a panel: one of each model; a difference is the second less the first.
async function fieldsOf(panel, grid, wanted, progress) {
  const found = [];
  for (const m of panel.of) found.push(await field(m, panel.from ?? panel.layer, grid, wanted, progress));
  if (found.some((one) => one === null)) return null;
  if (panel.layer !== "difference") return found;
  const size = grid.axes.map(() => DIFFERENCE), coarse = [];
  for (const m of panel.of) coarse.push(await field(m, panel.from, { ...grid, ...whole(), size }, wanted));
  if (coarse.some((one) => one === null)) return null;
  return [{ ...difference(found), range: rangeOf([difference(coarse).values]) }];
}

async function veilOf(panel, area, wanted) {
  if (panel.layer === "coverage" || panel.layer === "error") return null;
  const found = [];
  for (const m of panel.of) {
    if (!sources[m] && !models[m].frozen?.layers.coverage) return null;
    found.push(await field(m, "coverage", gridOf(VEIL_STEP, area), wanted));
  }
  if (found.some((one) => one === null)) return null;
  return { grid: found[0].grid, values: found[0].values.map((value, i) => Math.min(value, found[found.length - 1].values[i])) };
}

async function draw() {
  const turn = ++state.turn, wanted = () => turn === state.turn, shown_ = panels();
  const picture = shown_[0].layer === "error" ? null : stored(0, shown_[0].layer);
  if (picture) comeBack(picture);
  const told = fixedText(picture), divs = makeDivs(shown_);
  $("status").textContent = told || "computing…";
  let left;
  try {
    left = await refine(shown_, divs, wanted, told);
  } catch (error) {
    if (wanted()) $("status").textContent = `No answer: ${error.message}`;
    return;
  }
  if (!wanted()) return;
  $("finer").hidden = !left;
  $("status").textContent = left || told;
  document.body.dataset.fine = String(turn);
}

// Coarse pictures first; a panel that would take too long stays as it is, and what is left to say of that is returned.
async function refine(shown_, divs, wanted, told) {
  const veils = new Map(), found = shown_.map(() => []), pace = shown_.map(() => 0), isFixed = (panel) => !isDrawn(panel) || stored(0, panel.layer);
  let left = "";
  await Promise.all(sources.map((source) => source?.made)); // how fast a model answers does not count its coming up
  for (const step of isLine() ? [1] : PASSES) {
    const first = step === PASSES[0] || isLine();
    for (const [k, panel] of shown_.entries()) {
      const area = plotArea(divs[k]), grid = gridOf(step, area), points = grid.size.reduce((a, b) => a * b, 1), slow = pace[k] * points > LIMITS.seconds || points > LIMITS.points;
      if (!isDrawn(panel) || (!first && (isFixed(panel) || slow))) {
        if (slow && !left) left = `Coarse: one value for ${PASSES[PASSES.indexOf(step) - 1]} × ${PASSES[PASSES.indexOf(step) - 1]} pixels; finer would take about ${Math.ceil(pace[k] * points)} s.`;
        continue;
      }
      if (!first && step > 1 && pace[k] * area[0] * area[1] < AT_ONCE_SECONDS) continue;
      const progress = (part) => { if (wanted() && !told && !first) $("status").textContent = `computing… ${Math.round(100 * part)} %`; };
      const started = performance.now(), fields = await fieldsOf(panel, grid, wanted, progress);
      if (fields === null || !wanted()) return "";
      found[k] = fields;
      pace[k] = (performance.now() - started) / 1000 / points;
      if (!first) paint(shown_, divs, found, veils);
    }
    if (!first) continue;
    paint(shown_, divs, found, veils);
    Object.assign(document.body.dataset, { drawn: String(state.turn), ready: "yes" });
    for (const [k, panel] of shown_.entries()) if (isDrawn(panel)) veils.set(panel, await veilOf(panel, plotArea(divs[k]), wanted));
    if (!wanted()) return "";
    paint(shown_, divs, found, veils);
    if (shown_.every(isFixed)) return "";
  }
  return left;
}

// A stored picture beside a slice that is not its own is not drawn.
const isDrawn = (panel) => panel.layer !== "error" && !(stored(0, panel.layer) && !isItsSlice(stored(0, panel.layer)));

// What is said of a picture that cannot change.
function fixedText(picture) {
  $("whole").hidden = state.window === null;
  $("finer").hidden = true;
  $("layer-hint").textContent = LAYERS.find(([own]) => own === $("layer").value)[3];
  if (!picture) return "";
  const fixed = picture === facts.sure ? "Deviations are a picture of this slice" : `${facts.frozen?.reason}, so this slice is fixed`;
  return `${fixed}, of ${picture.size} points a side. \`stitchwork explore\` shows all of a saved model.`;
}

function makeDivs(shown_) {
  const maps = $("maps");
  while (maps.children.length > shown_.length) maps.lastChild.remove();
  while (maps.children.length < shown_.length) {
    const number = maps.children.length, div = element("div", { className: "map", id: number ? `map${number}` : "map" });
    div.setAttribute("role", "img");
    maps.append(div);
  }
  maps.classList.toggle("wide", !isLine() && (mapAspect() ?? 1) < 0.7); // side by side, wide maps would be small
  shown_.forEach((panel, k) => maps.children[k].setAttribute("aria-label", `${layerName(panel.layer)} on a slice`));
  return Array.from(maps.children);
}

function plotArea(div) {
  const { box } = div.plot ?? {};
  return box ? [box.width, box.height] : [Math.max(100, div.clientWidth - 150), Math.max(100, div.clientHeight - 80)];
}

// The range of a layer: of the models, or, where they know none or it is asked for, of what is drawn.
function rangeFor(layer, of, fields) {
  if (fields[0]?.range) return fields[0].range;
  const known = of.map((m) => models[m].ranges[layer]?.[output()]);
  return $("colors").value === "slice" || known.some((one) => !one) ? rangeOf(fields.map(({ values }) => values)) : sharedRange(known);
}

function paint(shown_, divs, found, veils) {
  $("veil-key").hidden = ![...veils.values()].some((veil) => veil?.values.some((value) => value < 0.1));
  shown_.forEach((panel, k) => {
    if (panel.layer !== "error" && !isDrawn(panel)) { showNote(divs[k], stored(0, panel.layer)); return; }
    if (divs[k].classList.contains("map-note")) { divs[k].classList.remove("map-note"); delete divs[k].plot; }
    const same = shown_.flatMap((one, n) => (one.layer === panel.layer ? found[n] : [])), of = panel.layer === "difference" ? panel.of : models.map((_, m) => m);
    const scale = panel.layer === "error" ? null : colorScale(panel.layer, rangeFor(panel.layer, of, same), $("colors").value === "slice" ? "linear" : $("colors").value);
    plotIn(divs[k]).show(specOf(panel, found[k], scale, veils.get(panel), plotArea(divs[k])));
  });
}

function showNote(div, picture) {
  if (div.classList.contains("map-note")) return;
  div.classList.add("map-note");
  div.style.height = "";
  const back = element("button", { type: "button", className: "quiet", textContent: "Back to that slice" });
  back.addEventListener("click", () => { comeBack(picture); draw(); });
  div.replaceChildren(element("p", {}, ...withWords("In this file the standard deviation is a picture of one slice.")), back);
}

const axisOf = (which) => {
  const k = state.axes[which], { low, high } = seen();
  return { title: featureLabel(k), range: [low[which], high[which]], date: isDate(k) };
};

function specOf(panel, fields, scale, veil, area) {
  const who = compared && panel.of.length === 1 ? `${models[panel.of[0]].title}: ` : "", constant = scale?.kind === "constant" ? ` · constant: ${shown(scale.constant)}` : "";
  const size = fields[0]?.stored && !isLine() ? fields[0].grid.size : null, note = size ? `${size[0] < 0.7 * area[0] ? "coarse: " : ""}${size.join(" × ")} points` : "";
  const common = {
    title: isLine() && !compared && !constant ? "" : `${who}${layerName(panel.layer)}${constant}`, note, layer: panel.layer, onzoom: zoom, onreset: () => { state.window = null; draw(); },
    onclick: sources[0] && ((x, y) => { const at = state.at.slice(); at[state.axes[0]] = x; if (!isLine()) at[state.axes[1]] = y; ask(at); }),
  };
  if (panel.layer === "error") return { ...common, ...errorSpec(panel.of[0]) };
  const shapes = panel.of.flatMap(outlines), cross = state.asked && (!isLine() || panel.layer === "value") ? crosses(panel) : [];
  if (isLine()) return { ...common, ...curveSpec(panel, fields, scale, veil, [...shapes, ...cross]) };
  const [one] = fields;
  return {
    ...common, x: axisOf(0), y: axisOf(1), aspect: mapAspect(), scale,
    image: { ...one, canvas: imageOf(one, painter(scale)) }, veil: veil && { ...veil, canvas: imageOf(veil, paintVeil) },
    marks: [...dataDots(), ...shapes, ...cross], hover: (x, y) => hoverText(panel, one, x, y),
  };
}

function hoverText(panel, { grid, values }, x, y) {
  const [i, j] = [x, y].map((v, k) => Math.round((v - grid.low[k]) / (grid.high[k] - grid.low[k]) * (grid.size[k] - 1)));
  if (!(i >= 0 && j >= 0 && i < grid.size[0] && j < grid.size[1])) return null;
  const name = panel.layer === "difference" ? "difference" : layerName(panel.layer);
  return [...[x, y].map((v, k) => `${featureLabel(state.axes[k])} ${featureText(state.axes[k], v)}`), `${name} ${shown(values[i * grid.size[1] + j])}`];
}

function zoom({ low, high }) {
  state.window = { low: low.slice(0, state.axes.length), high: high.slice(0, state.axes.length) };
  draw();
}

// Height over width in pixels. Degrees of longitude and latitude have the same length on a map as on the ground, at its middle.
function mapAspect() {
  const [across, up] = state.axes, { longitude, latitude } = facts.map ?? {}, { low, high } = seen();
  if (facts.map == null || ![across, up].includes(longitude) || ![across, up].includes(latitude)) return null;
  const middle = 0.5 * (facts.bounds[0][latitude] + facts.bounds[1][latitude]), ratio = 1 / Math.max(Math.cos(middle * Math.PI / 180), 0.1);
  return (up === latitude ? ratio : 1 / ratio) * (high[1] - low[1]) / (high[0] - low[0]);
}

// The data on the slice, fainter the farther from it they are; some of them where they are very many.
function dataDots() {
  if (!$("dots").checked) return [];
  const { x, rows } = data, d = facts.features.length, [low, high] = facts.bounds, others = plainFeatures.filter((k) => !state.axes.includes(k) && high[k] > low[k]);
  const words = facts.columns.filter(({ kind }) => kind === "category").map((column) => column.features[wordAt(column, state.at)]); // another word is far, but not out of sight
  const near = [];
  for (let i = 0; i < rows; i++) {
    let far = 0;
    for (const k of others) far += ((x[i * d + k] - state.at[k]) / (NEAR * (high[k] - low[k]))) ** 2;
    for (const k of words) far += x[i * d + k] > 0.5 ? 0 : 1;
    if (far < 4) near.push([i, Math.exp(-0.5 * far)]);
  }
  const every = Math.max(1, Math.ceil(near.length / DOTS)), chosen = near.filter((_, n) => n % every === 0), many = chosen.length > 800, full = many ? 0.55 : 0.8;
  const color = (kind, part) => kind.replace("OPACITY", (full * part).toFixed(2));
  return [{
    kind: "dots", about: "data", x: chosen.map(([i]) => x[i * d + state.axes[0]]), y: chosen.map(([i]) => x[i * d + state.axes[1]]), size: many ? 3 : 5,
    colors: chosen.map(([i, part]) => color(data.later?.[i] ? LATER : DOT, part)), rims: chosen.map(([, part]) => color(RIM, part)),
  }];
}

function crosses(panel) {
  const answers = panel.of.map((m) => state.answers[m]).filter(Boolean), { at, axes } = state, style = { kind: "cross", color: "#c2410c" }; // on images, which are the same light and dark
  return isLine() ? answers.map((answer) => ({ ...style, x: at[axes[0]], y: answer.value })) : [{ ...style, x: at[axes[0]], y: at[axes[1]] }];
}
