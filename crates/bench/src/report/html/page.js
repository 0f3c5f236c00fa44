"use strict";
// Draws the page from the JSON beside it. Text always goes in as text, never as markup.
const data = JSON.parse(document.getElementById("data").textContent);
const root = document.getElementById("page");
const tip = document.getElementById("tip");
const single = data.runs.length === 1;
const RUN_COLOURS = 6;

function el(name, attributes, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) {
    if (key === "class") node.className = value; else if (key === "style") node.style.cssText = value; else node.setAttribute(key, value);
  }
  for (const child of children.flat(9)) if (child || child === 0) node.append(child);
  return node;
}
function svg(name, attributes, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}
const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const runColour = (index) => `var(--run-${index % RUN_COLOURS})`;

// Numbers: as many digits as mean something, thousands apart.
function group(text) {
  const [whole, rest] = text.split(".");
  const apart = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return rest === undefined ? apart : `${apart}.${rest}`;
}
function number(value, digits = 3) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1000) return group(value.toFixed(0));
  return String(Number(value.toPrecision(digits)));
}
function compact(value) {
  const size = Math.abs(value);
  for (const [limit, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (size >= limit) return `${Number((value / limit).toPrecision(3))}${unit}`;
  return String(Number(value.toPrecision(3)));
}
function time(ms) {
  if (ms === null || ms === undefined) return "–";
  if (ms >= 10000) return `${number(ms / 1000)} s`;
  if (ms >= 1) return `${number(ms)} ms`;
  return `${number(ms * 1000)} µs`;
}
// A power of ten on an axis: short, because there is little room.
function tick(ms) {
  return ms >= 1000 ? `${compact(ms / 1000)} s` : time(ms);
}
function between(interval) {
  const [low, high] = [time(interval.low / 1000), time(interval.high / 1000)];
  const [a, unit] = low.split(" ");
  return high.endsWith(` ${unit}`) ? `${a}–${high}` : `${low}–${high}`;
}
const seconds = (s) => (s >= 120 ? `${Math.floor(s / 60)} min ${Math.round(s % 60)} s` : `${number(s)} s`);

// Axes.
function steps(low, high, count) {
  const span = high - low || 1;
  const raw = span / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= raw);
  const ticks = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step * 1e-6; at += step) ticks.push(Number(at.toPrecision(12)));
  return ticks;
}
function decades(low, high) {
  const ticks = [];
  const span = Math.log10(high / low);
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power++) {
    for (const factor of span > 3 ? [1] : span > 1.4 ? [1, 3] : [1, 2, 5]) {
      const at = factor * 10 ** power;
      if (at >= low * 0.999 && at <= high * 1.001) ticks.push(Number(at.toPrecision(6)));
    }
  }
  return ticks;
}
function scale(low, high, from, to, log) {
  const f = log ? Math.log10 : (x) => x;
  const span = f(high) - f(low) || 1;
  const forth = (x) => from + ((f(x) - f(low)) / span) * (to - from);
  forth.back = (pixel) => { const x = f(low) + ((pixel - from) / (to - from)) * span; return log ? 10 ** x : x; };
  return forth;
}

