"use strict";
// The stitched function in JavaScript: the formulas of `local/radial`, `local/blocks` and `model/stitch`, one output at a time, on the
// arrays that `model/description` names.

const TINY = 1e-8;
const safe = (r) => Math.max(r, TINY);

// f, Df and D²f at the squared radius s, where D f = f'/r.
const KERNELS = {
  none: () => [0, 0, 0],
  gaussian: (s) => { const f = Math.exp(-s); return [f, -2 * f, 4 * f]; },
  exponential: (s) => { const r = Math.sqrt(s), f = Math.exp(-r); return [f, -f / safe(r), f * (1 + r) / safe(r) ** 3]; },
  "soft-exponential": (s) => {
    const q = Math.sqrt(s + 0.0025), f = Math.exp(0.05 - q);
    return [f, -f / q, f * (1 + q) / q ** 3];
  },
  matern32: (s) => { const r = Math.sqrt(3 * s), f = Math.exp(-r); return [(1 + r) * f, -3 * f, 9 * f / safe(r)]; },
  matern52: (s) => {
    const r = Math.sqrt(5 * s), f = Math.exp(-r);
    return [(1 + r + r * r / 3) * f, -5 * (1 + r) / 3 * f, 25 / 3 * f];
  },
  matern72: (s) => {
    const r = Math.sqrt(7 * s), f = Math.exp(-r);
    return [(1 + r + 0.4 * r * r + r ** 3 / 15) * f, -7 * (3 + 3 * r + r * r) / 15 * f, 49 * (1 + r) / 15 * f];
  },
  linear: (s) => { const r = Math.sqrt(s); return [-r, -1 / safe(r), 1 / safe(r) ** 3]; },
  multiquadric: (s) => { const q = Math.sqrt(1 + s); return [-q, -1 / q, 1 / q ** 3]; },
  "thin-plate": (s) => { const t = Math.max(s, TINY * TINY), l = Math.log(t); return [0.5 * t * l, l + 1, 2 / t]; },
  cubic: (s) => { const r = Math.sqrt(s); return [r ** 3, 3 * r, 3 / safe(r)]; },
  quintic: (s) => { const r = Math.sqrt(s); return [-(r ** 5), -5 * r ** 3, -15 * r]; },
  "truncated-gaussian": (s) => { const f = s < 1 ? Math.exp(-4 * s) : 0; return [f, -8 * f, 64 * f]; },
};

// A Wendland function: (1 - r)₊^power times a polynomial in r from its lowest power on, for each power of D.
function wendland(terms) {
  return (s) => {
    const r = Math.sqrt(s), u = Math.max(1 - r, 0);
    return terms.map(({ coefficients, lowest, power }) => {
      const polynomial = coefficients.reduceRight((total, c) => total * r + c, 0);
      return polynomial * (lowest < 0 ? safe(r) : r) ** lowest * (power > 0 ? u ** power : Number(r < 1));
    });
  };
}

const radial = (name, terms) => (terms ? wendland(terms) : KERNELS[name]);

function unpacked(packed) {
  const bytes = Uint8Array.from(atob(packed.data), (c) => c.charCodeAt(0));
  return packed.kind === "i4" ? new Int32Array(bytes.buffer) : new Float64Array(bytes.buffer);
}

class Regions {
  constructor(take, prefix, kernels, functions, exponents) {
    const own = (name) => take(`${prefix}/model0/${name}`);
    for (const name of ["members", "origin", "scale", "sigma", "alpha", "lam", "kernel", "degree", "bandwidth", "ridge"]) this[name] = own(name).values;
    this.centers = take(`${prefix}/centers`).values;
    this.radii = take(`${prefix}/radii`).values;
    this.share = take(`${prefix}/share`)?.values;
    this.together = take(`${prefix}/together`)?.values[0] ?? 1;
    this.turns = own("turns")?.values;
    this.turn = own("turn").values;
    this.X = (take(`${prefix}/X`) ?? take("points/X")).values;
    [, this.d] = own("origin").shape;
    [, this.h, this.t] = own("alpha").shape;
    [, this.s] = own("lam").shape;
    Object.assign(this, { exponents, kernels, functions });
  }

  // (u - from) / unit, times the region's own metric if it has one.
  offset(u, from, unit, turn) {
    const { d } = this, x = new Float64Array(d);
    for (let k = 0; k < d; k++) x[k] = (u[k] - from[k]) / unit;
    if (!turn) return x;
    const z = new Float64Array(d);
    for (let k = 0; k < d; k++) for (let l = 0; l < d; l++) z[l] += x[k] * turn[k * d + l];
    return z;
  }

