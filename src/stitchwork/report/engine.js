"use strict";
// The stitched function in JavaScript: the formulas of `local/radial`, `local/blocks`, `model/bounds` and `model/stitch`, one output at
// a time, on the arrays that `model/description` names.

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
    const share = take(`${prefix}/share`);
    this.share = share?.values;
    this.shares = share?.shape[1] ?? 1; // one for each output, or for all
    this.together = take(`${prefix}/together`)?.values[0] ?? 1;
    this.extremes = take(`${prefix}/extremes`)?.values;
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

  // What region j says at u: its model, within the bounds that the responses of its points set.
  jet(j, u, output, order) {
    const jet = this.free(j, u, output, order);
    if (!this.extremes) return jet;
    const { t } = this, low = this.extremes[j * t + output], high = this.extremes[this.extremes.length / 2 + j * t + output];
    return held(jet, between(low, high, 1, 0.5e-6 * Math.max(Math.abs(low), Math.abs(high))));
  }

  // f_j(u) = Σ α_i K(|z - x_i|) + Σ λ_k p_k(z) with derivatives, z the region's own coordinates.
  free(j, u, output, order) {
    const { d, h, t, s } = this, scale = this.scale[j], jet = zero(d, order), center = this.origin.subarray(j * d, (j + 1) * d);
    const turn = this.turns?.subarray(this.turn[j] * d * d, (this.turn[j] + 1) * d * d);
    const z = this.offset(u, center, scale, turn);
    for (let e = 0; e < Math.min(s, this.exponents.length); e++) {
      const lam = this.lam[(j * s + e) * t + output];
      if (lam !== 0) addMonomial(jet, lam, this.exponents[e], z, order);
    }
    rescale(jet, scale);
    if (this.kernels[this.kernel[j]] === "none") return turnedBack(jet, turn, d, order);
    const part = zero(d, order), kernel = this.functions[this.kernel[j]], unit = scale * this.sigma[j], x = new Float64Array(d);
    const X = turn ? this.turned(this.turn[j], turn) : this.X, q = turn ? this.offset(u, new Float64Array(d), 1, turn) : u;
    for (let i = 0; i < h; i++) {
      const member = this.members[j * h + i] * d;
      let s = 0;
      for (let k = 0; k < d; k++) { x[k] = (q[k] - X[member + k]) / unit; s += x[k] * x[k]; }
      addRadial(part, this.alpha[(j * h + i) * t + output], kernel(s), x, order);
    }
    rescale(part, unit);
    return turnedBack(sum(jet, part), turn, d, order);
  }

  // All points times a metric of some regions' own, made once.
  turned(number, turn) { return (this.all ??= [])[number] ??= multiplied(this.X, turn, this.d); }
}

// The rows of X times a matrix.
function multiplied(X, turn, d) {
  const all = new Float64Array(X.length);
  for (let i = 0; i < X.length; i += d) for (let k = 0; k < d; k++) for (let l = 0; l < d; l++) all[i + l] += X[i + k] * turn[k * d + l];
  return all;
}

// Derivatives with respect to x from those with respect to x turn: ∇ = T ∇', ∇² = T ∇'² Tᵀ.
function turnedBack(jet, turn, d, order) {
  if (!turn || order === 0) return jet;
  const back = zero(d);
  back.f = jet.f;
  for (let a = 0; a < d; a++) for (let k = 0; k < d; k++) {
    back.g[a] += turn[a * d + k] * jet.g[k];
    if (order >= 2) for (let b = 0; b < d; b++) for (let l = 0; l < d; l++) back.H[a * d + b] += turn[a * d + k] * jet.H[k * d + l] * turn[b * d + l];
  }
  return back;
}

// A jet of zeros, as long as its order needs.
const zero = (d, order = 2) => ({ f: 0, g: new Float64Array(order >= 1 ? d : 0), H: new Float64Array(order >= 2 ? d * d : 0) });

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

function monomial(exponents, z) {
  let product_ = 1;
  for (let k = 0; k < z.length; k++) if (exponents[k]) product_ *= z[k] ** exponents[k];
  return product_;
}

function addMonomial(jet, factor, exponents, z, order) {
  const d = z.length;
  jet.f += factor * monomial(exponents, z);
  if (order < 1) return;
  const lowered = exponents.slice(), value = () => monomial(lowered, z);
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
  for (let k = 0; k < b.g.length; k++) a.g[k] += b.g[k];
  for (let k = 0; k < b.H.length; k++) a.H[k] += b.H[k];
  return a;
}

