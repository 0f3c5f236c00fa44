// Wires the page together: link -> fleet -> table and chart; /metrics and /api/status -> header.

import "./style.css";
import { Api, ApiError, type DeviceList, type Store } from "./api";
import { LiveChart } from "./chart";
import { byId } from "./dom";
import { Fleet } from "./fleet";
import { Header } from "./header";
import {
  CHART_INTERVAL_MS,
  FLEET_ALL_KEYS_INTERVAL_MS,
  FLEET_INTERVAL_MS,
  HISTORY_REFRESH_MS,
  METRICS_INTERVAL_MS,
  REFUSALS_INTERVAL_MS,
  ROWS_INTERVAL_MS,
  STATUS_INTERVAL_MS,
  TABLE_INTERVAL_MS,
} from "./limits";
import { Link } from "./link";
import { LoginForm } from "./login";
import { RefusalPanel } from "./refusals";
import { StatsWindow, readMetrics } from "./stats";
import type { View } from "./subscriptions";
import { FleetTable } from "./table";

const api = new Api(location.origin, tabStore());
const fleet = new Fleet();
const header = new Header();
const login = new LoginForm(api);
const chart = new LiveChart(api, fleet);
const table = new FleetTable(fleet, (deviceId) => chart.showDevice(deviceId));
const refusals = new RefusalPanel();
const statsWindow = new StatsWindow();
/** The devices that the server had when it was asked last. */
let devicesSeen = "";

const link = new Link(api, {
  state: (state) => {
    header.showState(state);
    header.showUser(api.user, state.kind === "live");
  },
  devices: showDevices,
  update: (deviceId, update) => {
    fleet.apply(deviceId, update);
    chart.add(deviceId, update);
  },
  // Whatever was reported before this moment is in the store.
  subscribed: (deviceId) => void chart.reload(deviceId),
  subscriptionRefused: (reason) => header.showNotice(`The server refuses a subscription: ${reason}`),
  login: async (reason) => void (await login.ask(reason)),
});

/** A browser may forbid it; the session then ends with the page. */
function tabStore(): Store | null {
  try {
    return sessionStorage;
  } catch {
    return null;
  }
}

/** What is looked at: the rows in sight, the chart, and of the whole fleet what its order depends on. */
function view(): View {
  const chartShown = chart.shown;
  const rows = document.hidden ? [] : table.deviceIdsInSight;
  if (chartShown !== null && !document.hidden && !rows.includes(chartShown.deviceId)) rows.push(chartShown.deviceId);
  const keys = table.keysOfAll;
  const all = document.hidden || keys?.length === 0 ? [] : fleet.all().map(({ device }) => device.id);
  const intervalMs = keys === null ? FLEET_ALL_KEYS_INTERVAL_MS : FLEET_INTERVAL_MS;
  return {
    watches: {
      rows: { deviceIds: rows, keys: null, intervalMs: ROWS_INTERVAL_MS },
      ...(all.length === 0 ? {} : { fleet: { deviceIds: all, keys, intervalMs } }),
    },
    chart: chartShown,
  };
}

async function logIn(): Promise<void> {
  header.showUser(null, false);
  if (await login.ask("", true)) link.restart();
  else header.showUser(null, true);
}

function logOut(): void {
  api.logout();
  link.restart();
}

function showDevices({ devices, total }: DeviceList): void {
  fleet.setDevices(devices);
  table.setTotal(total);
  table.draw(Date.now());
  const gone = table.selected === null || fleet.get(table.selected) === undefined;
  if (gone && table.first !== null) table.select(table.first);
}

async function pollMetrics(): Promise<void> {
  try {
    statsWindow.push(readMetrics(await api.metrics(), performance.now()));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    statsWindow.clear();
  }
  header.showStats(statsWindow.stats());
}

async function pollStatus(): Promise<void> {
  try {
    const status = await api.status();
    header.showStatus(status);
    const devices = `${status?.devices} ${status?.devices_generation}`;
    if (devices !== devicesSeen && devicesSeen !== "") await link.refreshDevices();
    devicesSeen = devices;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error; // the link's state already tells
  }
}

async function pollRefusals(): Promise<void> {
  try {
    refusals.show(await api.refusals(), Date.now());
  } catch (error) {
    if (!(error instanceof ApiError)) throw error; // the link's state already tells
  }
}

/** Runs a task again and again, `intervalMs` after its last end: a slow answer never piles up requests. */
async function repeat(intervalMs: number, task: () => Promise<void>): Promise<never> {
  for (;;) {
    await task();
    await new Promise((resolve) => setTimeout(resolve, intervalMs));
  }
}

byId("log-in").addEventListener("click", () => void logIn());
byId("log-out").addEventListener("click", logOut);
setInterval(() => {
  table.draw(Date.now());
  link.look(view());
}, TABLE_INTERVAL_MS);
setInterval(() => chart.draw(Date.now()), CHART_INTERVAL_MS);
setInterval(() => void chart.reload(), HISTORY_REFRESH_MS);
void repeat(METRICS_INTERVAL_MS, pollMetrics);
void repeat(STATUS_INTERVAL_MS, pollStatus);
void repeat(REFUSALS_INTERVAL_MS, pollRefusals);
void link.run();
