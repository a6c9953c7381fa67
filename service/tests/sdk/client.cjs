// The real service's npm client, unmodified: `client.cjs PLAIN GENERATOR KEY BASE`.
const runpodSdk = require("runpod-sdk").default;

const [plain, generator, key, baseUrl] = process.argv.slice(2);
const sdk = runpodSdk(key, { baseUrl });

function check(name, found, expected) {
  if (JSON.stringify(found) !== JSON.stringify(expected)) {
    console.error(`${name}: ${JSON.stringify(found)} is not ${JSON.stringify(expected)}`);
    process.exit(1);
  }
  console.log("ok", name);
}

async function main() {
  const endpoint = sdk.endpoint(plain);
  const done = await endpoint.runSync({ input: { kind: "echo" } }, 60000);
  check("runSync", [done.status, done.output.echo], ["COMPLETED", { kind: "echo" }]);
  const made = await endpoint.run({ input: { kind: "sleep", seconds: 2 } });
  check("run", made.status, "IN_QUEUE");
  const waited = await endpoint.statusSync(made.id, 20000);
  check("statusSync", waited.status, "COMPLETED");
  check("status", (await endpoint.status(made.id)).status, "COMPLETED");
  const long = await endpoint.run({ input: { kind: "sleep", seconds: 120 } });
  check("cancel", (await endpoint.cancel(long.id)).status, "CANCELLED");
  check("health", (await endpoint.health()).jobs.inQueue, 0);
  check("purge", (await endpoint.purgeQueue()).status, "completed");
  const stream = sdk.endpoint(generator);
  const job = await stream.run({ input: { count: 3 } });
  const numbers = [];
  for await (const chunk of stream.stream(job.id, 60000)) numbers.push(chunk.output.number);
  check("stream", numbers, [0, 1, 2]);
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
