// Publishes to topics and receives them with MQTT.js, which takes topic aliases from the server.
import mqtt from "mqtt";

const job = JSON.parse(process.argv[2]);
const report = { topics: [], aliased: 0 };
const client = mqtt.connect(job.url, {
  protocolVersion: 5,
  username: job.username,
  reconnectPeriod: 0,
  properties: { topicAliasMaximum: job.topicAliasMaximum },
});

client.on("error", (error) => {
  console.error(error);
  process.exit(1);
});
client.on("packetreceive", (packet) => {
  if (packet.cmd === "publish" && packet.topic.length === 0) report.aliased += 1;
});
client.on("message", (topic) => {
  report.topics.push(topic);
  if (report.topics.length === job.topics.length) {
    console.log(JSON.stringify(report));
    client.end();
  }
});
client.on("connect", async () => {
  await client.subscribeAsync("a/#", { qos: 1 });
  for (const topic of job.topics) await client.publishAsync(topic, "x", { qos: 1 });
});
