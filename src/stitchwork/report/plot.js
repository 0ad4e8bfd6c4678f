"use strict";
// A plot on a canvas: an image, lines, dots or bars between axes, with a colour bar as tall as the picture. It says what it shows under the
// mouse, and calls who listens when it is clicked or zoomed by dragging.

const FONT = "12px system-ui, sans-serif", LINE = 16, BAR = 13; // pixels
const TALLEST = 0.8; // of the window: how high a map with an aspect may be

function niceStep(extent, count) {
  const rough = extent / Math.max(count, 1), unit = 10 ** Math.floor(Math.log10(rough)), part = rough / unit;
  return unit * (part > 7 ? 10 : part > 3.5 ? 5 : part > 1.5 ? 2 : 1);
}

// Round numbers between two: [{at, text}].
function ticksBetween(low, high, count) {
  if (!(high > low)) return [{ at: low, text: brief(low) }];
  const step = niceStep(high - low, count), digits = Math.max(0, Math.min(12, -Math.floor(Math.log10(step) + 1e-9))), large = Math.max(Math.abs(low), Math.abs(high)) >= 1e6 || step < 1e-4;
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) {
    const at = k * step, needed = Math.max(0, Math.floor(Math.log10(Math.max(Math.abs(at), step)) + 1e-9) - Math.floor(Math.log10(step) + 1e-9));
    found.push({ at, text: at === 0 ? "0" : large ? at.toExponential(Math.min(needed, 6)).replace("e+", "e") : at.toFixed(digits) });
  }
  return found;
}

function logTicks(low, high) {
  const [a, b] = [Math.log10(low), Math.log10(high)], multiples = b - a > 2.5 ? [1] : b - a > 1.2 ? [1, 3] : [1, 2, 5], found = [];
  for (let e = Math.floor(a); e <= b; e += Math.max(1, Math.ceil((b - a) / 8))) for (const f of multiples) found.push(f * 10 ** e);
  return found.filter((at) => at >= low * (1 - 1e-9) && at <= high * (1 + 1e-9)).map((at) => ({ at, text: brief(at) }));
}

// Days since 1970 as dates: whole years, months, days or hours.
function dateTicks(low, high, count) {
  const days = (high - low) / Math.max(count, 1), found = [];
  if (days < 20) {
    const step = [1 / 24, 1 / 8, 1 / 4, 1 / 2, 1, 2, 5, 10, 20].find((one) => one >= days) ?? 20;
    for (let k = Math.ceil(low / step); k * step <= high; k++) found.push({ at: k * step, text: step < 1 ? dateText(k * step, true).slice(5) : dateText(k * step) });
    return found;
  }
  const months = days < 250 ? [1, 3, 6].find((one) => one * 30.5 >= days) ?? 6 : 12 * niceStep((high - low) / 365.25, count), first = new Date(low * DAY);
  for (let month = Math.ceil((12 * first.getUTCFullYear() + first.getUTCMonth()) / months) * months; ; month += months) {
    const at = Date.UTC(Math.floor(month / 12), month % 12, 1) / DAY;
    if (!(at <= high)) return found;
    if (at >= low) found.push({ at, text: dateText(at).slice(0, months % 12 ? 7 : 4) });
  }
}

class Plot {
  constructor(div) {
    Object.assign(this, { div, canvas: element("canvas"), tip: element("div", { className: "hovertext", hidden: true }), drag: null });
    div.replaceChildren(this.canvas, this.tip);
    div.plot = this;
    this.listen();
  }

  show(spec) {
    this.spec = spec;
    this.draw();
  }

  // The room that axes, title and colour bar leave.
  layout() {
    const { spec, div } = this, pen = this.canvas.getContext("2d"), width = div.clientWidth;
    pen.font = FONT;
    const wide = (texts) => Math.max(0, ...texts.map((text) => pen.measureText(text).width));
    let height = div.clientHeight, box;
    const top = (spec.title ? LINE + 10 : 8) + (this.noteBelow() ? LINE : 0), bottom = 2 * LINE + 10;
    const right = spec.scale ? BAR + 14 + wide(spec.scale.ticks.map(({ text }) => text)) + (spec.scaleTitle ? LINE : 0) : 12;
    for (let pass = 0; pass < 2; pass++) {
      const y = this.ticks("y", (box?.height ?? height) / 45), left = wide(y.map(({ text }) => text)) + LINE + 14;
      box = { left, top, width: Math.max(40, width - left - right), height: Math.max(40, height - top - bottom) };
      if (!spec.aspect) continue;
      const most = Math.max(240, Math.min(TALLEST * window.innerHeight, 720)), wanted = box.width * spec.aspect;
      box.height = Math.min(wanted, most);
      if (wanted > most) box.width = most / spec.aspect;
      height = box.height + top + bottom;
    }
    return { ...box, full: width, whole: height };
  }

