// The page asks for the state again and again, and shows one pool of it.
import {PoolPicture, shade} from "./pool.js";
import {GainsPicture} from "./moves.js";

const ROWS = 200;
const by = id => document.getElementById(id);
const percent = ratio => ratio == null ? "unknown" : `${Math.round(ratio * 100)} %`;
const points = value => value == null ? "unknown" : value.toFixed(1);
const short = key => key.slice(key.lastIndexOf("/") + 1);

const AGAIN_SECONDS = 60;
let placed = {}, seen = null, tag = null, seenAt = null, lastError = null, tagError = null, chosenPool = 0, topology = null;
const nodes = new PoolPicture(by("nodes"), detail), gains = new GainsPicture(by("gains"));

function el(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text != null) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

/** columns: [title, value of a row, "number"?]; a value is text, or an element's cell. */
function table(columns, rows, empty, marked = () => false) {
  if (rows.length === 0) return [el("p", empty, {class: "soft"})];
  const made = el("table"), head = el("tr");
  for (const [title, , kind] of columns) head.append(el("th", title, kind ? {class: kind, scope: "col"} : {scope: "col"}));
  made.append(el("thead"), el("tbody"));
  made.tHead.append(head);
  for (const row of rows.slice(0, ROWS)) {
    const line = el("tr", null, marked(row) ? {class: "chosen"} : {});
    for (const [, value, kind] of columns) {
      const found = value(row);
      line.append(found instanceof Node ? found : el("td", found, kind ? {class: kind} : {}));
    }
    made.tBodies[0].append(line);
  }
  return rows.length > ROWS ? [made, el("p", `… and ${rows.length - ROWS} more`, {class: "soft"})] : [made];
}

function judged(move) {
  if (move.helped == null) return el("td", move.ended ? "not judged" : "");
  return el("td", move.helped ? "helped" : "did not help", {class: move.helped ? "good" : "bad"});
}

function show() {
  by("problems").replaceChildren(...[lastError, ...(seen?.problems ?? []),
    seen?.operatorRuns === false ? "No operator runs: its lease is not held." : null].filter(Boolean).map(text => el("p", text)));
  if (!seen?.pools.length) return;
  chosenPool = Math.min(chosenPool, seen.pools.length - 1);
  const pool = seen.pools[chosenPool];
  options(by("pools"), seen.pools.map((each, index) => [index, each.policy]), chosenPool);
  options(by("topologies"), [["", "all"], ...pool.topologies.map((each, index) => [index, each.name])], topology ?? "");
  figures(pool);
  by("legend").replaceChildren("Score of a node:", ...[0, 20, 40, 60, 80].flatMap(score =>
    [el("span", null, {class: `swatch ${shade(score)}`}), `${score}–${score + 20}`]),
    el("span", null, {class: "swatch unknown"}), "unknown. Dots are executors, arrows moves that would help now.");
  nodes.show(pool, topology);
  gains.show(pool);
  by("topology-table").replaceChildren(...table([
    ["topology", each => each.name], ["executors", each => `${each.executors.running}${each.executors.expected ? ` of ${each.executors.expected}` : ""}`, "number"],
    ["gated", each => each.executors.gated, "number"], ["across zones", each => percent(each.locality?.crossZoneRatio), "number"],
    ["across racks", each => percent(each.locality?.crossRackRatio), "number"],
    ["placed again, across zones", each => again(pool, each) ? percent(again(pool, each).locality.after.crossZoneRatio) : "", "number"],
    ["traffic", each => each.traffic ?? "unknown"], ["moves", each => each.movesPaused ? "paused" : ""],
  ], [...pool.topologies].sort((one, other) => dearness(other) - dearness(one)), "None.",
  each => pool.topologies.indexOf(each) === topology));
  by("now").replaceChildren(...table([
    ["executor", move => move.executor], ["from", move => move.from], ["to", move => move.to],
    ["why", move => move.taint ?? "load"], ["gain", move => points(move.predicted?.gain), "number"],
  ], pool.plan.moves, "No move would help now."), ...(pool.plan.placements.length ? table([
    ["waiting executor", each => each.executor], ["goes to", each => each.node ?? "anywhere"], ["zone", each => each.zone ?? ""],
    ["pin", each => each.pin], ["why", each => each.detail || each.reason || ""],
  ], pool.plan.placements, "") : []));
  by("unplaced").replaceChildren(...table([
    ["cause", each => each.cause], ["executors", each => each.executors, "number"], ["such as", each => each.executor],
    ["because", each => each.detail],
  ], pool.unplaced, "All that opted in are placed, or wait for it."));
  by("moves").replaceChildren(...table([
    ["started", move => new Date(move.startedSeconds * 1000).toLocaleString()], ["executor", move => `${move.namespace}/${move.executor}`],
    ["topology", move => short(move.topologyName)], ["from", move => move.from], ["to", move => move.to],
    ["why", move => move.taint ?? "load"], ["phase", move => move.phase], ["predicted", move => points(move.predictedGain), "number"],
    ["measured", move => points(move.measuredGain), "number"], ["", judged],
  ], [...pool.timeline].reverse(), "No move is kept."));
  by("refusals").replaceChildren(...table([
    ["reason", each => each.reason], ["how often", each => each.count, "number"], ["such as", each => each.subject],
    ["because", each => each.detail],
  ], pool.plan.refusals, "Nothing was refused."));
  document.body.dataset.shown = pool.time ?? "";
}

