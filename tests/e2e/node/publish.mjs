// Publishes payloads with MQTT.js, one JSON report on stdout.
// usage: node publish.mjs '{"url","protocolVersion","username","qos","topic","payloads":[...]}'
import mqtt from "mqtt";

const job = JSON.parse(process.argv[2]);
const report = { connected: false, acked: 0, refused: [], error: null };

try {
  const client = await mqtt.connectAsync(job.url, {
    protocolVersion: job.protocolVersion,
    username: job.username,
    reconnectPeriod: 0,
    connectTimeout: 20_000,
  });
  report.connected = true;
  for (const payload of job.payloads) {
    try {
      await client.publishAsync(job.topic, payload, { qos: job.qos });
      report.acked += 1;
    } catch (error) {
      report.refused.push(error.code ?? String(error));
    }
  }
  await client.endAsync();
} catch (error) {
  report.error = { code: error.code ?? null, message: String(error.message) };
}
process.stdout.write(JSON.stringify(report));
