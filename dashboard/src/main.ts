// Wires the page together: link -> fleet -> table and chart; /metrics and /api/status -> header.

import "./style.css";
import { Api, ApiError, type DeviceList } from "./api";
import { LiveChart } from "./chart";
import { Fleet } from "./fleet";
import { Header } from "./header";
import {
  CHART_INTERVAL_MS,
  HISTORY_REFRESH_MS,
  METRICS_INTERVAL_MS,
  REFUSALS_INTERVAL_MS,
  SILENCE_MAX_MS,
  STATUS_INTERVAL_MS,
  TABLE_INTERVAL_MS,
} from "./limits";
import { Link } from "./link";
import { LoginForm } from "./login";
import { RefusalPanel } from "./refusals";
import { StatsWindow, readMetrics } from "./stats";
import { FleetTable } from "./table";

const api = new Api(location.origin);
const fleet = new Fleet();
const header = new Header();
const login = new LoginForm(api);
const chart = new LiveChart(api, fleet);
const table = new FleetTable(fleet, (deviceId) => chart.showDevice(deviceId));
const refusals = new RefusalPanel();
const statsWindow = new StatsWindow();
let lastAnswerMs = performance.now();

const link = new Link(api, {
  state: (state) => header.showState(state),
  devices: showDevices,
  update: (deviceId, update) => {
    fleet.apply(deviceId, update);
    chart.add(deviceId, update);
  },
  // Whatever was reported before this moment is in the store.
  subscribed: (deviceId) => void chart.reload(deviceId),
  subscriptionRefused: (reason) => header.showNotice(`The server refuses a subscription: ${reason}`),
  login: (reason) => login.ask(reason),
});

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
    lastAnswerMs = performance.now();
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    statsWindow.clear();
    if (error.status !== 0) lastAnswerMs = performance.now();
    else if (performance.now() - lastAnswerMs > SILENCE_MAX_MS) link.declareDead(error.message);
  }
  header.showStats(statsWindow.stats());
}

async function pollStatus(): Promise<void> {
  try {
    header.showStatus(await api.status());
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

setInterval(() => table.draw(Date.now()), TABLE_INTERVAL_MS);
setInterval(() => chart.draw(Date.now()), CHART_INTERVAL_MS);
setInterval(() => void chart.reload(), HISTORY_REFRESH_MS);
void repeat(METRICS_INTERVAL_MS, pollMetrics);
void repeat(STATUS_INTERVAL_MS, pollStatus);
void repeat(REFUSALS_INTERVAL_MS, pollRefusals);
void link.run();
