"use strict";
// Colours: the page's own, light and dark, and those of the layers, linear or logarithmic, over ranges that the model knows.

const LOOKS = {
  light: { paper: "#ffffff", text: "#1c2733", soft: "#55606d", grid: "#e3e8ed", ink: "#1f5a8a", second: "#7a3e9d", accent: "#c2410c", muted: "#7f858c", band: "rgba(31, 90, 138, 0.18)" },
  dark: { paper: "#12181f", text: "#e4eaf0", soft: "#a3afbb", grid: "#2c3641", ink: "#7ab8e8", second: "#d3a3f0", accent: "#ff9d5c", muted: "#98a2ad", band: "rgba(122, 184, 232, 0.22)" },
};
const DOT = "rgba(20, 20, 20, OPACITY)", LATER = "rgba(224, 76, 12, OPACITY)", RIM = "rgba(255, 255, 255, OPACITY)";
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
let theme = null; // what the switch says, or null: what the system says
const isDark = () => (theme === null ? prefersDark.matches : theme === "dark");
const look = () => LOOKS[isDark() ? "dark" : "light"];

// Colours between steps, as 256 times red, green, blue. Lightness rises evenly; a single hue for what is not signed and not a value.
function palette(...steps) {
  const colors = steps.map((color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16))), table = new Uint8Array(3 * 256);
  for (let i = 0; i < 256; i++) {
    const at = i / 255 * (colors.length - 1), k = Math.min(Math.floor(at), colors.length - 2);
    for (let c = 0; c < 3; c++) table[3 * i + c] = Math.round(colors[k][c] + (at - k) * (colors[k + 1][c] - colors[k][c]));
  }
  return table;
}
const VALUES = palette("#440154", "#482878", "#3e4a89", "#31688e", "#26828e", "#1f9e89", "#35b779", "#6ece58", "#b5de2b", "#fde725");
const ONE_HUE = palette("#fff3e6", "#fdd3a7", "#fba85f", "#e8752a", "#b84a0d", "#7a2c04");
const COVERED = palette("#8a8f96", "#a9b7b0", "#8fc4a6", "#4fa77f", "#157a57", "#00573b");
const SIGNED = palette("#053f6e", "#2f7fb8", "#9cc8e2", "#f5f5f2", "#f3b496", "#cf5a3c", "#7d1322");
const PALETTES = { value: VALUES, gradient: ONE_HUE, deviation: ONE_HUE, error: ONE_HUE, coverage: COVERED, laplacian: SIGNED, difference: SIGNED };
const colorOf = (table, part) => { const i = 3 * Math.round(255 * Math.max(0, Math.min(1, part))); return `rgb(${table[i]}, ${table[i + 1]}, ${table[i + 2]})`; };
const SIGNED_DECADES = 4; // below the greatest: linear from there to zero

// How the numbers of a layer become colours, from its range {low, high, floor, log, constant}: a scale has `unit`, from a number to 0…1, and ticks there.
function colorScale(layer, range, asked) {
  const table = PALETTES[layer], { low, high, floor } = range;
  if (layer === "coverage") return linearScale(0, 1, table);
  if (range.constant !== null) return { kind: "constant", constant: range.constant, low, high, unit: () => 0.5, ticks: [{ at: 0.5, text: brief(range.constant) }], table };
  const log = asked === "log" || (asked === "auto" && range.log), signed = table === SIGNED;
  if (log && !signed && floor > 0 && floor < high) return logScale(floor, high, table);
  if (log) return signedLogScale(Math.max(-low, high), SIGNED);
  return signed ? linearScale(-Math.max(-low, high), Math.max(-low, high), table) : linearScale(low, high, table);
}

// The range of what is drawn, for the layers and choices that the model has none for.
function rangeOf(fields) {
  let low = Infinity, high = -Infinity, floor = Infinity;
  for (const values of fields) for (const value of values) {
    low = Math.min(low, value);
    high = Math.max(high, value);
    if (value > 0) floor = Math.min(floor, value);
  }
  return { low, high, floor: Math.max(floor, high * 1e-12), log: false, constant: high - low > 1e-12 * Math.max(Math.abs(low), Math.abs(high)) ? null : 0.5 * (low + high) };
}

// The range of several models.
function sharedRange(ranges) {
  const [first] = ranges, low = Math.min(...ranges.map((one) => one.low)), high = Math.max(...ranges.map((one) => one.high));
  return { low, high, floor: Math.min(...ranges.map((one) => one.floor)), log: ranges.every((one) => one.log), constant: ranges.every((one) => one.constant !== null && Math.abs(one.constant - first.constant) <= 1e-9 * Math.abs(first.constant)) ? first.constant : null };
}

function linearScale(low, high, table) {
  return { kind: "linear", low, high, unit: (v) => (v - low) / (high - low), ticks: ticksBetween(low, high, 6).map(({ at, text }) => ({ at: (at - low) / (high - low), text })), table };
}

function logScale(low, high, table) {
  const [a, b] = [Math.log10(low), Math.log10(high)];
  return { kind: "log", low, high, unit: (v) => (v > low ? (Math.log10(v) - a) / (b - a) : 0), ticks: logTicks(low, high).map(({ at, text }) => ({ at: (Math.log10(at) - a) / (b - a), text })), table };
}

// sign(v) log(1 + |v| / s), s some decades below the greatest.
function signedLogScale(size, table) {
  const s = size * 10 ** -SIGNED_DECADES, most = Math.log10(1 + size / s), unit = (v) => 0.5 + 0.5 * Math.sign(v) * Math.log10(1 + Math.abs(v) / s) / most;
  return { kind: "signed log", low: -size, high: size, unit, ticks: [-size, -size / 100, 0, size / 100, size].map((v) => ({ at: unit(v), text: brief(v) })), table };
}

// Numbers as an image, the first row of pixels at the top: values are columns from below.
function imageOf({ grid: { size: [across, up] }, values }, paint) {
  const pixels = new ImageData(across, up);
  for (let i = 0; i < across; i++) for (let j = 0; j < up; j++) paint(values[i * up + j], pixels.data, 4 * ((up - 1 - j) * across + i));
  const canvas = element("canvas", { width: across, height: up });
  canvas.getContext("2d").putImageData(pixels, 0, 0);
  return canvas;
}

const painter = ({ unit, table }) => (value, data, at) => {
  const i = 3 * Math.round(255 * Math.max(0, Math.min(1, unit(value))));
  data[at] = table[i]; data[at + 1] = table[i + 1]; data[at + 2] = table[i + 2]; data[at + 3] = Number.isNaN(value) ? 0 : 255;
};

// Grey where there are no data, from a coverage of 0.6 down.
const paintVeil = (value, data, at) => {
  data[at] = 138; data[at + 1] = 143; data[at + 2] = 150;
  data[at + 3] = value < 0.1 ? 204 - 380 * value : Math.max(0, 166 * (0.6 - value) / 0.5);
};

const brief = (value) => (value !== 0 && (Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3) ? value.toExponential(1).replace(/\.0e/, "e") : String(Number(value.toPrecision(3))));