  settings(j) {
    return { kernel: this.kernels[this.kernel[j]], degree: this.degree[j], bandwidth: this.bandwidth[j], ridge: this.ridge[j] };
  }

  // f_j(u) = Σ α_i K(|z - x_i|) + Σ λ_k p_k(z) with derivatives, z the region's own coordinates.
  jet(j, u, output, order) {
    const { d, h, t, s } = this, scale = this.scale[j], jet = zero(d), center = this.origin.subarray(j * d, (j + 1) * d);
    const turn = this.turns?.subarray(this.turn[j] * d * d, (this.turn[j] + 1) * d * d);
    const z = this.offset(u, center, scale, turn);
    for (let e = 0; e < Math.min(s, this.exponents.length); e++) {
      const lam = this.lam[(j * s + e) * t + output];
      if (lam !== 0) addMonomial(jet, lam, this.exponents[e], z, order);
    }
    rescale(jet, scale);
    if (this.kernels[this.kernel[j]] === "none") return turnedBack(jet, turn, d);
    const part = zero(d), kernel = this.functions[this.kernel[j]], unit = scale * this.sigma[j];
    for (let i = 0; i < h; i++) {
      const member = this.members[j * h + i] * d, alpha = this.alpha[(j * h + i) * t + output];
      const x = this.offset(u, this.X.subarray(member, member + d), unit, turn);
      addRadial(part, alpha, kernel(x.reduce((total, a) => total + a * a, 0)), x, order);
    }
    rescale(part, unit);
    return turnedBack(sum(jet, part), turn, d);
  }
}

// Derivatives with respect to x from those with respect to x turn: ∇ = T ∇', ∇² = T ∇'² Tᵀ.
function turnedBack(jet, turn, d) {
  if (!turn) return jet;
  const back = zero(d);
  back.f = jet.f;
  for (let a = 0; a < d; a++) for (let k = 0; k < d; k++) {
    back.g[a] += turn[a * d + k] * jet.g[k];
    for (let b = 0; b < d; b++) for (let l = 0; l < d; l++) back.H[a * d + b] += turn[a * d + k] * jet.H[k * d + l] * turn[b * d + l];
  }
  return back;
}

const zero = (d) => ({ f: 0, g: new Float64Array(d), H: new Float64Array(d * d) });

function addRadial(jet, factor, [f, Df, D2f], x, order) {
  const d = x.length;
  jet.f += factor * f;
  if (order >= 1) for (let k = 0; k < d; k++) jet.g[k] += factor * Df * x[k];
  if (order >= 2) {
    for (let k = 0; k < d; k++) {
      for (let l = 0; l < d; l++) jet.H[k * d + l] += factor * D2f * x[k] * x[l];
      jet.H[k * d + k] += factor * Df;
    }
  }
}

function addMonomial(jet, factor, exponents, z, order) {
  const d = z.length, lowered = exponents.slice();
  const value = () => lowered.reduce((product, e, k) => product * z[k] ** e, 1);
  jet.f += factor * value();
  if (order < 1) return;
  for (let k = 0; k < d; k++) {
    const first = lowered[k];
    if (first === 0) continue;
    lowered[k] -= 1;
    jet.g[k] += factor * first * value();
    if (order >= 2) {
      for (let l = 0; l < d; l++) {
        const second = lowered[l];
        if (second === 0) continue;
        lowered[l] -= 1;
        jet.H[k * d + l] += factor * first * second * value();
        lowered[l] += 1;
      }
    }
    lowered[k] += 1;
  }
}

function rescale(jet, unit) {
  for (let k = 0; k < jet.g.length; k++) jet.g[k] /= unit;
  for (let k = 0; k < jet.H.length; k++) jet.H[k] /= unit * unit;
}

function sum(a, b) {
  a.f += b.f;
  b.g.forEach((value, k) => { a.g[k] += value; });
  b.H.forEach((value, k) => { a.H[k] += value; });
  return a;
}

// w f by the product rule.
function product(w, f) {
  const d = w.g.length, p = zero(d);
  p.f = w.f * f.f;
  for (let k = 0; k < d; k++) {
    p.g[k] = w.f * f.g[k] + f.f * w.g[k];
    for (let l = 0; l < d; l++) {
      p.H[k * d + l] = w.f * f.H[k * d + l] + f.f * w.H[k * d + l] + f.g[k] * w.g[l] + w.g[k] * f.g[l];
    }
  }
  return p;
}

