// The fleet table: draws rows, sorts, filters, selects. Rows are slots: a slot shows whichever vehicle
// is at its place, and only cells whose text changed are touched.

import { FAULT_KEY, chooseColumns, type Column } from "./columns";
import { byId, make, setText } from "./dom";
import { filterVehicles, sortVehicles, type Fleet, type Sort, type Vehicle } from "./fleet";
import { ROWS_STEP } from "./limits";

interface Slot {
  row: HTMLTableRowElement;
  cells: HTMLTableCellElement[];
  deviceId: string;
}

export class FleetTable {
  private readonly table = byId<HTMLTableElement>("fleet-table");
  private readonly head = byId<HTMLTableRowElement>("fleet-head");
  private readonly body = byId<HTMLTableSectionElement>("fleet-body");
  private readonly filter = byId<HTMLInputElement>("fleet-filter");
  private readonly count = byId("fleet-count");
  private readonly heldNote = byId("fleet-held");
  private readonly empty = byId("fleet-empty");
  private readonly moreRows = byId<HTMLButtonElement>("more-rows");
  private readonly moreColumns = byId<HTMLButtonElement>("more-columns");

  private sort: Sort = { columnId: "name", descending: false };
  private columns: Column[] = [];
  private allColumns = false;
  private rowsMax = ROWS_STEP;
  private slots: Slot[] = [];
  /** Order of the last sort. It holds while the mouse is over the rows or the keyboard walks them. */
  private order: string[] = [];
  private pointerInside = false;
  /** Rows that are in sight, or nearly. */
  private readonly inSight = new Set<Element>();
  private readonly sight = new IntersectionObserver((entries) => this.sighted(entries), { rootMargin: "100px 0px" });
  private selectedId: string | null = null;
  private focusedId: string | null = null;
  private total = 0;

  constructor(
    private readonly fleet: Fleet,
    private readonly onSelect: (deviceId: string) => void,
  ) {
    this.filter.addEventListener("input", () => this.reorder());
    this.moreRows.addEventListener("click", () => this.showMoreRows());
    this.moreColumns.addEventListener("click", () => this.toggleColumns());
    this.body.addEventListener("click", (event) => this.clicked(event));
    this.body.addEventListener("keydown", (event) => this.keyPressed(event));
    this.body.addEventListener("focusin", (event) => (this.focusedId = this.slotOf(event.target)?.deviceId ?? null));
    this.body.addEventListener("focusout", () => (this.focusedId = null));
    this.body.addEventListener("pointerenter", (event) => (this.pointerInside = event.pointerType === "mouse"));
    this.body.addEventListener("pointerleave", () => (this.pointerInside = false));
  }

  /** How many devices the server has; more than the fleet holds if it was cut. */
  setTotal(total: number): void {
    this.total = total;
  }

  get selected(): string | null {
    return this.selectedId;
  }

  /** The device of the first row, for a page that has no selection yet. */
  get first(): string | null {
    return this.slots[0]?.deviceId ?? null;
  }

  /** The devices of the rows in sight. */
  get deviceIdsInSight(): string[] {
    return this.slots.filter(({ row }) => this.inSight.has(row)).map(({ deviceId }) => deviceId);
  }

  /** Which keys the order and the filter need of every device, in sight or not; null stands for all keys. */
  get keysOfAll(): readonly string[] | null {
    const sortedBy = this.columns.find(({ id }) => id === this.sort.columnId)?.keys ?? [];
    const isByAge = this.columns.some(({ id, keys }) => id === this.sort.columnId && keys === null);
    if (isByAge) return null;
    return [...new Set([...sortedBy, ...(this.filter.value.trim() === "" ? [] : [FAULT_KEY])])];
  }

  select(deviceId: string): void {
    if (this.selectedId === deviceId) return;
    this.selectedId = deviceId;
    this.draw(Date.now());
    this.onSelect(deviceId);
  }

  draw(nowMs: number): void {
    this.drawColumns();
    const vehicles = this.visible();
    const shown = vehicles.slice(0, this.rowsMax);
    this.resize(shown.length);
    const tabStop = shown.find(({ device }) => device.id === this.selectedId) ?? shown[0];
    shown.forEach((vehicle, index) => this.drawRow(this.slots[index], vehicle, vehicle === tabStop, nowMs));
    this.table.setAttribute("aria-rowcount", String(vehicles.length + 1));
    this.drawFooter(shown.length, vehicles.length);
    this.keepFocus();
  }

  /** The filtered vehicles in order. */
  private visible(): Vehicle[] {
    if (!this.held() || this.order.length === 0) {
      const column = this.columns.find(({ id }) => id === this.sort.columnId) ?? this.columns[0];
      const filtered = filterVehicles(this.fleet.all(), this.filter.value);
      const sorted = column === undefined ? filtered : sortVehicles(filtered, column, this.sort.descending);
      this.order = sorted.map(({ device }) => device.id);
      return sorted;
    }
    return this.order.map((id) => this.fleet.get(id)).filter((vehicle) => vehicle !== undefined);
  }

  /** Rows must not move away under a click or a key press. */
  private held(): boolean {
    return this.pointerInside || this.body.querySelector("tr:focus-visible") !== null;
  }

  /** Sorts and filters again, even under the mouse. */
  private reorder(): void {
    this.order = [];
    this.draw(Date.now());
  }

