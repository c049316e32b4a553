// Walks through the page as a person does, and asks axe about each one.
import { readFileSync } from "node:fs";
import { strict as assert } from "node:assert";

const { MODULES, CHROMIUM, URL: base, LINK, PICTURES } = process.env;
const { chromium } = await import(`${MODULES}/playwright-core/index.mjs`);
const axe = readFileSync(`${MODULES}/axe-core/axe.min.js`, "utf8");

const browser = await chromium.launch({
  executablePath: CHROMIUM,
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, bypassCSP: false, locale: "en-US" });
const page = await context.newPage();
page.setDefaultTimeout(30000);
const wrong = [];
page.on("console", (m) => { if (m.type() === "error") wrong.push(`console: ${m.text()} ${m.location().url}`); });
page.on("pageerror", (e) => wrong.push(`script: ${e.message}`));

async function judged(name) {
  if (PICTURES) await page.screenshot({ path: `${PICTURES}/${name}.png`, fullPage: true });
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
  assert.ok(wide <= 1, `${name} is wider than the window by ${wide}`);
  // The page's policy runs no foreign script: axe comes in by the debugger.
  const session = await context.newCDPSession(page);
  await session.send("Page.setBypassCSP", { enabled: true });
  await page.evaluate(axe);
  const found = await page.evaluate(() => window.axe.run(document));
  await session.detach();
  assert.deepEqual(found.violations.map((v) => `${v.id}: ${v.help}: ${v.nodes.map((n) => n.target).join(" ")}`), [], name);
}

// By the site's provider, to where one wanted to go; and out again.
await page.goto(base + "/web/jobs?of=all");
await page.getByRole("heading", { name: "Sign in" }).waitFor();
await judged("sign-in-ways");
await page.getByRole("link", { name: "Sign in at the provider" }).press("Enter");
await page.getByRole("button", { name: "I am Ada" }).click();
await page.getByText("theirs", { exact: true }).waitFor();
const session = (await context.cookies()).find((c) => c.name === "megatron_ops");
assert.ok(session.httpOnly && session.sameSite === "Lax");
assert.equal((await context.cookies()).find((c) => c.name === "megatron_ops_openid"), undefined);
await page.getByRole("button", { name: "Sign out" }).click();

await page.goto(base + LINK);
await judged("sign-in");
await page.getByRole("button", { name: "Sign in as alice" }).click();
await page.getByRole("heading", { name: "Jobs" }).waitFor();
await judged("jobs");

// By keyboard to a job.
await page.keyboard.press("/");
await page.keyboard.type("gpt");
await page.keyboard.press("Enter");
await page.getByText("1 × 8 GPU").waitFor();
await page.keyboard.press("j");
await page.keyboard.press("Enter");
await page.getByRole("heading", { name: /failed gpt/ }).waitFor();

// The cause is told, and opens the log at its line.
await page.getByRole("heading", { name: "GPU out of memory" }).waitFor();
await page.getByRole("button", { name: /^cause .*OutOfMemoryError/ }).click();
const marked = page.getByRole("log").locator(".mark");
await marked.waitFor();
assert.match(await marked.textContent(), /OutOfMemoryError/);
const text = await page.getByRole("log").textContent();
assert.ok(text.includes("<script>alert(1)</script>"), "what a log says is shown as it is");
assert.ok(!text.includes("hf_abc"));

// The curves.
await page.getByRole("img", { name: /^Loss/ }).waitFor();
await page.getByRole("button", { name: "Light or dark" }).click();
await judged("job-dark");
await page.getByRole("button", { name: "Light or dark" }).click();
await judged("job");

// Only lines with a text.
await page.getByPlaceholder("Only lines with").fill("iteration");
await page.keyboard.press("Enter");
await page.waitForFunction(() => document.querySelectorAll("#log div").length === 40);

// A change is asked about, and can be left.
await page.getByRole("link", { name: "Jobs" }).click();
await page.getByRole("link", { name: "6", exact: true }).click();
await page.getByRole("button", { name: "Cancel…" }).click();
await page.getByRole("heading", { name: "What would be done" }).waitFor();
await judged("confirm");
await page.getByRole("link", { name: "No, go back" }).click();
await page.getByRole("heading", { name: /running runs/ }).waitFor();
await page.getByRole("button", { name: "Cancel…" }).click();
await page.getByRole("button", { name: "Yes, do it" }).click();
await page.getByText(/cancelled/).first().waitFor();

// Where the server does not answer, the page says so, and what was asked for can be asked for again.
await page.goto(base + "/web/jobs/test/4713");
await page.route("**/diagnosis", (route) => route.abort());
await page.getByRole("button", { name: "Diagnose now" }).click();
await page.getByText(/^This server does not answer\. The page shows the state of \d/).waitFor();
await page.unroute("**/diagnosis");
await page.getByRole("button", { name: "Diagnose now" }).click();
await page.getByText(/^This server does not answer/).waitFor({ state: "hidden" });
wrong.splice(0, wrong.length, ...wrong.filter((w) => !w.includes("/4713/diagnosis"))); // the browser tells of the lost request