// N / W, from W F = N.
function quotient(N, W) {
  const d = N.g.length, F = zero(d);
  F.f = N.f / W.f;
  for (let k = 0; k < d; k++) F.g[k] = (N.g[k] - F.f * W.g[k]) / W.f;
  for (let k = 0; k < d; k++) {
    for (let l = 0; l < d; l++) {
      F.H[k * d + l] = (N.H[k * d + l] - F.f * W.H[k * d + l] - F.g[k] * W.g[l] - W.g[k] * F.g[l]) / W.f;
    }
  }
  return F;
}

// A number that is free between bounds and saturates at a margin beyond, with its derivatives: ψ(t) = t / (1 + t⁸)^⅛.
function saturated(x, { lower, upper, margin }) {
  const sign = x > upper ? 1 : x < lower ? -1 : 0, edge = sign > 0 ? upper : lower;
  if (!sign) return [x, 1, 0];
  const t = margin > 0 ? Math.min(sign * (x - edge) / margin, 100) : 100, p = 1 + t ** 8;
  const value = edge + sign * margin * t / p ** 0.125;
  return t < 100 ? [value, p ** -1.125, -9 * sign * t ** 7 * p ** -2.125 / margin] : [value, 0, 0];
}

// Features with a period and the globe as places on circles and on a sphere: `model/chart`. Without a chart places are the features.
class Chart {
  constructor(periods, globe, signed) {
    [this.longitude, this.latitude] = globe;
    const widths = Array.from(periods, (p, k) => (k === this.latitude ? 0 : k === this.longitude ? 3 : p > 0 ? 2 : 1));
    this.columns = widths.map((_, k) => widths.slice(0, k).reduce((total, width) => total + width, 0));
    Object.assign(this, { periods, signed, widths, e: widths.reduce((total, width) => total + width, 0) });
  }

  // 2π x / p from -π to π, equal where values differ by whole periods.
  angle(x, k) {
    const p = this.periods[k], rest = x[k] % p;
    return (rest > p / 2 ? rest - p : rest <= -p / 2 ? rest + p : rest) * (2 * Math.PI / p);
  }

  globe(x) {
    const lambda = this.angle(x, this.longitude), phi = x[this.latitude] * Math.PI / 180;
    return { c: Math.cos(lambda), s: Math.sin(lambda), C: Math.cos(phi), S: Math.sin(phi) };
  }

  place(x) {
    return this.widths.flatMap((width, k) => {
      if (width === 1) return [x[k]];
      if (width === 3) { const { c, s, C, S } = this.globe(x), r = 180 / Math.PI; return [r * C * c, r * C * s, r * S]; }
      if (width === 0) return [];
      const theta = this.angle(x, k), r = this.periods[k] / (2 * Math.PI);
      return [r * Math.cos(theta), r * Math.sin(theta)];
    });
  }

  // First and second derivative of the place by each feature alone.
  steps(x) {
    const along = (k, first, second) => {
      const step = { first: new Float64Array(this.e), second: new Float64Array(this.e) };
      step.first.set(first, this.columns[k]);
      step.second.set(second, this.columns[k]);
      return step;
    };
    return this.widths.map((width, k) => {
      if (width === 1) return along(k, [1], [0]);
      if (width === 2) {
        const theta = this.angle(x, k), c = Math.cos(theta), s = Math.sin(theta), r = this.periods[k] / (2 * Math.PI);
        return along(k, [-s, c], [-c / r, -s / r]);
      }
      const { c, s, C, S } = this.globe(x), r = 180 / Math.PI;
      return width === 3 ? along(k, [-C * s, C * c, 0], [-C * c / r, -C * s / r, 0])
        : along(this.longitude, [-S * c, -S * s, C], [-C * c / r, -C * s / r, -S / r]);
    });
  }

  original(e) {
    const turned = (k, y, x) => {
      const p = this.periods[k], value = p / (2 * Math.PI) * Math.atan2(y, x);
      return this.signed[k] ? value : value < -1e-12 * p ? value + p : Math.max(value, 0);
    };
    return this.widths.map((width, k) => {
      const [x, y, z] = e.slice(this.columns[width === 0 ? this.longitude : k]);
      return width === 1 ? x : width === 0 ? 180 / Math.PI * Math.atan2(z, Math.hypot(x, y)) : turned(k, y, x);
    });
  }
}

