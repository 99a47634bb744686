/* The points of histories: read from the scripts that hold them, and written as CSV. Loaded when they
   are first asked for. `report/history/columns.py` says what is in these scripts. */
"use strict";

(() => {
  async function unpacked(text) {
    const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).json();
  }

  /* Distances from one place to the next, as places. */
  function summed(steps) {
    let sum = 0;
    return steps.map((step) => (sum += step));
  }

  /* A whole number, counted in 10^-scale; a negative power of ten is not exact. */
  const decimal = (count, scale) =>
    count === null ? null : scale < 0 ? count * Number(`1e${-scale}`) : count / Number(`1e${scale}`);

  /* Values and ends as numbers, from the differences and distances that stand for them. */
  function numbers({ scale, value, low, high }) {
    if (!scale) return { value, low, high };
    let sum = 0;
    const counts = value.map((step) => (step === null ? null : (sum += step)));
    const coarse = Number(`1e${scale[0] - scale[1]}`);
    const ends = (distances, sign) => distances.map((distance, index) =>
      distance === null ? null : decimal(Math.floor(counts[index] / coarse + 0.5) + sign * distance, scale[1]));
    return { value: counts.map((count) => decimal(count, scale[0])), low: ends(low, -1), high: ends(high, 1) };
  }

  /* A series with its moments beside its values, and the points that no line leads to. */
  function opened(packed, { moments, columns, pauses }) {
    const series = { ...packed, ...numbers(packed) };
    const places = columns[series.column];
    const [at, run, commit, minutes] = ["at", "run", "commit", "minutes"].map((name) =>
      places.map((place) => moments[name][place]));
    const borders = summed(series.environment.map(([, points]) => points));
    const gaps = [...new Set([...pauses[series.column], ...borders])].sort((one, other) => one - other);
    return {
      ...series, at, run, commit,
      /* What cannot be read as a time is only an order. */
      minutes: minutes.includes(null) ? minutes.map((_, index) => index) : minutes,
      gaps: gaps.filter((index) => series.value[index] != null && series.value[index - 1] != null),
      environments: series.environment.flatMap(([index, points]) => Array(points).fill(index)),
    };
  }

  /* What these scripts hold: `series` by anchor, and the `environments` that their points refer to. */
  async function pointsOf(texts) {
    const [points, moments = points] = (await Promise.all(texts.map(unpacked))).reverse();
    const { environments, pauses } = points;
    const shared = { moments, pauses, columns: points.columns.map(summed) };
    const all = Object.entries(points.series).map(([anchor, one]) => [anchor, opened(one, shared)]);
    return { environments, series: Object.fromEntries(all) };
  }

  Object.assign(corebound, { pointsOf, unpacked });

  const known = new Map();

  /* The same, kept for the next time. */
  corebound.read = (texts) => {
    const key = texts.join(" ");
    if (!known.has(key)) known.set(key, pointsOf(texts));
    return known.get(key);
  };

  const FIXED = ["project", "scenario", "host", "cell", "at", "run", "commit", "unit", "figure", "low", "high", "missing"];

  /* Beside ratios to an anchor. */
  const SIDES = ["figure of HEAD", "figure of anchor"];

  /* As text in a cell, which no spreadsheet takes for a formula. */
  function cell(value) {
    const text = typeof value === "string" && /^[=+\-@\t\r]/.test(value) ? `'${value}` : String(value ?? "");
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  }

  /* Every point of some series with a line each, as `corebound export history` writes it. */
  corebound.csv = ({ environments }, some) => {
    const used = [...new Set(some.flatMap((one) => one.environments))].map((index) => environments[index]);
    const names = [...new Set(used.flat().map(([name]) => name))];
    const ends = new Map(used.map((pairs) => {
      const values = new Map(pairs);
      return [pairs, names.map((name) => cell(values.get(name)))];
    }));
    const sides = some.some((one) => one.sides) ? SIDES : [];
    const lines = [[...FIXED, ...sides, ...names.map((name) => (FIXED.includes(name) ? `${name} there` : name))].map(cell)];
    for (const one of some) {
      const missing = new Map(Object.entries(one.missing).flatMap(([why, all]) => all.map((index) => [index, why])));
      const place = [one.project, one.scenario, one.host, one.cell].map(cell);
      const unit = cell(one.unit);
      one.at.forEach((at, index) =>
        lines.push([
          ...place, ...[at, one.run[index], one.commit[index]].map(cell), unit,
          ...[one.value, one.low, one.high].map((numbers) => cell(numbers[index])), cell(missing.get(index)),
          ...sides.map((_, side) => cell(one.sides?.[side][index])),
          ...ends.get(environments[one.environments[index]]),
        ]));
    }
    return lines.map((line) => `${line.join(",")}\n`).join("");
  };
})();
