// The head of the page: link state, counters, what the server says about itself, notices.

import type { Status } from "./api";
import { byId, setText } from "./dom";
import type { LinkState } from "./link";
import type { Quantile } from "./prometheus";
import type { Stats } from "./stats";
import { formatLatency, formatNumber } from "./values";

const STATE_TEXT: Record<LinkState["kind"], string> = {
  connecting: "Connecting",
  live: "Live",
  reconnecting: "Disconnected, retrying",
  refused: "Refused",
  login: "Login needed",
};

export class Header {
  private readonly state = byId("link-state");
  private readonly notice = byId("notice");
  private readonly sealed = byId("sealed");
  private readonly durability = byId("durability");
  private readonly about = byId("about");
  private readonly tiles = {
    messages: byId("stat-messages"),
    points: byId("stat-points"),
    connections: byId("stat-connections"),
    ackP50: byId("stat-ack-p50"),
    ackP99: byId("stat-ack-p99"),
  };

  showState(state: LinkState): void {
    this.state.dataset["state"] = state.kind;
    setText(this.state, STATE_TEXT[state.kind]);
    this.showNotice(state.kind === "reconnecting" || state.kind === "refused" ? state.reason : "");
  }

  /** Who is logged in; the way in for those who look without a login, unless they are on it. */
  showUser(user: string | null, mayLogIn: boolean): void {
    setText(byId("user-name"), user ?? "");
    byId("log-in").hidden = user !== null || !mayLogIn;
    byId("log-out").hidden = user === null;
  }

  showNotice(text: string): void {
    setText(this.notice, text);
    this.notice.hidden = text === "";
  }

  showStats(stats: Stats): void {
    setText(this.tiles.messages, rateText(stats.messagesPerSecond));
    setText(this.tiles.points, rateText(stats.pointsPerSecond));
    setText(this.tiles.connections, stats.connections === null ? "–" : formatNumber(stats.connections, 0));
    setText(this.tiles.ackP50, latencyText(stats.ackP50));
    setText(this.tiles.ackP99, latencyText(stats.ackP99));
  }

  showStatus(status: Status | null): void {
    const { durability, version, uptime_s: uptime, store } = status ?? {};
    setText(byId("stat-durability"), durability ?? "");
    this.durability.hidden = !durability;
    const parts = [
      version ? `Version ${version}` : "",
      uptime === undefined ? "" : `Up ${formatUptime(uptime)}`,
    ];
    setText(this.about, parts.filter(Boolean).join(" · "));
    const reason = store?.sealed ?? "";
    setText(this.sealed, reason === "" ? "" : `The store refuses writes; reading continues. Cause: ${reason}`);
    this.sealed.hidden = reason === "";
  }
}

function rateText(perSecond: number | null): string {
  if (perSecond === null) return "–";
  return formatNumber(perSecond, perSecond > 0 && perSecond < 10 ? 1 : 0);
}

function latencyText(quantile: Quantile | null): string {
  if (quantile === null) return "–";
  return (quantile.beyond ? "> " : "") + formatLatency(quantile.value);
}

export function formatUptime(seconds: number): string {
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1) return `${Math.floor(seconds)} s`;
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  return hours < 48 ? `${hours} h ${minutes % 60} min` : `${Math.floor(hours / 24)} d`;
}