// Curves: zoomed together by the fields, compared with several others.
await page.goto(base + "/web/jobs/test/4713");
await page.getByRole("img", { name: /^Peak GPU memory/ }).waitFor();
await page.waitForFunction(() => { const l = document.querySelector("#log"); return l.children.length && l.scrollTop + l.clientHeight > l.scrollHeight - 5; });
await page.getByLabel("Iterations").fill("100");
await page.getByLabel("to", { exact: true }).fill("200");
await page.getByRole("button", { name: "Zoom" }).click();
const inView = () => page.evaluate(() => plots.map((p) => [Math.round(p.scales.x.min), Math.round(p.scales.x.max)].join("-")).filter((x, i, all) => all.indexOf(x) === i));
assert.deepEqual(await inView(), ["100-200"]);
const plot = await page.locator(".u-over").first().boundingBox();
await page.mouse.move(plot.x + plot.width / 4, plot.y + 50);
await page.mouse.down();
await page.mouse.move(plot.x + plot.width / 2, plot.y + 60, { steps: 4 });
await page.mouse.up();
assert.deepEqual(await inView(), ["125-150"], "a drag zooms all of them");
await page.getByRole("button", { name: "Whole run" }).click();
assert.deepEqual(await inView(), ["1-400"]);
await page.getByLabel("Compare with job").fill("7 99");
await page.getByLabel("Compare with job").press("Enter");
await page.getByText("job 99: not known to Slurm").waitFor();
await page.getByRole("img", { name: /^Loss.*gpt/ }).waitFor();
wrong.splice(0, wrong.length, ...wrong.filter((w) => !w.includes("/99/curves.json"))); // the browser tells of each 404

// A log over ranks.
const lines = () => page.locator("#log div").count();
await page.getByLabel("rank").fill("3");
await page.getByLabel("rank").press("Enter");
await page.waitForFunction(() => document.querySelectorAll("#log div").length === 105);
await page.getByLabel("Level").selectOption("error");
await page.waitForFunction(() => document.querySelectorAll("#log div").length === 1);
assert.match(await page.getByRole("log").textContent(), /NCCL communicator/);
await page.getByLabel("rank").fill("0");
await page.getByLabel("rank").press("Enter");
await page.getByText("No such line.").waitFor();
await page.getByLabel("Level").selectOption("");
await page.getByLabel("rank").fill("");
await page.getByRole("button", { name: "Newest" }).click();
await page.getByText("2: WARNING: the fan is loud").waitFor();
assert.ok(await lines() > 300);
await page.getByLabel("File").selectOption("all, newest lines");
await page.getByText("1: stderr of rank 1").waitFor();

// What changes elsewhere is seen without loading anything anew.
const other = await context.newPage();
await other.goto(base + "/web/jobs");
await other.getByRole("row", { name: /waits/ }).getByText("pending").waitFor();
await page.goto(base + "/web/jobs/test/5");
await page.getByRole("button", { name: "Cancel…" }).click();
await page.getByRole("button", { name: "Yes, do it" }).click();
await other.getByRole("row", { name: /waits/ }).getByText("cancelled").waitFor();
await other.close();
await page.goto(base + "/web/jobs/test/4713");

// From one attempt to another.
await page.getByRole("link", { name: "4711" }).press("Enter");
await page.getByRole("heading", { name: /failed llama-8b/ }).waitFor();

// From a job to its pipeline, and to the step that broke.
await page.goto(base + "/web/jobs/test/4703");
await page.getByRole("link", { name: "nightly" }).press("Enter");
await page.getByRole("heading", { name: "Pipeline nightly" }).waitFor();
await page.getByRole("alert").getByRole("link", { name: "4702" }).press("Enter");
await page.getByRole("heading", { name: /failed step/ }).waitFor();

// What a team runs, and what it used.
await page.getByRole("link", { name: "Jobs" }).click();
await page.getByLabel("Whose").selectOption("Account research");
await page.getByRole("button", { name: "Show" }).click();
await page.getByText("theirs-too").waitFor();
await page.getByRole("link", { name: "Usage" }).click();
await page.getByLabel("Whose").selectOption("Account research");
await page.getByLabel("By").selectOption("Partition");
await page.getByRole("button", { name: "Show" }).click();
await page.getByRole("cell", { name: "dev" }).first().waitFor();

// Every page on a screen and a phone, in light and dark, in both languages.
const pages = {
  jobs: "/web/jobs?of=all", job: "/web/jobs/test/7", running: "/web/jobs/test/4713", nodes: "/web/nodes", usage: "/web/usage?of=all&by=user&days=30",
  approvals: "/web/approvals", confirm: "/web/confirm?op=cancel&cluster=test&word=4713", problem: "/web/jobs/test/99", signin: "/web/login", pipeline: "/web/pipelines/alice/nightly",
};
for (const [lang, theme, width] of [["en", "light", 1280], ["en", "dark", 390], ["zh", "dark", 1280], ["zh", "light", 390]]) {
  await page.setViewportSize({ width, height: 900 });
  await context.addCookies([{ name: "lang", value: lang, url: base + "/web" }]);
  await page.evaluate((t) => localStorage.setItem("theme", t), theme);
  for (const [name, path] of Object.entries(pages)) {
    await page.goto(base + path);
    if (name === "job") await page.getByRole("button", { name: /OutOfMemoryError/ }).first().waitFor();
    if (name === "job" || name === "running") {
      await page.locator(".plots figure").first().waitFor();
      await page.locator(".attempts li").first().waitFor();
      for (const d of await page.locator("details[data-at]").all()) await d.evaluate((x) => { x.open = true; });
      await page.waitForFunction(() => [...document.querySelectorAll("details[data-at]")].every((d) => d.textContent.trim().length > 30 || d.querySelector("*:not(summary)").innerHTML));
    }
    await judged(`${name}-${width}-${theme}-${lang}`);
  }
}
wrong.splice(0, wrong.length, ...wrong.filter((w) => !/status of (4..|5..)/.test(w)));

assert.deepEqual(wrong, []);
console.log("all found");
await browser.close();
