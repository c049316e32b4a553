"use strict";

const one = (q, of = document) => of.querySelector(q);
// A page whose server does not answer says since when, because it goes on looking live.
function answering(yes) {
  const says = one("#offline");
  if (says.hidden === yes) return;
  says.hidden = yes;
  says.textContent = yes ? "" : `${says.dataset.says} ${new Date().toLocaleTimeString(document.documentElement.lang)}`;
}
const part = (url) => fetch(url, { headers: { "X-Part": "1" } }).catch((e) => { answering(false); throw e; }).then(async (r) => {
  answering(true);
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
  let lost = null; // the stream is opened again within a few seconds where the server only restarts
  const follow = () => {
    const source = new EventSource(box.dataset.stream);
    source.onopen = () => { clearTimeout(lost); lost = null; answering(true); };
    source.onerror = () => {
      lost ??= setTimeout(() => answering(false), 5000);
      if (source.readyState === EventSource.CLOSED) setTimeout(again, 15000); // it was refused, and the browser gives it up
    };
    source.onmessage = changed;
  };
  const again = () => fetch(box.dataset.part, { headers: { "X-Part": "1" }, redirect: "manual" })
    .then((r) => r.type === "opaqueredirect" ? location.reload() : follow(), follow);
  const changed = async (e) => {
    const said = JSON.parse(e.data);
    document.dispatchEvent(new CustomEvent("changed", { detail: said }));
    if (first) { first = false; return; }
    if (said.problem) return;
    const open = [...box.querySelectorAll("details")].map((d) => d.open);
    box.innerHTML = await part(box.dataset.part);
    [...box.querySelectorAll("details")].forEach((d, i) => { d.open = open[i]; });
    localTimes(box);
  };
  follow();
}

// Parts that come after the page itself.
for (const box of document.querySelectorAll("[data-load]")) {
  part(box.dataset.load).then((html) => { box.innerHTML = html; localTimes(box); });
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
  const button = one("#diagnose"), label = button?.textContent;
  if (button) { button.disabled = true; button.textContent = button.dataset.busy; }
  try {
    diagnosis.innerHTML = await part(diagnosis.dataset.at);
  } catch {
    if (button) { button.disabled = false; button.textContent = label; }
    return;
  }
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

// The curves: those of several runs lie over one another, and are zoomed together.
const curves = one("#curves"), zoomForm = one("#zoom");
let runs = [], plots = [], zoomed = null;
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const strokes = ["--accent", "--warn", "--good", "--bad", "--soft"];
async function fetchRun(url) {
  const r = await fetch(url, { headers: { Accept: "application/json" } });
  return [r.ok, await r.json()];
}
const whole = () => ({ min: Math.min(...plots.map((p) => p.data[0][0])), max: Math.max(...plots.map((p) => p.data[0].at(-1))) });
function zoomTo(from, to) {
  zoomed = from === null ? null : { min: from, max: to };
  for (const p of plots) p.setScale("x", zoomed ?? whole());
  zoomForm.elements.from.value = zoomed ? Math.ceil(from) : "";
  zoomForm.elements.to.value = zoomed ? Math.floor(to) : "";
}
function drawCurves() {
  if (!curves || !window.uPlot) return;
  curves.textContent = "";
  plots = [];
  zoomForm.hidden = !runs.length || !runs[0].curves.length;
  if (zoomForm.hidden) { curves.textContent = curves.dataset.none; return; }
  const box = document.createElement("div");
  box.className = "plots";
  curves.append(box);
  for (const c of runs[0].curves) {
    const shown = runs.map((r) => [r.name, r.curves.find((x) => x.name === c.name)]).filter(([, x]) => x);
    const data = uPlot.join(shown.map(([, x]) => [x.x, x.y]));
    const figure = document.createElement("figure");
    const title = c.name + (c.unit ? ` (${c.unit})` : "");
    const caption = document.createElement("figcaption");
    // Where the newest iterations have no finite value, as after a divergence, the caption says of which iteration it is.
    const last = c.newest, of = c.of < runs[0].summary.last_iteration ? ` (${curves.dataset.iteration} ${c.of})` : "";
    caption.textContent = `${title} ${Number(Number(last).toPrecision(5))}${of}`;
    figure.append(caption);
    box.append(figure);
    const axis = { stroke: color("--soft"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line") } };
    const plot = new uPlot({
      width: figure.clientWidth || 480, height: 220, cursor: { drag: { x: true, y: false, setScale: false }, sync: { key: "runs" } },
      legend: { show: shown.length > 1 },
      scales: { x: { time: false } }, axes: [axis, { ...axis, size: 64, values: (_, vs) => vs.map((v) => v === null ? "" : String(Number(v.toPrecision(4)))) }],
      series: [{ label: curves.dataset.iteration }, ...shown.map(([name], i) => ({
        label: name, stroke: color(strokes[i % strokes.length]), dash: i ? [6, 4] : undefined, width: 1.5, spanGaps: true,
      }))],
      hooks: {
        setSelect: [(u) => { if (u.select.width > 4) zoomTo(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")); u.setSelect({ width: 0, height: 0 }, false); }],
      },
    }, data, figure);
    plots.push(plot);
    plot.over.addEventListener("dblclick", () => zoomTo(null));
    plot.root.setAttribute("role", "img");
    plot.root.setAttribute("aria-label", `${title}, ${shown.map(([name]) => name).join(", ")}: ${c.y[0]} → ${last}`);
    new ResizeObserver(() => { if (Math.abs(plot.width - figure.clientWidth) > 4) plot.setSize({ width: figure.clientWidth, height: 220 }); }).observe(figure);
  }
  if (zoomed) zoomTo(zoomed.min, zoomed.max);
  else zoomTo(null);
}
async function loadCurves() {
  const [ok, own] = await fetchRun(curves.dataset.at);
  runs = ok ? [own, ...runs.slice(1)] : [];
  drawCurves();
}
if (curves) {
  loadCurves();
  one("#compare").addEventListener("submit", async (e) => {
    e.preventDefault();
    runs = runs.slice(0, 1);
    const problem = one("#compareproblem");
    problem.hidden = true;
    for (const job of new FormData(e.target).get("job").split(/[\s,]+/).filter(Boolean).slice(0, 4)) {
      const [ok, other] = await fetchRun(`${curves.dataset.base}${encodeURIComponent(job)}/curves.json`);
      if (ok) runs.push(other);
      else { problem.hidden = false; problem.textContent = other.message; }
    }
    drawCurves();
  });
  zoomForm.addEventListener("submit", (e) => {
    e.preventDefault();
    const from = Number(zoomForm.elements.from.value || whole().min), to = Number(zoomForm.elements.to.value || whole().max);
    if (from < to) zoomTo(from, to);
  });
  one("#whole").addEventListener("click", () => zoomTo(null));
}

// The log: a window of the file is held, and grows at both ends as one scrolls.
const log = one("#log"), logForm = one("#logform");
const held = { from: 0, to: 0, size: 0, busy: false, there: false };
const most = 6000;
function lineElement(text) {
  const d = document.createElement("div");
  d.textContent = text;
  if (/\b(error|exception|traceback|fatal)\b/i.test(text)) d.className = "error";
  else if (/\bwarn(ing)?\b/i.test(text)) d.className = "warning";
  return d;
}
// chosen is what of the lines is wanted; empty: all.
function chosen() {
  const all = {};
  for (const name of ["find", "rank", "node", "level"]) {
    const value = logForm.elements[name]?.value;
    if (value) all[name] = value;
  }
  return all;
}
async function window_(query) {
  const q = new URLSearchParams({ file: logForm.elements.file.value, ...query });
  const r = await fetch(`${log.dataset.at}?${q}`, { headers: { Accept: "application/json" } });
  const said = await r.json();
  if (!r.ok) { log.textContent = said.message; return null; }
  return said;
}
const says = one("#logsays");
let asked = 0;
async function show(query) {
  held.there = false; // nothing is added to a window that is on its way out
  const mine = ++asked, some = "line" in query ? {} : chosen();
  const w = await window_({ ...query, ...some });
  if (!w || mine !== asked) return;
  Object.assign(held, w, { there: true });
  log.replaceChildren(...w.lines.map(lineElement));
  if (w.mark >= 0 && log.children[w.mark]) {
    log.children[w.mark].classList.add("mark");
    log.children[w.mark].scrollIntoView({ block: "center" });
  } else if ("end" in query) log.scrollTop = log.scrollHeight;
  else log.scrollTop = 0;
  await fill(mine, some);
}
// A search goes on until there is something to see, or the file ends.
async function fill(mine, some) {
  while (mine === asked && Object.keys(some).length && held.to < held.size && log.children.length < 100) {
    says.textContent = `${says.dataset.searching} ${Math.floor(100 * held.to / held.size)} %`;
    if (!await further(true)) break;
  }
  if (mine === asked) says.textContent = Object.keys(some).length && !log.children.length ? says.dataset.none : "";
}
async function further(down) {
  const some = chosen();
  if (held.busy || !held.there || (down ? held.to >= held.size : held.from <= 0 || Object.keys(some).length)) return false;
  held.busy = true;
  const mine = asked;
  const w = await window_(down ? { from: held.to, ...some } : { before: held.from });
  held.busy = false;
  if (!w || mine !== asked) return false;
  if (down) {
    log.append(...w.lines.map(lineElement));
    held.to = w.to; held.size = w.size;
    while (log.children.length > most) log.firstChild.remove();
  } else {
    const height = log.scrollHeight;
    log.prepend(...w.lines.map(lineElement));
    log.scrollTop += log.scrollHeight - height;
    held.from = w.from;
  }
  return true;
}
function showLine(line) {
  logForm.elements.file.value = line.dataset.file;
  for (const name of ["find", "rank", "node", "level"]) if (logForm.elements[name]) logForm.elements[name].value = "";
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
  logForm.addEventListener("change", (e) => {
    if (e.target.name === "file") show({ end: 1 });
    else if (e.target.name !== "follow" && e.target.name !== "find") show({ from: 0 });
  });
  logForm.addEventListener("click", (e) => {
    if (e.target.dataset.go === "oldest") show({ from: 0 });
    if (e.target.dataset.go === "newest") show({ end: 1 });
    if (e.target.id === "cause") showLine(one('button.line[data-why="cause"][data-file]'));
  });
  show({ end: 1 });
  document.addEventListener("changed", async (e) => {
    if (!logForm.elements.follow.checked || e.detail.bytes === undefined || !held.there) return;
    if (logForm.elements.file.value === "all") { await show({ end: 1 }); return; }
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