/** Notes how long the page took until an answer could be seen: the second frame after it has painted it. */
function timed(answeredAt) {
  requestAnimationFrame(() => requestAnimationFrame(() => {
    const data = document.body.dataset, now = performance.now();
    data.paint ??= String(Math.round(now));
    data.update = String(Math.round(now - answeredAt));
    data.updates = String(Number(data.updates ?? 0) + 1);
  }));
}

const again = (pool, topology) => placed[pool.policy]?.find(each => each.topology === topology.topology);

/** By what crosses zones: bytes where they are measured, else executors times share. */
const dearness = each => each.locality?.crossZoneBytesPerSecond ?? (each.locality?.crossZoneRatio ?? -1) * each.executors.running;

/** What placing all again would change takes longer than a look, so it is asked for by itself. */
async function askAgain() {
  try {
    const answer = await fetch("again", {cache: "no-store"});
    placed = (await answer.json()).pools ?? placed;
    show();
  } catch { /* The other question tells that the program does not answer. */ }
  setTimeout(askAgain, AGAIN_SECONDS * 1000);
}

function figures(pool) {
  const running = pool.executors.filter(([, , , phase]) => phase === "Running").length;
  const gated = pool.executors.filter(([, , , phase]) => phase === "Gated").length;
  const budgets = pool.budgets.filter(each => each.used != null);
  const {available, reason} = pool.metrics, {total, stale, mean, stdDev, gap} = pool.nodes;
  const all = [
    ["placement", pool.modes.placement], ["moves", pool.modes.moves], ["nodes", total],
    ...(stale ? [["without metrics", stale, true]] : []), ["mean score", points(mean)], ["deviation", points(stdDev)],
    ["gap", points(gap)], ["level", pool.balanced == null ? "unknown" : pool.balanced ? "yes" : "no", pool.balanced === false],
    ["executors", running], ["gated", gated, gated > 0],
    ...budgets.map(each => ["moves left", `${Math.max(0, each.moves - each.used)} of ${each.moves}`]),
    ["open moves", pool.moves.length], ...(available ? [] : [["metrics", reason, true]]),
  ];
  by("figures").replaceChildren(...all.map(([name, value, bad]) => {
    const made = el("div");
    made.append(el("dt", name), el("dd", String(value), bad ? {class: "bad"} : {}));
    return made;
  }));
}