// One chart of lines. All charts over time move one cross.
const charts = [];
const overTime = [];
function chart(options) {
  const box = el("section", { class: "card chart" });
  const header = el("header", {}, el("h3", {}, options.title));
  if (options.series.length > 1 || options.alwaysKey) {
    for (const line of options.series.filter((line) => !line.unnamed)) {
      const key = svg("svg", { width: 18, height: 8, "aria-hidden": "true" });
      key.append(svg("line", { x1: 0, x2: 18, y1: 4, y2: 4, stroke: line.colour, "stroke-width": line.width || 2, "stroke-dasharray": line.dash || "" }));
      header.append(el("span", { class: "key" }, key, line.name));
    }
  }
  const place = el("div", {});
  box.append(header, place);
  const self = { options, place, cross: null, x: null };
  self.draw = () => draw(self);
  charts.push(self);
  if (options.time) overTime.push(self);
  return box;
}
function range(options) {
  let [low, high] = [Infinity, -Infinity];
  for (const line of options.series) for (const [, y] of line.points) {
    if (y === null || y === undefined || (options.log && y <= 0)) continue;
    low = Math.min(low, y); high = Math.max(high, y);
  }
  if (!Number.isFinite(low)) return [options.log ? 1 : 0, options.log ? 10 : 1];
  if (options.log) {
    const snap = (value, round) => { const power = 10 ** Math.floor(Math.log10(value)); const list = [1, 2, 5, 10].map((f) => f * power);
      return round === "down" ? list.filter((f) => f <= value * 1.0001).pop() : list.find((f) => f >= value * 0.9999); };
    [low, high] = [snap(low, "down"), snap(high, "up")];
    return low === high ? [low / 2, high * 2] : [low, high];
  }
  const ticks = steps(0, high || 1, 4);
  const step = ticks[1] - ticks[0];
  return [Math.min(0, low), Math.ceil((high || 1) / step - 1e-9) * step];
}
function draw(self) {
  const { options, place } = self;
  const width = Math.max(280, place.clientWidth), height = options.height || 190;
  const left = 58, right = width - 10, top = 8, bottom = height - 24;
  const [low, high] = range(options);
  let [from, to] = options.domain;
  if (to <= from) to = from + 1;
  const x = scale(from, to, left, right, options.logX), y = scale(low, high, bottom, top, options.log);
  const image = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": options.title });
  for (const band of options.bands || []) {
    const [a, b] = [Math.max(left, x(band.from)), Math.min(right, x(band.to))];
    if (b - a < 1) continue;
    image.append(svg("rect", { x: a, y: top, width: b - a, height: bottom - top, class: "warm" }));
    if (options.nameBands && b - a > 60) image.append(svg("text", { x: a + 6, y: top + 13 }, band.name));
  }
  const format = options.log ? options.tick : options.tick || compact;
  for (const at of options.log ? decades(low, high) : steps(low, high, 4)) {
    image.append(svg("line", { x1: left, x2: right, y1: y(at), y2: y(at), class: "grid" }));
    image.append(svg("text", { x: left - 8, y: y(at) + 4, "text-anchor": "end" }, format(at)));
  }
  const ticksX = options.logX ? options.ticksX : steps(from, to, Math.max(3, Math.floor(width / 110)));
  for (const at of ticksX) {
    if (at < from || at > to) continue;
    if (options.logX) image.append(svg("line", { x1: x(at), x2: x(at), y1: top, y2: bottom, class: "grid" }));
    image.append(svg("text", { x: x(at), y: height - 7, "text-anchor": at === from ? "start" : x(at) > right - 14 ? "end" : "middle" }, options.tickX(at)));
  }
  image.append(svg("line", { x1: left, x2: right, y1: bottom, y2: bottom, class: "axis" }));
  for (const line of options.series) {
    for (const part of segments(line.points, options.log)) {
      const place = ([px, py]) => `${x(px).toFixed(1)} ${y(py).toFixed(1)}`;
      const path = `M${part.map(place).join("L")}`;
      if (line.dots || part.length === 1) for (const [px, py] of part) image.append(svg("circle", { cx: x(px), cy: y(py), r: line.dots ? 2.5 : 3, fill: line.colour, opacity: line.dots ? 0.5 : 1 }));
      if (line.dots) continue;
      if (line.fill) image.append(svg("path", { d: `${path}L${x(part[part.length - 1][0]).toFixed(1)} ${bottom}L${x(part[0][0]).toFixed(1)} ${bottom}Z`, fill: line.colour, opacity: 0.1 }));
      image.append(svg("path", { d: path, fill: "none", stroke: line.colour, "stroke-width": line.width || 2, "stroke-linejoin": "round",
        "stroke-linecap": "round", "stroke-dasharray": line.dash || "" }));
    }
  }
  for (const mark of options.marks || []) {
    if (mark.at < from || mark.at > to) continue;
    image.append(svg("line", { x1: x(mark.at), x2: x(mark.at), y1: top, y2: bottom, stroke: mark.colour, "stroke-width": 1.5, "stroke-dasharray": "4 3" }));
    if (!options.nameBands || !mark.name) continue;
    const flip = x(mark.at) > right - 120;
    const text = svg("text", { x: x(mark.at) + (flip ? -6 : 6), y: bottom - 7, "text-anchor": flip ? "end" : "start" }, mark.name);
    text.style.fill = mark.colour;
    image.append(text);
  }
  self.cross = svg("line", { y1: top, y2: bottom, class: "cross" });
  image.append(self.cross);
  image.addEventListener("pointermove", (event) => hover(self, x, event, left, right, image));
  image.addEventListener("pointerleave", unhover);
  self.x = x;
  place.replaceChildren(image);
}
// Points that hang together: a line ends where a value is missing.
function segments(points, log) {
  const parts = [[]];
  for (const point of points) {
    const drawn = point[1] !== null && point[1] !== undefined && !(log && point[1] <= 0);
    if (drawn) parts[parts.length - 1].push(point); else if (parts[parts.length - 1].length) parts.push([]);
  }
  return parts.filter((part) => part.length);
}
function nearest(points, at, log) {
  let best = null, distance = Infinity;
  for (const point of points) {
    if (point[1] === null) continue;
    const d = log ? Math.abs(Math.log(point[0] / at)) : Math.abs(point[0] - at);
    if (d < distance) { distance = d; best = point; }
  }
  return best;
}
function hover(self, x, event, left, right, image) {
  const pixel = event.clientX - image.getBoundingClientRect().left;
  if (pixel < left || pixel > right) { unhover(); return; }
  const at = x.back(pixel);
  const linked = self.options.time ? overTime : [self];
  for (const other of linked) {
    if (!other.cross) continue;
    const place = other.x(at);
    const [low, high] = other.options.domain || [-Infinity, Infinity];
    if (at < low || at > high) { other.cross.style.visibility = "hidden"; continue; }
    other.cross.setAttribute("x1", place); other.cross.setAttribute("x2", place); other.cross.style.visibility = "visible";
  }
  const rows = self.options.series.filter((line) => !line.unnamed).map((line) => {
    const point = nearest(line.points, at, self.options.logX);
    return point && el("div", {}, el("span", { class: "swatch", style: `background:${line.colour}` }), el("span", {}, line.name), el("span", {}, self.options.value(point[1])));
  });
  show(event, el("b", {}, self.options.where(at)), rows);
}
function unhover() {
  for (const other of charts) if (other.cross) other.cross.style.visibility = "hidden";
  tip.hidden = true;
}
function show(event, ...content) {
  tip.replaceChildren(...content.flat(2).filter(Boolean));
  tip.hidden = false;
  const wide = tip.offsetWidth, x = event.clientX + 16;
  tip.style.left = `${x + wide > innerWidth - 8 ? event.clientX - wide - 16 : x}px`;
  tip.style.top = `${Math.max(8, Math.min(event.clientY - 12, innerHeight - tip.offsetHeight - 8))}px`;
}

