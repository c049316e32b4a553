"use strict";

const one = (q, of = document) => of.querySelector(q);
const part = (url) => fetch(url, { headers: { "X-Part": "1" } }).then(async (r) => {
  if (r.status === 401 || r.redirected && new URL(r.url).pathname === "/web/login") location.reload();
  return r.text();
});

// Times are shown in the reader's zone; the exact one stays in the attribute.
function localTimes(of) {
  for (const t of of.querySelectorAll("time")) {
    t.textContent = new Date(t.dateTime).toLocaleString(document.documentElement.lang, { dateStyle: "short", timeStyle: "medium" });
  }
}
localTimes(document);

one("#theme")?.addEventListener("click", () => {
  const dark = document.documentElement.dataset.theme
    ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "light" : "dark";
  localStorage.setItem("theme", document.documentElement.dataset.theme);
  drawCurves();
});
one("#lang")?.addEventListener("click", (e) => {
  document.cookie = `lang=${e.target.dataset.to}; path=/web; max-age=31536000; samesite=lax`;
  location.reload();
});

// What has a stream is drawn again when the server says that it changed.
for (const box of document.querySelectorAll("[data-stream]")) {
  let first = true;
  const source = new EventSource(box.dataset.stream);
  source.onmessage = async (e) => {
    const said = JSON.parse(e.data);
    document.dispatchEvent(new CustomEvent("changed", { detail: said }));
    if (first) { first = false; return; }
    if (said.problem) return;
    const open = [...box.querySelectorAll("details")].map((d) => d.open);
    box.innerHTML = await part(box.dataset.part);
    [...box.querySelectorAll("details")].forEach((d, i) => { d.open = open[i]; });
    localTimes(box);
  };
}

// Further parts are fetched when they are opened.
for (const d of document.querySelectorAll("details[data-at]")) {
  d.addEventListener("toggle", async () => {
    const into = one("div", d);
    if (!d.open || into.dataset.there) return;
    into.dataset.there = "1";
    into.innerHTML = await part(d.dataset.at);
  });
}

// The diagnosis.
const diagnosis = one("#diagnosis");
async function diagnose() {
  const button = one("#diagnose");
  if (button) { button.disabled = true; button.textContent = button.dataset.busy; }
  diagnosis.innerHTML = await part(diagnosis.dataset.at);
  const cause = one('button.line[data-why="cause"][data-file]', diagnosis);
  if (cause && one("#cause")) one("#cause").hidden = false;
}
if (diagnosis) {
  diagnosis.addEventListener("click", (e) => {
    if (e.target.id === "diagnose") diagnose();
    const line = e.target.closest("button.line[data-file]");
    if (line) showLine(line);
  });
  if ("now" in diagnosis.dataset) diagnose();
}

