/* What the pages can do more with scripts on: keep the theme, sort and search tables, zoom a history.
   Every number and chart is there without it. Classic, for modules do not load from file://. */
"use strict";

(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];

  function made(tag, attributes = {}, text = "") {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    element.textContent = text;
    return element;
  }

  /* The theme, kept from page to page */

  function kept(name, value) {
    try {
      if (value === undefined) return localStorage.getItem(name);
      localStorage.setItem(name, value);
    } catch {
      /* Storage can be off: the theme is then of this page alone. */
    }
    return null;
  }

  const themes = all("input[name=theme]");
  const chosen = themes.find((one) => one.id === kept("theme"));
  if (chosen) chosen.checked = true;
  for (const one of themes) one.addEventListener("change", () => kept("theme", one.id));

  /* Sorting */

  const UNITS = {
    ns: 1, "µs": 1e3, ms: 1e6, s: 1e9, min: 6e10, h: 3.6e12,
    B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40,
  };
  const FIGURE = /^(\D*?)(-?[\d,]*\.?\d+(?:e[+-]?\d+)?)(?:(?: to |–)([\d,]*\.?\d+))? ?([%×]|ns|µs|ms|s|min|h|[KMGT]?i?B)?(?:\s|$|[^\w.])/;

  /* What a cell is sorted by: a number, else its text; null where it says nothing. */
  function valueOf(cell) {
    const first = cell.querySelector("small, .more, details");
    const range = document.createRange();
    range.selectNodeContents(cell);
    if (first) range.setEndBefore(first);
    const text = (range.toString().trim() || cell.textContent.trim()).replace(/\s/g, " ");
    if (["", "–", "none", "unavailable"].includes(text)) return null;
    if (/^\d{4}-\d\d-\d\d/.test(text)) return text;
    const found = FIGURE.exec(text);
    if (!found || /\p{L}/u.test(found[1])) return text.toLowerCase();
    const number = Number((found[3] || found[2]).replaceAll(",", ""));
    const size = found[4] === "%" ? 1 + number / 100 : number * (UNITS[found[4]] || 1);
    return found[1].includes("▼") ? -size : size;
  }

  function compared(one, other) {
    if (typeof one === "number" && typeof other === "number") return one - other;
    if (typeof one !== typeof other) return typeof one === "number" ? -1 : 1;
    return one < other ? -1 : Number(one > other);
  }

  function sort(table, head, order) {
    const body = table.tBodies[0];
    for (const one of all("th[aria-sort]", table)) one.removeAttribute("aria-sort");
    const next = { undefined: "descending", descending: "ascending", ascending: "" }[head.dataset.order];
    for (const one of all("th[data-order]", table)) delete one.dataset.order;
    if (!next) {
      body.append(...order);
      return;
    }
    head.dataset.order = next;
    head.setAttribute("aria-sort", next);
    const way = next === "ascending" ? 1 : -1;
    const rows = order.map((row, index) => ({ row, index, value: valueOf(row.cells[head.cellIndex]) }));
    rows.sort((one, other) => {
      if (one.value === null || other.value === null)
        return (one.value === null) - (other.value === null) || one.index - other.index;
      return way * compared(one.value, other.value) || one.index - other.index;
    });
    body.append(...rows.map(({ row }) => row));
  }

  /* Searching what a section lists: rows with all the words stay, and what they are folded in opens */

  const MANY_ROWS = 30;
  const lists = new Map();

  /* As it is compared: without case and accents, and with `25 %` as `25%`. */
  const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().replace(/\s+%/g, "%");

  /* All that a row says in words, but its commands; and what it stands under. */
  function saidBy(row, { fold, heading }) {
    const copy = row.cloneNode(true);
    for (const other of all("details:has(> code), svg", copy)) other.remove();
    for (const part of all("th, td, small, li", copy)) part.append(" ");
    const above = [heading, fold?.querySelector("summary")].map((one) => one?.textContent || "");
    return plain([...above, copy.textContent].join(" "));
  }

  /* What goes with a list that has no such row: its fold if there is nothing else in it, and its heading. */
  function partsOf(frame) {
    const fold = frame.closest("details");
    const block = fold && all("figure, table.data, ul.reasons", fold).length === 1 ? fold : frame;
    const heading = block.previousElementSibling;
    return { frame, fold, block, heading: heading?.tagName === "H3" ? heading : null };
  }

  function found(words, list) {
    const { rows, fold, block, heading } = list;
    list.said ??= rows.map((row) => saidBy(row, list));
    rows.forEach((row, at) => (row.hidden = !words.every((word) => list.said[at].includes(word))));
    const left = rows.filter((row) => !row.hidden).length;
    for (const part of [block, heading]) if (part) part.hidden = !left;
    if (fold && words.length) {
      list.open ??= fold.open;
      fold.open = left > 0;
    } else if (fold) {
      fold.open = list.open ?? fold.open;
      list.open = null;
    }
    return left;
  }

  function searchable(section, unordered) {
    const isFirst = (one, other) => one.frame.compareDocumentPosition(other.frame) & Node.DOCUMENT_POSITION_FOLLOWING;
    const several = unordered.toSorted((one, other) => (isFirst(one, other) ? -1 : 1));
    const title = section.querySelector("h2")?.textContent || document.title;
    const input = made("input", { type: "search", class: "only", "aria-label": `Only rows with, ${title}` });
    const told = made("output", { class: "soft" });
    const rows = several.reduce((sum, one) => sum + one.rows.length, 0).toLocaleString("en");
    const look = () => {
      const words = plain(input.value).split(/\s+/).filter(Boolean);
      const left = several.reduce((sum, list) => sum + found(words, list), 0);
      told.textContent = words.length ? `${left.toLocaleString("en")}\u00a0of\u00a0${rows}\u00a0listed` : "";
    };
    input.addEventListener("input", look);
    /* Who comes back finds the words there, put by the browser. */
    addEventListener("pageshow", () => setTimeout(look));
    const [line, label] = [made("p", { class: "soft" }), made("label", {}, "Only rows with ")];
    label.append(input);
    line.append(label, " ", told);
    addEventListener("beforeprint", () => (line.hidden = !input.value));
    addEventListener("afterprint", () => (line.hidden = false));
    const [{ fold, frame, heading }] = several;
    (heading || fold || frame).before(line);
  }

  /* A link within the page leads to its row, whatever was searched for. */
  addEventListener("hashchange", () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (!target?.closest("[hidden]")) return;
    for (const input of all(".only")) {
      input.value = "";
      input.dispatchEvent(new Event("input"));
    }
    target.scrollIntoView();
  });

  for (const table of all("table.data")) {
    const rows = [...(table.tBodies[0]?.rows || [])];
    /* Groups and sums have an order of their own. */
    if (table.tBodies.length !== 1 || !rows.length || table.querySelector("[colspan], [rowspan]")) continue;
    const section = table.closest("section");
    if (section && !table.closest("figure, .panel"))
      lists.set(section, [...(lists.get(section) || []), { rows, ...partsOf(table.parentNode) }]);
    if (rows.length < 2) continue;
    table.classList.add("sortable");
    for (const head of all("thead th:not(.axis, .line, .bars, .plain)", table)) {
      if (!head.textContent.trim()) continue;
      const button = made("button", { type: "button" });
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sort(table, head, rows));
    }
  }

  for (const list of all("section ul.reasons")) {
    const section = list.closest("section");
    lists.set(section, [...(lists.get(section) || []), { rows: [...list.children], ...partsOf(list) }]);
  }

  for (const [section, several] of lists)
    if (several.flatMap(({ rows }) => rows).length >= MANY_ROWS) searchable(section, several);

  /* A table's frame is a stop of the keyboard, with a name of its own, only where it scrolls */

  function frameOf(table) {
    const stop = { tabindex: "0", role: "group", "aria-label": table.caption.textContent };
    const frame = table.parentNode;
    for (const [name, value] of Object.entries(stop))
      if (frame.scrollWidth > frame.clientWidth) frame.setAttribute(name, value);
      else frame.removeAttribute(name);
  }

  const framing = new ResizeObserver((seen) => seen.forEach(({ target }) => frameOf(target)));
  for (const table of all(".scroll > table")) {
    frameOf(table);
    framing.observe(table);
  }

  /* Zoom: the library and the points are loaded when first asked for */

  const here = document.currentScript.src;
  const loads = new Map();

  function load(address) {
    if (!loads.has(address)) {
      const element = address.endsWith(".css")
        ? made("link", { rel: "stylesheet", href: address })
        : made("script", { src: address });
      loads.set(address, new Promise((resolve, reject) => {
        element.onload = resolve;
        element.onerror = () => reject(new Error(`${address} does not load`));
        document.head.append(element);
      }));
    }
    return loads.get(address);
  }

  window.corebound = {
    series: {},
    keep(points) {
      Object.assign(this.series, points);
    },
  };

  function colourOf(figure, name, kind = "--mode") {
    const probe = made("span", { class: name, style: `color: var(${kind})` });
    figure.append(probe);
    const colour = getComputedStyle(probe).color;
    probe.remove();
    return colour;
  }

  const faint = (colour, share) => colour.replace("rgb(", "rgba(").replace(")", `, ${share})`);

  /* The moments add up: each is kept as minutes since the one before. Figures are counted in
     the series' own unit, bounds by how far they are from them. */
  function columns(series, length) {
    let minutes = 0;
    const moments = series.t.map((step) => (minutes += step) * 60);
    const scaled = (way, away) => series.y.map((figure, index) => {
      const by = away ? away[index] ?? null : 0;
      return figure === null || by === null ? null : ((figure + way * by) * series.u) / length;
    });
    return [moments, scaled(0), scaled(-1, series.low), scaled(1, series.high)];
  }

  const [HOUR, DAY] = [3600, 86400];
  /* No point is told to less than a minute; years, as the library counts them. */
  const STEPS = [
    60, 300, 900, 1800, ...[1, 3, 6, 12].map((hours) => hours * HOUR),
    ...[1, 2, 3, 5, 7, 10, 15, 30, 60, 90, 120, 180, 365, 730, 1825, 3650].map((days) => days * DAY),
  ];
  const part = (from, to) => (moment) => new Date(moment * 1000).toISOString().slice(from, to);
  const [day, clock] = [part(0, 10), part(11, 16)];

  /* Below a day the hour, and of each day's first one the day. */
  function dates(_, ticks, axis, space, step) {
    if (step >= DAY) return ticks.map(day);
    return ticks.map((moment, index) =>
      index && day(moment) === day(ticks[index - 1]) ? clock(moment) : `${clock(moment)}\n${day(moment)}`);
  }

  const told = (digits) => (value) => 0 < value && value < 1e-4
    ? Number(value.toPrecision(digits)).toExponential()
    : value.toLocaleString("en", { maximumSignificantDigits: digits });
  const short = told(4);

  /* The still chart's vertical axis. */
  function axisOf(figure) {
    const [scale, low, high] = figure.dataset.axis.split(" ");
    return { log: scale === "log", low: Number(low), high: Number(high) };
  }

  const MOST_TICKS = 5;

  /* Where an axis has ticks, as the still chart's: at round figures. */
  function rounds(log, low, high) {
    if (log) {
      const [first, last] = [Math.floor(Math.log10(low)), Math.ceil(Math.log10(high))];
      const powers = Array.from({ length: last - first + 1 }, (_, index) => first + index);
      let ticks = [];
      for (const digits of [[1, 1.5, 2, 3, 5, 7], [1, 2, 5], [1]]) {
        ticks = powers
          .flatMap((power) => digits.map((digit) => Number(`${digit}e${power}`)))
          .filter((tick) => tick >= low && tick <= high);
        if (ticks.length <= MOST_TICKS) break;
      }
      const every = Math.ceil(ticks.length / MOST_TICKS);
      /* Within so little that there are no two, the axis is as good as linear. */
      if (ticks.length > 1) return ticks.filter((_, index) => index % every === 0);
    }
    const power = 10 ** Math.floor(Math.log10((high - low) / MOST_TICKS));
    const step = [1, 2, 5, 10, 20].map((one) => one * power).find((one) => (high - low) / one <= MOST_TICKS);
    const [first, last] = [Math.ceil(low / step - 1e-6), Math.floor(high / step + 1e-6)];
    return Array.from({ length: last - first + 1 }, (_, index) => (first + index) * step);
  }

  /* From where to where the vertical axis goes: of the whole as the still chart's; of a part as
     far as its figures, and as their bounds while figures keep half of it. */
  function spanOf({ log, low, high }, tables) {
    const [to, from] = log ? [(value) => Math.log(Math.max(value, 0)), Math.exp] : [Number, Number];
    return (plot, least, most) => {
      const [first, last] = plot.series[0].idxs;
      const moments = plot.data[0];
      if (least === null || (first === 0 && last === moments.length - 1)) return [low, high];
      /* The library itself leaves out what has no logarithm. */
      const [begin, end] = [to(least), to(most)];
      /* So little more is no change worth looking at. */
      const pad = Math.max((end - begin) * 0.08, log ? 0.02 : Math.abs(end) * 0.02);
      const room = (end - begin) / 2 + pad;
      const ends = [begin - pad, end + pad];
      for (const [own, , lows, highs] of tables)
        own.forEach((moment, at) => {
          if (lows[at] === null || moment < moments[first] || moment > moments[last]) return;
          ends.push(to(lows[at]), to(highs[at]));
        });
      return [
        Math.max(Math.min(...ends), begin - pad - room),
        Math.min(Math.max(...ends), end + pad + room),
      ].map(from);
    };
  }

  function axes(figure, { log }) {
    const style = getComputedStyle(figure);
    const line = colourOf(figure, "", "--line");
    const one = { stroke: style.color, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
    const days = { ...one, space: 78, incrs: STEPS, values: dates };
    const figures = {
      ...one, size: 64,
      splits: (_, number, low, high) => rounds(log, low, high),
      /* They are round, but for what a sum of fractions adds. */
      values: (_, ticks) => ticks.map(told(12)),
      filter: (_, ticks) => ticks,
    };
    return [figure.dataset.ordinal === undefined ? days : one, figures];
  }

  /* Lines from (x, y) to (x, y), in pixels of the canvas, as far as they are in the plot. */
  function ruled(plot, lines, stroke, width, dash = []) {
    const { ctx, bbox } = plot;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.beginPath();
    for (const [x, y, toX, toY] of lines) {
      ctx.moveTo(x, y);
      ctx.lineTo(toX, toY);
    }
    ctx.strokeStyle = stroke;
    ctx.lineWidth = width * devicePixelRatio;
    ctx.setLineDash(dash.map((length) => length * devicePixelRatio));
    ctx.stroke();
    ctx.restore();
  }

  /* As the still chart's classes have them. */
  const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3]];

  /* What the still chart has besides lines and points, at its three depths. */
  function still(figure, series, tables) {
    const [levels, marks, borders] = JSON.parse(figure.dataset.still);
    const scale = figure.dataset.ordinal === undefined ? 60 : 1;
    const own = (kind) => colourOf(figure, "", kind);
    const [band, ink, soft, warn] = ["--band", "--ink", "--soft", "--warn"].map(own);
    const colours = figure.dataset.modes.split(" ").map((mode) => colourOf(figure, mode));
    const across = (plot, minutes) => plot.valToPos(minutes * scale, "x", true);
    const upright = (plot, all) => all.map((minutes) => {
      const x = across(plot, minutes);
      return [x, plot.bbox.top, x, plot.bbox.top + plot.bbox.height];
    });
    const beneath = (plot) => {
      const { top, height } = plot.bbox;
      const bands = marks.map(([, begin, end]) => [across(plot, begin), top + height / 2, across(plot, end), top + height / 2]);
      ruled(plot, bands, band, height / devicePixelRatio);
    };
    const between = (plot) => {
      ruled(plot, upright(plot, borders), ink, 1.5, [4, 3]);
      ruled(plot, upright(plot, marks.map(([x]) => x)), soft, 1, [2, 3]);
      tables.forEach(([moments, , lows, highs], number) => {
        const y = (value) => plot.valToPos(value, "y", true);
        const bars = [...moments.keys()].filter((at) => lows[at] !== null).map((at) => {
          const x = plot.valToPos(moments[at], "x", true);
          return [x, y(lows[at]), x, y(highs[at])];
        });
        ruled(plot, bars, faint(colours[number], 0.4), 1);
      });
    };
    const above = (plot) => {
      const foot = plot.bbox.top + plot.bbox.height;
      levels.forEach((stretches, number) => {
        const lines = stretches.map(([begin, end, value]) => {
          const y = plot.valToPos(value, "y", true);
          return [across(plot, begin), y, across(plot, end), y];
        });
        ruled(plot, lines, colours[number], 2.5, DASHES[number % DASHES.length]);
        const lost = Object.values(series[number].no).flat().map((at) => {
          const x = plot.valToPos(tables[number][0][at], "x", true);
          return [x, foot, x, foot - plot.bbox.height * 0.04];
        });
        ruled(plot, lost, warn, 2);
      });
      labelled(plot, [
        ...marks.map(([x, , , worse], index) => [x * scale, index + 1, worse ? "bad" : "good"]),
        ...borders.map((x, index) => [x * scale, LETTERS[index] ?? index + 1, "plain"]),
      ]);
    };
    return { drawClear: [beneath], drawAxes: [between], draw: [above] };
  }

  const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  /* So many pixels a label takes; those that would touch have lanes of their own. */
  const ROOM = 28;

  function labelled(plot, labels) {
    const box = plot.over.querySelector(".marks") || plot.over.appendChild(made("div", { class: "over marks", "aria-hidden": "true" }));
    const ends = [];
    const seen = labels
      .map(([moment, text, tone]) => ({ x: plot.valToPos(moment, "x"), text, tone }))
      .filter(({ x }) => x >= 0 && x <= plot.over.clientWidth)
      .sort((one, other) => one.x - other.x);
    box.replaceChildren(...seen.map(({ x, text, tone }) => {
      const free = ends.findIndex((end) => x - end >= ROOM);
      const lane = free < 0 ? ends.length : free;
      ends[lane] = x;
      return made("span", { class: tone, style: `left: ${x}px; --lane: ${lane}` }, text);
    }));
    plot.root.parentNode.style.setProperty("--lanes", Math.max(ends.length, plot.root.parentNode.style.getPropertyValue("--lanes")));
  }

  /* Where there is no room for a dot a point, those have one that no line leads to. What another
     series alone has is undefined, and no gap; null is one, and so is what `begins` anew. */
  const alone = (begins) => (plot, number, all) => {
    if (all) return null;
    const [moments, figures] = [plot.data[0], plot.data[number]];
    const ends = (at, step) => {
      const from = at;
      do at += step;
      while (figures[at] === undefined && at >= 0 && at < figures.length);
      return figures[at] === null || figures[at] === undefined || begins.has(moments[Math.max(from, at)]);
    };
    return [...figures.keys()].filter((at) => Number.isFinite(figures[at]) && ends(at, -1) && ends(at, 1));
  };

  /* Where lines are left open, as (from, to) in pixels: at what is missing, and at these points. */
  const open = (moments, gaps) => (plot, number, first, last, missing) => {
    const x = (at) => plot.valToPos(moments[at], "x", true);
    return [...missing, ...gaps.map((at) => [x(at - 1), x(at)])].sort((one, other) => one[0] - other[0]);
  };

  function drawn(figure, host, read) {
    const places = figure.dataset.series.split(" ");
    const modes = figure.dataset.modes.split(" ");
    const told = places.map((place) => corebound.series[place]);
    const tables = told.map((one) => columns(one, Number(figure.dataset.length)));
    const points = tables.map(([moments, figures]) => [moments, figures]);
    const data = points.length > 1 ? uPlot.join(points) : points[0];
    const axis = axisOf(figure);
    const lines = modes.map((mode, index) => {
      const colour = faint(colourOf(figure, mode), 0.6);
      const [moments, gaps] = [tables[index][0], told[index].gaps];
      const filter = alone(new Set(gaps.map((at) => moments[at])));
      return { stroke: colour, gaps: open(moments, gaps), points: { size: 4, fill: colour, filter } };
    });
    const hooks = still(figure, told, tables);
    return new uPlot({
      width: figure.clientWidth,
      height: 280,
      tzDate: (moment) => uPlot.tzDate(new Date(moment * 1000), "Etc/UTC"),
      scales: {
        x: { time: figure.dataset.ordinal === undefined },
        y: { distr: axis.log ? 3 : 1, range: spanOf(axis, tables) },
      },
      axes: axes(figure, axis),
      series: [{}, ...lines],
      legend: { show: false },
      hooks: { ...hooks, setCursor: [(plot) => read(plot, told, tables)] },
    }, data, host);
  }

  function reading(figure, names, output, host) {
    const unit = figure.dataset.unit;
    return (plot, series, tables) => {
      const index = plot.cursor.idx;
      if (index === null || index === undefined) return;
      const moment = plot.data[0][index];
      const parts = [];
      series.forEach((one, number) => {
        const own = tables[number][0].indexOf(moment);
        const value = own < 0 ? null : tables[number][1][own];
        if (value === null) {
          const why = Object.entries(one.no).find(([, lost]) => lost.includes(own));
          if (why) parts.push(`${names[number]}: no figure, ${why[0]}`);
          return;
        }
        const [low, high] = [tables[number][2][own], tables[number][3][own]];
        const bounds = low === null ? "" : ` [${short(low)}, ${short(high)}]`;
        const sha = one.c.split(" ")[own];
        const commit = sha ? `, commit ${sha}` : "";
        parts.push(`${names[number]}: ${short(value)} ${unit}${bounds}${commit}`);
      });
      const when = figure.dataset.ordinal === undefined ? `${day(moment)} ${clock(moment)} UTC` : "";
      const told = [when, ...parts].filter(Boolean).join("; ");
      output.textContent = told;
      host.setAttribute("aria-valuemax", plot.data[0].length);
      host.setAttribute("aria-valuenow", index + 1);
      host.setAttribute("aria-valuetext", told);
    };
  }

  function moved(plot, by, to) {
    const moments = plot.data[0];
    const [first, last] = [moments[0], moments[moments.length - 1]];
    const { min, max } = plot.scales.x;
    const half = ((max - min) / 2) * to;
    const middle = (min + max) / 2 + by * (max - min);
    const width = Math.min(half * 2, last - first);
    const begin = Math.min(Math.max(middle - width / 2, first), last - width);
    plot.setScale("x", { min: begin, max: begin + width });
  }

  const MOVES = [
    ["+", "Closer", 0, 0.5],
    ["−", "Wider", 0, 2],
    ["←", "Earlier", -0.5, 1],
    ["→", "Later", 0.5, 1],
  ];

  function opened(figure) {
    const names = all(".key li", figure).map((one) => one.textContent.trim());
    if (!names.length) names.push(figure.querySelector("figcaption b").textContent);
    const box = made("div", { class: "zoomed" });
    const bar = made("div", { class: "moves", role: "group", "aria-label": "Move in the chart" });
    const label = "Points one by one: left and right arrow. Drag over the chart to come closer.";
    const named = figure.querySelector("figcaption b").textContent;
    /* A slider over the points: its arrow keys reach us from a screen reader too, which says its
       text at each step. */
    const host = made("div", {
      class: "history", tabindex: "0", role: "slider", "aria-label": `Points, ${named}`, "aria-valuemin": 1,
      "aria-valuenow": 1, "aria-valuemax": 1, "aria-valuetext": label,
    });
    const output = made("p", { class: "reading", "aria-hidden": "true" }, label);
    box.append(bar, host, output);
    figure.querySelector(".frame").before(box);
    let plot;
    const draw = () => {
      plot?.destroy();
      plot = drawn(figure, host, reading(figure, names, output, host));
    };
    for (const [sign, word, by, to] of MOVES) {
      const button = made("button", { type: "button", "aria-label": word, title: word }, sign);
      button.addEventListener("click", () => moved(plot, by, to));
      bar.append(button);
    }
    const whole = made("button", { type: "button" }, "All");
    whole.addEventListener("click", () => moved(plot, 0, Infinity));
    bar.append(whole);
    let at = null;
    host.addEventListener("keydown", (event) => {
      const step = {
        ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, Home: -Infinity, End: Infinity,
      }[event.key];
      if (!step) return;
      event.preventDefault();
      const last = plot.data[0].length - 1;
      at = Math.min(Math.max((at ?? (step > 0 ? -1 : last + 1)) + step, 0), last);
      const moment = plot.data[0][at];
      if (moment < plot.scales.x.min || moment > plot.scales.x.max)
        moved(plot, (moment - (plot.scales.x.min + plot.scales.x.max) / 2) / (plot.scales.x.max - plot.scales.x.min), 1);
      /* The scale is set in a task of its own. */
      setTimeout(() => plot.setCursor({ left: plot.valToPos(moment, "x"), top: 10 }));
    });
    const life = new AbortController();
    for (const one of themes) one.addEventListener("change", draw, { signal: life.signal });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw, { signal: life.signal });
    addEventListener("resize", () => plot.setSize({ width: figure.clientWidth, height: 280 }), { signal: life.signal });
    draw();
    return () => {
      life.abort();
      plot.destroy();
      box.remove();
    };
  }

  for (const figure of all("figure[data-zoom]")) {
    const button = made("button", { type: "button", class: "zoom", "aria-expanded": "false" }, "Zoom");
    const named = figure.querySelector("figcaption b").textContent;
    button.setAttribute("aria-label", `Zoom ${named}`);
    figure.querySelector("figcaption").append(button);
    let close = null;
    button.addEventListener("click", async () => {
      const frame = figure.querySelector(".frame");
      if (close) {
        close();
        close = null;
      } else {
        button.disabled = true;
        try {
          const asset = (name) => new URL(name, here).href;
          await Promise.all([
            load(asset("uplot-1.6.32.css")),
            load(asset("uplot-1.6.32.js")),
            load(new URL(figure.dataset.zoom, document.baseURI).href),
          ]);
          close = opened(figure);
        } catch (error) {
          button.replaceWith(made("span", { class: "warn", role: "status" }, error.message));
          return;
        } finally {
          button.disabled = false;
        }
      }
      frame.hidden = Boolean(close);
      button.setAttribute("aria-expanded", String(Boolean(close)));
      button.textContent = close ? "Whole" : "Zoom";
      button.focus();
    });
  }
})();
