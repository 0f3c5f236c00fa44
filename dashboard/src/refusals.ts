// Which devices sent something that was refused, and why: a panel that is there only when there are any.

import type { Refusal } from "./api";
import { byId, make, setText } from "./dom";
import { REFUSALS_SHOWN_MAX } from "./limits";
import { formatAge } from "./values";

/** The cells of one row of the panel. */
export function refusalCells({ name, messages, lastTs, door, reason }: Refusal, nowMs: number): string[] {
  return [name, String(messages), `${formatAge(nowMs - lastTs)} ago`, door, reason ?? "log in to see the reason"];
}

/** What the panel says while it is closed. */
export function refusalSummary(refusals: Refusal[]): string {
  const messages = refusals.reduce((sum, { messages }) => sum + messages, 0);
  return `Refused messages: ${messages} of ${refusals.length} ${refusals.length === 1 ? "device" : "devices"}`;
}

export class RefusalPanel {
  private readonly panel = byId("refusals");
  private readonly summary = byId("refusals-summary");
  private readonly body = byId<HTMLTableSectionElement>("refusals-body");

  show(refusals: Refusal[], nowMs: number): void {
    this.panel.hidden = refusals.length === 0;
    setText(this.summary, refusalSummary(refusals));
    this.body.replaceChildren(
      ...refusals.slice(0, REFUSALS_SHOWN_MAX).map((refusal) => {
        const row = make("tr");
        row.append(...refusalCells(refusal, nowMs).map((text) => make("td", "", text)));
        return row;
      }),
    );
  }
}
