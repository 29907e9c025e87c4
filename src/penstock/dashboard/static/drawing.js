// Pictures of a topology: its graph, figures over time, and who delivered each epoch. No state of their own.
const SVG = "http://www.w3.org/2000/svg";
const colours = ["#3b6fe0", "#0f9d76", "#c98a06", "#8a4fd3", "#d6455d"];
export const colourOf = (place) => colours[place % colours.length];

function s(tag, properties = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [key, value] of Object.entries(properties)) if (value != null) element.setAttribute(key, value);
  element.append(...children.flat(Infinity).filter((child) => child != null));
  return element;
}
const cut = (text, length) => text.length > length ? `${text.slice(0, length - 1)}…` : text;
const short = (number) => number >= 1e6 ? `${(number / 1e6).toFixed(1)}M` : number >= 1e4 ? `${(number / 1e3).toFixed(0)}K`
  : number >= 10 ? Math.round(number) : number > 0 ? number.toFixed(1) : "0";

// What goes over an edge: of an operator with several ports, what that port gives; a sink's only edge brings what it takes. Undefined where nobody counts it.
export const rateOf = (edge, rates) => rates[edge.port ? `${edge.from}.${edge.port}` : edge.from] ?? (edge.to.startsWith("sink:") ? rates[edge.to] : undefined);

// How near to all that is possible: what the colours of the graph say.
export const heats = [["cool", "below 60%", "--good"], ["warm", "60 to 85%", "--warn"], ["hot", "above 85%, or more comes than it reads", "--bad"]];
const heatOf = (load) => heats[load > 0.85 ? 2 : load > 0.6 ? 1 : 0];

export function graph(drawn, rates, load, failed) {
  const byId = Object.fromEntries(drawn.nodes.map((node) => [node.id, node]));
  const middle = (points) => { const [x1, y1] = points[0], [x2, y2] = points.at(-1); return [(x1 + x2) / 2, (y1 + y2) / 2]; };
  const curve = (points) => points.map(([x, y], place) => {
    if (!place) return `M${x} ${y}`;
    const [before, height] = points[place - 1], half = (before + x) / 2;
    return height === y ? `H${x}` : `C${half} ${height} ${half} ${y} ${x} ${y}`;
  }).join("");
  const edges = drawn.edges.map((edge) => {
    // The layout leaves room for a label before a card; here the edge goes on to the card itself.
    const points = [...edge.points, [byId[edge.to].x, edge.points.at(-1)[1]]];
    const rate = rateOf(edge, rates), [x, y] = middle(points);
    return [s("path", { class: `edge${rate > 0 ? " moving" : ""}`, d: curve(points), "data-from": edge.from, "data-port": edge.port || null, "data-to": edge.to }),
      rate === undefined ? null : s("text", { class: "rate", x, y: points.every(([, height]) => height === points[0][1]) ? y - 6 : y + 4, "text-anchor": "middle", "data-from": edge.from, "data-to": edge.to }, `${short(rate)}/s`)];
  });
  const nodes = drawn.nodes.map((node) => {
    const own = load.nodes[node.id], [heat, , colour] = heatOf(own ?? 0), broken = failed?.[node.id];
    const rate = rates[node.id] === undefined ? "not counted" : `${short(rates[node.id])} tuples a second`;
    const loaded = own === undefined ? "load not known" : `load about ${Math.round(own * 100)}%`;
    return s("g", { transform: `translate(${node.x} ${node.y})`, "data-node": node.id, "data-heat": own === undefined ? null : heat, role: "img",
        "aria-label": `${node.role} ${node.name}, ${rate}, ${loaded}` },
      s("title", {}, `${node.name}: ${node.brief}\n${rate}\n${loaded}${broken ? `\n${broken} failed` : ""}`),
      s("rect", { class: "card-face", width: node.width, height: node.height, rx: 10 }),
      s("rect", { width: 5, height: node.height - 16, x: 8, y: 8, rx: 2.5, fill: `var(--${node.role})` }),
      s("text", { class: "name", x: 24, y: 24 }, cut(node.name, Math.floor(node.width / 8.5) - 3)),
      s("text", { class: "brief", x: 24, y: 41 }, cut(node.brief, Math.floor(node.width / 6) - 4)),
      s("rect", { class: "load", x: 24, y: node.height - 9, width: (node.width - 36) * (own ?? 0), height: 3, rx: 1.5, fill: `var(${colour})` }),
      broken ? s("text", { class: "rate", x: node.width - 10, y: 22, "text-anchor": "end", fill: "var(--bad)" }, `${broken} failed`) : null);
  });
  return s("svg", { class: "graph", viewBox: `-8 -22 ${drawn.width + 16} ${drawn.height + 40}`, width: drawn.width + 16, height: drawn.height + 40 }, edges.flat(), nodes);
}

