// Charts that take focus and are read by arrow keys; their numbers may change while they are looked at.
const gradeq = (() => {
"use strict";
const root = document.documentElement;
root.classList.add("js");
const MINUS = "\u2212";
const colour = name => getComputedStyle(root).getPropertyValue("--" + name).trim();
const node = (tag, className, text) => {
  const made = document.createElement(tag);
  if (className) made.className = className;
  if (text !== undefined) made.textContent = text;
  return made;
};

// A size with more digits than a float knows, or with many zeros: 1.50×10³⁰⁰, 1.20×10⁻¹⁵.
const power = (size) => {
  const [digits, exponent] = size.toExponential(2).split("e");
  const raised = [...exponent.replace("+", "")].map((digit) => digit === "-" ? "\u207b" : "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079"[digit]);
  return digits + "\u00d710" + raised.join("");
};

// A value in words of the axis: how = [factor, decimals, sign, suffix].
const say = (value, [factor, decimals, sign, suffix]) => {
  if (value === null || value === undefined) return "\u2013";
  const far = Math.abs(value * factor);
  const size = far >= 1e15 || (decimals > 9 && far > 0 && far < 1e-3) ? power(far) : far.toLocaleString("en", {minimumFractionDigits: decimals, maximumFractionDigits: decimals});
  const zero = !/[1-9]/.test(size);
  return (zero ? "" : value < 0 ? MINUS : sign ? "+" : "") + size + suffix;
};
const day = new Intl.DateTimeFormat("en-GB", {day: "numeric", month: "long", year: "numeric", timeZone: "UTC"});
const clock = new Intl.DateTimeFormat("en-GB", {day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", timeZone: "UTC"});
const where = ({spec, xs}, x) => spec.axis === "date"
  ? (xs[xs.length - 1] - xs[0] < 10 * 86400 ? clock.format(x * 1000) + " UTC" : day.format(x * 1000))
  : spec.axis === "row" ? spec.unit + " " + Math.round(x).toLocaleString("en") : String(x).replace("-", MINUS);

const INK = {before: "before", after: "after", truth: "ink", s1: "s1", s2: "s2", s3: "s3", other: "before"};
let charts = [];

function stroke(line) {
  const role = line.role;
  return {
    stroke: colour(INK[role]),
    fill: line.filled ? colour("after-soft") : undefined,
    width: role === "before" || role === "other" || role === "s3" ? 1.4 : role === "truth" ? 1.6 : 2,
    dash: role === "truth" ? [2, 3] : role === "s3" ? [5, 3] : undefined,
    points: {show: false},
    spanGaps: false,
  };
}

function spread(wanted, high) {
  const order = wanted.map((top, i) => ({top, i})).sort((p, q) => p.top - q.top || p.i - q.i);
  order.forEach((p, k) => { if (k) p.top = Math.max(p.top, order[k - 1].top + 16); });
  let floor = high - 8;
  for (let k = order.length - 1; k >= 0; k--) { order[k].top = Math.min(order[k].top, floor); floor = order[k].top - 16; }
  const out = [];
  order.forEach(p => { out[p.i] = p.top; });
  return out;
}

const numbersOf = chart => [chart.xs, ...chart.spec.lines.map(line => line.v)];

// Ticks, range and lines are read from the chart at every drawing, so that new numbers need no new chart.
function draw(chart) {
  const {spec, plot} = chart;
  if (chart.u) chart.u.destroy();
  plot.textContent = "";
  const width = plot.clientWidth;
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "500 12px " + getComputedStyle(document.body).fontFamily;
  const beside = [chart, ...chart.friends].map(other => other.spec);
  const widest = words => Math.ceil(Math.max(0, ...words.map(text => pen.measureText(text).width)));
  const right = Math.min(widest(beside.flatMap(own => own.lines.map(line => line.name))) + 14, Math.max(width * .37, 70));
  const left = Math.max(...beside.map(own => own.left), widest(beside.flatMap(own => own.yticks.map(tick => tick[1]))) + 12);
  const inner = width - left - right;
  const ticks = () => {
    const all = chart.spec.xticks, few = Math.max(1, Math.ceil(all.length / Math.max(2, Math.floor(inner / 74))));
    return all.filter((_, i) => i % few === 0);
  };
  const font = "12px " + getComputedStyle(document.body).fontFamily;
  const pixel = window.devicePixelRatio || 1;
  chart.u = new uPlot({
    width, height: spec.height + (spec.showx ? 26 : 6),
    padding: [8, right, 0, 0],
    legend: {show: false},
    cursor: {y: false, drag: {x: false, y: false, setScale: false}, points: {size: 7}},
    scales: {x: {time: false, range: () => [chart.spec.xmin, chart.spec.xmax]}, y: {range: () => [chart.spec.ymin, chart.spec.ymax]}},
    axes: [
      {show: true, size: spec.showx ? 26 : 6, font, stroke: colour("ink-3"), grid: {show: false}, gap: 4,
       border: {show: spec.showx, stroke: colour("line-2"), width: 1},
       ticks: {show: spec.showx, size: 4, stroke: colour("line-2"), width: 1},
       splits: () => ticks().map(t => t[0]), values: () => spec.showx ? ticks().map(t => t[1]) : ticks().map(() => "")},
      {size: left, font, stroke: colour("ink-3"), grid: {stroke: colour("line"), width: 1}, ticks: {show: false}, gap: 8,
       // Our marks are given, so one increment will do: uPlot's own end at 1e32, and it wants to know one below 5.
       incrs: (u, i, low, high) => [Math.max(high - low, 5)],
       splits: () => chart.spec.yticks.map(t => t[0]), values: () => chart.spec.yticks.map(t => t[1])},
    ],
    series: [{}, ...spec.lines.map(stroke)],
    hooks: {
      drawClear: [u => {
        const span = chart.spec.span;
        if (!span) return;
        const x0 = Math.max(u.valToPos(span[0], "x", true), u.bbox.left);
        const x1 = Math.min(u.valToPos(span[1], "x", true), u.bbox.left + u.bbox.width);
        u.ctx.fillStyle = colour("shade");
        u.ctx.fillRect(x0, u.bbox.top, x1 - x0, u.bbox.height);
      }],
      drawAxes: [u => {
        chart.spec.marks.forEach(value => {
          const y = Math.round(u.valToPos(value, "y", true));
          u.ctx.strokeStyle = colour("ink-3");
          u.ctx.lineWidth = pixel;
          u.ctx.beginPath();
          u.ctx.moveTo(u.bbox.left, y + .5);
          u.ctx.lineTo(u.bbox.left + u.bbox.width, y + .5);
          u.ctx.stroke();
        });
      }],
      draw: [u => label(chart, u, left, inner, right)],
      setCursor: [u => { if (u.cursor.idx !== null && u.cursor.left >= 0) read(chart, u.cursor.idx); }],
    },
  }, numbersOf(chart), plot);
}

// Names at the right end of their lines, 16 px apart, and the words of the shaded span.
function label(chart, u, left, inner, right) {
  const {spec, plot} = chart;
  plot.querySelectorAll(".end, .spantext").forEach(old => old.remove());
  const pixel = window.devicePixelRatio || 1;
  const last = line => { for (let i = line.v.length - 1; i >= 0; i--) if (line.v[i] !== null) return line.v[i]; return null; };
  const ends = spec.lines.filter(line => line.name && last(line) !== null);
  const tops = spread(ends.map(line => u.valToPos(last(line), "y")), u.bbox.height / pixel + 8);
  ends.forEach((line, i) => {
    const name = node("div", "end " + (line.role === "after" ? "s1" : line.role), line.name);
    name.style.left = left + inner + 8 + "px";
    name.style.maxWidth = right - 8 + "px";
    name.style.top = tops[i] + u.bbox.top / pixel - 8 + "px";
    plot.append(name);
  });
  if (spec.span && spec.span[2]) {
    const words = node("div", "spantext", spec.span[2]);
    plot.append(words);
    const x0 = left + Math.max(u.valToPos(spec.span[0], "x"), 0);
    words.style.top = spec.height - 34 + "px";
    words.style.left = Math.max(left, Math.min(x0 + 8, left + inner - words.offsetWidth - 4)) + "px";
  }
}

function read(chart, index) {
  chart.index = index;
  const spec = chart.spec;
  const parts = spec.lines.filter(line => line.name).map(line => line.name + " " + say(line.v[index], spec.how));
  chart.out.textContent = where(chart, chart.xs[index]) + ": " + parts.join(", ");
  chart.friends.forEach(other => {
    if (other.index === index || other.xs.length !== chart.xs.length) return;
    other.index = index;
    point(other, index);
    read(other, index);
  });
}
function point(chart, index) {
  chart.u.setCursor({left: chart.u.valToPos(chart.xs[index], "x"), top: 10}, false);
}

const step = (key, index, length) => {
  const moves = {ArrowLeft: -1, ArrowRight: 1, ArrowDown: -1, ArrowUp: 1, PageUp: -20, PageDown: 20};
  if (key === "Home") return 0;
  if (key === "End") return length - 1;
  if (!(key in moves)) return null;
  return Math.min(Math.max((index ?? (moves[key] > 0 ? -1 : length)) + moves[key], 0), length - 1);
};

function mounted(holder, spec, xs) {
  const chart = {holder, spec, xs, plot: holder.querySelector(".plot"), out: holder.querySelector(".read"), friends: [], index: null, u: null};
  holder.addEventListener("keydown", event => {
    const next = step(event.key, chart.index, chart.xs.length);
    if (next === null) return;
    event.preventDefault();
    point(chart, next);
    read(chart, next);
  });
  return chart;
}

const drawAll = () => charts.forEach(draw);
const longest = ticks => Math.max(0, ...ticks.map(tick => tick[1].length));
const looks = ({lines, height, showx, left, sync, yticks}) =>
  JSON.stringify([lines.map(line => [line.name, line.role]), height, showx, left, sync, longest(yticks)]);

// Show these charts: those on the page get their new numbers and keep what is read, others are drawn or go.
function show(data) {
  const before = new Map(charts.map(chart => [chart.holder, chart]));
  const anew = new Set();
  charts = [];
  data.charts.forEach(spec => {
    const holder = document.getElementById(spec.id), xs = data.x[spec.x];
    if (!holder) return;
    const chart = before.get(holder) ?? mounted(holder, spec, xs);
    if (!chart.u || looks(chart.spec) !== looks(spec)) anew.add(chart);
    Object.assign(chart, {spec, xs, index: Math.min(chart.index ?? Infinity, xs.length - 1) === chart.index ? chart.index : null});
    before.delete(holder);
    charts.push(chart);
  });
  before.forEach(gone => gone.u && gone.u.destroy());
  charts.forEach(chart => { chart.friends = charts.filter(other => other !== chart && other.spec.sync === chart.spec.sync); });
  charts.forEach(chart => { if (anew.has(chart)) draw(chart); else chart.u.setData(numbersOf(chart)); });
  document.querySelectorAll("details[data-charts][open]").forEach(fill);
}

let widths = "";
new ResizeObserver(() => {
  const now = charts.map(chart => chart.plot.clientWidth).join();
  if (now !== widths) { widths = now; requestAnimationFrame(drawAll); }
}).observe(document.querySelector("main"));

// Drawn marks: each carries its words, so the read-out needs no formatting here.
const readers = new WeakMap();
function reader(holder) {
  if (!readers.has(holder)) readers.set(holder, null);
  const marks = [...holder.querySelectorAll("[data-read]")], now = readers.get(holder);
  return {now, marks, show: next => {
    marks.forEach(mark => mark.classList.remove("on"));
    readers.set(holder, next);
    marks[next].classList.add("on");
    holder.querySelector(".read").textContent = marks[next].dataset.read;
  }};
}
document.addEventListener("pointerover", event => {
  const mark = event.target.closest?.(".chart.still [data-read]");
  if (!mark) return;
  const own = reader(mark.closest(".chart.still"));
  own.show(own.marks.indexOf(mark));
});
document.addEventListener("keydown", event => {
  const holder = event.target.closest?.(".chart.still");
  if (!holder) return;
  const own = reader(holder), next = step(event.key, own.now, own.marks.length);
  if (next === null || !own.marks.length) return;
  event.preventDefault();
  own.show(next);
});

// Tables of the series, built when they are opened.
function fill(details) {
  const shown = charts.filter(chart => details.dataset.charts.split(" ").includes(chart.spec.id));
  if (!shown.length) return;
  const table = node("table"), head = table.createTHead().insertRow(), body = table.createTBody();
  const column = text => { const th = node("th", "", text); th.scope = "col"; head.append(th); };
  column(shown[0].spec.xname);
  shown.forEach(chart => chart.spec.lines.forEach(line => line.name && column((chart.spec.title + ": " + line.name))));
  shown[0].xs.forEach((x, i) => {
    const row = body.insertRow();
    const th = node("th", "", where(shown[0], x));
    th.scope = "row";
    row.append(th);
    shown.forEach(chart => chart.spec.lines.forEach(line => line.name && row.append(node("td", "", say(line.v[i], chart.spec.how)))));
  });
  const scroll = details.querySelector(".scroll") ?? details.appendChild(node("div", "scroll"));
  scroll.tabIndex = 0;
  scroll.replaceChildren(table);
}
document.addEventListener("toggle", event => {
  if (event.target.matches?.("details[data-charts]") && event.target.open) fill(event.target);
}, true);

const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
const turn = () => { root.dataset.theme = dark() ? "light" : "dark"; drawAll(); };
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);

// The button that opens and closes the rest of a table.
function open(button) {
  const table = document.getElementById(button.getAttribute("aria-controls"));
  const open = table.classList.toggle("open");
  button.setAttribute("aria-expanded", String(open));
  const other = button.dataset.other;
  button.dataset.other = button.textContent;
  button.textContent = other;
}

function copy(button, source) {
  const done = () => { button.textContent = "Copied"; setTimeout(() => { button.textContent = "Copy"; }, 1500); };
  const select = () => {
    const range = document.createRange();
    range.selectNodeContents(source);
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    if (document.execCommand("copy")) done();
  };
  if (navigator.clipboard) navigator.clipboard.writeText(source.textContent).then(done, select); else select();
}
const cutNames = () => document.querySelectorAll(".name").forEach(name => { if (name.scrollWidth > name.clientWidth) name.title = name.textContent; });

let kept;
addEventListener("beforeprint", () => { kept = root.dataset.theme; root.dataset.theme = "light"; drawAll(); });
addEventListener("afterprint", () => { if (kept === undefined) delete root.dataset.theme; else root.dataset.theme = kept; drawAll(); });

return {show, turn, open, copy, cutNames, node};
})();
