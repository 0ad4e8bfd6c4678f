"use strict";
// The page: what is chosen, the point that is asked at, and who draws what when it changes.

const MOST_ROWS = 10; // columns whose controls are in sight
const LAYERS = [
  ["value", "value", 0, "What the model predicts."],
  ["gradient", "length of the gradient", 1, "How steep the prediction is."],
  ["laplacian", "trace of the Hessian", 2, "How the prediction bends: positive in valleys, negative on hills."],
  ["coverage", "coverage", 0, "How much of the answer comes from data nearby: 1 amid the data, 0 where there are none."],
  ["deviation", "standard deviation of a new observation", 0, "How far a new observation typically is from the prediction."],
  ["error", "leave-one-out error at the data", 0, "How far every data point is from what all others foretell there."],
];
const sources = models.map((model) => (live ? new Remote() : model.model ? new Local(model.model) : null));
const state = { at: facts.at.slice(), axes: facts.axes.slice(), window: null, asked: false, answers: [], turn: 0, question: 0 };
const sets = models.flatMap((model, m) => model.errors.map((set) => ({
  ...set, model: m, x: unpacked(set.x), y: unpacked(set.y), residual: unpacked(set.residual), rows: set.x.shape[0], t: set.y.shape[1],
})));
const data = { x: unpacked(facts.data.x), y: unpacked(facts.data.y), std: facts.data.std ? unpacked(facts.data.std) : null, later: facts.data.later ? unpacked(facts.data.later) : null, rows: facts.data.x.shape[0] };
const output = () => Number($("output").value);

function controls() {
  if (facts.data.added) $("added").append(", ", element("span", { className: "later", textContent: `${facts.data.added} added since it was fitted` }));
  const smoothness = Math.min(...models.map((model) => model.smoothness));
  const layers = LAYERS.filter(([, , order]) => order <= smoothness || order === 0)
    .filter(([own]) => own !== "error" || models.every((model) => model.errors.some((set) => set.name === "leave-one-out")))
    .filter(([own]) => own !== "deviation" || models.every((model) => model.sure))
    .map(([own, text]) => [own, text]);
  fill($("layer"), layers, "value");
  fill($("beside"), [["none", "nothing"], ...layers.filter(([own]) => own !== "error")], facts.axes.length > 1 && facts.sure ? "deviation" : "none");
  $("beside-label").hidden = compared;
  $("colors-label").hidden = false;
  fill($("output"), facts.targets.map((text, k) => [k, text]));
  $("output-label").hidden = facts.targets.length === 1;
  const names = axisFeatures.map((k) => [k, featureLabel(k)]);
  fill($("across"), names, state.axes[0]);
  fill($("up"), names, state.axes[1] ?? state.axes[0]);
  $("across-label").hidden = $("up-label").hidden = axisFeatures.length === 1;
  const kinds = [...new Map(sets.map((set) => [set.name, set.count]))].sort(([a], [b]) => (b === "given data") - (a === "given data")); // held out first
  fill($("errors-of"), kinds.map(([own, count]) => [own, `${own} (${count} points)`]), kinds[0]?.[0]);
  $("errors-label").hidden = kinds.length < 2;
  listen();
}

function listen() {
  for (const id of ["layer", "output", "beside", "colors", "dots"]) $(id).addEventListener("change", draw);
  $("output").addEventListener("change", () => { headline(); relevance(); errors(); sure(); if (state.asked) ask(state.at); });
  $("errors-of").addEventListener("change", errors);
  $("across").addEventListener("change", () => turn(0));
  $("up").addEventListener("change", () => turn(1));
  $("whole").addEventListener("click", () => { state.window = null; draw(); });
  $("finer").addEventListener("click", () => { Object.assign(LIMITS, { seconds: Infinity, points: Infinity }); draw(); });
  $("theme").addEventListener("click", () => { theme = isDark() ? "light" : "dark"; dress(); });
  prefersDark.addEventListener("change", dress);
  window.addEventListener("resize", () => { clearTimeout(state.resized); state.resized = setTimeout(() => { draw(); for (const div of document.querySelectorAll("#errors > div, #sure")) div.plot?.draw(); }, 200); });
  $("ask").addEventListener("submit", (event) => {
    event.preventDefault();
    ask(state.at.map((value, k) => ($(`x${k}`) ? readFeature(k) : value)));
  });
  if (!sources[0]) for (const id of ["across-label", "up-label", "ask"]) $(id).hidden = true; // nobody answers
}

