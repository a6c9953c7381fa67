// @runpod/ai-sdk-provider with the AI SDK, unmodified: `ai_sdk.mjs MODULES QUEUE ENDPOINT KEY`.
import { createRequire } from "node:module";
import { join } from "node:path";

const [modules, queue, endpoint, key] = process.argv.slice(2);
const require = createRequire(join(modules, "x.js"));
const { generateText, streamText } = require("ai");
const { createRunpod } = require("@runpod/ai-sdk-provider");

function check(name, found, expected) {
  if (JSON.stringify(found) !== JSON.stringify(expected)) {
    console.error(`${name}: ${JSON.stringify(found)} is not ${JSON.stringify(expected)}`);
    process.exit(1);
  }
  console.log("ok", name);
}

const runpod = createRunpod({ apiKey: key, baseURL: `${queue}/${endpoint}/openai/v1` });
const { text } = await generateText({ model: runpod("small"), messages: [{ role: "user", content: "good" }] });
check("generateText", text, "you said: good");
let streamed = "";
const stream = streamText({ model: runpod("small"), messages: [{ role: "user", content: "good" }] });
for await (const part of stream.textStream) streamed += part;
check("streamText", streamed, "you said: good ");
