"use strict";
// Slices along one feature, errors at the data, and where the balls of regions meet a slice.

// Axes over a range with some room above and below.
function padded(low, high) {
  const room = 0.06 * (high - low) || Math.abs(high) || 1;
  return [low - room, high + room];
}

function curveSpec(panel, found, scale, veil, marks) {
  const { ink, second } = look(), value = panel.layer === "value", constant = scale.kind === "constant";
  const lines = found.map(({ grid, values }, k) => ({ kind: "line", x: along(grid, 0), y: constant ? Array.from(values, () => scale.constant) : Array.from(values), color: k ? second : ink, width: 2, dash: k ? [6, 4] : [], name: found.length > 1 ? models[k].title : "" }));
  const dots = value && $("dots").checked && facts.features.length === 1 ? [lineDots()] : [], around = value && !compared ? band() : [];
  const log = scale.kind === "log", all = [...lines.flatMap(({ y }) => y), ...around.flatMap(({ lower, upper }) => [...lower, ...upper]), ...dots.flatMap(({ y }) => y)].filter((v) => Number.isFinite(v) && (!log || v > 0));
  const low = all.reduce((a, b) => Math.min(a, b), Infinity), high = all.reduce((a, b) => Math.max(a, b), -Infinity), range = constant ? [scale.constant - (Math.abs(scale.constant) || 1), scale.constant + (Math.abs(scale.constant) || 1)] : log ? [low / 1.2, high * 1.2] : padded(low, high);
  return {
    x: axisOf(0), y: { title: layerName(panel.layer), range, log }, marks: [...(veil ? emptyStretches(veil) : []), ...around, ...dots, ...lines, ...marks],
    hover: (x) => {
      const tell = ({ grid, values }, k) => `${compared ? `${models[k].title}: ` : ""}${layerName(panel.layer)} ${shown(values[Math.max(0, Math.min(values.length - 1, Math.round((x - grid.low[0]) / (grid.high[0] - grid.low[0]) * (values.length - 1))))])}`;
      return [`${featureLabel(state.axes[0])} ${featureText(state.axes[0], x)}`, ...found.map(tell)];
    },
  };
}

// Where a new observation lies, with the confidence that was asked for.
function band() {
  if (!facts.sure?.band || !isItsSlice(facts.sure)) return [];
  const { size, confidence } = facts.sure, [lower, upper] = facts.sure.band.map((end) => Array.from(ofOutput(end))), [k] = state.axes;
  return [{ kind: "area", x: along({ low: [facts.bounds[0][k]], high: [facts.bounds[1][k]], size: [size] }, 0), lower, upper, color: look().band, name: `${Math.round(100 * confidence)} % of new observations` }];
}

function lineDots() {
  const { x, y, std, rows } = data, t = facts.targets.length, every = Math.max(1, Math.ceil(rows / DOTS)), chosen = Array.from({ length: Math.ceil(rows / every) }, (_, i) => i * every);
  const bars = std ? chosen.map((i) => std[i * t + output()]) : null; // standard deviations of known errors
  return { kind: "dots", about: "data", x: chosen.map((i) => x[i]), y: chosen.map((i) => y[i * t + output()]), bars, color: look().muted, size: 4 };
}

// Stretches of a line without data, in grey.
function emptyStretches({ grid, values }) {
  const x = along(grid, 0), found = [];
  values.forEach((value, i) => {
    if (!(value < 0.1)) return;
    if (found.length && found[found.length - 1].end === i - 1) found[found.length - 1].end = i; else found.push({ start: i, end: i });
  });
  return found.map(({ start, end }) => ({ kind: "span", from: x[Math.max(0, start - 1)], to: x[Math.min(x.length - 1, end + 1)], color: "rgba(138, 143, 150, 0.3)" }));
}

const column = (set, k) => Array.from({ length: set.rows }, (_, i) => set.x[i * facts.features.length + k]);
const response = (set, array) => Array.from({ length: set.rows }, (_, i) => array[i * set.t + output()]);

// The size of every error, in colour, or up where there is one feature.
function errorSpec(m) {
  const set = sets.find((one) => one.model === m && one.name === "leave-one-out"), size = response(set, set.residual).map(Math.abs);
  const scale = colorScale("error", models[m].ranges.error[output()], $("colors").value === "slice" ? "linear" : $("colors").value), nearest = (X, Y, x, y, sx, sy) => {
    let best = -1, least = 0.02;
    for (let i = 0; i < X.length; i++) { const far = Math.hypot((X[i] - x) / sx, (Y[i] - y) / sy); if (far < least) { least = far; best = i; } }
    return best;
  };
  const line_ = isLine(), x = column(set, state.axes[0]), y = line_ ? size : column(set, state.axes[1]), axis = axisOf(0);
  const up = line_ ? { title: "size of the error", range: [0, 1.06 * size.reduce((a, b) => Math.max(a, b), 0) || 1] } : axisOf(1);
  return {
    x: axis, y: up, aspect: line_ ? null : mapAspect(), scale: line_ ? null : scale,
    marks: [{ kind: "dots", about: "errors", x, y, size: 6, color: look().ink, colors: line_ ? null : size.map((value) => colorOf(scale.table, scale.unit(value))), rims: size.map(() => look().muted) }],
    hover: (a, b) => { const i = nearest(x, y, a, b, axis.range[1] - axis.range[0], up.range[1] - up.range[0]); return i < 0 ? null : [`error ${shown(size[i])}`]; },
  };
}

// Where the balls of the regions that answer meet the slice: see Slice.cut.
function outlines(m) {
  const M = models[m].metric, u = state.axes, others = facts.features.map((_, k) => k).filter((k) => !u.includes(k));
  return (state.answers[m]?.contributions ?? []).filter((one) => one.radius < 1e200).flatMap((one) => {
    const o = others.map((k) => state.at[k] - one.center[k]);
    const b = u.map((i) => others.reduce((total, k, n) => total + M[i][k] * o[n], 0));
    const most = Math.max(...u.map((i) => M[i][i])) || 1; // a feature that the metric does not see must not make it singular
    const inverse = inverse2(u.map((i) => u.map((j) => M[i][j] + (i === j ? 1e-12 * most : 0))));
    const shift = inverse.map((row) => row.reduce((total, value, n) => total + value * b[n], 0));
    const inner = others.reduce((total, k, n) => total + others.reduce((part, l, i) => part + o[n] * M[k][l] * o[i], 0), 0);
    const left = one.radius ** 2 - inner + shift.reduce((total, value, n) => total + value * b[n], 0);
    if (!(left > 0)) return [];
    const center = u.map((k, n) => one.center[k] - shift[n]), half = cholesky2(inverse).map((row) => row.map((value) => value * Math.sqrt(left)));
    if (u.length === 1) return [{ kind: "span", about: "region", from: center[0] - half[0][0], to: center[0] + half[0][0], color: "rgba(194, 65, 12, 0.1)" }];
    const turn = Array.from({ length: 73 }, (_, i) => [Math.cos(i * Math.PI / 36), Math.sin(i * Math.PI / 36)]);
    const [x, y] = center.map((value, n) => turn.map(([c, s]) => value + half[n][0] * c + half[n][1] * s));
    return [{ kind: "line", about: "region", x, y, color: look().accent, width: 0.5 + 4 * one.share }];
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