// Two different features: what is chosen for one leaves the other if need be.
function turn(which) {
  const chosen = [Number($("across").value), Number($("up").value)], before = state.axes[which];
  if (chosen[0] === chosen[1]) chosen[1 - which] = before;
  state.axes = isLine() ? [chosen[0]] : chosen;
  state.window = null;
  rows();
  draw();
}

// A control for every column: first those that the slice stands at, the most relevant before; many are folded.
function rows() {
  const share = facts.columns.map((_, k) => models.reduce((total, model) => total + Math.max(...model.relevance.map((own) => own[k])), 0));
  const axis = (column) => (column.kind === "category" ? -1 : state.axes.indexOf(column.features[0])), many = facts.columns.length > MOST_ROWS;
  const order = facts.columns.map((_, k) => k).sort((a, b) => (axis(facts.columns[a]) >= 0) - (axis(facts.columns[b]) >= 0) || (many ? share[b] - share[a] : 0) || a - b);
  const made = order.map((k) => columnControl(facts.columns[k], isLine() ? "" : ["across", "up"][axis(facts.columns[k])] ?? "", move)), last = made.splice(made.length - state.axes.length);
  const inSight = many ? made.splice(0, MOST_ROWS - last.length) : made.splice(0), rest = made;
  $("coordinates").replaceChildren(...inSight, ...last, ...(rest.length ? [element("details", {}, element("summary", { textContent: `${rest.length} more columns` }), ...rest)] : []));
  follow();
}

// Controls and selections say where the slice stands; what is being moved is left alone.
function follow(moved = null) {
  showPoint(state.at, moved);
  $("across").value = String(state.axes[0]);
  if (!isLine()) $("up").value = String(state.axes[1]);
}

function move(changes, moved) {
  for (const [k, value] of changes) state.at[k] = value;
  follow(moved);
  if (state.asked || changes.some(([k]) => state.axes.includes(k))) ask(state.at, moved); else draw();
}

async function ask(x, moved = null) {
  if (!x.every(Number.isFinite)) { $("status").textContent = "Every coordinate must be a number."; return; }
  const question = ++state.question;
  // The slice goes through the point, so that its regions are seen.
  state.at = x.slice();
  follow(moved);
  try {
    const answers = await Promise.all(sources.map((source) => source.point(x, output())));
    if (question !== state.question) return; // something newer was asked for meanwhile
    Object.assign(state, { answers, asked: true });
    tell();
    draw();
  } catch (error) {
    $("status").textContent = `No answer: ${error.message}`;
  }
}

// Everything in the colours of the theme.
function dress() {
  document.documentElement.style.colorScheme = theme ?? "";
  $("theme").textContent = isDark() ? "Light" : "Dark";
  $("theme").setAttribute("aria-label", isDark() ? "Light colours" : "Dark colours");
  headline();
  relevance();
  errors();
  sure();
  return draw();
}

function start() {
  $("about").textContent = live ? "Live: every picture is computed when asked for, on this machine."
    : models.every((model) => model.model) ? "The whole model is inside this file, which needs no network." : "";
  if (compared) $("about").textContent = `${models.map((model) => model.title).join(" and ")}, on the same slices. ${$("about").textContent.replace("The whole model is", "Both models are")}`;
  explainWords();
  controls();
  rows();
  summary();
  dress();
}

start();