// The curves.
const curves = one("#curves");
let runs = [];
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
async function fetchRun(url) {
  const r = await fetch(url);
  return r.ok ? r.json() : null;
}
function drawCurves() {
  if (!curves || !window.uPlot) return;
  curves.textContent = "";
  if (!runs.length) { curves.textContent = curves.dataset.none; return; }
  const plots = document.createElement("div");
  plots.className = "plots";
  curves.append(plots);
  for (const c of runs[0].curves) {
    const others = runs.slice(1).map((r) => r.curves.find((x) => x.name === c.name)).filter(Boolean);
    const all = [c, ...others];
    const data = uPlot.join(all.map((x) => [x.x, x.y]));
    const figure = document.createElement("figure");
    const title = c.name.replaceAll("_", " ") + (c.unit ? ` (${c.unit})` : "");
    const caption = document.createElement("figcaption");
    const last = c.y[c.y.length - 1];
    caption.textContent = `${title}: ${last === null || last === undefined ? "-" : Number(last).toPrecision(5)}`;
    figure.append(caption);
    plots.append(figure);
    const axis = { stroke: color("--soft"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line") } };
    const plot = new uPlot({
      width: figure.clientWidth || 480, height: 220, cursor: { drag: { x: true, y: false } },
      scales: { x: { time: false } }, axes: [axis, { ...axis, size: 64, values: (_, vs) => vs.map((v) => v === null ? "" : String(Number(v.toPrecision(4)))) }],
      series: [{ label: "iteration" }, ...all.map((_, i) => ({
        label: runs[i].name, stroke: color(i ? "--warn" : "--accent"), dash: i ? [6, 4] : undefined, width: 1.5, spanGaps: true,
      }))],
    }, data, figure);
    plot.root.setAttribute("role", "img");
    plot.root.setAttribute("aria-label", `${title}, ${c.x.length} points, ${c.y[0]} → ${last}`);
    new ResizeObserver(() => { if (Math.abs(plot.width - figure.clientWidth) > 4) plot.setSize({ width: figure.clientWidth, height: 220 }); }).observe(figure);
  }
}
async function loadCurves() {
  const own = await fetchRun(curves.dataset.at);
  runs = own ? [own, ...runs.slice(1)] : [];
  drawCurves();
}
if (curves) {
  loadCurves();
  one("#compare").addEventListener("submit", async (e) => {
    e.preventDefault();
    const job = new FormData(e.target).get("job").trim();
    runs = runs.slice(0, 1);
    if (/^[0-9_]+$/.test(job)) {
      const other = await fetchRun(`${curves.dataset.base}${job}/curves.json`);
      if (other) runs.push(other);
    }
    drawCurves();
  });
}

// The log: a window of the file is held, and grows at both ends as one scrolls.
const log = one("#log"), logForm = one("#logform");
const held = { from: 0, to: 0, size: 0, busy: false };
const most = 6000;
function lineElement(text) {
  const d = document.createElement("div");
  d.textContent = text;
  if (/\b(error|exception|traceback|fatal)\b/i.test(text)) d.className = "error";
  else if (/\bwarn(ing)?\b/i.test(text)) d.className = "warning";
  return d;
}
async function window_(query) {
  const q = new URLSearchParams({ file: logForm.elements.file.value, ...query });
  const r = await fetch(`${log.dataset.at}?${q}`);
  const said = await r.json();
  if (!r.ok) { log.textContent = said.message; return null; }
  return said;
}
async function show(query) {
  const find = logForm.elements.find.value;
  const w = await window_(find && !("line" in query) ? { find, from: 0 } : query);
  if (!w) return;
  Object.assign(held, w);
  log.replaceChildren(...w.lines.map(lineElement));
  if (w.mark >= 0 && log.children[w.mark]) {
    log.children[w.mark].classList.add("mark");
    log.children[w.mark].scrollIntoView({ block: "center" });
  } else if ("end" in query) log.scrollTop = log.scrollHeight;
  else log.scrollTop = 0;
}
async function further(down) {
  const find = logForm.elements.find.value;
  if (held.busy || (down ? held.to >= held.size : held.from <= 0 || find)) return;
  held.busy = true;
  const w = await window_(down ? { from: held.to, ...(find ? { find } : {}) } : { before: held.from });
  if (w && down) {
    log.append(...w.lines.map(lineElement));
    held.to = w.to; held.size = w.size;
    while (log.children.length > most) log.firstChild.remove();
  } else if (w) {
    const height = log.scrollHeight;
    log.prepend(...w.lines.map(lineElement));
    log.scrollTop += log.scrollHeight - height;
    held.from = w.from;
  }
  held.busy = false;
}
function showLine(line) {
  logForm.elements.file.value = line.dataset.file;
  logForm.elements.find.value = "";
  logForm.elements.follow.checked = false;
  show({ line: line.dataset.line });
  log.focus();
}
if (log) {
  log.addEventListener("scroll", () => {
    if (log.scrollTop + log.clientHeight > log.scrollHeight - 400) further(true);
    else if (log.scrollTop < 200) further(false);
  });
  logForm.addEventListener("submit", (e) => { e.preventDefault(); show({ from: 0 }); });
  logForm.elements.file.addEventListener("change", () => show({ end: 1 }));
  logForm.addEventListener("click", (e) => {
    if (e.target.dataset.go === "oldest") show({ from: 0 });
    if (e.target.dataset.go === "newest") show({ end: 1 });
    if (e.target.id === "cause") showLine(one('button.line[data-why="cause"][data-file]'));
  });
  show({ end: 1 });
  document.addEventListener("changed", async (e) => {
    if (!logForm.elements.follow.checked || e.detail.bytes === undefined || logForm.elements.find.value) return;
    held.size = Math.max(held.size, held.to + 1);
    await further(true);
    log.scrollTop = log.scrollHeight;
  });
  let drawn = Date.now();
  document.addEventListener("changed", (e) => {
    if (e.detail.bytes === undefined || !curves.dataset.follow || Date.now() - drawn < 15000) return;
    drawn = Date.now();
    loadCurves();
  });
}

// Keys.
let pending = "";
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName)) {
    if (e.key === "Escape") e.target.blur();
    return;
  }
  const rows = [...document.querySelectorAll("table.jobs tbody tr")];
  const at = rows.findIndex((r) => r.classList.contains("chosen"));
  const choose = (i) => {
    if (!rows[i]) return;
    rows[at]?.classList.remove("chosen");
    rows[i].classList.add("chosen");
    one("a", rows[i]).focus();
  };
  const keys = pending + e.key;
  pending = e.key === "g" && !pending ? "g" : "";
  switch (keys) {
    case "/": e.preventDefault(); (one("#filter") ?? logForm?.elements.find)?.focus(); break;
    case "j": choose(at + 1); break;
    case "k": choose(Math.max(0, at - 1)); break;
    case "gc": if (one("#cause") && !one("#cause").hidden) one("#cause").click(); break;
    case "gl": log?.focus(); break;
    case "?": one("#keys").hidden = !one("#keys").hidden; break;
  }
});
