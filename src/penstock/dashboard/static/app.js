// The console's page. What it shows comes from /api/stream; what it does goes to /api/topologies/NAME/commands.
import { graph, chart, timeline, colourOf, heats } from "./drawing.js";

const $ = (selector, root = document) => root.querySelector(selector);
const main = $("#main");
let stream, shown = null, person = { role: "viewer" }, told = null, chosen = 0, log = "", logOf = null, following = false, letters = null, lettersOf = "", remembered = null, looked = "";

// -- text -----------------------------------------------------------------------------------------
export function h(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (value === true) element.setAttribute(key, "");
    else if (value !== false && value != null) element.setAttribute(key, value);
  }
  element.append(...children.flat(Infinity).filter((child) => child != null));
  return element;
}
export const short = (number) => number >= 1e6 ? `${(number / 1e6).toFixed(1)} M` : number >= 1e4 ? `${(number / 1e3).toFixed(0)} K`
  : number >= 100 ? Math.round(number).toLocaleString("en") : number > 0 ? number.toFixed(number < 10 ? 1 : 0) : "0";
const whole = (number) => Math.round(number).toLocaleString("en");
const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en-GB");
const tone = (topology) => ({ running: topology.replicas.every((one) => one.phase === "safe") ? "good" : "warn", ended: "good",
  failed: "bad", away: "bad" })[topology.how] ?? "";

// -- asking ---------------------------------------------------------------------------------------
class Refused extends Error { constructor(said, status) { super(said); this.status = status; } }
async function ask(path, options = {}) {
  const answer = await fetch(path, { ...options, headers: { "Content-Type": "application/json", ...(options.headers ?? {}) } });
  if (answer.status === 401) { login(); throw new Refused("a token is needed", 401); }
  const text = await answer.text();
  if (!answer.ok) { let said; try { said = JSON.parse(text).error; } catch { said = text; } throw new Refused(said || `HTTP ${answer.status}`, answer.status); }
  return text && answer.headers.get("content-type")?.includes("json") ? JSON.parse(text) : text;
}
// A command with a key is carried out once: where its answer was lost, it is given again. What is thrown is Refused where nothing was done.
async function order(path, options) {
  let lost = null;
  for (const pause of [0, 1000, 2000]) {
    await new Promise((resolve) => setTimeout(resolve, pause));
    try { return await ask(path, options); } catch (error) {
      // A console that broke over it, or does not know what came of it; a gateway without an answer. And who refuses the second time may not know of the first.
      const open = [500, 502, 504].includes(error.status) || (lost && (error.status === 429 || error.status >= 500));
      if (error instanceof Refused && !open) throw error;
      lost = error.message;
    }
  }
  throw new Error(lost);
}
function login() {
  const dialog = $("#login");
  if (dialog.open) return;
  dialog.showModal();
  $("form", dialog).onsubmit = async (event) => {
    event.preventDefault();
    const token = event.target.elements.token.value.trim();
    const answer = await fetch("/api/session", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }) });
    if (answer.ok) { dialog.close(); begin(); } else $(".bad", dialog).textContent = (await answer.json()).error;
  };
}
function banner(words) { $("#banner").hidden = !words; $("#banner").textContent = words ?? ""; }
function linked(up, words = up ? "live" : "not connected") { const pill = $("#link"); pill.textContent = words; pill.className = `pill ${up ? "good" : "bad"}`; }

