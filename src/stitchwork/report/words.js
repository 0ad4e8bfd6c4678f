"use strict";
// One sentence for every word that is not everyday, shown on hover, focus and touch, and listed at the end of the page.

const WORDS = {
  background: "The coarser levels behind the regions, which answer where there are no data nearby.",
  bandwidth: "How wide the kernel of a region is, in units of the mean distance between the region's points.",
  "class C": "How often the prediction can be differentiated without a jump: C2 has a continuous second derivative.",
  "confidence level": "How often an interval should hold a new observation, such as 90 % of the time.",
  coverage: "How much of the answer comes from data nearby: 1 amid the data, 0 where there are none and the background answers.",
  degree: "The highest power of the polynomial in a region's model: 0 is a constant, 1 a plane, −1 no polynomial.",
  deviation: "Standard deviation, the typical distance from what is expected; of a new observation, from its prediction, noise included.",
  gradient: "The derivatives along the features; its length is how steep the prediction is.",
  Hessian: "The matrix of second derivatives; its trace is their sum along the features, positive in valleys and negative on hills.",
  intervals: "Ranges around predictions that should hold new observations as often as their confidence level says.",
  kernel: "The shape that a region's model adds up around its points: gaussian is very smooth, linear and exponential are rough.",
  "leave-one-out": "Every data point is predicted from all others; the error of that is how well the model foretells what it has not seen.",
  level: "Level 0 are the regions themselves; every further level has fewer and larger ones, which answer where the level before has no data.",
  metric: "How distance between points is measured, that is, how much each feature counts in it.",
  noise: "The part of the responses that no function of the features explains, such as errors of measurement.",
  polynomial: "The smooth trend in a region's model, beside what the kernel adds.",
  region: "A ball of neighbouring data points with a small model of its own; the answer is a weighted mean of the regions around.",
  relevance: "The share of a column in what the prediction depends on: its mean squared slope times the variance of the column.",
  residuals: "Observed values less predicted ones.",
  ridge: "How much a region smooths: near zero it goes through its data, larger values take differences for noise.",
  RMSE: "Root mean squared error: the typical size of an error, in the unit of the output.",
  says: "What the region's own model predicts at this point.",
  share: "The weight of a region in the answer; all shares add up to 100 %.",
  spread: "How much the responses vary: their standard deviation.",
  slice: "A line or plane through the space of the features: those along it vary, the others stand still.",
};
const FORMS = { bandwidths: "bandwidth", deviations: "deviation", interval: "intervals", levels: "level", regions: "region", Relevance: "relevance", residual: "residuals", ridges: "ridge" };
for (const order of [0, 1, 2, 4, 6]) FORMS[`class C${order}`] = "class C";
const known = { ...Object.fromEntries(Object.keys(WORDS).map((name) => [name, name])), ...FORMS };
const pattern = new RegExp(`(?<![\\p{L}-])(${Object.keys(known).sort((a, b) => b.length - a.length).join("|")})(?=[^\\p{L}]|$)`, "gu");
const idOf = (name) => `word-${name.replaceAll(" ", "-")}`;

function word(text, name = known[text] ?? text) {
  const made = element("span", { className: "word", tabIndex: 0, textContent: text });
  made.dataset.word = name;
  made.setAttribute("aria-describedby", idOf(name));
  return made;
}

// Text as nodes, with the first of every word that is explained marked.
function withWords(text) {
  const seen = new Set(), parts = [];
  let last = 0;
  for (const match of text.matchAll(pattern)) {
    if (seen.has(known[match[1]])) continue;
    seen.add(known[match[1]]);
    parts.push(text.slice(last, match.index), word(match[1]));
    last = match.index + match[1].length;
  }
  return [...parts, text.slice(last)];
}

function showTip(target) {
  const tip = $("tip"), box = target.getBoundingClientRect();
  tip.textContent = WORDS[target.dataset.word];
  tip.hidden = false;
  const left = Math.max(8, Math.min(box.left, document.documentElement.clientWidth - tip.offsetWidth - 8));
  const above = box.bottom + tip.offsetHeight + 8 > window.innerHeight;
  tip.style.left = `${left + window.scrollX}px`;
  tip.style.top = `${window.scrollY + (above ? box.top - tip.offsetHeight - 6 : box.bottom + 6)}px`;
}

function explainWords() {
  const hide = () => { $("tip").hidden = true; }, of = (event) => event.target.closest?.(".word");
  for (const name of ["mouseover", "focusin", "click"]) document.addEventListener(name, (event) => (of(event) ? showTip(of(event)) : name === "click" && hide()));
  for (const name of ["mouseout", "focusout"]) document.addEventListener(name, (event) => of(event) && hide());
  document.addEventListener("keydown", (event) => event.key === "Escape" && hide());
  for (const one of document.querySelectorAll("[data-words]")) one.replaceChildren(...withWords(one.dataset.words));
  $("words").replaceChildren(...Object.entries(WORDS).flatMap(([name, text]) => [element("dt", { textContent: name === "class C" ? "class C0, C1, C2 …" : name }), element("dd", { id: idOf(name), textContent: text })]));
}