class Engine {
  constructor(stored, smoothness) {
    const take = (name) => stored.arrays[name] && { values: unpacked(stored.arrays[name]), shape: stored.arrays[name].shape };
    const numbers = (name) => take(name).values;
    const function_ = (name) => radial(name, stored.functions[name]);
    this.shift = Array.from(numbers("space/shift"));
    this.d = this.shift.length;
    this.chart = stored.arrays["chart/period"] && new Chart(...["period", "globe", "signed"].map((name) => numbers(`chart/${name}`)));
    this.own = this.shift.map((_, k) => ({ first: this.shift.map((_, l) => Number(k === l)), second: this.shift.map(() => 0) }));
    const rows = (values) => this.shift.map((_, k) => Array.from(values.subarray(k * this.d, (k + 1) * this.d)));
    this.A = rows(numbers("space/A"));
    this.inverse = rows(unpacked(stored.inverse));
    [this.unit] = numbers("space/unit");
    [this.w0] = numbers("stitch/background_weight");
    [this.handover] = numbers("stitch/handover");
    const frame = numbers(this.chart ? "chart/limits" : "frame"), extremes = numbers("extremes"), t = extremes.length / 2;
    const between = (low, high, free) => {
      const margin = 0.5 * high - 0.5 * low;
      return { lower: low - free * margin, upper: high + free * margin, margin };
    };
    this.box = this.shift.map((_, k) => between(frame[k], frame[this.d + k], 0));
    this.answers = Array.from({ length: t }, (_, k) => between(extremes[k], extremes[t + k], 1));
    this.order = Math.max(0, Math.min(2, smoothness));
    this.weight = function_(stored.weight);
    const functions = stored.kernels.map(function_), sets = [], reach = numbers("levels/reach"), usual = numbers("levels/usual");
    this.levels = Array.from(numbers("levels/regions"), (k, depth) => {
      sets[k] ??= new Regions(take, `regions${k}`, stored.kernels, functions, stored.exponents);
      const radii = sets[k].radii.map((r) => Math.min(r * reach[depth], 1e300));
      return { models: sets[k], centers: sets[k].centers, radii, reach: reach[depth], usual: usual[depth] };
    });
  }

  // The place of x.
  place(x) { return this.chart ? this.chart.place(x) : x; }

  // In the space of the regions, from a place.
  coordinates(x) {
    const u = new Float64Array(this.d);
    for (let k = 0; k < this.d; k++) for (let l = 0; l < this.d; l++) u[k] += (x[l] - this.shift[l]) * this.A[l][k];
    return u;
  }

  original(u) {
    const e = this.shift.map((shift, l) => shift + this.inverse.reduce((total, row, k) => total + u[k] * row[l], 0));
    return this.chart ? this.chart.original(e) : e;
  }

  // Regions of a level that contain u, with the jets of their weights.
  speaking(level, u, order) {
    const { d } = this, found = [];
    for (let j = 0; j < level.radii.length; j++) {
      const r = level.radii[j];
      let s = 0;
      for (let k = 0; k < d; k++) { const z = (u[k] - level.centers[j * d + k]) / r; s += z * z; }
      if (s >= 1) continue;
      const z = Float64Array.from({ length: d }, (_, k) => (u[k] - level.centers[j * d + k]) / r), w = zero(d);
      addRadial(w, level.models.share?.[j] ?? 1, this.weight(s), z, order);
      rescale(w, r);
      found.push({ region: j, w });
    }
    return found;
  }

  // w_0 u φ(W / τu) by the chain rule.
  background(level, W, order) {
    const d = this.d, x = W.f / (this.handover * level.usual), w = zero(d);
    if (x >= 1) return w;
    const [f, Df, D2f] = this.weight(x * x), slope = x * Df * this.w0 / this.handover;
    w.f = this.w0 * level.usual * f;
    if (order >= 1) for (let k = 0; k < d; k++) w.g[k] = slope * W.g[k];
    if (order >= 2) {
      const curvature = (Df + x * x * D2f) * this.w0 / (this.handover ** 2 * level.usual);
      for (let k = 0; k < d; k++) {
        for (let l = 0; l < d; l++) w.H[k * d + l] = slope * W.H[k * d + l] + curvature * W.g[k] * W.g[l];
      }
    }
    return w;
  }

