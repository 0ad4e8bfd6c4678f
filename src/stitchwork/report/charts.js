"use strict";
// What stands below the picture: errors, how sure the model is, relevance, and the summary; of both models where two are compared.

const chartLayout = (more) => {
  const { paper, text, grid } = look(), axis = { gridcolor: grid, zerolinecolor: grid };
  const whole_ = { margin: { ...MARGIN, t: 40 }, paper_bgcolor: paper, plot_bgcolor: paper, font: { color: text }, legend: { x: 0.02, y: 0.98, bgcolor: "rgba(0,0,0,0)" }, dragmode: false, ...more };
  return { ...whole_, xaxis: { ...axis, ...more.xaxis }, yaxis: { ...axis, ...more.yaxis } };
};
const modelColors = () => [look().ink, look().second];
const ofModel = (m, text) => (compared ? `${models[m].title}: ${text}` : text);

function errors() {
  const name_ = $("errors-of").value, chosen = sets.filter((set) => set.name === name_), target = facts.targets[output()];
  errorTable();
  if (!chosen.length) { $("errors").textContent = "A model of your own has no leave-one-out errors in closed form."; return; }
  if (!$("calibration")) $("errors").replaceChildren(...[["calibration", "Predicted against actual"], ["residuals", "Histogram of residuals"]].map(([id, label]) => element("div", { id, role: "img", ariaLabel: label })));
  const all = chosen.flatMap((set) => response(set, set.y)), ends = [all.reduce((a, b) => Math.min(a, b)), all.reduce((a, b) => Math.max(a, b))];
  const dots = chosen.map((set) => {
    const y = response(set, set.y), residual = response(set, set.residual);
    return { x: y.map((value, i) => value - residual[i]), y, mode: "markers", marker: { size: 4, color: modelColors()[set.model], opacity: 0.5 }, name: models[set.model].title, showlegend: compared };
  });
  const title = compared ? name_ : `${name_}: RMSE ${shown(chosen[0].rmse[output()])}`;
  Plotly.react("calibration", [{ x: ends, y: ends, mode: "lines", line: { color: look().muted }, hoverinfo: "skip", showlegend: false }, ...dots],
    chartLayout({ title: titled(title), xaxis: { title: { text: `${target}, predicted` } }, yaxis: { title: { text: target } } }), CONFIG);
  Plotly.react("residuals", chosen.map((set) => ({ x: response(set, set.residual), type: "histogram", opacity: compared ? 0.6 : 1, marker: { color: modelColors()[set.model] }, name: models[set.model].title, showlegend: compared })),
    chartLayout({ barmode: "overlay", title: titled("residuals"), xaxis: { title: { text: `${target} less prediction` } }, yaxis: { title: { text: "points" } } }), CONFIG);
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
    x: model.sure.nominal, y: Array.from(ofOutput(one.actual)), mode: "lines+markers", name: ofModel(m, one.name), line: { color: compared ? modelColors()[m] : [look().ink, look().accent][k], dash: compared && k ? "dash" : "solid" },
  })));
  if (!lines.length) return;
  Plotly.react("sure", [{ x: [0, 1], y: [0, 1], mode: "lines", line: { color: look().muted }, hoverinfo: "skip", showlegend: false }, ...lines],
    chartLayout({ margin: MARGIN, xaxis: { title: { text: "confidence level" }, range: [0, 1] }, yaxis: { title: { text: "share inside" }, range: [0, 1] } }), CONFIG);
}

// Of the output that is shown.
function relevance() {
  const of = models.map((model) => model.relevance[output()]), mean = facts.features.map((_, k) => of.reduce((total, own) => total + own[k], 0)), order = mean.map((_, k) => k).sort((a, b) => mean[a] - mean[b]);
  const label = (k) => (facts.features[k].length > 24 ? `${facts.features[k].slice(0, 23)}…` : facts.features[k]);
  $("relevance").style.height = `${Math.max(9, 5 + 2 * order.length * models.length)}rem`;
  Plotly.react("relevance", models.map((model, m) => ({ type: "bar", orientation: "h", x: order.map((k) => of[m][k]), y: order.map(label), marker: { color: compared ? modelColors()[m] : look().accent }, name: model.title, showlegend: compared })),
    chartLayout({ margin: { ...MARGIN, t: compared ? 40 : 10 }, legend: { orientation: "h", x: 0, y: 1, yanchor: "bottom", bgcolor: "rgba(0,0,0,0)" }, xaxis: { title: { text: "share of what the response depends on" }, rangemode: "tozero" }, yaxis: { type: "category", automargin: true } }), CONFIG);
}

function summary() {
  const names = [...new Set(models.flatMap((model) => model.summary.map(([heading]) => heading)))];
  const head = compared ? [element("tr", {}, element("th"), ...models.map((model) => element("th", { textContent: model.title })))] : [];
  const cell = (model, heading) => element("td", {}, ...withWords(model.summary.find(([own]) => own === heading)?.[1] ?? "–"));
  $("summary").replaceChildren(...head, ...names.map((heading) => element("tr", {}, element("th", {}, ...withWords(heading)), ...models.map((model) => cell(model, heading)))));
}

function tell() {
  const blocks = state.answers.flatMap((answer, m) => [...(compared ? [element("h3", { textContent: models[m].title })] : []), ...tellOne(answer)]);
  const count = state.answers[0].contributions.length;
  $("contributions").replaceChildren(element("h2", {}, ...withWords(compared ? "What both models say at this point" : `${count} ${count === 1 ? "region speaks" : "regions speak"} at this point`)), ...blocks);
}

// How near the data are, in words.
function nearness(coverage) {
  if (coverage < 0.1) return ["bad", "no data here: the background answers"];
  return coverage < 0.9 ? ["fair", "at the edge of the data: regions and background answer together"] : ["good", "amid the data"];
}

function tellOne(answer) {
  const gradient = answer.gradient ? `gradient (${answer.gradient.map(shown).join(", ")})` : "", [kind, text] = nearness(answer.coverage);
  const trace = answer.laplacian === null ? "" : `trace of the Hessian ${shown(answer.laplacian)}`;
  const numbers = [`${facts.targets[output()]} = ${shown(answer.value)}`, gradient, trace, answer.deviation == null ? "" : `deviation of a new observation ${shown(answer.deviation)}`].filter(Boolean).join(" · ");
  const head = element("tr", {}, ...["share", "says", "level", "region", "kernel", "degree", "bandwidth", "ridge"].map((heading) => element("th", {}, word(heading))));
  const rows = answer.contributions.map((one) => {
    const share = element("td", { className: "share", textContent: `${(100 * one.share).toPrecision(3)} %` });
    share.style.setProperty("--part", `${100 * one.share}%`);
    const cells = [shown(one.value), one.level, one.region, one.kernel ?? "your own", one.degree ?? "", one.bandwidth === undefined ? "" : shown(one.bandwidth), one.ridge === undefined ? "" : one.ridge.toExponential(1)];
    return element("tr", {}, share, ...cells.map((cell) => element("td", { textContent: String(cell) })));
  });
  return [element("p", {}, ...withWords(numbers)), element("p", { className: `nearness ${kind}` }, ...withWords(`coverage ${shown(answer.coverage)}: ${text}`)),
    element("div", { className: "scroll" }, element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows)))];
}
