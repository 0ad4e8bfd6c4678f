"use strict";
// What stands below the picture: errors, how sure the model is, relevance, and the summary; of both models where two are compared.

const modelColors = () => [look().ink, look().second];
const ofModel = (m, text) => (compared ? `${models[m].title}: ${text}` : text);
const MOST_BARS = 12; // columns whose relevance is in sight

// What to know first, of the output that is shown: one sentence after the other, of every model.
function headline() {
  const told = models.flatMap((model, m) => [...(compared ? [element("h3", { textContent: model.title })] : []), ...model.headline[output()].map((text, k) => element("p", { className: k ? "" : "first" }, ...withWords(text)))]);
  $("headline").replaceChildren(...told);
}

function errors() {
  const name_ = $("errors-of").value, chosen = sets.filter((set) => set.name === name_), target = facts.targetLabels[output()];
  errorTable();
  if (!chosen.length) { $("errors").textContent = "A model of your own has no leave-one-out errors in closed form."; return; }
  if (!$("calibration")) $("errors").replaceChildren(...[["calibration", "Predicted against actual"], ["residuals", "Histogram of residuals"]].map(([id, label]) => { const div = element("div", { id, ariaLabel: label }); div.setAttribute("role", "img"); return div; }));
  const dots = chosen.map((set) => {
    const y = response(set, set.y), residual = response(set, set.residual);
    return { kind: "dots", x: y.map((value, i) => value - residual[i]), y, size: 4, color: `${modelColors()[set.model]}88`, name: compared ? models[set.model].title : "" };
  });
  const spread = (arrays) => padded(...arrays.flat().reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]));
  const ends = spread(dots.map(({ y }) => y)), across = spread(dots.map(({ x }) => x));
  plotIn($("calibration")).show({ title: compared ? name_ : `${name_}: RMSE ${shown(chosen[0].rmse[output()])}`, x: { title: `${target}, predicted`, range: across }, y: { title: target, range: ends }, marks: [...dots, { kind: "line", x: ends, y: ends, color: look().muted }] });
  plotIn($("residuals")).show(histogram(chosen, target));
}

// How often errors of which size are; the farthest hundredth is left out where it would hide the rest.
function histogram(chosen, target) {
  const all = chosen.map((set) => response(set, set.residual)), sorted = all.flat().sort((a, b) => a - b), at = (part) => sorted[Math.min(sorted.length - 1, Math.max(0, Math.round(part * (sorted.length - 1))))];
  const inner = at(0.99) - at(0.01), wide = at(1) - at(0) > 3 * inner && inner > 0, [low, high] = wide ? [at(0.005), at(0.995)] : padded(at(0), at(1));
  const bins = 40, edges = Array.from({ length: bins + 1 }, (_, k) => low + (high - low) * k / bins);
  const bars = all.map((values, n) => {
    const heights = Array(bins).fill(0);
    for (const v of values) { const k = Math.floor((v - low) / (high - low) * bins); if (k >= 0 && k < bins) heights[k]++; }
    return { kind: "bars", edges, heights, color: `${modelColors()[chosen[n].model]}${compared ? "88" : ""}`, name: compared ? models[chosen[n].model].title : "" };
  });
  const most = Math.max(1, ...bars.flatMap(({ heights }) => heights));
  return { title: wide ? "residuals, but for the farthest hundredth" : "residuals", x: { title: `${target} less prediction`, range: [low, high] }, y: { title: "points", range: [0, 1.05 * most] }, marks: bars };
}

// The errors of both models, where there are two.
function errorTable() {
  $("error-table").hidden = !compared;
  if (!compared) return;
  const names = [...new Set(sets.map((set) => set.name))];
  const row = (tag, cells) => element("tr", {}, ...cells.map((cell, k) => element(k ? tag : "th", {}, ...withWords(String(cell)))));
  const of = (m, name_) => sets.find((set) => set.model === m && set.name === name_);
  $("error-table").replaceChildren(row("th", ["RMSE", ...models.map((model) => model.title)]),
    ...names.map((name_) => row("td", [name_, ...models.map((_, m) => (of(m, name_) ? shown(of(m, name_).rmse[output()]) : "–"))])));
}

function sure() {
  $("sure-section").hidden = !models.some((model) => model.sure);
  const lines = models.flatMap((model, m) => (model.sure?.curves ?? []).map((one, k) => ({
    kind: "line", x: model.sure.nominal, y: Array.from(ofOutput(one.actual)), width: 2, name: ofModel(m, one.name), color: compared ? modelColors()[m] : [look().ink, look().accent][k], dash: compared && k ? [6, 4] : [],
  })));
  if (!lines.length) return;
  plotIn($("sure")).show({ x: { title: "confidence level", range: [0, 1] }, y: { title: "share inside", range: [0, 1] }, marks: [{ kind: "line", x: [0, 1], y: [0, 1], color: look().muted }, ...lines] });
}