  stitched(u, output, order, depth = 0, share = 1, contributions = null) {
    const level = this.levels[depth], found = this.speaking(level, u, order), W = zero(this.d), N = zero(this.d);
    for (const one of found) {
      one.f = level.models.jet(one.region, u, output, order);
      sum(W, one.w);
      sum(N, product(one.w, one.f));
    }
    const w = depth + 1 < this.levels.length ? this.background(level, W, order) : zero(this.d);
    const total = W.f + w.f;
    if (contributions) {
      for (const { region, w: own, f } of found) {
        const center = this.original(level.centers.subarray(region * this.d, (region + 1) * this.d));
        const about = { level: depth, region: Math.floor(region / level.models.together), share: share * own.f / total, value: f.f, center, radius: level.radii[region] / this.unit };
        contributions.push({ ...about, ...level.models.settings(region) });
      }
    }
    if (w.f > 0) {
      sum(N, product(w, this.stitched(u, output, order, depth + 1, share * w.f / total, contributions)));
      sum(W, w);
    }
    return quotient(N, W);
  }

  // Value, gradient and trace of the Hessian with respect to x: ∇ = A ∇_u by the place, through the bounds of places and answers.
  at(x, output, order = this.order, contributions = null) {
    const place = this.place(x), inner = this.box.map((bound, k) => saturated(place[k], bound)), { d, A } = this;
    const { f, g, H } = this.stitched(this.coordinates(inner.map(([value]) => value)), output, order, 0, 1, contributions);
    const [value, first, second] = saturated(f, this.answers[output]);
    const slopes = A.map((row) => row.reduce((total, a, k) => total + a * g[k], 0));
    let trace = 0;
    const gradient = (this.chart ? this.chart.steps(x) : this.own).map((step) => {
      const w = new Float64Array(d);
      let slope = 0, bend = 0;
      for (let i = 0; i < d; i++) {
        const [, Ds, D2s] = inner[i], v = step.first[i];
        if (v === 0 && step.second[i] === 0) continue;
        for (let k = 0; k < d; k++) w[k] += v * Ds * A[i][k];
        slope += v * Ds * slopes[i];
        bend += (v * v * D2s + step.second[i] * Ds) * slopes[i];
      }
      for (let k = 0; k < d; k++) for (let l = 0; l < d; l++) bend += w[k] * H[k * d + l] * w[l];
      trace += first * bend + second * slope ** 2;
      return first * slope;
    });
    return { value, gradient: order >= 1 ? gradient : null, laplacian: order >= 2 ? trace : null };
  }

  coverage(x) {
    const own = this.levels.filter(({ models }) => models === this.levels[0].models), [first] = own, u = this.coordinates(this.place(x));
    const beyond = Math.max(own[own.length - 1].reach, 2 * first.reach), { d } = this;
    let rho = Infinity;
    first.radii.forEach((r, j) => {
      let s = 0;
      for (let k = 0; k < d; k++) s += (u[k] - first.centers[j * d + k]) ** 2;
      rho = Math.min(rho, Math.sqrt(s) / r * first.reach);
    });
    const t = Math.min(Math.max((beyond - rho) / (beyond - first.reach), 0), 1);
    let left = 1, share = 0;
    for (const level of own) {
      const W = this.speaking(level, u, 0).reduce((total, { w }) => total + w.f, 0), w = this.background(level, { ...zero(d), f: W }, 0).f;
      share += (level === first ? 1 : 0.9995) * left * W / (W + w);
      left *= w / (W + w);
    }
    return t * t * (3 - 2 * t) * share;
  }

  async layer(points, layer, output) {
    const order = { value: 0, gradient: 1, laplacian: 2 }[layer];
    if (layer === "coverage") return points.map((x) => this.coverage(x));
    const pick = { value: (a) => a.value, gradient: (a) => Math.hypot(...a.gradient), laplacian: (a) => a.laplacian }[layer];
    return points.map((x) => pick(this.at(x, output, order)));
  }

  async point(x, output) {
    const contributions = [], answer = this.at(x, output, this.order, contributions);
    return { ...answer, coverage: this.coverage(x), contributions: contributions.sort((a, b) => b.share - a.share) };
  }
}

// The same questions, answered by the server that this page came from.
class Remote {
  async ask(path, question) {
    const response = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(question) });
    const answer = await response.json();
    if (!response.ok) throw new Error(answer.error);
    return answer;
  }

  layer(points, layer, output) { return this.ask("layer", { points, layer, output }); }

  point(point, output) { return this.ask("point", { point, output }); }
}