  // Whether the note on a picture has no room beside its title.
  noteBelow() {
    const { title, note } = this.spec, pen = this.canvas.getContext("2d");
    pen.font = `600 ${FONT}`;
    const below = Boolean(note) && pen.measureText(title).width + pen.measureText(note).width + 24 > this.div.clientWidth;
    pen.font = FONT;
    return below;
  }

  ticks(axis, count) {
    const { range: [low, high], date, log } = this.spec[axis];
    return log ? logTicks(low, high) : (date ? dateTicks : ticksBetween)(low, high, Math.max(2, count));
  }

  // From numbers to pixels, and back.
  place(axis, value) {
    const { range: [low, high], log } = this.spec[axis], { left, top, width, height } = this.box, turn = log ? (v) => Math.log10(Math.max(v, 1e-300)) : (v) => v;
    const part = (turn(value) - turn(low)) / (turn(high) - turn(low));
    return axis === "x" ? left + part * width : top + (1 - part) * height;
  }

  at(axis, pixel) {
    const { range: [low, high], log } = this.spec[axis], { left, top, width, height } = this.box;
    const part = axis === "x" ? (pixel - left) / width : 1 - (pixel - top) / height;
    return log ? 10 ** (Math.log10(low) + part * Math.log10(high / low)) : low + part * (high - low);
  }

  draw() {
    const { canvas, spec } = this, ratio = window.devicePixelRatio || 1;
    if (!spec || !this.div.clientWidth) return;
    if (!spec.aspect) this.div.style.height = "";
    this.box = this.layout();
    if (spec.aspect) this.div.style.height = `${this.box.whole}px`;
    Object.assign(canvas, { width: Math.round(this.box.full * ratio), height: Math.round(this.box.whole * ratio) });
    Object.assign(canvas.style, { width: `${this.box.full}px`, height: `${this.box.whole}px` });
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = FONT;
    this.drawAxes(pen);
    pen.save();
    pen.beginPath();
    pen.rect(this.box.left, this.box.top, this.box.width, this.box.height);
    pen.clip();
    for (const layer of [spec.image, spec.veil]) if (layer) this.drawImage(pen, layer);
    for (const mark of spec.marks ?? []) this.drawMark(pen, mark);
    pen.restore();
    if (spec.scale) this.drawScale(pen);
    this.drawLegend(pen);
  }

  drawAxes(pen) {
    const { spec, box } = this, { text, soft, grid } = look(), { left, top, width, height } = box, below = top + height;
    pen.strokeStyle = grid;
    pen.fillStyle = soft;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    for (const { at, text: label } of this.ticks("y", height / 45)) {
      const y = Math.round(this.place("y", at)) + 0.5;
      line(pen, left - 4, y, spec.image ? left : left + width, y);
      pen.fillText(label, left - 7, y);
    }
    pen.textAlign = "center";
    let free = -Infinity;
    for (const { at, text: label } of this.ticks("x", Math.max(3, width / 80))) {
      const x = Math.round(this.place("x", at)) + 0.5, half = pen.measureText(label).width / 2, middle = Math.min(Math.max(x, half + 2), box.full - half - 2);
      line(pen, x, below + 4, x, spec.image ? below : top);
      if (middle - half < free + 6) continue;
      pen.fillText(label, middle, below + LINE - 2);
      free = middle + half;
    }
    pen.fillStyle = text;
    if (spec.x.title) pen.fillText(cut(pen, spec.x.title, box.full - 10), Math.min(left + width / 2, box.full / 2 + left / 2), below + 2 * LINE + 2);
    if (spec.y.title) {
      pen.save();
      pen.translate(LINE / 2 + 1, top + height / 2);
      pen.rotate(-Math.PI / 2);
      pen.fillText(cut(pen, spec.y.title, height + 30), 0, 0);
      pen.restore();
    }
    pen.textAlign = "left";
    if (!spec.title) return;
    pen.font = `600 ${FONT}`;
    pen.fillText(cut(pen, spec.title, box.full - 8), 4, 12);
    const beside = 4 + pen.measureText(spec.title).width + 10;
    pen.font = FONT;
    pen.fillStyle = soft;
    if (spec.note) pen.fillText(cut(pen, spec.note, box.full - 8), this.noteBelow() ? 4 : beside, this.noteBelow() ? 12 + LINE : 12);
  }

