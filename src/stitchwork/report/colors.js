"use strict";
// Colours: the page's own, light and dark, and those of the layers, linear or logarithmic.

const LOOKS = {
  light: { paper: "#ffffff", text: "#1c2733", grid: "#e3e8ed", ink: "#1f5a8a", second: "#7a3e9d", accent: "#c2410c", muted: "#7f858c", band: "rgba(31, 90, 138, 0.18)", dot: "rgba(20, 20, 20, OPACITY)", later: "rgba(224, 76, 12, OPACITY)", rim: "rgba(255, 255, 255, OPACITY)" },
  dark: { paper: "#12181f", text: "#e4eaf0", grid: "#2c3641", ink: "#7ab8e8", second: "#d3a3f0", accent: "#ff9d5c", muted: "#98a2ad", band: "rgba(122, 184, 232, 0.22)", dot: "rgba(20, 20, 20, OPACITY)", later: "rgba(224, 76, 12, OPACITY)", rim: "rgba(255, 255, 255, OPACITY)" },
};
const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
let theme = null; // what the switch says, or null: what the system says
const isDark = () => (theme === null ? prefersDark.matches : theme === "dark");
const look = () => LOOKS[isDark() ? "dark" : "light"];

// Lightness rises evenly along each of them; a single hue for what is not signed and not a value.
const steps = (...colors) => colors.map((color, k) => [k / (colors.length - 1), color]);
const VALUES = "Viridis";
const ONE_HUE = steps("#fff3e6", "#fdd3a7", "#fba85f", "#e8752a", "#b84a0d", "#7a2c04");
const COVERED = steps("#8a8f96", "#a9b7b0", "#8fc4a6", "#4fa77f", "#157a57", "#00573b");
const SIGNED = steps("#053f6e", "#2f7fb8", "#9cc8e2", "#f5f5f2", "#f3b496", "#cf5a3c", "#7d1322");
const SCALES = { value: VALUES, gradient: ONE_HUE, deviation: ONE_HUE, coverage: COVERED, laplacian: SIGNED, difference: SIGNED };
const VEIL = [[0, "rgba(138, 143, 150, 0.8)"], [0.1, "rgba(138, 143, 150, 0.65)"], [0.6, "rgba(138, 143, 150, 0)"], [1, "rgba(138, 143, 150, 0)"]];

const LOG_FROM = 100; // a field of one sign whose bulk spans so much has logarithmic colours
const SIGNED_LOG_FROM = 1000; // likewise one of two signs: greatest against median size
const SIGNED_DECADES = 4; // below the greatest: linear from there to zero
const FLAT = 1e-7; // of what is natural for a layer: less is rounding

// How the numbers of a layer become colours; `natural` is the size that the layer would have if the responses varied once. Of values, the sorted
// responses tell whether they span decades: in a hole, the background may not keep to their sign.
function colorScale(layer, fields, asked, natural, responses_) {
  const values = Float64Array.from(fields.flatMap((field) => Array.from(field)).filter(Number.isFinite)).sort(), n = values.length;
  const least = values[0], most = values[n - 1], size = Math.max(-least, most), colorscale = SCALES[layer];
  if (!(most - least > Math.max(FLAT * natural, 1e-12 * size))) {
    const middle = 0.5 * (least + most), half = Math.abs(middle) || 1;
    return { kind: "constant", constant: middle, forward: (v) => v, back: (z) => z, zmin: middle - half, zmax: middle + half, colorscale, ticks: { tickvals: [middle], ticktext: [brief(middle)] } };
  }
  const told = responses_ ?? values, bulk = told[Math.floor(0.02 * told.length)], linear = asked === "linear" || layer === "coverage";
  const decades = bulk > 0 && bulk < most && (responses_ ? told[0] > 0 : least > -0.01 * most);
  if (!linear && decades && (asked === "log" || most / bulk > LOG_FROM)) return logScale(Math.max(told[0], least, bulk * 1e-3, most * 1e-12), most, colorscale);
  const signed = colorscale === SIGNED;
  const sizes = values.map(Math.abs).sort(), middle = sizes[Math.floor(0.5 * n)];
  if (!linear && !decades && (asked === "log" || (signed && middle > 0 && size / middle > SIGNED_LOG_FROM))) return signedLogScale(size, signed ? colorscale : SIGNED);
  const plain = { kind: "linear", forward: (v) => v, back: (z) => z, colorscale, ticks: {} };
  if (layer === "coverage") return { ...plain, zmin: 0, zmax: 1 };
  return signed ? { ...plain, zmin: -size, zmax: size } : { ...plain, zmin: least, zmax: most };
}

function logScale(low, high, colorscale) {
  const [a, b] = [Math.log10(low), Math.log10(high)], whole = [];
  const multiples = b - a > 2.5 ? [1] : b - a > 1.2 ? [1, 3] : [1, 2, 5];
  for (let e = Math.floor(a); e <= b; e += Math.max(1, Math.ceil((b - a) / 8))) for (const f of multiples) whole.push(f * 10 ** e);
  const tickvals = whole.map(Math.log10).filter((z) => z >= a && z <= b);
  return { kind: "log", forward: (v) => Math.log10(Math.max(v, low)), back: (z) => 10 ** z, zmin: a, zmax: b, colorscale, ticks: { tickvals, ticktext: tickvals.map((z) => brief(10 ** z)) } };
}

// sign(v) log(1 + |v| / s), s some decades below the greatest.
function signedLogScale(size, colorscale) {
  const s = size * 10 ** -SIGNED_DECADES, forward = (v) => Math.sign(v) * Math.log10(1 + Math.abs(v) / s);
  const parts = [1, 1e-2].map((part) => part * size), marks = [...parts.map((v) => -v), 0, ...parts.reverse()];
  return { kind: "signed log", forward, back: (z) => Math.sign(z) * s * (10 ** Math.abs(z) - 1), zmin: -forward(size), zmax: forward(size), colorscale, ticks: { tickvals: marks.map(forward), ticktext: marks.map(brief) } };
}

const brief = (value) => (value !== 0 && (Math.abs(value) >= 1e5 || Math.abs(value) < 1e-3) ? value.toExponential(1).replace(/\.0e/, "e") : String(Number(value.toPrecision(3))));