// The heat map of one run: time to the right, latency upwards, on a logarithmic scale of counts.
function heatmap(run, domain, title) {
  const heat = run.heat;
  const box = el("section", { class: "card chart" });
  const place = el("div", { style: "position:relative" });
  box.append(el("header", {}, el("h3", {}, title), el("span", { class: "key" }, "few"), ramp(), el("span", { class: "key" }, "many answers")), place);
  let rows = [Infinity, -Infinity], most = 1;
  for (const column of heat.columns) for (const [row, count] of column) { rows = [Math.min(rows[0], row), Math.max(rows[1], row)]; most = Math.max(most, count); }
  const self = { cross: null, x: null, options: { series: [] } };
  self.draw = () => {
    const width = Math.max(280, place.clientWidth), height = 230, left = 58, right = width - 10, top = 8, bottom = height - 24;
    const low = 10 ** (rows[0] / heat.per_decade), high = 10 ** ((rows[1] + 1) / heat.per_decade);
    const x = scale(domain[0], domain[1], left, right), y = scale(low, high, bottom, top, true);
    const canvas = el("canvas", { style: `position:absolute;left:0;top:0;width:${width}px;height:${height}px` });
    const ratio = Math.min(3, devicePixelRatio || 1);
    canvas.width = width * ratio; canvas.height = height * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const colour = colours();
    heat.columns.forEach((column, index) => {
      const start = heat.start + index * heat.step;
      const a = Math.round(x(start) * ratio) / ratio, b = Math.round(x(start + heat.step) * ratio) / ratio;
      for (const [row, count] of column) {
        const up = Math.round(y(10 ** ((row + 1) / heat.per_decade)) * ratio) / ratio, down = Math.round(y(10 ** (row / heat.per_decade)) * ratio) / ratio;
        pen.fillStyle = colour(0.12 + 0.88 * (Math.log(count) / Math.log(most) || 0));
        pen.fillRect(a, up, Math.max(b - a, 1 / ratio), down - up);
      }
    });
    const image = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": title, style: "position:relative;display:block" });
    for (const at of decades(low, high)) image.append(svg("text", { x: left - 8, y: y(at) + 4, "text-anchor": "end" }, tick(at / 1000)));
    for (const at of steps(domain[0], domain[1], Math.max(3, Math.floor(width / 110)))) image.append(svg("text", { x: x(at), y: height - 7, "text-anchor": at === domain[0] ? "start" : x(at) > right - 14 ? "end" : "middle" }, `${at} s`));
    image.append(svg("line", { x1: left, x2: right, y1: bottom, y2: bottom, class: "axis" }));
    self.cross = svg("line", { y1: top, y2: bottom, class: "cross" });
    image.append(self.cross);
    image.addEventListener("pointermove", (event) => {
      const frame = image.getBoundingClientRect(), px = event.clientX - frame.left, py = event.clientY - frame.top;
      if (px < left || px > right || py < top || py > bottom) { unhover(); return; }
      const at = x.back(px), column = Math.floor((at - heat.start) / heat.step);
      for (const other of overTime) if (other.cross) { const p = other.x(at); other.cross.setAttribute("x1", p); other.cross.setAttribute("x2", p); other.cross.style.visibility = "visible"; }
      const row = Math.floor(Math.log10(y.back(py)) * heat.per_decade);
      const cell = (heat.columns[column] || []).find(([r]) => r === row);
      const from = 10 ** (row / heat.per_decade) / 1000, to = 10 ** ((row + 1) / heat.per_decade) / 1000;
      show(event, el("b", {}, `second ${Math.floor(at)}`), el("div", {}, `${group(String(cell ? cell[1] : 0))} answers in ${time(from)} to ${time(to)}`));
    });
    image.addEventListener("pointerleave", unhover);
    self.x = x;
    place.style.height = `${height}px`;
    place.replaceChildren(canvas, image);
  };
  charts.push(self);
  overTime.push(self);
  return box;
}
function colours() {
  const stops = css("--heat").split(",").map((text) => text.trim()).map((hex) => [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16)));
  return (share) => {
    const place = Math.max(0, Math.min(0.9999, share)) * (stops.length - 1), index = Math.floor(place), part = place - index;
    return `rgb(${stops[index].map((c, i) => Math.round(c + (stops[index + 1][i] - c) * part)).join(",")})`;
  };
}
function ramp() {
  const bar = el("span", { style: "width:90px;height:9px;border-radius:3px;display:inline-block;border:1px solid var(--line)" });
  const paint = () => { const colour = colours(); bar.style.background = `linear-gradient(90deg,${[0.12, 0.35, 0.55, 0.78, 1].map(colour).join(",")})`; };
  charts.push({ draw: paint, cross: null });
  return bar;
}

// The parts of the page.
const mainPhase = (run) => (run.main === null ? null : run.result.phases[run.main]);
const quantile = (summary, q) => summary && summary.quantiles.find((known) => Math.abs(known.quantile - q) < 1e-9);
// Loading data is faster by far than what is measured, and at another time: it has charts of its own.
const isLoad = (run, point) => (run.result.phases[point.phase] || {}).kind === "load";
const loads = (run) => run.lines.filter((point) => isLoad(run, point));
const measuredLines = (run) => (run.lines.length === loads(run).length ? run.lines : run.lines.filter((point) => !isLoad(run, point)));
const wholeExtent = () => {
  let end = 1;
  for (const run of data.runs) {
    for (const point of run.lines) end = Math.max(end, point.t + 0.5);
    for (const phase of run.result.phases) end = Math.max(end, run.lines.length ? 0 : phase.starts_s + (phase.warmup_s || 0) + phase.duration_s);
  }
  return [0, end];
};
const extentOf = (pick) => {
  const at = data.runs.flatMap((run) => pick(run).map((point) => point.t));
  return at.length ? [Math.floor(Math.min(...at) - 0.5), Math.max(...at) + 0.5] : wholeExtent();
};
// Values over time; between two phases the line is not drawn.
function overSeconds(points, field) {
  return points.flatMap((point, index) => {
    const here = [point.t, point[field]];
    return index && points[index - 1].phase !== point.phase ? [[point.t, null], here] : [here];
  });
}

