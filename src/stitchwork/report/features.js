"use strict";
// Features as the columns that they came from: numbers, dates, and words of which one is 1 and the others are 0.

const DAY = 86_400_000; // milliseconds
const columnOf = new Map(); // of every feature
for (const column of facts.columns) for (const k of column.features) columnOf.set(k, column);
const isDate = (k) => columnOf.get(k).kind === "date";
const plainFeatures = facts.columns.filter(({ kind }) => kind !== "category").flatMap(({ features }) => features);
const axisFeatures = plainFeatures.length ? plainFeatures : facts.features.map((_, k) => k);
const featureLabel = (k) => facts.labels[k];

const dateText = (days, precise = false) => {
  const time = new Date(days * DAY);
  if (!Number.isFinite(time.getTime())) return String(days);
  return precise ? time.toISOString().slice(0, 16).replace("T", " ") : time.toISOString().slice(0, 10);
};
const isPrecise = (k) => facts.bounds[1][k] - facts.bounds[0][k] < 10; // days: their hours matter
const featureText = (k, value) => (isDate(k) ? dateText(value, isPrecise(k)) : shown(value));

// Which word of a column of words stands at x: the largest.
const wordAt = (column, x) => column.features.reduce((best, k, n) => (x[k] > x[column.features[best]] ? n : best), 0);

// A point in words, for the columns of it.
const pointText = (x) => facts.columns.map((column) => `${column.name} ${column.kind === "category" ? column.words[wordAt(column, x)] : featureText(column.features[0], x[column.features[0]])}`);

// The control of a column: a drop-down of words, or a number or date with a slider. `move` is called with changes by feature.
function columnControl(column, role, move) {
  if (column.kind === "category") {
    const select = element("select", { id: `word${column.features[0]}`, ariaLabel: column.name });
    fill(select, column.words.map((text, n) => [n, text]).sort(([, a], [, b]) => a.localeCompare(b, undefined, { numeric: true })));
    select.addEventListener("change", () => move(column.features.map((k, n) => [k, Number(n === Number(select.value))]), select));
    return element("div", { className: "feature word-choice" }, element("label", { htmlFor: select.id, textContent: column.name }), select);
  }
  const [k] = column.features, [low, high] = [facts.bounds[0][k], facts.bounds[1][k]];
  const number = element("input", column.kind === "date" ? { type: isPrecise(k) ? "datetime-local" : "date", id: `x${k}` } : { type: "number", step: "any", id: `x${k}` });
  const range = element("input", { type: "range", min: 0, max: 200, step: 1, id: `slider${k}`, ariaLabel: `${column.name}, slider` });
  number.addEventListener("input", () => Number.isFinite(readFeature(k)) && move([[k, readFeature(k)]], number));
  range.addEventListener("input", () => move([[k, low + (high - low) * Number(range.value) / 200]], range));
  const label = element("label", { htmlFor: `x${k}` }, featureLabel(k), ...(role ? [element("small", { textContent: ` (${role})` })] : []));
  return element("div", { className: "feature" }, label, number, range);
}

function readFeature(k) {
  const input = $(`x${k}`);
  return isDate(k) ? Date.parse(`${input.value}${isPrecise(k) ? "Z" : "T00:00Z"}`) / DAY : input.valueAsNumber;
}

// The controls say where the slice stands; what is being moved is left alone.
function showPoint(x, moved) {
  for (const column of facts.columns) {
    const [k] = column.features;
    if (column.kind === "category") { if ($(`word${k}`) && $(`word${k}`) !== moved) $(`word${k}`).value = String(wordAt(column, x)); continue; }
    const number = $(`x${k}`), range = $(`slider${k}`), [low, high] = [facts.bounds[0][k], facts.bounds[1][k]];
    if (!number) continue;
    if (number !== moved) number.value = isDate(k) ? dateText(x[k], isPrecise(k)).replace(" ", "T") : String(Number(x[k].toPrecision(8)));
    if (range !== moved) range.value = String(high > low ? Math.round(200 * (x[k] - low) / (high - low)) : 0);
    range.setAttribute("aria-valuetext", featureText(k, x[k]));
  }
}

// From the space of the regions back to features: by the inverse of the metric, then of the chart (see `model/chart`).
function original(u, { inverse, shift, chart }) {
  const e = shift.map((own, l) => own + inverse.reduce((total, row, k) => total + u[k] * row[l], 0));
  if (!chart) return e;
  const { period, globe: [longitude, latitude], start } = chart, degrees = 180 / Math.PI;
  const widths = period.map((p, k) => (k === latitude ? 0 : k === longitude ? 3 : p > 0 ? 2 : 1));
  const first = widths.map((_, k) => widths.slice(0, k).reduce((total, width) => total + width, 0));
  const unrolled = (k, y, x) => {
    const p = period[k], value = p / (2 * Math.PI) * Math.atan2(y, x);
    if (start[k] === -0.5 * p) return value;
    const beyond = value - start[k];
    return start[k] + Math.max(beyond - p * Math.floor(beyond / p + 1e-12), 0);
  };
  return widths.map((width, k) => {
    const [x, y, z] = e.slice(first[width === 0 ? longitude : k]);
    return width === 1 ? x : width === 0 ? degrees * Math.atan2(z, Math.hypot(x, y)) : unrolled(k, y, x);
  });
}
