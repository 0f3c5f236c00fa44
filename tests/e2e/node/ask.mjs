// Asks statements with node-postgres, one JSON report on stdout: the rows of each, or the SQLSTATE of its error.
// usage: node ask.mjs '{"connection": {"host","port","user","password","database"}, "questions": [["SELECT ...", [values]]]}'
import pg from "pg";

const job = JSON.parse(process.argv[2]);
const client = new pg.Client(job.connection);
const report = [];

await client.connect();
for (const [text, values] of job.questions) {
  try {
    const answer = await client.query({ text, values, rowMode: "array" });
    report.push(answer.rows);
  } catch (error) {
    report.push(error.code ?? String(error));
  }
}
await client.end();
process.stdout.write(JSON.stringify(report));