function head() {
  const first = data.runs[0].result;
  const button = el("button", { type: "button" }, "Light / dark");
  button.addEventListener("click", () => {
    const dark = document.documentElement.dataset.theme ? document.documentElement.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    document.documentElement.dataset.theme = dark ? "light" : "dark";
    redraw();
  });
  const about = first.scenario.about;
  root.append(el("div", { class: "top" }, el("div", {}, el("h1", {}, data.title), about && el("p", { class: "about" }, about), single && el("p", { class: "meta" }, metaOf(data.runs[0]))), button));
  for (const run of data.runs.filter((run) => !run.quotable)) {
    root.append(el("div", { class: "bad", role: "alert" }, el("strong", {}, `${run.word}${single ? "" : ` - ${run.label}`}: these figures must not be quoted`),
      el("ul", {}, run.reasons.map((reason) => el("li", {}, reason)))));
  }
  if (!single) {
    root.append(el("div", { class: "runs" }, data.runs.map((run, index) => el("span", {}, el("i", { class: "swatch", style: `background:${runColour(index)}` }), el("b", {}, run.label), badge(run),
      el("span", { class: "meta", style: "margin:0" }, metaOf(run))))));
  }
}
function answers() {
  for (const [label, answer] of data.answers) {
    root.append(el("h2", {}, `${answer.steps ? "Capacity" : "A against B"}: ${label}`));
    const about = answer.steps ? `${answer.scenario}, phase ${answer.phase}, ${answer.objective}`
      : `${answer.scenario}, phase ${answer.phase}: A ${(answer.a || []).join(" ") || "(as it is)"}, B ${(answer.b || []).join(" ") || "(as it is)"}`;
    root.append(el("div", { class: "card" }, el("p", { class: "meta" }, about),
      el("ul", { class: "findings" }, (answer.sentences || "").trim().split("\n").filter(Boolean).map((line) => el("li", {}, line)))));
    if (answer.steps && answer.steps.length) {
      rateCurve(answer);
      const row = (cells, name) => el("tr", {}, cells.map((cell) => el(name, {}, cell)));
      root.append(el("div", { class: "card scroll", style: "margin-top:10px" }, el("table", {}, el("thead", {}, row(["step", "offered", "achieved", "latency", "failures"], "th")),
        el("tbody", {}, answer.steps.map((step, index) => row([String(index + 1), `${number(step.rate_per_s, 4)}/s`, `${number(step.achieved_per_s, 4)}/s`,
          step.quantile_us === null ? "–" : time(step.quantile_us / 1000), `${number(step.error_share * 100)} %`], "td"))))));
    }
    const compared = ((answer.answer || {}).metrics || []).filter((metric) => metric.blocks.length);
    if (compared.length) {
      const colours = ["var(--p50)", "var(--p99)", "var(--lag)"];
      const series = compared.map((metric, index) => ({ name: metric.metric.name, colour: colours[index % colours.length],
        points: metric.blocks.map((log, block) => [block + 1, Math.exp(log)]) }));
      root.append(chart({ title: "B / A of each block", series, alwaysKey: true, log: true, domain: [1, Math.max(...series.map((line) => line.points.length))],
        value: (v) => v.toFixed(3), tick: (v) => v.toFixed(2), tickX: (at) => `block ${at}`, where: (at) => `block ${Math.round(at)}` }));
    }
  }
}
// Of points that lie within a few percent of each other the one in the middle, at their middle.
function medians(points) {
  const groups = [];
  for (const point of points) {
    const last = groups[groups.length - 1];
    if (last && point[0] <= last[0][0] * 1.06) last.push(point); else groups.push([point]);
  }
  const middle = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
  return groups.map((group) => [middle(group.map(([x]) => x)), middle(group.map(([, y]) => y))]);
}
// Latency over the rate that was achieved, with the objective and what the search came to.
function rateCurve(answer) {
  const known = answer.steps.filter((step) => !step.generator_fault && step.achieved_per_s > 0);
  if (!known.length) return;
  const steps = [...known].sort((a, b) => a.rate_per_s - b.rate_per_s);
  const asked = /^(p[\d.]+)/.exec(answer.objective || ""), name = asked ? asked[1] : "objective's percentile";
  const ms = (step, field) => (step[field] === null || step[field] === undefined ? null : step[field] / 1000);
  const points = (field) => steps.map((step) => [step.achieved_per_s, ms(step, field)]).filter(([, y]) => y !== null).sort((a, b) => a[0] - b[0]);
  const lines = [{ name: "p50", colour: "var(--p50)", points: points("p50_us") }, { name: "p99", colour: "var(--p99)", points: points("p99_us") }];
  if (name !== "p99" && name !== "p50") lines.push({ name, colour: "var(--lag)", points: points("quantile_us") });
  // A dot for each step, and a line through the medians of steps at about one rate.
  const series = lines.map((line) => (line.name === name && !line.points.length ? { ...line, points: points("quantile_us") } : line)).filter((line) => line.points.length)
    .flatMap((line) => [{ ...line, dots: true, unnamed: true }, { ...line, points: medians(line.points) }]);
  const most = Math.max(...steps.map((step) => Math.max(step.achieved_per_s, step.rate_per_s)));
  const limit = answer.limit_us && answer.limit_us / 1000;
  if (limit) series.push({ name: `objective ${answer.objective}`, colour: "var(--bad)", dash: "6 4", width: 1.4, points: [[0, limit], [most * 1.05, limit]] });
  const found = answer.answer && answer.answer.kind === "found" ? answer.answer : null;
  const marks = found ? [{ at: found.rate_per_s, name: `capacity ${compact(found.rate_per_s)}/s`, colour: "var(--good)" }] : [];
  root.append(el("div", { class: "charts", style: "margin-top:10px" }, chart({ title: "Latency at each rate", series, alwaysKey: true, log: true, domain: [0, most * 1.05], marks, nameBands: true, height: 260,
    tick, value: time, tickX: (at) => `${compact(at)}/s`, where: (at) => `${number(at, 4)}/s` })));
  const behind = steps.filter((step) => step.achieved_per_s < 0.99 * step.rate_per_s);
  if (behind.length) root.append(el("p", { class: "note" }, `A point lies at the rate that was achieved. Behind what was offered: ${behind.map((step) => `${number(step.achieved_per_s, 4)} of ${number(step.rate_per_s, 4)}/s`).join(", ")}.`));
}
const badge = (run) => el("span", { class: `word ${run.quotable ? "good" : "no"}` }, run.word);
function metaOf(run) {
  const result = run.result, phase = mainPhase(run), parts = [], measured = result.phases.filter((phase) => phase.measured).length;
  if (single && run.quotable) parts.push(run.word.toLowerCase());
  if (result.target.product) parts.push(result.target.product);
  if (measured > 1) parts.push(`${measured} phases measured`);
  else if (phase) {
    const a = phase.arrival;
    parts.push(a.kind === "open" ? `open loop, ${a.process}${a.timer_us ? ` on ticks of ${number(a.timer_us)} us` : ""}, ${number(a.rate_per_s)}/s` : a.kind === "closed" ? `closed loop, ${number(a.concurrency)} in flight${a.pause_us ? ` or in their pause of ${number(a.pause_us / 1000)} ms` : ""}` : a.kind === "loops" ? "several closed loops" : "load not known");
    if (phase.connections) parts.push(`${number(phase.connections)} connections`);
    parts.push(seconds(phase.duration_s));
  }
  if (result.started_unix_s) parts.push(result.started);
  if (result.tool.name !== "tacho") parts.push(`imported from ${result.tool.name} ${result.tool.version}`);
  return parts.join("  ·  ");
}

