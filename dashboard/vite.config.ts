import { defineConfig } from "vitest/config";

// `npm run dev` serves the sources and sends everything else to a running `tacho demo`.
const server = process.env["TACHO_URL"] ?? "http://127.0.0.1:8080";

export default defineConfig({
  build: {
    target: "es2022",
    // Nothing inline: the page runs under a content security policy of `'self'`.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: {
    proxy: {
      "/api": { target: server, ws: true },
      "/metrics": server,
    },
  },
  test: { include: ["test/**/*.test.ts"] },
});