// w f by the product rule.
function product(w, f) {
  const d = w.g.length, second = w.H.length > 0, p = zero(d, second ? 2 : 1);
  p.f = w.f * f.f;
  for (let k = 0; k < d; k++) {
    p.g[k] = w.f * f.g[k] + f.f * w.g[k];
    if (second) for (let l = 0; l < d; l++) {
      p.H[k * d + l] = w.f * f.H[k * d + l] + f.f * w.H[k * d + l] + f.g[k] * w.g[l] + w.g[k] * f.g[l];
    }
  }
  return p;
}

// N / W, from W F = N.
function quotient(N, W) {
  const d = N.g.length, F = zero(d, N.H.length ? 2 : 1);
  F.f = N.f / W.f;
  for (let k = 0; k < d; k++) F.g[k] = (N.g[k] - F.f * W.g[k]) / W.f;
  if (N.H.length) for (let k = 0; k < d; k++) {
    for (let l = 0; l < d; l++) {
      F.H[k * d + l] = (N.H[k * d + l] - F.f * W.H[k * d + l] - F.g[k] * W.g[l] - W.g[k] * F.g[l]) / W.f;
    }
  }
  return F;
}

// Which balls may hold a point: lists by cell of a grid over the first one or two coordinates.
class Cells {
  constructor(centers, radii, d) {
    const m = radii.length, side = Math.max(1, Math.min(256, Math.floor(Math.sqrt(m)))), flat = Math.min(d, 2);
    Object.assign(this, { low: [0, 0], step: [1, 1], count: [1, 1] });
    for (let k = 0; k < flat; k++) {
      let low = Infinity, high = -Infinity;
      for (let j = 0; j < m; j++) {
        low = Math.min(low, centers[j * d + k] - radii[j]);
        high = Math.max(high, centers[j * d + k] + radii[j]);
      }
      if (!(high - low < 1e200 && high > low)) continue; // an infinite ball is everywhere
      [this.low[k], this.step[k], this.count[k]] = [low, (high - low) / side, side];
    }
    this.lists = Array.from({ length: this.count[0] * this.count[1] }, () => []);
    for (let j = 0; j < m; j++) {
      const ends = [0, 1].map((k) => (k < flat ? [-1, 1].map((sign) => this.cell(centers[j * d + k] + sign * radii[j], k)) : [0, 0]));
      for (let a = ends[0][0]; a <= ends[0][1]; a++) for (let b = ends[1][0]; b <= ends[1][1]; b++) this.lists[a * this.count[1] + b].push(j);
    }
  }

  cell(x, k) { return Math.max(0, Math.min(this.count[k] - 1, Math.floor((x - this.low[k]) / this.step[k]))); }

  at(u) { return this.lists[this.cell(u[0], 0) * this.count[1] + (u.length > 1 ? this.cell(u[1], 1) : 0)]; }
}

// A number that is free between bounds and saturates at a margin beyond, with its derivatives: ψ(t) = t / (1 + t⁸)^⅛.
function saturated(x, { lower, upper, margin }) {
  const sign = x > upper ? 1 : x < lower ? -1 : 0, edge = sign > 0 ? upper : lower;
  if (!sign) return [x, margin > 0 ? 1 : 0, 0];  // without a margin it is constant
  const t = margin > 0 ? Math.min(sign * (x - edge) / margin, 100) : 100, p = 1 + t ** 8;
  const value = edge + sign * margin * t / p ** 0.125;
  return t < 100 ? [value, p ** -1.125, -9 * sign * t ** 7 * p ** -2.125 / margin] : [value, 0, 0];
}

// Bounds of what has these extremes: so many margins beyond them are free, and the margin is at least the given one.
function between(low, high, free, least = 0) {
  const margin = Math.max(0.5 * high - 0.5 * low, least);
  return { lower: low - free * margin, upper: high + free * margin, margin };
}

// s(f) from the jet of f: ∇s(f) = s' ∇f, ∇²s(f) = s' ∇²f + s" ∇f ∇fᵀ.
function held(jet, bound) {
  if (!(jet.f < bound.lower || jet.f > bound.upper)) return jet;
  const [f, first, second] = saturated(jet.f, bound), { g, H } = jet, d = g.length;
  return { f, g: g.map((slope) => first * slope), H: H.map((bend, k) => first * bend + second * g[Math.floor(k / d)] * g[k % d]) };
}