// A result with several phases has no figure of its own: a row for each.
function phaseRows(run, measured) {
  const response = (total) => total.response || total.service;
  const cell = (summary, q) => { const found = quantile(summary, q); return el("td", { class: found && !found.quotable ? "weak" : "", title: found && !found.quotable ? "too few samples" : "" }, found ? time(found.value_us / 1000) + (found.quotable ? "" : "?") : "–"); };
  const rows = measured.map(({ name, total, cost }) => el("tr", {}, el("td", { class: "mono" }, name), el("td", {}, number(total.completed_per_s, 4)),
    [0.5, 0.99, 0.999].map((q) => cell(response(total), q)), el("td", { class: errorsOf(total) ? "no" : "" }, group(String(errorsOf(total)))),
    el("td", {}, cost.target_cpu_us_per_operation ? `${number(cost.target_cpu_us_per_operation)} µs` : "–")));
  root.append(el("div", { class: run.quotable ? "card scroll" : "card scroll invalid" }, el("table", {}, el("thead", {}, el("tr", {},
    ["phase", "per second", "p50", "p99", "p99.9", "errors", "target CPU/op"].map((name) => el("th", {}, name)))), el("tbody", {}, rows))));
}
function tiles(run) {
  const measured = run.result.phases.filter((phase) => phase.measured);
  if (measured.length > 1) { phaseRows(run, measured); return; }
  const phase = mainPhase(run);
  if (!phase) return;
  const total = phase.total, summary = total.response || total.service, sure = phase.uncertainty;
  const kind = total.response ? "response" : "service";
  const list = [];
  const tile = (name, value, unit, note) => list.push(el("div", { class: "card tile" }, el("h3", {}, name), el("b", {}, value, unit && el("small", {}, unit)), el("i", {}, note || "\u00a0")));
  tile("Throughput", number(total.completed_per_s, 4), "/s", sure && `95 %: ${number(sure.completed_per_s.low, 4)}–${number(sure.completed_per_s.high, 4)}`);
  for (const [q, name] of [[0.5, "p50"], [0.99, "p99"], [0.999, "p99.9"]]) {
    const found = quantile(summary, q);
    if (!found) continue;
    const [value, unit] = time(found.value_us / 1000).split(" ");
    const interval = q === 0.99 && kind === "response" && sure && sure.response_p99_us;
    tile(`${kind === "response" ? "Response" : "Service"} ${name}`, found.quotable ? value : `${value}?`, unit,
      !found.quotable ? "too few samples" : interval ? `95 %: ${between(interval)}` : `${group(String(summary.samples))} samples`);
  }
  const counts = total.counts, failed = Object.values(counts.errors).reduce((a, b) => a + b, 0);
  tile("Errors", group(String(failed)), "", counts.sent ? `${number((failed / counts.sent) * 100)} % of ${group(String(counts.sent))}` : "");
  if (counts.hits + counts.misses) tile("Hits", number((counts.hits / (counts.hits + counts.misses)) * 100, 4), "%", `${group(String(counts.misses))} misses`);
  const cost = phase.cost;
  if (cost.target_cpu_us_per_operation) tile("Target CPU", number(cost.target_cpu_us_per_operation), "µs/op", cost.target_cpu_percent && `${number(cost.target_cpu_percent)} % of a core`);
  if (cost.generator_cpu_us_per_operation) tile("Generator CPU", number(cost.generator_cpu_us_per_operation), "µs/op", cost.generator_cpu_percent && `${number(cost.generator_cpu_percent)} % of a core${cost.generator_polling_percent ? `, ${number(cost.generator_polling_percent)} % more polling` : ""}`);
  root.append(el("div", { class: run.quotable ? "" : "invalid" }, el("div", { class: "tiles" }, list)));
}