// The end of a scale whose marks, the half too, are round numbers.
function roundEnd(most) {
  if (!(most > 0)) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return power * [1, 2, 4, 6, 8, 10].find((step) => step * power >= most * 0.9999);
}

export function chart(points, series, say) {
  const width = 380, height = 130, left = 60, bottom = 18, top = 8;
  const recent = points.slice(-240);
  if (recent.length < 2) return s("svg", { class: "chart", viewBox: `0 0 ${width} ${height}` }, s("text", { class: "axis", x: left, y: height / 2 }, "Nothing to show yet."));
  const begin = recent[0].time, end = recent.at(-1).time;
  const highest = Math.max(0, ...recent.flatMap((point) => series.map(([name]) => point[name]))), most = roundEnd(highest);
  const x = (time) => left + (width - left - 6) * (time - begin) / Math.max(end - begin, 1e-9), y = (value) => height - bottom - (height - bottom - top) * value / most;
  const rules = (highest > 0 ? [0, 0.5, 1] : [0]).map((part) => [s("line", { class: "rule", x1: left, x2: width - 6, y1: y(most * part), y2: y(most * part) }),
    s("text", { class: "axis", x: left - 6, y: y(most * part) + 3.5, "text-anchor": "end" }, say(most * part))]);
  const lines = series.map(([name, colour]) => {
    const path = recent.map((point, place) => `${place ? "L" : "M"}${x(point.time).toFixed(1)} ${y(point[name]).toFixed(1)}`).join("");
    return [s("path", { class: "area", d: `${path}L${x(end)} ${y(0)}L${x(begin)} ${y(0)}Z`, fill: `var(${colour})` }), s("path", { class: "line", d: path, stroke: `var(${colour})` })];
  });
  return s("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, role: "img" }, rules.flat(), lines.flat(),
    s("text", { class: "axis", x: left, y: height - 4 }, `${Math.round(end - begin)} s ago`), s("text", { class: "axis", x: width - 6, y: height - 4, "text-anchor": "end" }, "now"));
}

export function timeline(epochs, events, replicas) {
  const width = 1180, height = 46, drawn = s("svg", { class: "timeline", viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Which replica delivered each epoch, over time" });
  if (epochs.length < 2) return drawn;
  const begin = epochs[0][1], end = epochs.at(-1)[1], x = (time) => width * (time - begin) / Math.max(end - begin, 1e-9);
  epochs.slice(1).forEach(([epoch, time, replica], place) => {
    const before = x(epochs[place][1]), who = replicas.indexOf(replica);
    drawn.append(s("rect", { x: before, y: 6, width: Math.max(0.5, x(time) - before - 0.8), height: 28, "data-epoch": epoch, "data-replica": replica || null,
      fill: who >= 0 ? colourOf(who) : "var(--line)" }, s("title", {}, `epoch ${epoch}${replica ? `, delivered by replica ${replica}` : ""}`)));
  });
  // A loss is marked once: when it was seen, or else with the verdict on it. Who is replaced in a restart is not lost.
  const seen = new Set();
  for (const event of events) {
    const [, who, how] = event.words.match(/^replica (\S+).*? (is gone|was gone at)/) ?? [];
    if (!who) continue;
    const marked = how === "was gone at" && seen.delete(who);
    if (how === "is gone") seen.add(who);
    if (marked || event.time < begin) continue;
    drawn.append(s("path", { class: "loss", d: `M${Math.min(x(event.time), width)} 37l-5 9h10z`, fill: "var(--bad)" }, s("title", {}, event.words)));
  }
  return drawn;
}
