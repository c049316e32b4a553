// Plays a client that draws MCP Apps: runs the view's script on a document that
// only keeps what is put into it, hands it the answers on standard input, and
// prints what it drew and what it said.
import vm from "node:vm";
import { readFileSync } from "node:fs";

const { page, context, capabilities, answers } = JSON.parse(readFileSync(0, "utf8"));

class Element {
  constructor(name) { this.name = name; this.children = []; this.attributes = {}; this.style = { setProperty() {} }; }
  appendChild(child) { this.children.push(child); return child; }
  replaceChildren() { this.children = []; }
  setAttribute(name, value) { this.attributes[name] = value; }
  set innerHTML(_) { throw new Error("nothing is set as HTML"); }
  words() { return [this.textContent, this.attributes.points && "points " + this.attributes.points, ...this.children.flatMap((c) => c.words())].filter(Boolean); }
  find(name) { return this.name === name ? this : this.children.map((c) => c.find(name)).find(Boolean); }
}

const view = new Element("main"), said = [], drawn = [];
let hear;
const parent = { postMessage: (message) => said.push(message) };
const window = { parent, addEventListener: (_, listener) => { hear = listener; } };
const document = {
  getElementById: () => view, createElement: (name) => new Element(name), createElementNS: (_, name) => new Element(name),
  documentElement: new Element("html"), body: { scrollWidth: 1, scrollHeight: 1 },
};
const tell = async (message) => { hear({ source: parent, data: { jsonrpc: "2.0", ...message } }); await new Promise(setImmediate); };

vm.runInNewContext(page.match(/<script>([\s\S]*)<\/script>/)[1], { window, document });
hear({ source: {}, data: { jsonrpc: "2.0", method: "ui/notifications/tool-result", params: { structuredContent: { job_id: "forged" } } } });
await tell({ id: said[0].id, result: { protocolVersion: "2026-01-26", hostCapabilities: capabilities, hostContext: context } });
for (const { input, result } of answers) {
  await tell({ method: "ui/notifications/tool-input", params: { arguments: input } });
  await tell({ method: "ui/notifications/tool-result", params: result });
  drawn.push(view.words());
}
const button = view.find("button");
if (button) {
  button.onclick();
  await tell({ id: said.at(-1).id, result: answers[0].result });
  drawn.push(view.words());
}
await tell({ id: 99, method: "ui/resource-teardown", params: {} });
console.log(JSON.stringify({ said, drawn }));
