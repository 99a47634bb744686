/* What the pages can do more with scripts on: keep the theme, copy, sort and search tables, zoom a history.
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

  /* What a cell says first, before its small print. */
  function firstText(cell) {
    const first = cell.querySelector("small, .more, details");
    const range = document.createRange();
    range.selectNodeContents(cell);
    if (first) range.setEndBefore(first);
    return (range.toString().trim() || cell.textContent.trim()).replace(/\s/g, " ");
  }

  /* What a cell is sorted by: a number, else its text; null where it says nothing. */
  function valueOf(cell) {
    if (!cell) return null;
    const text = firstText(cell);
    if (["", "–", "none", "unavailable"].includes(text)) return null;
    if (/^\d{4}-\d\d-\d\d/.test(text)) return text;
    const found = FIGURE.exec(text);
    if (!found || /\p{L}/u.test(found[1])) return text.toLowerCase();
    const number = Number((found[3] || found[2]).replaceAll(",", ""));
    const size = found[4] === "%" ? 1 + number / 100 : number * (UNITS[found[4]] || 1);
    return /▼|× slower/.test(text) ? -size : size;
  }

  function compared(one, other) {
    if (typeof one === "number" && typeof other === "number") return one - other;
    if (typeof one !== typeof other) return typeof one === "number" ? -1 : 1;
    return one < other ? -1 : Number(one > other);
  }

  function sort(table, head, order) {
    const place = order[0].parentNode;
    for (const one of all("th[aria-sort]", table)) one.removeAttribute("aria-sort");
    const next = { undefined: "descending", descending: "ascending", ascending: "" }[head.dataset.order];
    for (const one of all("th[data-order]", table)) delete one.dataset.order;
    if (!next) {
      place.append(...order);
      return;
    }
    head.dataset.order = next;
    head.setAttribute("aria-sort", next);
    const way = next === "ascending" ? 1 : -1;
    const rows = order.map((row, index) => ({ row, index, value: valueOf((row.rows?.[0] || row).cells[head.cellIndex]) }));
    rows.sort((one, other) => {
      if (one.value === null || other.value === null)
        return (one.value === null) - (other.value === null) || one.index - other.index;
      return way * compared(one.value, other.value) || one.index - other.index;
    });
    place.append(...rows.map(({ row }) => row));
  }

  /* Searching what a section lists: rows with all the words stay, and what they are folded in opens */

  const MANY_ROWS = 30;
  const lists = new Map();

  /* As it is compared: without case and accents, and with `25 %` as `25%`. */
  const plain = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase().replace(/\s+%/g, "%");

  /* All that a row says in words, but its commands; and what it stands under. */
  function saidBy(row, { fold, heading }) {
    const copy = row.cloneNode(true);
    for (const other of all("details:has(> code), svg, .cmd", copy)) other.remove();
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

  function found(words, chosen, list) {
    const { rows, fold, block, heading } = list;
    if (words.length) list.said ??= rows.map((row) => saidBy(row, list));
    const isChosen = (row) => [...chosen].every(([column, value]) => wordOf(row, column) === value);
    rows.forEach((row, at) => (row.hidden = !(words.every((word) => list.said[at].includes(word)) && isChosen(row))));
    const left = rows.filter((row) => !row.hidden).length;
    for (const part of [block, heading]) if (part) part.hidden = !left;
    if (fold && (words.length || chosen.size)) {
      list.open ??= fold.open;
      fold.open = left > 0;
    } else if (fold) {
      fold.open = list.open ?? fold.open;
      list.open = null;
    }
    return left;
  }

  /* Chips: the words of a column that has few, such as verdicts */

  const [FEWEST_CHIPS, MOST_CHIPS, LONGEST_CHIP] = [2, 6, 24];

  const heads = new Map();

  function headsOf(row) {
    const table = row.closest("table");
    if (!heads.has(table)) heads.set(table, [...(table?.tHead?.rows[0]?.cells || [])].map((head) => head.textContent.trim()));
    return heads.get(table);
  }

  /* The word in a row's column of this name, without its sign; undefined where there is none. */
  function wordOf(row, column) {
    const at = headsOf(row).indexOf(column);
    const cell = at > 0 ? (row.rows?.[0] || row).cells[at] : null;
    return cell ? firstText(cell).replace(/^[^\p{L}\p{N}]+/u, "") : undefined;
  }

  /* For each such column its words, with how many rows have them. */
  function chipsOf(rows) {
    const columns = [];
    for (const name of new Set(rows.flatMap(headsOf))) {
      const words = new Map();
      for (const row of rows) {
        const word = wordOf(row, name);
        if (!word) continue;
        words.set(word, (words.get(word) || 0) + 1);
        if (words.size > MOST_CHIPS) break;
      }
      const areWords = [...words.keys()].every((word) => word.length <= LONGEST_CHIP && !/^\d/.test(word));
      if (areWords && words.size >= FEWEST_CHIPS && words.size <= MOST_CHIPS) columns.push([name, words]);
    }
    return columns;
  }

  /* The filters are part of the address: a link leads to them, and a refresh keeps them. */
  const OF_FILTER = /^(filter|is)\./;
  const address = () => new URLSearchParams(location.hash.slice(1));

  function addressed(key, value) {
    const parts = address();
    for (const name of [...parts.keys()]) if (!OF_FILTER.test(name)) parts.delete(name);
    if (value) parts.set(key, value);
    else parts.delete(key);
    const hash = String(parts);
    if (hash || OF_FILTER.test(location.hash.slice(1)))
      history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  }

  function searchable(section, unordered) {
    const isFirst = (one, other) => one.frame.compareDocumentPosition(other.frame) & Node.DOCUMENT_POSITION_FOLLOWING;
    const several = unordered.toSorted((one, other) => (isFirst(one, other) ? -1 : 1));
    const title = section.querySelector("h2")?.textContent || document.title;
    const input = made("input", { type: "search", class: "only", "aria-label": `Filter, ${title}` });
    const told = made("output", { class: "soft" });
    const listed = several.flatMap((one) => one.rows);
    const chosen = new Map();
    const look = () => {
      const words = plain(input.value).split(/\s+/).filter(Boolean);
      const left = several.reduce((sum, list) => sum + found(words, chosen, list), 0);
      const isFiltered = words.length || chosen.size;
      told.textContent = isFiltered ? `${left.toLocaleString("en")}\u00a0of\u00a0${listed.length.toLocaleString("en")}\u00a0listed` : "";
      for (const chip of chips) chip.setAttribute("aria-pressed", String(chosen.get(chip.dataset.column) === chip.value));
    };
    const chip = (column, word, times) => {
      const button = made("button", { type: "button", class: "chip", value: word, "data-column": column }, `${word} ${times.toLocaleString("en")}`);
      button.addEventListener("click", () => {
        if (chosen.get(column) === word) chosen.delete(column);
        else chosen.set(column, word);
        addressed(`is.${section.id}.${column}`, chosen.get(column));
        look();
      });
      return button;
    };
    const line = made("div", { class: "filters soft" });
    const label = made("label", {}, "Filter ");
    label.append(input);
    line.append(label);
    for (const [column, words] of chipsOf(listed)) {
      const group = made("span", { role: "group", "aria-label": `Filter by ${column}` }, `${column} `);
      group.append(...[...words].map(([word, times]) => chip(column, word, times)));
      line.append(group);
      const asked = address().get(`is.${section.id}.${column}`);
      if (words.has(asked)) chosen.set(column, asked);
    }
    line.append(told);
    const chips = line.querySelectorAll(".chip");
    input.addEventListener("input", () => {
      addressed(`filter.${section.id}`, input.value.trim());
      look();
    });
    line.addEventListener("reset", () => {
      input.value = "";
      chosen.clear();
      look();
    });
    input.value = address().get(`filter.${section.id}`) || "";
    if (input.value || chosen.size) look();
    /* Who comes back finds the words there, put by the browser. */
    addEventListener("pageshow", () => setTimeout(() => input.value && look()));
    addEventListener("beforeprint", () => (line.hidden = !input.value && !chosen.size));
    addEventListener("afterprint", () => (line.hidden = false));
    const [{ fold, frame, heading }] = several;
    (heading || fold || frame).before(line);
  }

  function targeted() {
    let id;
    try {
      id = decodeURIComponent(location.hash.slice(1));
    } catch {
      return null;
    }
    const store = id && !document.getElementById(id) && all("details > noscript").find((one) => one.textContent.includes(` id="${id}"`));
    if (store) {
      fill(store.parentNode);
      /* The browser has looked for it before it was there. */
      location.replace(location.href);
    }
    return document.getElementById(id);
  }

  /* A link within the page leads to its row, whatever was searched for. */
  addEventListener("hashchange", () => {
    const target = targeted();
    if (!target?.closest("[hidden]")) return;
    for (const line of all(".filters")) line.dispatchEvent(new Event("reset"));
    target.scrollIntoView();
  });

  function findTables(root) {
    for (const table of all("table.data, table.forest", root)) {
      /* Where a row has details below it, both are a body of the table. */
      const detailed = table.matches(".forest");
      const rows = detailed ? [...table.tBodies] : [...(table.tBodies[0]?.rows || [])];
      /* Groups and sums have an order of their own. */
      if (!rows.length || !detailed && (table.tBodies.length !== 1 || table.querySelector("[colspan], [rowspan]"))) continue;
      const section = table.closest("section");
      if (section && !table.closest("figure, .panel, .commit"))
        lists.set(section, [...(lists.get(section) || []), { rows, ...partsOf(detailed ? table : table.parentNode) }]);
      if (rows.length < 2) continue;
      table.classList.add("sortable");
      for (const head of all("thead th:not(.axis, .fold, .line, .bars, :has(a, summary))", table)) {
        if (!head.textContent.trim()) continue;
        const button = made("button", { type: "button" });
        button.append(...head.childNodes);
        head.append(button);
        button.addEventListener("click", () => sort(table, head, rows));
      }
    }
    for (const list of all("section ul.reasons", root)) {
      const section = list.closest("section");
      lists.set(section, [...(lists.get(section) || []), { rows: [...list.children], ...partsOf(list) }]);
    }
  }

  function filter(section) {
    const several = lists.get(section) || [];
    if (several.flatMap(({ rows }) => rows).length >= MANY_ROWS) searchable(section, several);
  }

  /* A table's frame is a stop of the keyboard, with a name of its own, only where it scrolls */

  /* All are measured before one is changed: after a change, measuring means to lay out the page again. */
  function frameAll(tables) {
    tables
      .map((table) => [table, table.parentNode.scrollWidth > table.parentNode.clientWidth])
      .forEach(([table, scrolls]) => {
        const stop = { tabindex: "0", role: "group", "aria-label": table.caption.textContent };
        for (const [name, value] of Object.entries(stop))
          if (scrolls) table.parentNode.setAttribute(name, value);
          else table.parentNode.removeAttribute(name);
      });
  }

  const framing = new ResizeObserver((seen) => frameAll(seen.map(({ target }) => target)));

  function frame(root) {
    const framed = all(".scroll > table", root);
    frameAll(framed);
    for (const table of framed) framing.observe(table);
  }

  /* Copying: one button for every command block, and for a command in a row once it is opened */

  const COPIED_MS = 1600;

  function copyable(code, what) {
    if (code.dataset.copy) return;
    code.dataset.copy = what;
    const text = code.textContent.trim();
    const button = made("button", { type: "button", class: "copy", "aria-label": `Copy ${what}` }, "Copy");
    const say = (word) => {
      button.textContent = word;
      button.setAttribute("aria-label", word === "Copy" ? `Copy ${what}` : word);
    };
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text);
        say("Copied");
      } catch {
        /* Without a clipboard, as over plain HTTP, the reader copies what is selected. */
        getSelection().selectAllChildren(code);
        say("Press Ctrl+C");
      }
      setTimeout(say, COPIED_MS, "Copy");
    });
    (code.closest(".block, .cmd") || code).append(button);
  }

  function equip(root) {
    findTables(root);
    frame(root);
    for (const code of all(".cmd > code", root)) copyable(code, code.textContent);
    for (const code of all(".command", root)) copyable(code, code.getAttribute("aria-label").toLowerCase());
  }

  /* What a long page folds is text in a <noscript> until a fold is opened, so that the page is interactive sooner.
     Folds whose rows are filtered together are filled together. */

  const WITH_ROWS = "details > noscript[data-rows]";

  function fill(fold) {
    const store = fold.querySelector(":scope > noscript");
    if (!store) return;
    const isFiltered = store.matches(WITH_ROWS);
    const section = fold.closest("section");
    for (const one of isFiltered ? all(WITH_ROWS, section) : [store]) {
      const parent = one.parentNode;
      one.replaceWith(document.createRange().createContextualFragment(one.textContent));
      equip(parent);
    }
    if (!isFiltered) return;
    section.querySelector(".filters.unfilled")?.remove();
    filter(section);
  }

  /* In place of the filter of rows that are not there yet; who is about to use it gets the filter itself. */
  function offerFilter(section, stores) {
    const line = made("label", { class: "filters unfilled soft" }, "Filter ");
    const input = made("input", { type: "search", class: "only", "aria-label": `Filter, ${section.querySelector("h2").textContent}` });
    line.append(input);
    input.addEventListener("focus", () => {
      fill(stores[0].parentNode);
      section.querySelector(".filters input")?.focus();
    });
    stores[0].parentNode.before(line);
  }

  equip(document);
  for (const section of all(`section:has(${WITH_ROWS})`)) {
    const stores = all(WITH_ROWS, section);
    const listed = (lists.get(section) || []).flatMap(({ rows }) => rows).length;
    const rows = stores.reduce((sum, one) => sum + Number(one.dataset.rows), listed);
    const isAsked = [...address().keys()].some((key) => OF_FILTER.test(key) && key.split(".")[1] === section.id);
    if (isAsked) fill(stores[0].parentNode);
    else if (rows >= MANY_ROWS) offerFilter(section, stores);
  }
  for (const section of [...lists.keys()]) if (!section.querySelector(".filters")) filter(section);

  /* A fold does not bubble its event, but the document sees it first. */
  const unfolded = ({ target }) => {
    if (target.open) fill(target);
    const code = target.open && target.querySelector(":scope > code");
    const summary = target.querySelector("summary");
    if (code) copyable(code, summary.getAttribute("aria-label") || summary.textContent);
  };
  document.addEventListener("toggle", unfolded, true);

  /* Permalinks: beside the headings, so that these are read without them */

  for (const section of all("section[id]")) {
    const heading = section.querySelector(":scope > h2");
    const label = `Permalink to ${heading?.textContent}`;
    if (heading) section.prepend(made("a", { class: "anchor", href: `#${section.id}`, "aria-label": label }));
  }

  /* Scripts and data that are loaded when first asked for */

  const here = document.currentScript.src;
  const asset = (name) => new URL(name, here).href;
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

  const held = new Map();

  /* What these scripts hold, packed; `points.js` unpacks it, and is loaded with them. */
  async function textsOf(addresses) {
    const files = addresses.map((address) => new URL(address, document.baseURI).href);
    await Promise.all([asset("points.js"), ...files].map(load));
    return files.map((file) => held.get(file));
  }

  window.corebound = {
    copyable,
    equip,
    made,
    plain,
    textsOf,
    top: new URL("..", here),
    keep: (text) => held.set(document.currentScript.src, text),
  };

  async function pointsIn(addresses) {
    const texts = await textsOf(addresses.split(" "));
    // `points.js`, which has `read`, is there only now.
    return corebound.read(texts);
  }

  function download(text, name) {
    const link = made("a", { href: URL.createObjectURL(new Blob([text], { type: "text/csv" })), download: name });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href));
  }

  /* A button that does something with points; in its place what went wrong, if it did. */
  function pointsButton(text, label, act) {
    const button = made("button", { type: "button", "aria-label": label }, text);
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        await act(button);
      } catch (error) {
        button.replaceWith(made("span", { class: "warn", role: "status" }, error.message));
      }
      button.disabled = false;
      /* A button that is disabled loses the focus. */
      button.focus();
    });
    return button;
  }

  const page = location.pathname.split("/").pop().replace(".html", "");
  for (const line of all("[data-csv]")) {
    const button = pointsButton("CSV", "CSV of every point", async () => {
      const points = await pointsIn(line.dataset.csv);
      download(corebound.csv(points, Object.values(points.series)), `${page}.csv`);
    });
    button.className = "csv";
    line.prepend(button, " ");
  }


  /* The search: its code and its index are loaded when it is first focused */

  const search = document.querySelector(".search input");
  search?.addEventListener("focus", async () => {
    try {
      await load(new URL("../data/search.js", here).href);
      await load(new URL("search.js", here).href);
    } catch (error) {
      search.setAttribute("placeholder", error.message);
    }
  }, { once: true });

  addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || !search) return;
    if (event.target.closest("input, textarea, select, [contenteditable]")) return;
    event.preventDefault();
    search.focus();
  });

  /* A link to something folded opens it, itself included */

  function reveal() {
    for (let target = targeted(); target; target = target.parentElement) {
      if (target.tagName !== "DETAILS") continue;
      fill(target);
      target.open = true;
    }
  }

  addEventListener("hashchange", reveal);
  reveal();

  /* A refresh keeps the reader's place: what is open, and what was at the top of the window */

  const PLACE = `place ${location.pathname}`;
  const nth = (elements, textOf) => {
    const seen = new Map();
    return elements.map((element) => {
      const text = textOf(element).trim().slice(0, 80);
      seen.set(text, (seen.get(text) || 0) + 1);
      return `${text} ${seen.get(text)}`;
    });
  };
  const folds = all("details");
  const isOpen = folds.map((fold) => fold.open);
  const foldNames = () => nth(folds, (fold) => fold.id || fold.querySelector("summary").textContent);
  const landmarks = () => all("section :is(h2, h3, tr, li, figcaption, summary)");

  function remember() {
    const names = foldNames();
    const changed = folds.flatMap((fold, at) => (fold.open === isOpen[at] ? [] : [[names[at], fold.open]]));
    const marks = landmarks();
    const at = marks.findIndex((mark) => mark.checkVisibility() && mark.getBoundingClientRect().top >= 0);
    const place = at < 0 || !scrollY ? null : [nth(marks.slice(0, at + 1), (mark) => mark.textContent)[at], marks[at].getBoundingClientRect().top];
    try {
      sessionStorage.setItem(PLACE, JSON.stringify({ changed, place, y: scrollY }));
      history.scrollRestoration = "manual";
    } catch {
      /* Storage can be off: the browser then does what it can. */
    }
  }

  function restore() {
    const { changed, place, y } = JSON.parse(sessionStorage.getItem(PLACE)) || {};
    if (!changed) return;
    const open = new Map(changed);
    foldNames().forEach((name, at) => {
      if (!open.has(name)) return;
      folds[at].open = open.get(name);
      if (folds[at].open) fill(folds[at]);
    });
    const marks = landmarks();
    const mark = place && marks[nth(marks, (one) => one.textContent).indexOf(place[0])];
    const scroll = () => scrollTo({ top: mark ? scrollY + mark.getBoundingClientRect().top - place[1] : y, behavior: "instant" });
    scroll();
    /* By then the browser has gone to the fragment of the address. */
    addEventListener("load", () => setTimeout(scroll));
  }

  addEventListener("pagehide", remember);
  if (["reload", "back_forward"].includes(performance.getEntriesByType("navigation")[0]?.type)) {
    try {
      restore();
    } catch {
      /* What is stored is not ours. */
    }
  }

  /* Zoom: the library and the points are loaded when first asked for */

  function colourOf(figure, name, kind = "--mode") {
    const probe = made("span", { class: name, style: `color: var(${kind})` });
    figure.append(probe);
    const colour = getComputedStyle(probe).color;
    probe.remove();
    return colour;
  }

  const faint = (colour, share) => colour.replace("rgb(", "rgba(").replace(")", `, ${share})`);

  /* The numbers of the axis in a minute, or in a place if minutes are only an order. */
  const scaleOf = (figure) => (figure.dataset.ordinal === undefined ? 60 : 1);

  /* Moments, values and bounds as the chart counts them; bounds only where there is a value. */
  function columns({ minutes, value, low, high }, figure) {
    const scaled = (numbers) => value.map((known, index) =>
      known === null || numbers[index] == null ? null : numbers[index] / Number(figure.dataset.length));
    return [minutes.map((minute) => minute * scaleOf(figure)), scaled(value), scaled(low), scaled(high)];
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
    const scale = scaleOf(figure);
    const margin = 1 + Number(figure.dataset.margin);
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
      levels.forEach((stretches, number) => stretches.forEach(([begin, end, value]) => {
        const [least, most] = [value / margin, value * margin].map((one) => plot.valToPos(one, "y", true));
        const y = (least + most) / 2;
        const place = [across(plot, begin), y, across(plot, end), y];
        ruled(plot, [place], faint(colours[number], 0.14), (least - most) / devicePixelRatio);
      }));
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
        const lost = Object.values(series[number].missing).flat().map((at) => {
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

  function drawn(figure, host, told, read) {
    const modes = figure.dataset.modes.split(" ");
    const tables = told.map((one) => columns(one, figure));
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

  const OF_COMMIT = 10;

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
          const why = Object.entries(one.missing).find(([, lost]) => lost.includes(own));
          if (why) parts.push(`${names[number]}: no value, ${why[0]}`);
          return;
        }
        const [low, high] = [tables[number][2][own], tables[number][3][own]];
        const bounds = low === null ? "" : ` [${short(low)}, ${short(high)}]`;
        const sha = one.commit[own]?.slice(0, OF_COMMIT);
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

  function opened(figure, series) {
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
      plot = drawn(figure, host, series, reading(figure, names, output, host));
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

  for (const figure of all("figure[data-series]")) {
    const address = figure.closest("[data-zoom]").dataset.zoom;
    const named = figure.querySelector("figcaption b").textContent;
    const anchors = figure.dataset.series.split(" ");
    const own = (points) => anchors.map((anchor) => points.series[anchor]);
    const csv = pointsButton("CSV", `CSV of ${named}`, async () => {
      const points = await pointsIn(address);
      download(corebound.csv(points, own(points)), `${page}-${anchors[0]}.csv`);
    });
    csv.className = "csv";
    let close = null;
    const zoom = pointsButton("Zoom", `Zoom ${named}`, async () => {
      const frame = figure.querySelector(".frame");
      if (close) {
        close();
        close = null;
      } else {
        const files = ["uplot-1.6.32.css", "uplot-1.6.32.js"].map((name) => load(asset(name)));
        const [points] = await Promise.all([pointsIn(address), ...files]);
        close = opened(figure, own(points));
      }
      frame.hidden = Boolean(close);
      zoom.setAttribute("aria-expanded", String(Boolean(close)));
      zoom.textContent = close ? "Whole" : "Zoom";
    });
    zoom.className = "zoom";
    zoom.setAttribute("aria-expanded", "false");
    figure.querySelector("figcaption").append(zoom, csv);
  }
})();
