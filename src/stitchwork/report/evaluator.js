"use strict";
// The compiled library as WebAssembly, over the bytes of a model's file: `stitchwork.h`, with arrays copied in and out of its memory.
// Everything at once: questions are points and layers, not pointers.

const MOST_NUMBERS = 1 << 22; // numbers that one call of the library may write
const MOST_PARTS = 512; // regions that are listed at a point

function decoded(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

async function unzipped(text) {
  const bytes = decoded(text);
  return new Uint8Array(await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer());
}

// Arrays of a safetensors file by their names, as views of its bytes.
function arraysOf(bytes) {
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + length)));
  const made = { F64: Float64Array, I64: BigInt64Array };
  const view = ({ dtype, shape, data_offsets: [from, to] }) => ({ shape, values: new made[dtype](bytes.buffer, bytes.byteOffset + 8 + length + from, (to - from) / 8) });
  const take = (name) => header[name] && view(header[name]);
  return { take, about: header.__metadata__ };
}

class Evaluator {
  // Of a library and a model, both as bytes.
  constructor(library, file) {
    const module = new WebAssembly.Module(library), none = () => 52; // "not supported": there are no files and no clock to ask
    const imports = {};
    for (const { module: from, name } of WebAssembly.Module.imports(module)) (imports[from] ??= {})[name] = none;
    this.library = new WebAssembly.Instance(module, imports).exports;
    this.library._initialize();
    const place = this.room(file.length), handle = this.room(8);
    new Uint8Array(this.library.memory.buffer).set(file, place);
    this.check(this.library.st_open_memory(place, file.length, handle));
    this.handle = this.numbers(handle, 1, Int32Array)[0];
    this.d = this.library.st_features(this.handle);
    this.t = this.library.st_outputs(this.handle);
    this.order = Math.max(0, Math.min(2, this.library.st_smoothness(this.handle)));
    Object.assign(this, arraysOf(file));
    this.kernels = this.about.kernels.split(",");
  }

  check(status) { if (status) throw new Error(this.text(this.library.st_message(status))); }

  text(place) {
    const bytes = new Uint8Array(this.library.memory.buffer, place);
    return new TextDecoder().decode(bytes.slice(0, bytes.indexOf(0)));
  }

  room(bytes) {
    const place = this.library.malloc(bytes);
    if (!place) throw new Error("there is not enough memory");
    return place;
  }

  // A view of the library's memory; one that was made before the memory grew is no longer valid.
  numbers(place, count, kind = Float64Array) { return new kind(this.library.memory.buffer, place, count); }

  // What a call writes: arrays of these lengths, copied.
  answer(X, lengths, call) {
    const places = [X.length, ...lengths].map((length) => this.room(8 * Math.max(length, 1)));
    this.numbers(places[0], X.length).set(X);
    const status = call(...places), found = lengths.map((length, k) => this.numbers(places[k + 1], length).slice());
    places.forEach((place) => this.library.free(place));
    this.check(status);
    return found;
  }

  // Values (n, t), gradients (n, t, d) and Hessians (n, t, d, d) up to some order at the rows of X.
  jet(X, order) {
    const n = X.length / this.d, lengths = [n * this.t, n * this.t * this.d, n * this.t * this.d ** 2].slice(0, order + 1);
    return this.answer(X, lengths, (x, f, g = 0, H = 0) => this.library.st_batch(this.handle, n, x, f, g, H));
  }

  coverage(X) {
    const n = X.length / this.d;
    return this.answer(X, [n], (x, c) => this.library.st_coverages(this.handle, n, x, c))[0];
  }

  // One layer of one output at the rows of X.
  layerAt(X, layer, output) {
    const { d, t } = this, n = X.length / d;
    if (layer === "coverage") return this.coverage(X);
    const order = { value: 0, gradient: 1, laplacian: 2 }[layer], found = this.jet(X, order)[order], one = d ** order;
    return Float64Array.from({ length: n }, (_, i) => {
      const part = found.subarray((i * t + output) * one, (i * t + output + 1) * one);
      if (order === 0) return part[0];
      return order === 1 ? Math.hypot(...part) : part.reduce((trace, value, k) => trace + (k % (d + 1) ? 0 : value), 0);
    });
  }

  // A layer on the columns `from` to `to` of a grid (see sources.js), the last axis fastest.
  layer(grid, layer, output, from = 0, to = grid.size[0]) {
    const { d, t } = this, [, up = 1] = grid.size, n = (to - from) * up, found = new Float64Array(n);
    const each = Math.max(1, Math.floor(MOST_NUMBERS / (d + t * d ** ({ gradient: 1, laplacian: 2 }[layer] ?? 0))));
    for (let first = 0; first < n; first += each) {
      const count = Math.min(each, n - first), X = new Float64Array(count * d);
      for (let i = 0; i < count; i++) {
        X.set(grid.at, i * d);
        grid.axes.forEach((k, a) => {
          const step = a ? (first + i) % up : from + Math.floor((first + i) / up);
          X[i * d + k] = grid.low[a] + (grid.high[a] - grid.low[a]) * step / Math.max(grid.size[a] - 1, 1);
        });
      }
      found.set(this.layerAt(X, layer, output), first);
    }
    return found;
  }

  point(x, output) {
    const { d, order } = this, [f, g, H] = this.jet(Float64Array.from(x), order);
    const laplacian = H && H.subarray(output * d * d, (output + 1) * d * d).reduce((trace, value, k) => trace + (k % (d + 1) ? 0 : value), 0);
    return {
      value: f[output], gradient: g ? Array.from(g.subarray(output * d, (output + 1) * d)) : null, laplacian: laplacian ?? null,
      coverage: this.coverage(Float64Array.from(x))[0], contributions: this.contributions(x, output),
    };
  }

  // Which regions answer at x, the largest share in an output first, with where they are and what was chosen for them.
  contributions(x, output) {
    const { t } = this, most = MOST_PARTS, half = (n) => Math.ceil(n / 2); // three 32-bit numbers a part, in room for 64-bit ones
    const found = this.answer(Float64Array.from(x), [half(3 * most), most * t, most * t, 1],
      (place, part, share, value, count) => this.library.st_contributions(this.handle, place, most, part, share, value, count));
    const [part, count] = [found[0], found[3]].map((numbers) => new Int32Array(numbers.buffer));
    return Array.from({ length: Math.min(count[0], most) }, (_, k) => ({
      ...this.region(...part.subarray(3 * k, 3 * k + 3)), share: found[1][k * t + output], value: found[2][k * t + output],
    })).filter((one) => one.share > 0).sort((a, b) => b.share - a.share);
  }

  // Where a region is, in the space of the regions, and what was chosen for a model of it.
  region(level, region, model) {
    const set = `regions${this.take("levels/regions").values[level]}`, own = (name) => this.take(`${set}/${name}`).values;
    const j = region * Number(this.take(`${set}/together`)?.values[0] ?? 1) + model, e = this.take("space/shift").values.length;
    return {
      level, region, center: Array.from(own("centers").subarray(j * e, (j + 1) * e)), radius: own("radii")[j] * this.take("levels/reach").values[level] / this.take("space/unit").values[0],
      kernel: this.kernels[Number(own("model0/kernel")[j])], degree: Number(own("model0/degree")[j]), bandwidth: own("model0/bandwidth")[j], ridge: own("model0/ridge")[j],
    };
  }
}