// Of the output that is shown, by column, the largest first; where there are many, the rest can be unfolded.
function relevance() {
  const of = models.map((model) => model.relevance[output()]), mean = facts.columns.map((_, k) => of.reduce((total, own) => total + own[k], 0)), order = mean.map((_, k) => k).sort((a, b) => mean[b] - mean[a]);
  const most = Math.max(...of.flat(), 1e-12), bar = (m, k) => {
    const made = element("div", { className: `bar${compared && m ? " second" : ""}` });
    made.style.setProperty("--part", `${100 * of[m][k] / most}%`);
    return element("div", { className: "bar-row" }, made, element("span", { textContent: `${(100 * of[m][k]).toFixed(of[m][k] < 0.0995 ? 1 : 0)} %` }));
  };
  const row = (k) => element("div", { className: "relevance" }, element("span", { className: "name", textContent: facts.columns[k].name, title: facts.columns[k].name }), element("div", {}, ...models.map((_, m) => bar(m, k))));
  const rows = order.map(row), rest = rows.slice(MOST_BARS);
  $("relevance").replaceChildren(...rows.slice(0, MOST_BARS), ...(rest.length ? [element("details", {}, element("summary", { textContent: `${rest.length} more columns` }), ...rest)] : []));
}

function summary() {
  const names = [...new Set(models.flatMap((model) => model.summary.map(([heading]) => heading)))];
  const head = compared ? [element("tr", {}, element("th"), ...models.map((model) => element("th", { textContent: model.title })))] : [];
  const cell = (model, heading) => element("td", {}, ...withWords(model.summary.find(([own]) => own === heading)?.[1] ?? "–"));
  $("summary").replaceChildren(...head, ...names.map((heading) => element("tr", {}, element("th", {}, ...withWords(heading)), ...models.map((model) => cell(model, heading)))));
}

function tell() {
  const blocks = state.answers.flatMap((answer, m) => [...(compared ? [element("h3", { textContent: models[m].title })] : []), ...tellOne(answer)]);
  const said = state.answers[0].contributions, count = new Set(said.map(({ level, region }) => `${level} ${region}`)).size, by = said.length > count ? `, by ${said.length} models` : "";
  $("contributions").replaceChildren(element("h2", {}, ...withWords(compared ? "What both models say at this point" : `${count} ${count === 1 ? "region answers" : "regions answer"} at this point${by}`)), ...blocks);
}

// How near the data are, in words.
function nearness(coverage) {
  if (coverage < 0.1) return ["bad", "no data here: the background answers"];
  return coverage < 0.9 ? ["fair", "at the edge of the data: regions and background answer together"] : ["good", "amid the data"];
}

function tellOne(answer) {
  const slopes = answer.gradient ?? [], gradient = slopes.length && slopes.length <= MOST_BARS ? `gradient (${slopes.map(shown).join(", ")})` : slopes.length ? `length of the gradient ${shown(Math.hypot(...slopes))}` : "", [kind, text] = nearness(answer.coverage);
  const trace = answer.laplacian === null ? "" : `trace of the Hessian ${shown(answer.laplacian)}`;
  const numbers = [`${facts.targets[output()]} = ${shown(answer.value)}`, gradient, trace, answer.deviation == null ? "" : `deviation of a new observation ${shown(answer.deviation)}`].filter(Boolean).join(" · ");
  const head = element("tr", {}, ...["share", "says", "level", "region", "kernel", "degree", "bandwidth", "ridge"].map((heading) => element("th", {}, word(heading))));
  const rows = answer.contributions.map((one) => {
    const share = element("td", { className: "share", textContent: `${(100 * one.share).toPrecision(3)} %` });
    share.style.setProperty("--part", `${100 * one.share}%`);
    const cells = [shown(one.value), one.level, one.region, one.kernel ?? "your own", one.degree ?? "", one.bandwidth === undefined ? "" : shown(one.bandwidth), one.ridge === undefined ? "" : one.ridge.toExponential(1)];
    return element("tr", {}, share, ...cells.map((cell) => element("td", { textContent: String(cell) })));
  });
  return [element("p", {}, ...withWords(numbers)), element("p", { className: "hint", textContent: `at ${pointText(state.at).join(", ")}` }), element("p", { className: `nearness ${kind}` }, ...withWords(`coverage ${shown(answer.coverage)}: ${text}`)),
    element("div", { className: "scroll" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)))];
}
