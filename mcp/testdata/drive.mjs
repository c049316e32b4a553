// Drives a server with the official TypeScript client and prints what it saw as
// one JSON document: drive.mjs URL TOKEN
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

const [url, token] = process.argv.slice(2);
const client = new Client({ name: 'drive', version: '1' }, { capabilities: { elicitation: { form: {} } } });
const seen = {};
client.setRequestHandler(ElicitRequestSchema, async (request) => {
  seen.asked = request.params.message;
  return { action: 'accept', content: { ok: true } };
});
const transport = new StreamableHTTPClientTransport(new URL(url), {
  requestInit: { headers: { Authorization: `Bearer ${token}` } },
});
await client.connect(transport);
seen.protocol = transport.protocolVersion;
seen.tools = (await client.listTools()).tools.map((t) => t.name);
seen.templates = (await client.listResourceTemplates()).resourceTemplates.map((t) => t.uriTemplate);
seen.prompts = (await client.listPrompts()).prompts.map((p) => p.name);
const call = (name, args) => client.callTool({ name, arguments: args });
seen.status = (await call('status', { job: '4711' })).structuredContent;
seen.refused = (await call('status', { job: 'none' })).isError === true;
seen.cancelled = (await call('cancel', { job: '4711' })).structuredContent.cancelled;
console.log(JSON.stringify(seen));
await client.close();
