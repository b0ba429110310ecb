// Live updates: the server sends the page as a tree of nodes, which are compared with those on the page.
(() => {
"use strict";
const SVG = "http://www.w3.org/2000/svg";
const body = document.body;
let late = 0;  // how far the clock of this machine is behind the server's, in seconds

// Nodes are made here one by one and text is set as text, so nothing that was sent is ever parsed as markup.
function made(tree, svg) {
  if (typeof tree === "string") return document.createTextNode(tree);
  const [tag, attributes, ...children] = tree, inside = svg || tag === "svg";
  const node = inside ? document.createElementNS(SVG, tag) : document.createElement(tag);
  Object.entries(attributes).forEach(([name, value]) => safe(name) && node.setAttribute(name, value));
  node.append(...children.map(child => made(child, inside)));
  return node;
}
const safe = name => !/^(on|style$|srcdoc$)/i.test(name);
// What this page fills in itself: plots, what is read off them, times, and whether a table is open.
const ours = node => node.matches(".plot, .read, #link, time[data-since]") || (node.matches("details[data-charts]") && node.open);

function change(parent, trees, svg) {
  trees.forEach((tree, i) => {
    const old = parent.childNodes[i];
    if (!old) parent.append(made(tree, svg));
    else if (typeof tree === "string") {
      if (old.nodeType !== Node.TEXT_NODE) old.replaceWith(tree);
      else if (old.nodeValue !== tree) old.nodeValue = tree;
    } else if (old.nodeType !== Node.ELEMENT_NODE || old.localName !== tree[0] || (old.id || "") !== (tree[1].id || "")) {
      old.replaceWith(made(tree, svg));
    } else alter(old, tree, svg || tree[0] === "svg");
  });
  while (parent.childNodes.length > trees.length) parent.lastChild.remove();
}
function alter(node, [, attributes, ...children], svg) {
  const opened = node.matches("table.open");
  for (const {name} of [...node.attributes]) {
    if (!(name in attributes) && !(name === "open" && node.localName === "details") && name !== "title") node.removeAttribute(name);
  }
  Object.entries(attributes).forEach(([name, value]) => {
    if (safe(name) && node.getAttribute(name) !== value) node.setAttribute(name, value);
  });
  if (opened) node.classList.add("open");
  if (!ours(node)) change(node, children, svg);
  if (node.matches("button[aria-controls]") && document.getElementById(node.getAttribute("aria-controls"))?.matches(".open")) {
    const words = node.textContent;
    node.textContent = node.dataset.other;
    node.dataset.other = words;
    node.setAttribute("aria-expanded", "true");
  }
}

function show(page) {
  document.title = page.title + " \u00b7 gradeq";
  for (const part of ["bar", "side", "main"]) {
    const node = document.getElementById(part);
    if (!node && page[part].length) return location.reload();
    if (node) change(node, page[part], false);
  }
  follow(page);
}
function follow(page) {
  if (page.now) late = page.now - Date.now() / 1000;
  gradeq.show(page);
  gradeq.cutNames();
  tick();
}

// Times since something happened, counted on while nothing comes.
const UNITS = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
function ago(seconds) {
  if (seconds < 1) return "just now";
  const [size, unit] = UNITS.find(([size]) => seconds >= size * (size > 1 ? 1.5 : 1)) ?? UNITS[3];
  return Math.round(seconds / size) + " " + unit + " ago";
}
function tick() {
  document.querySelectorAll("time[data-since]").forEach(node => {
    const words = ago(Date.now() / 1000 + late - Number(node.dataset.since));
    if (node.textContent !== words) node.textContent = words;
  });
}

// The stream of changes. The browser reconnects automatically, except after an answer that is not a stream.
let source, wait = 1000, version;
function connect() {
  source = new EventSource(body.dataset.live);
  source.addEventListener("page", event => {
    wait = 1000;
    const page = JSON.parse(event.data);
    if (version && page.version !== version) return location.reload();
    told("");
    show(page);
  });
  source.onerror = () => {
    told("reconnecting\u2026");
    if (source.readyState !== EventSource.CLOSED) return;
    setTimeout(again, wait);
    wait = Math.min(2 * wait, 15000);
  };
}
// Signed out: the page asks for a key. The layer is gone: all layers are shown.
const again = () => fetch(location.pathname, {method: "HEAD"}).then(answer => {
  if (answer.redirected) location.assign("/");
  else if (answer.ok && !answer.headers.get("x-sign-in")) connect();
  else if (answer.status < 500) location.reload();
  else setTimeout(again, wait);
}, () => setTimeout(again, wait));
function told(words) {
  const link = document.getElementById("link");
  if (link && link.textContent !== words) link.textContent = words;
  body.classList.toggle("away", words !== "");
}

const acts = {theme: gradeq.turn, leave: () => fetch("/session", {method: "DELETE"}).then(() => location.assign("/"))};
document.addEventListener("click", event => {
  const button = event.target.closest("button");
  if (!button) return;
  if (button.dataset.act) acts[button.dataset.act]();
  else if (button.dataset.copy) gradeq.copy(button, button.parentNode.querySelector(button.dataset.copy));
  else if (button.dataset.do) ask(button);
  else if (button.hasAttribute("aria-controls")) gradeq.open(button);
});
function ask(button) {
  button.disabled = true;
  fetch(location.pathname + "/control", {
    method: "POST", headers: {"Content-Type": "application/json", "X-Gradeq-Token": body.dataset.token},
    body: JSON.stringify({do: button.dataset.do}),
  }).then(async answer => { if (!answer.ok) told((await answer.json()).detail ?? "refused"); }, () => told("no answer"))
    .finally(() => { button.disabled = false; });
}

// Signing in: a key that stands behind # in the address was printed by the server; it never leaves this page but to it.
const form = document.getElementById("sign-in");
function enter(key) {
  fetch("/session", {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({key})}).then(async answer => {
    if (answer.ok) return location.replace(location.pathname);
    const problem = await answer.json();
    document.getElementById("problem").textContent = (problem.detail ?? "This is not a valid key.") + (problem.remedy ? " \u2013 " + problem.remedy : "");
  }, () => { document.getElementById("problem").textContent = "The server does not answer."; });
}
if (form) {
  form.addEventListener("submit", event => { event.preventDefault(); enter(form.elements.key.value.trim()); });
  if (location.hash.startsWith("#gq_")) { const key = location.hash.slice(1); history.replaceState(null, "", location.pathname); enter(key); }
} else if (location.hash.startsWith("#gq_")) history.replaceState(null, "", location.pathname);

const data = document.getElementById("data");
if (data) {
  const first = JSON.parse(data.textContent);
  version = first.version;
  follow(first);
  setInterval(tick, 1000);
  connect();
}
})();