function comparison() {
  const heading = el("tr", {}, el("th", {}, ""), data.runs.map((run, index) => el("th", {}, el("i", { class: "swatch", style: `background:${runColour(index)};margin-right:6px` }), run.label)),
    data.runs.slice(1).map((run) => el("th", {}, `${run.label} / ${data.runs[0].label}`)));
  const several = data.figures.some((row) => row.part !== data.figures[0].part);
  const columns = 2 * data.runs.length;
  const rows = data.figures.flatMap((row, index) => {
    const begins = several && (index === 0 || data.figures[index - 1].name !== row.name);
    const mark = row.quotable ? "" : "?";
    const line = el("tr", {}, el("td", { class: several ? "mono" : "" }, several ? row.part : row.name),
      row.values.map((value) => el("td", { class: row.quotable ? "" : "weak", title: row.quotable ? "" : "too few samples" }, value === null ? "–" : number(value, 4) + mark)),
      row.values.slice(1).map((value, place) => {
        const base = row.values[0], verdict = row.verdicts[place + 1];
        if (!base || !value) return el("td", { class: "weak" }, "–");
        // Only what `compare` tells has a colour.
        return el("td", { class: { better: "good", worse: "no", equivalent: "" }[verdict] ?? "weak", title: verdict.replace("_", " ") }, `× ${(value / base).toFixed(3)}`);
      }));
    return begins ? [el("tr", {}, el("td", { class: "sum", colspan: columns }, row.name)), line] : [line];
  });
  root.append(el("h2", {}, "Side by side"), el("div", { class: "card scroll" }, el("table", {}, el("thead", {}, heading), el("tbody", {}, rows))),
    el("p", { class: "note" }, "A colour is a verdict of `compare`: green is better, red is worse by more than the margin. Grey cannot be told: single runs have no interval, because how much two runs of the same thing differ is not in them, or samples are too few (?). Several runs of each side, or `ab`, give a verdict."));
  if (data.differences.length) {
    root.append(el("h2", {}, "What differs in how they were run"), el("div", { class: "card scroll" }, el("table", {},
      el("thead", {}, el("tr", {}, el("th", {}, "setting"), data.runs.map((run) => el("th", { class: "left" }, run.label)))),
      el("tbody", {}, data.differences.map(([path, values]) => el("tr", {}, el("td", { class: "mono" }, path), values.map((value) => el("td", { class: "left mono" }, value)))))))); 
  }
}

function list(title, pick, name, kind) {
  const runs = data.runs.filter((run) => pick(run).length);
  if (!runs.length) return;
  root.append(el("h2", {}, title));
  for (const run of runs) {
    root.append(el("div", { class: "card", style: "margin-bottom:10px" }, single ? null : el("h3", { style: "margin-bottom:8px" }, run.label),
      el("ul", { class: `findings ${kind}` }, pick(run).map((sentence) => el("li", {}, sentence[0].toUpperCase() + sentence.slice(1) + (/[.!?]$/.test(sentence) ? "" : "."))))));
  }
}

function timeCharts() {
  const domain = extentOf(measuredLines);
  const withLines = data.runs.filter((run) => run.lines.length);
  if (!withLines.length) return;
  const bands = single ? data.runs[0].result.phases.map((phase) => ({ from: phase.starts_s, to: phase.starts_s + (phase.warmup_s || 0) + (phase.measured ? 0 : phase.duration_s), name: phase.measured ? "warm-up" : phase.name })) : [];
  const marks = single ? data.runs[0].result.faults.map((fault) => ({ at: fault.at_s, name: fault.what, colour: "var(--bad)" })) : [];
  const phase = single && mainPhase(data.runs[0]);
  if (phase && phase.steady && phase.steady.found && phase.steady.from_s > 0) marks.push({ at: phase.starts_s + phase.steady.from_s, name: "steady from here", colour: "var(--good)" });
  const common = { time: true, domain, bands, marks, tickX: (at) => `${at} s`, where: (at) => `second ${Math.floor(at)}` };
  const pick = (field) => (run) => overSeconds(measuredLines(run), field);
  const perRun = (field, more) => data.runs.map((run, index) => ({ name: run.label, colour: runColour(index), points: pick(field)(run), ...more }));
  const one = (name, field, colour, more) => ({ name, colour, points: pick(field)(data.runs[0]), ...more });
  const holder = el("div", { class: "charts" });
  root.append(el("h2", {}, "Over time"), holder);
  const rate = single ? [one("completed", "rate", "var(--p50)", { fill: true })] : perRun("rate");
  if (single && data.runs[0].lines.some((point) => point.errors)) rate.push(one("errors", "errors", "var(--bad)"));
  holder.append(chart({ ...common, nameBands: true, title: "Completed per second", series: rate, value: (v) => `${number(v, 4)}/s` }));
  const log = { log: true, tick, value: time };
  const has = (field) => data.runs.some((run) => measuredLines(run).some((point) => point[field] !== null));
  if (single && has("p99")) {
    const series = [one("p50", "p50", "var(--p50)"), one("p99", "p99", "var(--p99)")];
    if (has("max")) series.unshift(one("max", "max", "var(--max)", { width: 1.2 }));
    holder.append(chart({ ...common, ...log, title: "Latency", series, height: 220 }));
  } else if (has("p99")) {
    holder.append(chart({ ...common, ...log, title: "Latency p50", series: perRun("p50") }), chart({ ...common, ...log, title: "Latency p99", series: perRun("p99") }));
  }
  for (const [index, run] of data.runs.entries()) {
    if (run.heat && run.heat.columns.some((column) => column.length)) holder.append(heatmap(run, domain, single ? "Every answer by time and latency" : `Every answer: ${data.runs[index].label}`));
  }
  if (has("lag")) {
    const series = single ? [one("lag p99", "lag", "var(--lag)")] : perRun("lag");
    holder.append(chart({ ...common, ...log, title: "Generator lag p99 (the generator's own lateness)", series, height: 130 }));
  }
  loading(common);
  telemetry({ ...common, domain: wholeExtent() });
}
// How data was loaded, where something else was measured after it.
function loading(common) {
  const runs = data.runs.filter((run) => loads(run).some((point) => point.rate > 0) && measuredLines(run) !== run.lines);
  if (!runs.length) return;
  const series = runs.map((run) => ({ name: single ? "loaded" : run.label, colour: single ? "var(--p50)" : runColour(data.runs.indexOf(run)), fill: single, points: overSeconds(loads(run), "rate") }));
  root.append(el("h2", {}, "While data was loaded"), el("div", { class: "charts" },
    chart({ ...common, time: false, bands: [], marks: [], domain: extentOf(loads), title: "Completed per second", series, height: 130, value: (v) => `${number(v, 4)}/s` })));
}
const UNITS = [[/_bytes(_per_s)?$/, (v) => `${compact(v)}B`], [/_percent$/, (v) => `${number(v)} %`], [/_us$/, (v) => time(v / 1000)]];
function telemetry(common) {
  const names = [...new Set(data.runs.flatMap((run) => run.telemetry.map((series) => series.name)))];
  if (!names.length) return;
  const ofTarget = names.filter((name) => /^target\./.test(name)), others = names.filter((name) => !/^target\./.test(name));
  const draw = (name) => {
    const format = (UNITS.find(([pattern]) => pattern.test(name)) || [null, compact])[1];
    const series = data.runs.map((run, index) => ({ name: single ? name : run.label, colour: single ? "var(--run-2)" : runColour(index),
      points: ((run.telemetry.find((known) => known.name === name) || {}).points || []).map(([t, v]) => [t + 0.5, v]) })).filter((line) => line.points.length);
    return chart({ ...common, title: name.replace(/_/g, " ").replace(/^target\./, "target: "), series, height: 130, tick: format, value: format });
  };
  if (ofTarget.length) root.append(el("h2", {}, "The target"), el("div", { class: "two" }, ofTarget.map(draw)));
  if (others.length) {
    const inside = el("div", { class: "two" }, others.map(draw));
    const details = el("details", {}, el("summary", {}, `${others.length} more series`), inside);
    details.addEventListener("toggle", redraw);
    root.append(details);
  }
}

