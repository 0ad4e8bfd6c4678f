"use strict";
// Who answers: the model in this page, in a worker, so that the page stays alive; or the server that the page came from.
// A grid is {at, axes, low, high, size}: `size` points from `low` to `high` along each of `axes`, through the point `at`.

const PIECE = 2000; // points that the worker is asked for at once: between two pieces a newer question comes first

class Local {
  constructor(model, smoothness) {
    const serve = "let engine; onmessage = ({ data: { id, call, given } }) => { let answer, error; try { if (call === 'make') engine = new Engine(...given); else answer = engine[call](...given); } catch (caught) { error = caught.message; } postMessage({ id, answer, error }); };";
    const script = new Blob([document.getElementById("engine").textContent, serve], { type: "text/javascript" });
    this.worker = new Worker(URL.createObjectURL(script));
    this.waiting = new Map();
    this.count = 0;
    this.worker.onmessage = ({ data: { id, answer, error } }) => {
      const { resolve, reject } = this.waiting.get(id);
      this.waiting.delete(id);
      if (error) reject(new Error(error)); else resolve(answer);
    };
    this.ask("make", model, smoothness);
  }

  ask(call, ...given) {
    const id = this.count++;
    this.worker.postMessage({ id, call, given });
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
  }

  // Values on a grid, the last axis fastest; null when they are wanted no longer.
  async layer(grid, layer, output, wanted) {
    const [across, up = 1] = grid.size, found = new Float64Array(across * up), columns = Math.max(1, Math.floor(PIECE / up));
    for (let from = 0; from < across; from += columns) {
      if (!wanted()) return null;
      found.set(await this.ask("layer", grid, layer, output, from, Math.min(from + columns, across)), from * up);
    }
    return found;
  }

  point(x, output) { return this.ask("point", x, output); }
}

class Remote {
  async ask(path, question) {
    const response = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(question) });
    if (!response.ok) throw new Error((await response.json()).error);
    return response;
  }

  async layer(grid, layer, output, wanted) {
    const found = new Float64Array(await (await this.ask("layer", { ...grid, layer, output })).arrayBuffer());
    return wanted() ? found : null;
  }

  async point(point, output) { return (await this.ask("point", { point, output })).json(); }
}
