"use strict";
// The facts of the page, and the few functions that everything else is made with.

const { models, live } = JSON.parse(document.getElementById("facts").textContent);
const facts = models[0], compared = models.length > 1;
const $ = (id) => document.getElementById(id);
const shown = (value) => (Math.abs(value) >= 1e5 || (value !== 0 && Math.abs(value) < 1e-3) ? value.toExponential(4) : value.toPrecision(6));

// An array that Python packed: base64 of little-endian numbers.
function unpacked({ kind, data }) {
  return new { f8: Float64Array, f4: Float32Array, i4: Int32Array }[kind](decoded(data).buffer);
}

function element(name_, attributes = {}, ...children) {
  const made = Object.assign(document.createElement(name_), attributes);
  made.append(...children);
  return made;
}

function fill(select, names, chosen = 0) {
  select.replaceChildren(...names.map(([value, text]) => element("option", { value, textContent: text })));
  select.value = String(chosen);
}
