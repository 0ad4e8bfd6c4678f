"use strict";
// Who answers: the model in this page, in a worker, so that the page stays alive; or the server that the page came from.
// A grid is {at, axes, low, high, size}: `size` points from `low` to `high` along each of `axes`, through the point `at`.

// Points that are asked for at once: between two pieces a newer question comes first.
const PIECE = { local: 20_000, remote: 30_000 };

// Values on a grid by pieces of its columns, the last axis fastest; null when they are wanted no longer. `progress` is told the share that is there.
async function byPieces(grid, most, wanted, progress, answer) {
  const [across, up = 1] = grid.size, found = new Float64Array(across * up), columns = Math.max(1, Math.floor(most / up));
  for (let from = 0; from < across; from += columns) {
    if (!wanted()) return null;
    found.set(await answer(from, Math.min(from + columns, across)), from * up);
    progress(Math.min(from + columns, across) / across);
  }
  return found;
}

class Local {
  constructor(stored) {
    const serve = `let evaluator; onmessage = async ({ data: { id, call, given } }) => {
      let answer, error;
      try {
        if (call === "make") evaluator = new Evaluator(await unzipped(given[0]), await unzipped(given[1])); else answer = evaluator[call](...given);
      } catch (caught) { error = caught.message; }
      postMessage({ id, answer, error });
    };`;
    const script = new Blob([document.getElementById("evaluator").textContent, serve], { type: "text/javascript" });
    this.worker = new Worker(URL.createObjectURL(script));
    this.space = stored.space;
    this.waiting = new Map();
    this.count = 0;
    this.worker.onmessage = ({ data: { id, answer, error } }) => {
      const { resolve, reject } = this.waiting.get(id);
      this.waiting.delete(id);
      if (error) reject(new Error(error)); else resolve(answer);
    };
    this.made = this.ask("make", document.getElementById("library").textContent, stored.file);
    this.made.catch(() => {}); // whoever asks is told
  }

  ask(call, ...given) {
    const id = this.count++;
    this.worker.postMessage({ id, call, given });
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
  }

  async layer(grid, layer, output, wanted, progress = () => {}) {
    await this.made;
    return byPieces(grid, PIECE.local, wanted, progress, (from, to) => this.ask("layer", grid, layer, output, from, to));
  }

  async point(x, output) {
    await this.made;
    const answer = await this.ask("point", x, output);
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
    return byPieces(grid, PIECE.remote, wanted, progress, async (from, to) => {
      const part = { low: [coordinate(from), ...low.slice(1)], high: [coordinate(to - 1), ...high.slice(1)], size: [to - from, ...size.slice(1)] };
      return new Float64Array(await (await this.ask("layer", { ...grid, ...part, layer, output })).arrayBuffer());
    });
  }

  async point(point, output) { return (await this.ask("point", { point, output })).json(); }
}