function percentiles() {
  const series = [];
  const dashes = { response: "", service: "6 4", lag: "2 3" };
  for (const [index, run] of data.runs.entries()) {
    for (const curve of run.curves) {
      if (curve.operation !== "all" || (!single && curve.clock !== (run.curves.some((c) => c.clock === "response") ? "response" : "service"))) continue;
      const colour = single ? { response: "var(--p50)", service: "var(--run-2)", lag: "var(--lag)" }[curve.clock] : runColour(index);
      series.push({ name: single ? curve.clock : run.label, colour, dash: single ? dashes[curve.clock] : "", points: curve.points });
    }
  }
  if (single) {
    const classes = data.runs[0].curves.filter((curve) => curve.operation !== "all");
    if (classes.length > 1) classes.slice(0, 4).forEach((curve, index) => series.push({ name: curve.operation, colour: runColour(index + 3), width: 1.3, points: curve.points }));
  }
  if (!series.length) return;
  const deepest = Math.max(...series.map((line) => line.points[line.points.length - 1][0]));
  const ticksX = [1, 2, 10, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9].filter((at) => at <= deepest * 1.01);
  // Of several phases the last is drawn.
  const drawn = mainPhase(data.runs[0]), ofPhase = drawn && data.runs.some((run) => run.result.phases.filter((phase) => phase.measured).length > 1) ? ` (phase ${drawn.name})` : "";
  const name = (inverse) => (inverse === 1 ? "min" : inverse === 2 ? "p50" : `p${(100 - 100 / inverse).toFixed(Math.max(0, Math.round(Math.log10(inverse)) - 2)).replace(/(\.\d*?)0+$/, "$1").replace(/\.$/, "")}`);
  const order = { response: "from the intended start", service: "from the send", lag: "the generator's own lateness" };
  root.append(el("h2", {}, "Percentiles"), el("div", { class: "charts" }, chart({ title: `Latency at each percentile, out to the last sample${ofPhase}`, log: true, logX: true, domain: [1, deepest], ticksX, tickX: name, tick, value: time,
    where: (at) => `p${(100 - 100 / at).toPrecision(Math.min(8, 3 + Math.max(0, Math.floor(Math.log10(at)) - 1)))}`, series, height: 280, alwaysKey: true })));
  if (single) root.append(el("p", { class: "note" }, Object.entries(order).filter(([clock]) => series.some((line) => line.name === clock)).map(([clock, text]) => `${clock}: ${text}`).join("; ")));
}