  // Grid points are the middles of pixels.
  drawImage(pen, { canvas, grid: { low, high, size } }) {
    const half = size.map((n, k) => 0.5 * (high[k] - low[k]) / Math.max(n - 1, 1));
    const [x0, x1] = [low[0] - half[0], high[0] + half[0]].map((v) => this.place("x", v)), [y0, y1] = [high[1] + half[1], low[1] - half[1]].map((v) => this.place("y", v));
    pen.imageSmoothingEnabled = true;
    pen.imageSmoothingQuality = "high";
    pen.drawImage(canvas, x0, y0, x1 - x0, y1 - y0);
  }

  drawMark(pen, mark) {
    const X = (v) => this.place("x", v), Y = (v) => this.place("y", v), { top, height } = this.box;
    Object.assign(pen, { strokeStyle: mark.color, fillStyle: mark.color, lineWidth: mark.width ?? 1.5, lineJoin: "round" });
    pen.setLineDash(mark.dash ?? []);
    if (mark.kind === "line") trace(pen, mark.x.map(X), mark.y.map(Y));
    if (mark.kind === "area") {
      trace(pen, [...mark.x, ...mark.x.slice().reverse()].map(X), [...mark.upper, ...mark.lower.slice().reverse()].map(Y), "fill");
    }
    if (mark.kind === "span") pen.fillRect(X(mark.from), top, X(mark.to) - X(mark.from), height);
    if (mark.kind === "bars") mark.heights.forEach((value, k) => pen.fillRect(X(mark.edges[k]), Y(value), Math.max(1, X(mark.edges[k + 1]) - X(mark.edges[k]) - 1), Y(0) - Y(value)));
    if (mark.kind === "dots") {
      for (let i = 0; i < mark.x.length; i++) {
        pen.fillStyle = mark.colors?.[i] ?? mark.color;
        pen.beginPath();
        pen.arc(X(mark.x[i]), Y(mark.y[i]), mark.size / 2, 0, 2 * Math.PI);
        pen.fill();
        if (mark.bars) trace(pen, [X(mark.x[i]), X(mark.x[i])], [Y(mark.y[i] - mark.bars[i]), Y(mark.y[i] + mark.bars[i])]);
        if (mark.rims) Object.assign(pen, { lineWidth: 0.6, strokeStyle: mark.rims[i] }).stroke();
      }
    }
    if (mark.kind === "cross") {
      const [x, y, r] = [X(mark.x), Y(mark.y), 6];
      for (const [color, width] of [["#fff", 5], [mark.color, 3]]) {
        Object.assign(pen, { strokeStyle: color, lineWidth: width });
        line(pen, x - r, y - r, x + r, y + r);
        line(pen, x - r, y + r, x + r, y - r);
      }
    }
    pen.setLineDash([]);
  }

  drawScale(pen) {
    const { left, top, width, height } = this.box, { ticks, table } = this.spec.scale, x = left + width + 8;
    for (let i = 0; i < height; i++) {
      pen.fillStyle = colorOf(table, 1 - i / Math.max(height - 1, 1));
      pen.fillRect(x, top + i, BAR, 1.5);
    }
    pen.fillStyle = look().soft;
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    for (const { at, text } of ticks) pen.fillText(text, x + BAR + 5, top + (1 - at) * height);
    if (!this.spec.scaleTitle) return;
    pen.save();
    pen.translate(this.box.full - LINE / 2, top + height / 2);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "center";
    pen.fillText(cut(pen, this.spec.scaleTitle, height), 0, 0);
    pen.restore();
  }