function detail(node, dots) {
  const place = by("detail");
  if (!node) return place.replaceChildren(el("p", "Choose a node.", {class: "soft"}));
  const facts = [`Zone ${node.zone ?? "unknown"}${node.rack ? `, rack ${node.rack}` : ""}.`,
    node.score == null ? "No metrics." : `Score ${points(node.score)}, ${points(node.projected)} when all moves have ended.`,
    node.pair ? `Pair: ${node.pair}; hits ${node.lowHits} low, ${node.highHits} high.` : null,
    `${node.executors} executors.`];
  const list = el("ul");
  for (const [name, owner, phase] of dots) {
    const of = seen.pools[chosenPool].topologies[owner]?.name;
    list.append(el("li", `${name}${of ? ` (${short(of)})` : ""}${phase === "Running" ? "" : `, ${phase}`}`));
  }
  const command = dots.length ? el("p", `kubectl ballast explain ${dots[0][0].split("/")[1]} -n ${dots[0][0].split("/")[0]}`, {class: "soft"}) : "";
  place.replaceChildren(el("h3", node.name), ...facts.filter(Boolean).map(text => el("p", text)), list, command);
}

function options(select, pairs, value) {
  const wanted = pairs.map(([each, text]) => `${each}=${text}`).join("\n");
  if (select.dataset.made !== wanted) {
    select.replaceChildren(...pairs.map(([each, text]) => el("option", text, {value: each})));
    select.dataset.made = wanted;
  }
  select.value = String(value);
}

function find(text) {
  const pool = seen?.pools[chosenPool];
  if (!pool || !text) return;
  const executor = pool.executors.find(([name, , node]) => node != null && name.includes(text));
  const index = pool.nodes.items.findIndex(node => node.name.includes(text));
  const found = index >= 0 ? index : executor?.[2];
  if (found != null) nodes.choose(found);
}

async function ask() {
  try {
    const answer = await fetch("state", {headers: tag ? {"If-None-Match": tag} : {}, cache: "no-store"});
    if (answer.status === 200) {
      const answeredAt = performance.now(), told = await answer.json();
      tag = answer.headers.get("ETag");
      lastError = tagError = told.error ?? null;
      seen = told.error ? {...seen, everySeconds: told.everySeconds, pools: seen?.pools ?? []} : told;
      show();
      timed(answeredAt);
    } else if (answer.status !== 304) {
      throw new Error(await answer.text());
    } else if (lastError !== tagError) {
      lastError = tagError;
      show();
    }
    if (!lastError) seenAt = Date.now();
  } catch (error) {
    lastError = `The dashboard's program does not answer (${error.message}): start it again.`;
    show();
  }
  setTimeout(ask, (seen?.everySeconds ?? 5) * 1000);
}

function age() {
  const seconds = seenAt == null ? null : Math.round((Date.now() - seenAt) / 1000), every = seen?.everySeconds ?? 5;
  by("age").textContent = seconds == null ? "asking …" : seen.fromFile ? `a file of ${seen.pools[0]?.time}` : `seen ${seconds} s ago`;
  by("age").classList.toggle("late", seconds != null && seconds > 4 * every + 10);
}

function switchTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches, now = document.documentElement.dataset.theme ?? (dark ? "dark" : "light");
  document.documentElement.dataset.theme = now === "dark" ? "light" : "dark";
  show();
}

by("pools").addEventListener("change", event => { chosenPool = Number(event.target.value); topology = null; nodes.choose(null); show(); });
by("topologies").addEventListener("change", event => { topology = event.target.value === "" ? null : Number(event.target.value); show(); });
by("find").addEventListener("input", event => find(event.target.value));
by("theme").addEventListener("click", switchTheme);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", show);
addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "Escape") { nodes.choose(null); document.activeElement?.blur(); }
  if (event.target.matches("input, select")) return;
  const hottest = () => {
    const items = seen?.pools[chosenPool]?.nodes.items ?? [];
    const index = items.findIndex(node => node.name === seen.pools[chosenPool].nodes.hottest);
    if (index >= 0) { by("nodes").focus(); nodes.choose(index); }
  };
  const act = {"/": () => by("find").focus(), t: () => by("topologies").focus(), d: switchTheme, h: hottest}[event.key];
  if (act) { event.preventDefault(); act(); }
});
detail(null, []);
setInterval(age, 1000);
ask().then(askAgain);