// Features with a period and the globe as places on circles and on a sphere: `model/chart`. Without a chart places are the features.
class Chart {
  constructor(periods, globe, start) {
    [this.longitude, this.latitude] = globe;
    const widths = Array.from(periods, (p, k) => (k === this.latitude ? 0 : k === this.longitude ? 3 : p > 0 ? 2 : 1));
    this.columns = widths.map((_, k) => widths.slice(0, k).reduce((total, width) => total + width, 0));
    Object.assign(this, { periods, start, widths, e: widths.reduce((total, width) => total + width, 0) });
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
      if (this.start[k] === -0.5 * p) return value;
      const beyond = value - this.start[k];
      return this.start[k] + Math.max(beyond - p * Math.floor(beyond / p + 1e-12), 0);
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
    this.chart = stored.arrays["chart/period"] && new Chart(...["period", "globe", "start"].map((name) => numbers(`chart/${name}`)));
    this.own = this.shift.map((_, k) => ({ first: this.shift.map((_, l) => Number(k === l)), second: this.shift.map(() => 0) }));
    const rows = (values) => this.shift.map((_, k) => Array.from(values.subarray(k * this.d, (k + 1) * this.d)));
    this.A = rows(numbers("space/A"));
    this.inverse = rows(unpacked(stored.inverse));
    [this.unit] = numbers("space/unit");
    [this.w0] = numbers("stitch/background_weight");
    [this.handover] = numbers("stitch/handover");
    const frame = numbers(this.chart ? "chart/limits" : "frame"), extremes = numbers("extremes"), t = extremes.length / 2;
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

  // Regions of a level that contain u and have a share in an output, with the jets of their weights, whose sum is that of any output.
  speaking(level, u, order, output = 0) {
    const { d } = this, { share, shares } = level.models, found = [];
    level.cells ??= new Cells(level.centers, level.radii, d);
    for (const j of level.cells.at(u)) {
      const r = level.radii[j], part = share?.[j * shares + (shares > 1 ? output : 0)] ?? 1;
      if (part === 0) continue;
      let s = 0;
      for (let k = 0; k < d; k++) { const z = (u[k] - level.centers[j * d + k]) / r; s += z * z; }
      if (s >= 1) continue;
      const z = new Float64Array(d), w = zero(d, order);
      for (let k = 0; k < d; k++) z[k] = (u[k] - level.centers[j * d + k]) / r;
      addRadial(w, part, this.weight(s), z, order);
      rescale(w, r);
      found.push({ region: j, w });
    }
    return found;
  }

  // w_0 u φ(W / τu) by the chain rule.
  background(level, W, order) {
    const d = this.d, x = W.f / (this.handover * level.usual), w = zero(d, order);
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
    const level = this.levels[depth], found = this.speaking(level, u, order, output), W = zero(this.d, order), N = zero(this.d, order);
    for (const one of found) {
      one.f = level.models.jet(one.region, u, output, order);
      sum(W, one.w);
      sum(N, product(one.w, one.f));
    }
    const w = depth + 1 < this.levels.length ? this.background(level, W, order) : zero(this.d, order);
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
    this.around ??= new Cells(first.centers, first.radii.map((r) => Math.min(r * beyond / first.reach, 1e300)), d);
    for (const j of this.around.at(u)) {
      let s = 0;
      for (let k = 0; k < d; k++) s += (u[k] - first.centers[j * d + k]) ** 2;
      rho = Math.min(rho, Math.sqrt(s) / first.radii[j] * first.reach);
    }
    const t = Math.min(Math.max((beyond - rho) / (beyond - first.reach), 0), 1);
    let left = 1, share = 0;
    for (const level of own) {
      const W = this.speaking(level, u, 0).reduce((total, { w }) => total + w.f, 0), w = this.background(level, { ...zero(d), f: W }, 0).f;
      share += (level === first ? 1 : 0.9995) * left * W / (W + w);
      left *= w / (W + w);
    }
    return t * t * (3 - 2 * t) * share;
  }

  // A layer on the columns `from` to `to` of a grid (see sources.js), the last axis fastest.
  layer(grid, layer, output, from = 0, to = grid.size[0]) {
    const { at, axes, low, high, size } = grid, [, up = 1] = size, found = new Float64Array((to - from) * up), x = at.slice();
    const coordinate = (k, i) => low[k] + (high[k] - low[k]) * i / Math.max(size[k] - 1, 1);
    const order = { value: 0, gradient: 1, laplacian: 2 }[layer];
    const pick = { value: (a) => a.value, gradient: (a) => Math.hypot(...a.gradient), laplacian: (a) => a.laplacian }[layer];
    for (let i = from, n = 0; i < to; i++) {
      x[axes[0]] = coordinate(0, i);
      for (let j = 0; j < up; j++) {
        if (axes.length > 1) x[axes[1]] = coordinate(1, j);
        found[n++] = layer === "coverage" ? this.coverage(x) : pick(this.at(x, output, order));
      }
    }
    return found;
  }

  point(x, output) {
    const contributions = [], answer = this.at(x, output, this.order, contributions);
    return { ...answer, coverage: this.coverage(x), contributions: contributions.sort((a, b) => b.share - a.share) };
  }
}