  drawLegend(pen) {
    const named = (this.spec.marks ?? []).filter((mark) => mark.name);
    if (named.length < 1) return;
    pen.textAlign = "left";
    pen.textBaseline = "middle";
    named.forEach((mark, k) => {
      const x = this.box.left + 10, y = this.box.top + 12 + k * LINE;
      pen.fillStyle = mark.color;
      if (mark.kind === "line") { Object.assign(pen, { strokeStyle: mark.color, lineWidth: 2 }).setLineDash(mark.dash ?? []); line(pen, x, y, x + 18, y); pen.setLineDash([]); } else pen.fillRect(x, y - 5, 18, 10);
      pen.fillStyle = look().text;
      pen.fillText(cut(pen, mark.name, this.box.width - 44), x + 24, y);
    });
  }

  listen() {
    const { canvas } = this, inside = ({ offsetX: x, offsetY: y }) => this.box && x >= this.box.left && x <= this.box.left + this.box.width && y >= this.box.top && y <= this.box.top + this.box.height;
    canvas.addEventListener("pointerdown", (event) => {
      if (event.button || !inside(event)) return;
      this.drag = { x: event.offsetX, y: event.offsetY, zooms: event.pointerType === "mouse" && Boolean(this.spec.onzoom) };
      if (this.drag.zooms) canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => (this.drag?.zooms ? this.stretch(event) : event.pointerType === "mouse" && this.hover(event, inside(event))));
    canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    canvas.addEventListener("pointercancel", () => { this.drag = null; });
    canvas.addEventListener("pointerup", (event) => {
      const { drag } = this, far = drag && [event.offsetX - drag.x, event.offsetY - drag.y].map(Math.abs);
      this.drag = null;
      if (!drag) return;
      if (drag.zooms && (far[0] > 8 || far[1] > 8)) this.zoom(drag, event);
      else if (Math.max(...far) < 8) this.spec.onclick?.(this.at("x", event.offsetX), this.at("y", event.offsetY));
    });
    canvas.addEventListener("dblclick", () => this.spec.onreset?.());
  }

  // The rectangle that is dragged so far.
  ends({ x, y }, { offsetX, offsetY }) {
    const { left, top, width, height } = this.box, within = (v, low, size) => Math.max(low, Math.min(low + size, v));
    return [[x, within(offsetX, left, width)], this.spec.image ? [y, within(offsetY, top, height)] : [top, top + height]].map((pair) => pair.sort((a, b) => a - b));
  }

  stretch(event) {
    this.tip.hidden = true;
    this.draw();
    const [[x0, x1], [y0, y1]] = this.ends(this.drag, event), pen = this.canvas.getContext("2d");
    Object.assign(pen, { strokeStyle: look().accent, lineWidth: 1.5, fillStyle: look().band });
    pen.fillRect(x0, y0, x1 - x0, y1 - y0);
    pen.strokeRect(x0, y0, x1 - x0, y1 - y0);
  }

  zoom(drag, event) {
    const [[x0, x1], [y0, y1]] = this.ends(drag, event);
    if (x1 - x0 < 3 || y1 - y0 < 3) { this.draw(); return; }
    this.spec.onzoom({ low: [this.at("x", x0), this.at("y", y1)], high: [this.at("x", x1), this.at("y", y0)] });
  }

  hover(event, is) {
    const told = is && this.spec.hover?.(this.at("x", event.offsetX), this.at("y", event.offsetY));
    this.tip.hidden = !told;
    if (!told) return;
    this.tip.replaceChildren(...told.map((text) => element("div", { textContent: text })));
    const left = event.offsetX + 14 + this.tip.offsetWidth > this.box.full ? event.offsetX - this.tip.offsetWidth - 10 : event.offsetX + 14;
    Object.assign(this.tip.style, { left: `${Math.max(0, left)}px`, top: `${Math.max(0, event.offsetY - this.tip.offsetHeight - 6)}px` });
  }
}

function line(pen, x0, y0, x1, y1) {
  pen.beginPath();
  pen.moveTo(x0, y0);
  pen.lineTo(x1, y1);
  pen.stroke();
}

function trace(pen, x, y, how = "stroke") {
  pen.beginPath();
  x.forEach((at, i) => (i ? pen.lineTo(at, y[i]) : pen.moveTo(at, y[i])));
  pen[how]();
}

// Text that fits, its end cut off with an ellipsis if need be.
function cut(pen, text, width) {
  if (pen.measureText(text).width <= width) return text;
  let end = text.length;
  while (end > 1 && pen.measureText(`${text.slice(0, end)}…`).width > width) end--;
  return `${text.slice(0, end)}…`;
}

// The plot in a place of the page, made when it is first shown.
const plotIn = (div) => div.plot ?? new Plot(div);
