// Writes points with the clients of InfluxDB 1 and 2 and reads them with that of 1; one JSON report on stdout.
// usage: node influx.mjs '{"host","port","password","database","time"}'
import { InfluxDB } from "@influxdata/influxdb-client";
import Influx from "influx";

const job = JSON.parse(process.argv[2]);
const report = { databases: [], mean: [], series: [], error: null };

const one = new Influx.InfluxDB({ host: job.host, port: job.port, username: "any", password: job.password, database: job.database });
await one.createDatabase(job.database);
await one.writePoints([{ measurement: "js", tags: { client: "1" }, fields: { value: 1.5 }, timestamp: job.time }], { precision: "s" });

const two = new InfluxDB({ url: `http://${job.host}:${job.port}`, token: job.password });
const writer = two.getWriteApi("any", job.database, "s");
writer.writeRecord(`js,client=2 value=2.5 ${job.time + 10}`);
await writer.close();

report.databases = await one.getDatabaseNames();
report.series = await one.getSeries({ database: job.database });
const mean = await one.query(`SELECT mean(value) FROM js WHERE time >= ${job.time}s AND time < ${job.time + 20}s GROUP BY time(10s)`);
report.mean = mean.map((row) => [row.time.getTime(), row.mean]);
try {
  await one.query("SELEKT");
} catch (error) {
  report.error = String(error.message);
}
await one.dropDatabase(job.database);
process.stdout.write(JSON.stringify(report));