// -- listening ------------------------------------------------------------------------------------
function listen(name) {
  stream?.close();
  let since = null;
  stream = new EventSource(name ? `/api/stream?topology=${encodeURIComponent(name)}` : "/api/stream");
  stream.onmessage = (event) => { since = null; linked(true); banner(null); told = JSON.parse(event.data); show(); };
  stream.addEventListener("trouble", (event) => {
    const { error, known } = JSON.parse(event.data);
    since = null; linked(false, "old");
    banner(`The coordinator does not answer: what is shown is old, and commands are not carried out. Topologies go on. (${error})`);
    // A page that has just been opened shows what the console still knows.
    if (known) { told = known; show(); } else if (!told) main.replaceChildren(h("div", { class: "empty" }, h("h1", {}, "The coordinator does not answer"), h("p", {}, "This page goes on by itself when it does.")));
  });
  stream.addEventListener("gone", (event) => { stream.close(); told = null; nothing(JSON.parse(event.data).error); });
  stream.onerror = () => {
    linked(false);
    since ??= Date.now();
    banner(`The console has not answered since ${clock(since / 1000)}. Topologies go on without it; this page tries again by itself.`);
    const closed = stream;
    if (stream.readyState === EventSource.CLOSED) setTimeout(() => { if (stream === closed) begin(); }, 1000);
  };
}
async function lookAround() {
  const console_ = await ask("/api/console");
  person = console_.person;
  $("#master").textContent = console_.leading ? `${console_.nodes.length} node${console_.nodes.length === 1 ? "" : "s"}`
    : `standby${console_.leader ? ` of ${console_.leader.url}` : ""}`;
}
async function begin() {
  try { await lookAround(); } catch (error) { if (error.message === "a token is needed") return; }
  route();
}
// Who leads may change at any time. While the console is away, the stream says so.
setInterval(() => { if (!document.hidden && !$("#login").open) lookAround().catch(() => {}); }, 2000);
function route() {
  const name = location.hash.match(/^#\/topology\/(.+)$/)?.[1] ?? null;
  // After a time without an answer: what is shown stays until there is something newer.
  if (told && name === shown) { listen(name); return; }
  shown = name; told = null; log = ""; logOf = null; following = false; letters = remembered = null; lettersOf = looked = keyField.value = "";
  // What can be no name is not asked for: the stream would be refused, as if the console were away.
  if (name && !/^[\w-]{1,100}$/.test(name)) { stream?.close(); nothing(`there is no topology '${name}'`); return; }
  main.replaceChildren(h("p", { class: "quiet" }, "Looking …"));
  listen(name);
}

// -- showing --------------------------------------------------------------------------------------
let pressed = 0;
addEventListener("pointerdown", () => { pressed = Date.now(); });
for (const over of ["pointerup", "pointercancel"]) addEventListener(over, () => { pressed = 0; });
// Text that is selected is to be copied: it stays until it is not selected any more, or a button is pressed.
let held = false;
const selected = () => { const selection = getSelection(); return !selection.isCollapsed && main.contains(selection.anchorNode); };
document.addEventListener("selectionchange", () => { if (held && !selected()) show(); });
main.addEventListener("click", (event) => { if (event.target.closest("button")) getSelection().removeAllRanges(); }, true);
function show() {
  // A button that is replaced under the finger gives no click.
  if (Date.now() - pressed < 1000) return;
  held = selected();
  if (held) { if ($("#link").classList.contains("good")) linked(true, "held while text is selected"); return; }
  const before = document.activeElement, focused = before?.dataset?.at, typed = before?.matches("input") ? [before.selectionStart, before.selectionEnd] : null;
  const scrolls = new Map([...main.querySelectorAll("[tabindex][data-at]")].map((each) => [each.dataset.at, [each.scrollLeft, each.scrollTop]]));
  draw();
  const again = focused && main.querySelector(`[data-at="${CSS.escape(focused)}"]`);
  again?.focus({ preventScroll: true });
  if (typed) again?.setSelectionRange(...typed);
  for (const each of main.querySelectorAll("[tabindex][data-at]")) [each.scrollLeft, each.scrollTop] = scrolls.get(each.dataset.at) ?? [0, 0];
  const lines = following && $("pre.log", main);
  if (lines) lines.scrollTop = lines.scrollHeight;
}
// What scrolls by itself can be reached with the keyboard, and is found again after a redraw.
const scrolled = (kind, mark, name) => ({ class: kind, tabindex: 0, "data-at": mark, "aria-label": name });
function draw() { if (Array.isArray(told) && !shown) overview(told); else if (told && shown) detail(told); }
function nothing(words) { main.replaceChildren(h("div", { class: "empty" }, h("h1", {}, "Nothing here"), h("p", {}, words), h("p", {}, h("a", { href: "#/" }, "All topologies")))); }

function overview(topologies) {
  document.title = "Penstock";
  if (!topologies.length) {
    main.replaceChildren(h("div", { class: "empty" }, h("h1", {}, "No topology yet"), h("p", {}, "Hand one over:"),
      h("p", {}, h("code", {}, "penstock submit topology.yaml")), h("p", {}, "New here? ", h("code", {}, "penstock init demo && penstock submit demo"))));
    return;
  }
  chosen = Math.min(chosen, topologies.length - 1);
  main.replaceChildren(h("h1", {}, "Topologies"), h("div", { class: "cards" }, topologies.map((one, place) =>
    h("a", { class: `card${place === chosen ? " on" : ""}`, href: `#/topology/${encodeURIComponent(one.name)}`, "data-name": one.name, "data-at": one.name },
      h("div", { class: "top" }, h("strong", {}, one.name), h("span", { class: `pill ${tone(one)}` }, one.safety || one.how)),
      facts([["epoch", whole(one.epoch)], ["delivered", whole(Object.values(one.delivered).reduce((a, b) => a + b, 0))], ["waiting to be read", short(one.lag)]]),
      one.why ? h("p", { class: "bad" }, one.why.split("\n").pop()) : null))));
}
const facts = (pairs) => h("div", { class: "facts" }, pairs.map(([name, value]) => h("div", {}, h("b", {}, value), name)));

function detail(one) {
  document.title = `${one.name} · Penstock`;
  const last = one.points.at(-1);
  const total = Object.values(one.delivered).reduce((a, b) => a + b, 0);
  const parts = [
    h("div", { class: "head" }, h("a", { href: "#/", "aria-label": "All topologies", "data-at": "back" }, "←"), h("h1", {}, one.name),
      h("span", { class: `pill ${tone(one)}`, id: "how" }, one.how), one.safety ? h("span", { class: `pill ${tone(one)}`, id: "safety" }, one.safety) : null,
      h("span", { class: "quiet" }, `version ${one.version} on ${one.nodes.join(", ") || "no node yet"}`)),
    one.why ? h("pre", { class: "why bad" }, one.why) : null,
    one.waiting ? h("p", { class: "why" }, `Waiting: ${one.waiting}`) : null,
    buttons(one),
    h("section", { class: "panel", id: "graph", "aria-label": "Graph" }, h("div", scrolled("scroll", "graph-picture", "Graph"), one.graph ? graph(one.graph, one.rates, one.load, one.failed) : "No graph."), load(one)),
    h("div", { class: "grid" },
      panel("Tuples a second", chart(one.points, [["in", "--source"], ["out", "--sink"]], short), legend([["read", "--source"], ["delivered", "--sink"]])),
      panel("Latency", chart(one.points, [["epoch_ms", "--stateful"], ["latency_ms", "--sink"]], (value) => `${short(value)} ms`), legend([["an epoch", "--stateful"], ["a tuple, until it is delivered", "--sink"]])),
      panel("Waiting to be read", chart(one.points, [["lag", "--python"]], short)),
      h("section", { class: "panel wide" }, h("h2", {}, "Epochs"), facts([["delivered epochs", whole(one.epoch)], ["tuples at the sinks", whole(total)],
        ["now, tuples/s", short(last?.out ?? 0)], ["failed", whole(Object.values(one.failed).reduce((a, b) => a + b, 0))], ["late", whole(one.late)]]),
        timeline(one.epochs, one.events, one.replicas.map((each) => each.name)), legend(one.replicas.map((each, place) => [`delivered by replica ${each.name}`, colourOf(place)]))),
      h("section", { class: "panel two" }, h("h2", {}, "Replicas"), replicas(one)),
      h("section", { class: "panel" }, h("h2", {}, "Events"), events(one.events)),
      h("section", { class: "panel wide", id: "state" }, h("h2", {}, "State ", stateful(one).length ? [h("button", { class: "plain", "data-at": "sizes", "aria-pressed": String(remembered != null && !looked), onclick: readSizes }, "sizes"), " "] : null, stateful(one).flatMap((name) =>
        [h("button", { class: "plain", "data-at": `state-${name}`, "aria-pressed": String(looked === name), onclick: () => readState(name) }, name), " "])), stateful(one).length ? seek : null, rows("state-rows", looked ? (Array.isArray(remembered) ? remembered.slice(0, KEYS_SHOWN) : remembered) : sizes(remembered), stateCaption(),
        stateful(one).length ? "Choose sizes, or an operator: its keys and values are read beside the topology, which takes some seconds." : "It remembers nothing.", sought ? `No key with ${sought}.` : "Nothing.")),
      h("section", { class: "panel wide", id: "letters" }, h("h2", {}, "Dead letters ", h("button", { class: "plain", "data-at": "letters", "aria-pressed": String(letters != null && !lettersOf), onclick: () => readLetters("") }, "read all"), lettersFrom(one),
        Array.isArray(letters) && letters.length && person.role === "operator" ? ["replay", "discard"].flatMap((action) => [" ", letterButton(one, action, `${capital(action)} all …`, lettersOf ? { operator: lettersOf } : {}, action)]) : null),
        rows("letters-rows", lettersShown(one), `Failed for good${lettersOf ? ` at ${lettersOf}` : ""}${letters?.length >= LETTERS_READ ? `: the newest ${LETTERS_READ}` : ""}`, "Not read yet.", lettersOf ? `None of ${lettersOf}.` : "None: every tuple was processed.")),
      h("section", { class: "panel wide", id: "log" }, h("h2", {}, "Log ", [null, ...one.replicas.map((each) => each.name)].flatMap((replica) =>
        [h("button", { class: "plain", "data-at": `log-${replica}`, "aria-pressed": String(log !== "" && logOf === replica), onclick: () => readLog(replica) }, replica === null ? "topology" : `replica ${replica}`), " "]),
        h("button", { class: "plain", "data-at": "follow", "aria-pressed": String(following), onclick: follow }, "follow")), h("pre", scrolled("log", "log-lines", "Log"), log || "Not read yet: choose whose.")))];
  main.replaceChildren(...parts.filter(Boolean));
}
// What the colours of the graph say.
const load = ({ load, how }) => h("div", { class: "legend", id: "load" }, h("b", {}, how !== "running" ? "Nothing is measured while it does not run."
    : `At work ${Math.round(load.at_work * 100)}% of the last 10 s.${load.behind ? " More comes than it reads." : ""}`), heats.map(([heat, words, colour]) => h("span", {}, h("i", { style: `background:var(${colour})` }), `${heat}: ${words}`)),
  h("span", {}, "Each operator's load is an estimate: that share, by the tuples it takes and gives beside the busiest."));
const panel = (title, ...content) => h("section", { class: "panel" }, h("h2", {}, title), content);
const legend = (entries) => h("div", { class: "legend" }, entries.map(([name, colour]) =>
  h("span", {}, h("i", { style: `background:${colour.startsWith("--") ? `var(${colour})` : colour}` }), name)));
function replicas(one) {
  if (!one.replicas.length) return h("p", { class: "quiet" }, one.how === "starting" ? "Starting …" : "None runs.");
  return h("div", scrolled("scroll", "roster", "Replicas"), h("table", { class: "roster" }, h("thead", {}, h("tr", {}, ["replica", "", "epoch", "behind", "first", "process", ""].map((name) => h("th", {}, name)))),
    h("tbody", {}, one.replicas.map((each) => h("tr", { "data-replica": each.name }, h("td", {}, each.name),
      h("td", {}, h("span", { class: `pill ${each.phase === "safe" ? "good" : ["down", "parked"].includes(each.phase) ? "bad" : "warn"}` }, each.phase), each.phase === "frozen" && each.why ? h("span", { class: "quiet" }, ` ${each.why}`) : null),
      ...[each.epoch, each.behind, each.first].map((number) => h("td", { class: "number" }, whole(number))),
      h("td", { class: "quiet" }, each.process ? `${each.process} on ${each.host}` : "–"),
      h("td", {}, person.role === "operator" ? [
        button(one, "freeze", "Freeze", { replica: each.name }, each.phase === "frozen"),
        " ", button(one, "unfreeze", "Unfreeze", { replica: each.name }, each.phase !== "frozen"),
        one.chaos ? [" ", button(one, "crash", "Crash", { replica: each.name })] : null] : null))))));
}
const events = (list) => h("ul", scrolled("events", "events", "Events"), list.length ? [...list].reverse().map((one) =>
  h("li", { class: one.tone }, h("time", {}, clock(one.time)), one.words)) : h("li", { class: "quiet" }, "Nothing has happened yet."));
function rows(mark, list, caption, before, none = "Nothing.") {
  if (list == null || typeof list === "string") return h("p", { class: list ? "bad" : "quiet" }, list ?? before);
  if (!list.length) return h("p", { class: "quiet" }, none);
  const columns = Object.keys(list[0]);
  return h("div", scrolled("scroll", mark, caption), h("table", {}, h("caption", {}, caption), h("thead", {}, h("tr", {}, columns.map((name) => h("th", {}, name)))),
    h("tbody", {}, list.map((row) => h("tr", {}, columns.map((name) => h("td", typeof row[name] === "number" ? { class: "number" } : {},
      row[name] instanceof Element ? row[name] : row[name] == null ? "–" : typeof row[name] === "object" ? JSON.stringify(row[name]) : String(row[name]))))))));
}
async function read(path, take) {
  // Who asked may be looking at another topology by now.
  const name = shown;
  take("Reading …"); show();
  let answer;
  try { answer = await ask(`/api/topologies/${encodeURIComponent(name)}/${path}`); } catch (error) { answer = error.message; }
  if (shown === name) { take(answer); show(); }
}
// One more than is shown tells whether there are more. The field stays itself over redraws, with what was typed into it.
const KEYS_SHOWN = 50;
let sought = "";
const keyField = h("input", { name: "key", "data-at": "state-key", autocomplete: "off", maxlength: 2000, placeholder: "COLUMN=VALUE", "aria-label": "Only this key" });
const seek = h("form", { class: "seek", onsubmit: (event) => { event.preventDefault(); const name = looked || stateful(told)[0]; if (name) readState(name); } }, h("label", {}, "Only the key ", keyField), h("button", { "data-at": "seek" }, "Find"));
const readState = (name) => { looked = name; sought = keyField.value.trim(); return read(`state?operator=${encodeURIComponent(name)}&limit=${KEYS_SHOWN + 1}${sought ? `&key=${encodeURIComponent(sought)}` : ""}`, (answer) => { remembered = answer; }); };
const stateCaption = () => !looked ? "What each operator remembers"
  : `Keys and open windows of ${looked}${sought ? ` with ${sought}` : ""}${Array.isArray(remembered) && remembered.length > KEYS_SHOWN ? `: the first ${KEYS_SHOWN}; there are more, and a key finds its own` : ""}`;
const readSizes = () => { looked = ""; return read("state", (answer) => { remembered = answer; }); };
const sizes = (found) => found?.map?.((each) => ({ operator: each.operator, kind: each.kind, instances: each.instances, size: size(each.bytes) + (each.copies > 1 ? ` in ${each.copies} copies` : ""), version: each.version, epoch: each.epoch })) ?? found;
const size = (bytes) => bytes >= 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${(bytes / 1e3).toFixed(1)} kB`;
const LETTERS_READ = 50;
const readLetters = (from) => { lettersOf = from; return read(`dead-letters?last=${LETTERS_READ}${from ? `&operator=${encodeURIComponent(from)}` : ""}`, (answer) => { letters = answer; }); };
const capital = (word) => word[0].toUpperCase() + word.slice(1);
const letterButton = (one, action, label, given, mark) => button(one, "dead-letters", label, { action, ...given }, false, [], `dead-letters-${mark}`);
// Letters are of sources, too: a record that cannot be read.
const lettersFrom = (one) => (one.graph?.nodes ?? []).filter((node) => node.role !== "sink").flatMap(({ id }) =>
  [" ", h("button", { class: "plain", "data-at": `letters-${id}`, "aria-pressed": String(lettersOf === id), onclick: () => readLetters(id) }, id)]);
const lettersShown = (one) => letters?.map?.((each) => ({ id: each.id, epoch: each.epoch, where: each.where, what: each.what, error: each.error,
  ...(person.role === "operator" ? { "": h("span", {}, ["replay", "discard"].flatMap((action) => [letterButton(one, action, `${capital(action)} …`, { letters: [each.id] }, `${action}-${each.id}`), " "])) } : {}) })) ?? letters;
const logPath = () => logOf === null ? "log" : `log?replica=${encodeURIComponent(logOf)}`;
const readLog = (replica) => { logOf = replica; return read(logPath(), (answer) => { log = answer; }); };
function follow() { following = !following; if (following && !log) readLog(logOf); else show(); }
let asking = false;
setInterval(async () => {
  if (!following || !shown || document.hidden || asking) return;
  const name = shown, path = logPath();
  asking = true;
  try {
    const answer = await ask(`/api/topologies/${encodeURIComponent(name)}/${path}`);
    if (following && shown === name && path === logPath()) { log = answer; show(); }
  } catch { /* The banner says that the console is away. */ } finally { asking = false; }
}, 1000);

// -- commanding -----------------------------------------------------------------------------------
const words = { stop: "It finishes its epoch and stops. Nothing is lost; it can be started again.",
  kill: "kill -9, at once. With exactly-once nothing is lost or doubled: the epoch in flight is done again.",
  restart: "With replicas, one after the other, and output never pauses. With one, it pauses for some seconds.",
  freeze: "It begins no further epoch until it is unfrozen. Its siblings go on; without any, output pauses, and what comes gathers in the epoch log until then.",
  "freeze-operator": "Every epoch passes all operators, so the whole replica waits: it begins no further epoch. What comes meanwhile gathers in the epoch log, by its siblings, or by itself where there are none or all are frozen: then output pauses. Unfrozen, it works off its backlog.",
  crash: "kill -9 of a replica, to see that nobody notices.",
  "dead-letters": "Replay: the source tuples of these letters are read again, in the first epoch after it was stopped and started. Discard: they are not shown any more; their file keeps them.",
  restore: "It is stopped, goes back to the checkpoint, and starts again. What its sinks have of later epochs is skipped.",
  rescale: "State is divided anew. With replicas, one after the other.", remove: "The console forgets it. Its files stay." };
function buttons(one) {
  if (person.role !== "operator") return h("p", { class: "quiet" }, "You may look; commands take a token for operators.");
  const up = ["running", "starting"].includes(one.how);
  return h("div", { class: "bar" }, button(one, "start", "Start", {}, up || one.how === "stopping"), button(one, "stop", "Stop", {}, !up && !(one.how === "away" && one.goal === "run")),
    button(one, "restart", "Restart", {}, !up), button(one, "freeze", "Freeze all", {}, !up), button(one, "unfreeze", "Unfreeze all", {}, !up),
    ...["freeze", "unfreeze"].map((verb) => button(one, verb, `${verb === "freeze" ? "Freeze" : "Unfreeze"} an operator …`, {}, !up || !operators(one).length, [["operator", "Operator", "", operators(one).map((name) => [name, name])],
      ["replica", "Replica", "", [["", "all"], ...one.replicas.map((each) => [each.name, each.name])]]], `${verb}-operator`)),
    button(one, "interval", "Interval …", {}, !up, [["interval", "Between two epochs: 500ms, 2s, or default", "default"]]),
    button(one, "rescale", "Rescale …", {}, !up || !operators(one).length, [["operator", "Operator", "", [...new Set([...stateful(one), ...operators(one)])].map((name) => [name, name])], ["instances", "Instances", "2"]]),
    one.chaos && one.replicas.length > 1 ? button(one, "crash", "Crash all", {}, !up) : null,
    button(one, "checkpoint", "Checkpoint …", {}, false, [["name", "Name; without one it is called after its epoch", "", "optional"]]), button(one, "restore", "Restore …", {}, false, () => checkpoints(one)), button(one, "kill", "Kill", {}, !up && one.how !== "stopping"), button(one, "remove", "Remove", {}, up || one.how === "stopping"));
}
const stateful = (one) => one.graph?.nodes.filter((node) => node.stateful).map((node) => node.id) ?? [];
const operators = (one) => one.graph?.nodes.filter((node) => !["source", "sink"].includes(node.role)).map((node) => node.id) ?? [];
async function checkpoints(one) {
  const found = await ask(`/api/topologies/${encodeURIComponent(one.name)}/checkpoints`);
  if (!found.length) throw new Error(`'${one.name}' has no checkpoints yet: the button Checkpoint takes one.`);
  return [["name", "Checkpoint", "", found.reverse().map((each) => [each.name, `${each.name}, after epoch ${whole(each.epoch)}, ${each.taken}`])],
    ["fresh_sinks", "Remove the sinks' output: it begins anew after the checkpoint", "", "tick"]];
}
function button(one, verb, label, given = {}, disabled = false, fields = [], mark = `${verb}${given.replica ?? given.action ?? ""}`) {
  return h("button", { class: words[verb] ? "harm" : "", disabled, "data-verb": mark, "data-at": mark, onclick: () => give(one, verb, label, given, fields, words[mark] ?? words[verb]) }, label);
}
// A field is [name, words, value], and a fourth for what it is beside a text that is needed: "optional", "tick", or choices: [[value, words], …].
const field = ([name, words, value, kind]) => kind === "tick" ? h("label", { class: "tick" }, h("input", { name, type: "checkbox" }), words)
  : h("label", {}, words, Array.isArray(kind) ? h("select", { name }, kind.map(([value, words]) => h("option", { value }, words)))
    : h("input", { name, value, required: kind !== "optional", autocomplete: "off" }));
const filled = (input) => input.type === "checkbox" ? input.checked : input.name === "instances" ? Number(input.value) : input.value.trim();
async function give(one, verb, label, given, fields, warning) {
  let more = {};
  const title = `${label.replace(" …", "")} ${object(verb, given, label)}${one.name}`;
  if (warning || fields.length) {
    const dialog = $("#ask"), form = $(".fields", dialog), act = $(".act", dialog);
    $("h2", dialog).textContent = `${title}?`;
    $("p", dialog).textContent = warning ?? "";
    // Escape leaves what the last answer was.
    dialog.returnValue = "";
    let over = false;
    const closed = new Promise((resolve) => dialog.addEventListener("close", () => { over = true; resolve(); }, { once: true }));
    // Some fields are only known when they are asked for.
    act.disabled = typeof fields === "function";
    form.replaceChildren(...act.disabled ? ["Reading …"] : fields.map(field));
    dialog.showModal();
    if (act.disabled) {
      try { fields = await fields(); } catch (error) { if (!over) { dialog.close("no"); notify(error.message); } return; }
      // Somebody who has cancelled may be asked something else by now.
      if (over) return;
      form.replaceChildren(...fields.map(field));
      act.disabled = false;
    }
    await closed;
    if (dialog.returnValue !== "yes") return;
    more = Object.fromEntries(fields.map(([name]) => [name, filled($(`[name=${name}]`, dialog))]).filter(([, value]) => value));
  }
  const path = `/api/topologies/${encodeURIComponent(one.name)}`, key = { "Idempotency-Key": crypto.randomUUID?.() ?? `${Date.now()}-${Math.random()}`.replace(".", "") };
  const say = answering(title);
  try {
    const answer = verb === "remove" ? await order(path, { method: "DELETE", headers: key })
      : await order(`${path}/commands`, { method: "POST", headers: key, body: JSON.stringify({ verb, ...given, ...more }) });
    say(answer.done && !answer.warning ? "good" : "warn", [answer.said, answer.warning].filter(Boolean).join("\n"));
    if (verb === "remove") location.hash = "#/";
    if (verb === "dead-letters") readLetters(lettersOf);
  } catch (error) {
    const said = error instanceof Refused ? `it was not done: ${error.message}`
      : `its answer was lost (${error.message}): it may have been done; look at the events before you give it again`;
    say("bad", said);
    if (error instanceof Refused) notify(error.message); else notify(`${title}: ${said}`, "It may have been done");
  }
}
const object = (verb, given, label) => verb === "dead-letters" ? `dead letter${given.letters ? ` ${given.letters[0]}` : "s"} ${given.operator ? `at ${given.operator} ` : ""}of `
  : given.replica ? `replica ${given.replica} of ` : label.includes("operator") || label.includes("all") ? "of " : "";
// A command is answered by its node, which may take a while: what was given stands here, and then what was said to it.
const ANSWERS_KEPT = 4, ANSWER_SHOWN_MS = 30_000;
function answering(title) {
  const words = h("p", {}, `${title}: given, and not answered yet …`), now = clock(Date.now() / 1000);
  const line = h("div", { class: "answer" }, h("time", {}, now), words, h("button", { class: "plain", "aria-label": "Close", onclick: () => line.remove() }, "×"));
  $("#answers").prepend(line);
  while ($("#answers").children.length > ANSWERS_KEPT) $("#answers").lastChild.remove();
  return (tone, said) => {
    line.classList.add(tone);
    words.textContent = `${title}: ${said || "done"}`;
    // What needs no looking after goes by itself.
    if (tone === "good") setTimeout(() => line.remove(), ANSWER_SHOWN_MS);
  };
}
function notify(words, heading = "It was not done") {
  $("#refused h2").textContent = heading;
  $("#refused p").textContent = words;
  if (!$("#refused").open) $("#refused").showModal();
}
$("#ask .cancel").onclick = () => $("#ask").close("no");

// -- keys, light and dark -------------------------------------------------------------------------
function theme(value) { document.documentElement.dataset.theme = value; localStorage.setItem("theme", value); }
theme(localStorage.getItem("theme") ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light"));
const turn = () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark");
$("#theme").onclick = turn;
// The address says what is shown: a link within the page would change it.
$(".skip").onclick = (event) => { event.preventDefault(); main.focus(); };
$("#help").onclick = () => $("#keys").showModal();
document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, select") || event.ctrlKey || event.metaKey || event.altKey || $("dialog[open]")) return;
  const cards = [...document.querySelectorAll("a.card")];
  if (event.key === "t") turn();
  else if (event.key === "?") $("#keys").showModal();
  else if (event.key === "Escape" && shown) location.hash = "#/";
  else if ((event.key === "j" || event.key === "k") && cards.length) {
    const focused = cards.indexOf(document.activeElement);
    chosen = Math.max(0, Math.min(cards.length - 1, (focused < 0 ? chosen : focused) + (event.key === "j" ? 1 : -1)));
    cards.forEach((card, place) => card.classList.toggle("on", place === chosen));
    cards[chosen].focus({ preventScroll: true });
    cards[chosen].scrollIntoView({ block: "nearest" });
  } else if (event.key === "Enter" && cards[chosen] && event.target === document.body) cards[chosen].click();
});
addEventListener("hashchange", route);
linked(false);
begin();