  private drawColumns(): void {
    const { columns, more } = chooseColumns(this.fleet.keys, this.allColumns);
    this.moreColumns.hidden = more === 0;
    setText(this.moreColumns, this.allColumns ? "Fewer columns" : `${more} more columns`);
    this.moreColumns.setAttribute("aria-expanded", String(this.allColumns));
    const same = columns.length === this.columns.length && columns.every(({ id }, i) => id === this.columns[i]?.id);
    if (same) return;
    this.columns = columns;
    this.head.replaceChildren(...columns.map((column) => this.headCell(column)));
    this.resize(0);
    this.markSorted();
  }

  private headCell(column: Column): HTMLTableCellElement {
    const cell = make("th", column.numeric ? "numeric" : "");
    cell.scope = "col";
    cell.dataset["column"] = column.id;
    const button = make("button", "sort");
    button.type = "button";
    button.append(make("span", "label", column.label));
    if (column.unit !== "") button.append(make("span", "unit", column.unit));
    button.addEventListener("click", () => this.sortBy(column.id));
    cell.append(button);
    return cell;
  }

  private sortBy(columnId: string): void {
    const descending = this.sort.columnId === columnId && !this.sort.descending;
    this.sort = { columnId, descending };
    this.markSorted();
    this.reorder();
  }

  private markSorted(): void {
    for (const cell of this.head.cells) {
      const sorted = cell.dataset["column"] === this.sort.columnId;
      if (sorted) cell.setAttribute("aria-sort", this.sort.descending ? "descending" : "ascending");
      else cell.removeAttribute("aria-sort");
    }
  }

  private resize(rows: number): void {
    while (this.slots.length > rows) this.remove(this.slots.pop());
    while (this.slots.length < rows) {
      const row = make("tr");
      row.setAttribute("aria-rowindex", String(this.slots.length + 2));
      const cells = this.columns.map((column) => make("td", column.numeric ? "numeric" : ""));
      row.append(...cells);
      this.body.append(row);
      this.sight.observe(row);
      this.slots.push({ row, cells, deviceId: "" });
    }
  }

  private remove(slot: Slot | undefined): void {
    if (slot === undefined) return;
    this.sight.unobserve(slot.row);
    this.inSight.delete(slot.row);
    slot.row.remove();
  }

  private sighted(entries: IntersectionObserverEntry[]): void {
    for (const { target, isIntersecting } of entries) {
      if (isIntersecting) this.inSight.add(target);
      else this.inSight.delete(target);
    }
  }

  private drawRow(slot: Slot | undefined, vehicle: Vehicle, tabStop: boolean, nowMs: number): void {
    if (slot === undefined) return;
    slot.deviceId = vehicle.device.id;
    slot.row.setAttribute("aria-selected", String(slot.deviceId === this.selectedId));
    slot.row.tabIndex = tabStop ? 0 : -1; // one stop for the Tab key; arrows move from there
    this.columns.forEach((column, place) => {
      const cell = slot.cells[place];
      if (cell === undefined) return;
      setText(cell, column.text(vehicle, nowMs));
      cell.classList.toggle("alert", column.alert?.(vehicle, nowMs) ?? false);
    });
  }

  private drawFooter(shown: number, matching: number): void {
    const all = Math.max(this.total, this.fleet.size);
    const parts = [
      matching < this.fleet.size ? `${matching} of ${all} devices` : `${all} devices`,
      shown < matching ? `${shown} shown` : "",
      this.fleet.size < all ? `first ${this.fleet.size} loaded` : "",
    ];
    setText(this.count, parts.filter(Boolean).join(", "));
    this.heldNote.hidden = this.sort.columnId === "name" || !this.held();
    this.moreRows.hidden = shown >= matching;
    setText(this.moreRows, `Show ${Math.min(ROWS_STEP, matching - shown)} more rows`);
    this.empty.hidden = matching > 0;
    setText(this.empty, this.fleet.size === 0 ? "No devices yet." : "No device matches the filter.");
  }

  private showMoreRows(): void {
    this.rowsMax += ROWS_STEP;
    this.draw(Date.now());
  }

  private toggleColumns(): void {
    this.allColumns = !this.allColumns;
    this.draw(Date.now());
  }

  /** Focus stays with the device when sorting moves it to another slot. */
  private keepFocus(): void {
    const focused = this.slotOf(document.activeElement);
    if (this.focusedId === null || focused === undefined || focused.deviceId === this.focusedId) return;
    const deviceId = this.focusedId;
    this.slots.find((slot) => slot.deviceId === deviceId)?.row.focus({ preventScroll: true });
  }

  private clicked(event: Event): void {
    const slot = this.slotOf(event.target);
    if (slot !== undefined) this.select(slot.deviceId);
  }

  private keyPressed(event: KeyboardEvent): void {
    const current = this.slots.findIndex((slot) => slot === this.slotOf(event.target));
    if (current < 0) return;
    const target = this.slots[targetIndex(event.key, current, this.slots.length)];
    if (target === undefined) return;
    event.preventDefault();
    this.select(target.deviceId);
    target.row.focus();
  }

  private slotOf(target: EventTarget | null): Slot | undefined {
    if (!(target instanceof Element)) return undefined;
    const row = target.closest("tr");
    return this.slots.find((slot) => slot.row === row);
  }
}

const PAGE_ROWS = 10;

/** The row a key leads to, or -1 for a key that is not ours. */
export function targetIndex(key: string, current: number, rows: number): number {
  switch (key) {
    case "ArrowDown":
      return Math.min(current + 1, rows - 1);
    case "ArrowUp":
      return Math.max(current - 1, 0);
    case "PageDown":
      return Math.min(current + PAGE_ROWS, rows - 1);
    case "PageUp":
      return Math.max(current - PAGE_ROWS, 0);
    case "Home":
      return 0;
    case "End":
      return rows - 1;
    case "Enter":
    case " ":
      return current;
    default:
      return -1;
  }
}