const QUANTILES = [0.5, 0.9, 0.99, 0.999, 0.9999];
function operations() {
  root.append(el("h2", {}, "Operations"));
  for (const run of data.runs) {
    for (const phase of run.result.phases) {
      const classes = phase.operations.length > 1 ? phase.operations.concat([phase.total]) : [phase.total];
      const rows = classes.flatMap((operation) => {
        const clocks = [["response", operation.response], ["service", operation.service], ["lag", operation.lag]].filter(([, summary]) => summary);
        const lines = clocks.length ? clocks : [["–", null]];
        return lines.map(([clock, summary], index) => el("tr", { class: index < lines.length - 1 ? "same" : "" }, el("td", { class: operation.name === "all" ? "sum" : "" }, index ? "" : operation.name), index ? [el("td"), el("td"), el("td")] : [el("td", {}, group(String(operation.counts.completed))), el("td", {}, number(operation.completed_per_s, 4)),
          el("td", { class: errorsOf(operation) ? "no" : "" }, group(String(errorsOf(operation))))],
          el("td", { class: "left weak" }, clock), QUANTILES.map((q) => { const found = quantile(summary, q); return el("td", { class: found && !found.quotable ? "weak" : "", title: found && !found.quotable ? "too few samples" : "" }, found ? time(found.value_us / 1000) + (found.quotable ? "" : "?") : "–"); }),
          el("td", {}, summary ? others(summary) : "–"), el("td", {}, summary && summary.max_us !== null ? time(summary.max_us / 1000) : "–"), el("td", {}, summary ? group(String(summary.samples)) : "–")));
      });
      root.append(el("div", { class: "card scroll", style: "margin-bottom:10px" }, el("h3", { style: "margin-bottom:4px" }, `${single ? "" : `${run.label}: `}phase ${phase.name}${phase.measured ? "" : ", not measured"}`), el("table", {}, el("thead", {}, el("tr", {},
        ["operation", "completed", "per second", "errors"].map((name) => el("th", {}, name)), el("th", { class: "left" }, "clock"), ["p50", "p90", "p99", "p99.9", "p99.99", "mean", "max", "samples"].map((name) => el("th", {}, name)))), el("tbody", {}, rows)), errorTexts(phase)));
    }
  }
}
const errorsOf = (operation) => Object.values(operation.counts.errors).reduce((a, b) => a + b, 0);
function others(summary) {
  const extra = summary.quantiles.filter((known) => !QUANTILES.some((q) => Math.abs(q - known.quantile) < 1e-9)).map((known) => `p${Number((known.quantile * 100).toPrecision(6))} ${time(known.value_us / 1000)}`);
  const mean = summary.mean_us === null ? [] : [time(summary.mean_us / 1000)];
  return mean.concat(extra).join(", ") || "–";
}
function errorTexts(phase) {
  const errors = Object.entries(phase.total.counts.errors);
  const extra = Object.entries(phase.total.counts.extra);
  return [errors.length ? el("p", { class: "note no" }, errors.map(([what, count]) => `${group(String(count))} × ${what}`).join("; ")) : null,
    extra.length ? el("p", { class: "note" }, extra.map(([what, count]) => `${what} ${group(String(count))}`).join("  ·  ")) : null];
}

function gates() {
  const rows = data.runs.flatMap((run) => run.result.gates.map((gate) => el("tr", {}, single ? null : el("td", {}, run.label), el("td", { class: single ? "" : "left" }, gate.name), el("td", {}, `${number(gate.value, 4)} ${gate.unit}`), el("td", {}, `${gate.rule === "at_least" ? "≥" : "≤"} ${number(gate.limit, 4)} ${gate.unit}`),
    el("td", { class: gate.passed ? "good" : "no" }, gate.passed ? "passed" : "FAILED"), el("td", { class: "left wrap" }, gate.explanation)))
    .concat(run.result.verification.map((check) => el("tr", {}, single ? null : el("td", {}, run.label), el("td", { class: single ? "" : "left" }, check.what), el("td", {}, check.found), el("td", {}, `= ${check.expected}`), el("td", { class: check.passed ? "good" : "no" }, check.passed ? "passed" : "WRONG"), el("td", { class: "left wrap" }, "verified at the target")))));
  if (!rows.length) return;
  root.append(el("h2", {}, "Gates and verification"), el("div", { class: "card scroll" }, el("table", {}, el("thead", {}, el("tr", {}, (single ? [] : ["run"]).concat(["rule", "found", "allowed", "result"]).map((name) => el("th", {}, name)), el("th", { class: "left" }, "meaning"))), el("tbody", {}, rows))));
}

function configuration() {
  root.append(el("h2", {}, "How it was run"));
  for (const run of data.runs) {
    const result = run.result, facts = [];
    if (result.command_line.length) facts.push(["command", result.command_line.join(" ")]);
    facts.push(["measured by", `${result.tool.name} ${result.tool.version}${result.tool.commit ? ` (${result.tool.commit})` : ""}`]);
    if (result.target.address) facts.push(["target", result.target.address]);
    if (result.target.product) facts.push(["product", result.target.product]);
    for (const [key, value] of Object.entries(result.target.settings)) facts.push([`target setting ${key}`, value]);
    if (result.machine) facts.push(["generator's machine", `${result.machine.cpu}, ${result.machine.cores} cores, ${number(result.machine.memory_mib / 1024)} GiB, Linux ${result.machine.kernel}`]);
    if (result.clocks) facts.push(["clock", `${result.clocks.source} on ${result.clocks.kernel_source}`]);
    if (result.generators.length) facts.push(["generators", `${result.generators.length} process(es), ${result.generators.reduce((sum, g) => sum + g.threads, 0)} thread(s)`]);
    if (result.scenario.article) facts.push(["article", result.scenario.article]);
    facts.push(["seed", String(result.seed)]);
    const table = (rows) => el("table", {}, el("tbody", {}, rows.map(([name, value]) => el("tr", {}, el("td", { class: "weak", style: "width:220px" }, name), el("td", { class: "left mono" }, value)))));
    const scenario = run.configuration.length ? el("details", {}, el("summary", {}, `scenario as it was run, ${run.configuration.length} settings`), el("div", { class: "scroll" }, table(run.configuration))) : null;
    root.append(el("div", { class: "card", style: "margin-bottom:10px" }, single ? null : el("h3", {}, run.label), el("div", { class: "scroll" }, table(facts)), scenario));
  }
}

let pending = 0;
function redraw() {
  cancelAnimationFrame(pending);
  pending = requestAnimationFrame(() => charts.forEach((one) => one.draw()));
}
head();
answers();
if (single) tiles(data.runs[0]); else comparison();
list("Findings", (run) => run.result.findings, "finding", "");
timeCharts();
percentiles();
operations();
gates();
list("What this number hides", (run) => run.result.hides, "hidden", "hides");
configuration();
root.append(el("footer", {}, "Latency counts from the moment an operation was due unless said otherwise. Every figure can be made again from the bundle: result.json, histograms.hlog, seconds.csv."));
charts.forEach((one) => one.draw());
addEventListener("resize", redraw);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
