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
await page.getByText("theirs").waitFor();
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
await page.getByRole("img", { name: /^loss/ }).waitFor();
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

// In Chinese, on a phone.
await page.setViewportSize({ width: 390, height: 800 });
await page.getByRole("link", { name: "Jobs" }).click();
await page.getByRole("button", { name: "中文" }).click();
await page.getByRole("heading", { name: "作业" }).waitFor();
await judged("jobs-390-zh");
await page.getByRole("link", { name: "7", exact: true }).click();
await page.getByRole("heading", { name: "诊断" }).waitFor();
await page.getByRole("button", { name: /OutOfMemoryError/ }).first().waitFor();
await page.locator(".plots figure").first().waitFor();
await judged("job-390-zh");
await page.getByRole("link", { name: /审批/ }).click();
await judged("approvals-390-zh");

assert.deepEqual(wrong, []);
console.log("all found");
await browser.close();
