/* The choice of two: their page if the report made one. Else two commits are compared here, from the
   points of the site; of two runs their values are shown, and the command that compares them. */
"use strict";

(() => {
  const { made, copyable, equip } = window.corebound;
  const [before, after] = document.querySelectorAll(".choice select");
  const answer = document.querySelector(".choice [role=status]");
  const place = document.querySelector(".pair");
  const pages = new Map([...document.querySelectorAll("a[data-pair]")].map((link) => [link.dataset.pair, link]));
  const group = (select) => select.selectedOptions[0].parentNode;
  /* So many rows without a clear difference, as on the page of a comparison, and files at a time. */
  const [MOST_UNCLEAR, MOST_NAMED, TOGETHER] = [250, 50, 16];

  function commandTo(pair) {
    const box = made("div", { class: "block" });
    const code = made("pre", { class: "command", tabindex: "0", role: "group", "aria-label": "Command" }, `${answer.dataset.command} ${pair.join(" ")}`);
    box.append(code);
    copyable(code, "command");
    return box;
  }

  /* Tables */

  function rowHead({ scenario, host, cell }, address) {
    const head = made("th", { scope: "row", class: "left long" });
    const name = address ? made("a", { href: address }, scenario) : scenario;
    head.append(name, made("small", {}, [cell, host].filter(Boolean).join(", ")));
    return head;
  }

  function table(caption, heads, rows) {
    const frame = made("div", { class: "scroll" });
    const body = made("table", { class: "data stack" });
    const line = made("tr");
    line.append(...heads.map(([text, kind]) => made("th", { scope: "col", class: kind }, text)));
    const head = made("thead");
    head.append(line);
    const bodyRows = made("tbody");
    bodyRows.append(...rows);
    body.append(made("caption", { class: "hidden" }, caption), head, bodyRows);
    frame.append(body);
    return frame;
  }

  const RATIOS = [["Series", "left"], ["Before", ""], ["After", ""], ["Change", ""], ["95 % CI", ""], ["Verdict", "left"]];

  function ratioRow(row) {
    const line = made("tr");
    const values = [row.before, row.after].map((value) => corebound.valueText(value, row.unit));
    const cells = [...values, corebound.changeText(row), corebound.intervalText(row)];
    const [tone, sign, word] = corebound.verdictText(row);
    const verdict = made("td", { class: "left" });
    const told = made("span", { class: tone });
    if (sign) told.append(made("span", { "aria-hidden": "true" }, sign), " ");
    told.append(word);
    verdict.append(told);
    line.append(
      rowHead(row, `history/${row.slug}.html#${row.anchor}`),
      ...cells.map((text, index) => made("td", { "data-label": RATIOS[index + 1][0] }, text)),
      verdict);
    return line;
  }

  function fold(summary, ...content) {
    const details = made("details");
    details.append(made("summary", {}, summary), ...content);
    return details;
  }

  /* Two commits, from the points of every benchmark of their project */

  const counted = (number, one, several) => `${number.toLocaleString("en")} ${number === 1 ? one : several}`;

  async function commits(pair, { moments }, progress) {
    const [text] = await corebound.textsOf([moments]);
    const { benchmarks } = await corebound.unpacked(text);
    const [compared, uncompared] = [[], []];
    for (let at = 0; at < benchmarks.length; at += TOGETHER) {
      progress(`Reading benchmark ${at + 1} of ${benchmarks.length}`);
      const slugs = benchmarks.slice(at, at + TOGETHER);
      const texts = await corebound.textsOf(slugs.map((slug) => `data/history/${slug}.js`));
      for (const [index, points] of texts.entries()) {
        const found = corebound.compareCommits(await corebound.pointsOf([text, points]), pair);
        const own = (row) => ({ ...row, slug: slugs[index] });
        compared.push(...found.compared.map(own));
        uncompared.push(...found.uncompared.map(own));
      }
    }
    const rows = corebound.judged(compared);
    const unknown = rows.filter(({ comparison }) => !comparison).length;
    const isFinding = ({ verdict }) => verdict === "faster" || verdict === "slower";
    const [findings, others] = [rows.filter(isFinding), rows.filter((row) => !isFinding(row))];
    const left = others.length - MOST_UNCLEAR;
    return [
      made("p", {}, [
        `${counted(rows.length - unknown, "series", "series")} compared`,
        `${(others.length - unknown).toLocaleString("en")} without a clear difference`,
        ...(unknown ? [`${unknown.toLocaleString("en")} without a value`] : []),
      ].join(", ") + ". Differences are significant after correction for all series compared."),
      findings.length ? table("Series that differ", RATIOS, findings.map(ratioRow)) : made("p", {}, "No clear differences."),
      ...(others.length
        ? [fold(`No clear difference: ${others.length.toLocaleString("en")}`,
          table("Series without a clear difference", RATIOS, others.slice(0, MOST_UNCLEAR).map(ratioRow)),
          ...(left > 0 ? [made("p", { class: "soft" }, `${left.toLocaleString("en")} more are not shown; the command lists all.`)] : []))]
        : []),
      ...(uncompared.length
        ? [fold(`Not compared: ${uncompared.length.toLocaleString("en")}`, reasons(uncompared))]
        : []),
    ];
  }

  function reasons(uncompared) {
    const list = made("ul", { class: "reasons" });
    const left = uncompared.length - MOST_NAMED;
    for (const { scenario, cell, host, why } of uncompared.slice(0, MOST_NAMED)) {
      const item = made("li");
      item.append(made("code", {}, [scenario, cell, host].filter(Boolean).join(", ")), ` ${why}`);
      list.append(item);
    }
    if (left > 0) list.append(made("li", {}, `${left.toLocaleString("en")} more`));
    return list;
  }

  /* Two runs: the site has their values, but not the launches that a comparison needs */

  const VALUES = [["Configuration", "left"], ["Before", ""], ["After", ""]];

  function valueCell(series, index, head) {
    const cell = made("td", { "data-label": head }, corebound.valueText(series.value[index], series.unit));
    const ends = [series.low, series.high].map((column) => column[index] ?? null);
    if (!ends.includes(null)) cell.append(made("small", {}, ends.map((end) => corebound.valueText(end, series.unit)).join("–")));
    return cell;
  }

  async function runs(pair, { points }, progress) {
    const rows = [];
    const files = points.split(" ").filter(Boolean);
    progress(`Reading ${counted(files.length, "scenario", "scenarios")}`);
    for (const text of await corebound.textsOf(files)) {
      for (const series of Object.values((await corebound.pointsOf([text])).series)) {
        const indices = pair.map((run) => series.run.indexOf(run));
        if (indices.includes(-1)) continue;
        const line = made("tr");
        const cells = indices.map((index, side) => valueCell(series, index, VALUES[side + 1][0]));
        line.append(rowHead({ ...series, host: "" }, `scenario/${series.scenario}.html#history`), ...cells);
        rows.push(line);
      }
    }
    return rows.length
      ? [made("p", {}, "Each value with its 95 % interval. A verdict also needs how much runs of this host differ: use the command."),
        table("Values of both runs", VALUES, rows)]
      : [made("p", {}, "The runs have no configuration in common whose history is in this site.")];
  }

  /* The answer to a choice */

  function compareButton(act, pair, source) {
    const button = made("button", { type: "button", class: "chip" }, "Compare here");
    button.addEventListener("click", async () => {
      button.disabled = true;
      try {
        place.replaceChildren(...await act(pair, source, (text) => { button.textContent = text; }));
        equip(place);
        button.remove();
      } catch (error) {
        button.replaceWith(made("span", { class: "warn" }, error.message));
      }
    });
    return button;
  }

  function look() {
    const pair = [before.value, after.value];
    const page = pages.get(pair.join(" ")) || pages.get(pair.toReversed().join(" "));
    const source = group(before);
    place.replaceChildren();
    if (pair[0] === pair[1]) answer.replaceChildren("Choose two different ones.");
    else if (page) answer.replaceChildren(made("a", { href: page.getAttribute("href") }, `Compare ${pair.join(" and ")}`));
    else if (source.label !== group(after).label)
      answer.replaceChildren(`${source.label} and ${group(after).label} are not comparable.`);
    else {
      const { moments, points } = source.dataset;
      const act = moments ? commits : points && runs;
      answer.replaceChildren(
        ...(act ? [compareButton(act, pair, source.dataset), " Or in a terminal:"] : ["Not compared in this report. To compare them:"]),
        commandTo(pair));
    }
  }

  function restore() {
    const chosen = decodeURIComponent(location.hash.slice(1)).split("..");
    const isKnown = (select, at) => [...select.options].some((option) => option.value === chosen[at]);
    if (![before, after].every(isKnown)) return;
    [before.value, after.value] = chosen;
  }

  if (!answer) return;
  for (const select of [before, after])
    select.addEventListener("change", () => {
      history.replaceState(null, "", `#${before.value}..${after.value}`);
      look();
    });
  restore();
  look();
})();
