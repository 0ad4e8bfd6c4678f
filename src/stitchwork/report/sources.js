"use strict";
// Who answers: the model in this page, in workers, so that the page stays alive; or the server that the page came from.
// A grid is {at, axes, low, high, size}: `size` points from `low` to `high` along each of `axes`, through the point `at`.

// Points that are asked for at once, at first and at most: pieces take about so many seconds, and between two a newer question comes first.
const PIECE = { local: [1000, 50_000], remote: [5000, 30_000], seconds: 0.2 };
const MOST_WORKERS = 4; // each has the whole model
const COPIED = 8e6; // letters of a model that more than one worker has

// Values on a grid by pieces of its columns, the last axis fastest; null when they are wanted no longer. `progress` is told the share that is there.
async function byPieces(grid, [few, most], lanes, wanted, progress, answer) {
  const [across, up = 1] = grid.size, found = new Float64Array(across * up);
  let next = 0, done = 0, columns = Math.max(1, Math.floor(few / up));
  const work = async (lane) => {
    while (next < across && wanted()) {
      const from = next, to = Math.min(from + columns, across), started = performance.now();
      next = to;
      found.set(await answer(from, to, lane), from * up);
      const fitting = (to - from) * 1000 * PIECE.seconds / Math.max(performance.now() - started, 1);
      columns = Math.max(1, Math.floor(Math.min(fitting, 4 * columns, most / up)));
      done += to - from;
      progress(done / across);
    }
  };
  await Promise.all(Array.from({ length: lanes }, (_, lane) => work(lane)));
  return wanted() ? found : null;
}

// A worker with the compiled library and a model, which answers one question after the other.
class Answerer {
  constructor(library, file) {
    const serve = `let evaluator; onmessage = async ({ data: { id, call, given } }) => {
      let answer, error;
      try {
        if (call === "make") evaluator = new Evaluator(await unzipped(given[0]), await unzipped(given[1])); else answer = evaluator[call](...given);
      } catch (caught) { error = call === "make" ? "this page needs a browser of 2023 or later (" + caught.message + ")" : caught.message; }
      postMessage({ id, answer, error });
    };`;
    const script = new Blob([document.getElementById("evaluator").textContent, serve], { type: "text/javascript" });
    this.worker = new Worker(URL.createObjectURL(script));
    this.waiting = new Map();
    this.count = 0;
    this.worker.onmessage = ({ data: { id, answer, error } }) => {
      const { resolve, reject } = this.waiting.get(id);
      this.waiting.delete(id);
      if (error) reject(new Error(error)); else resolve(answer);
    };
    this.made = this.ask("make", library, file);
  }

  ask(call, ...given) {
    const id = this.count++;
    this.worker.postMessage({ id, call, given });
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
  }
}

class Local {
  constructor({ file, space }) {
    const count = file.length > COPIED ? 1 : Math.max(1, Math.min(MOST_WORKERS, (navigator.hardwareConcurrency || 2) - 1));
    this.space = space;
    this.answerers = Array.from({ length: count }, () => new Answerer(document.getElementById("library").textContent, file));
    this.made = Promise.all(this.answerers.map(({ made }) => made));
    this.made.catch(() => {}); // whoever asks is told
  }

  async layer(grid, layer, output, wanted, progress = () => {}) {
    await this.made;
    return byPieces(grid, PIECE.local, this.answerers.length, wanted, progress, (from, to, lane) => this.answerers[lane].ask("layer", grid, layer, output, from, to));
  }

  async point(x, output) {
    await this.made;
    const answer = await this.answerers[0].ask("point", x, output);
    for (const one of answer.contributions) one.center = original(one.center, this.space);
    return answer;
  }
}

class Remote {
  async ask(path, question) {
    const response = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(question) });
    if (!response.ok) throw new Error((await response.json()).error);
    return response;
  }

  layer(grid, layer, output, wanted, progress = () => {}) {
    const { low, high, size } = grid, coordinate = (i) => low[0] + (high[0] - low[0]) * i / Math.max(size[0] - 1, 1);
    return byPieces(grid, PIECE.remote, 1, wanted, progress, async (from, to) => {
      const part = { low: [coordinate(from), ...low.slice(1)], high: [coordinate(to - 1), ...high.slice(1)], size: [to - from, ...size.slice(1)] };
      return new Float64Array(await (await this.ask("layer", { ...grid, ...part, layer, output })).arrayBuffer());
    });
  }

  async point(point, output) { return (await this.ask("point", { point, output })).json(); }
}
