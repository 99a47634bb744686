/* Two points of each series of a history compared, as `stats/history/pairwise.py` compares them, and in
   the same words; a browser test holds both against each other. */
"use strict";

(() => {
  /* As in pairwise.py. */
  const [MIN_NOISE_POINTS, MIN_LEVEL_POINTS, MAX_NOISE_POINTS] = [10, 5, 300];
  const CONFIDENCE = 0.95;
  const HALVINGS = 60;

  const ascending = (numbers) => numbers.sort((one, other) => one - other);

  function median(numbers) {
    const sorted = ascending(Float64Array.from(numbers));
    const middle = sorted.length >> 1;
    return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  }

  /* Logarithms of the values and their standard errors, in 95 % reaches; NaN without a usable value. */
  function arraysOf({ value, low, high, reach }) {
    const isMissing = (index) => low.length && low[index] !== null
      && !(low[index] > 0 && high[index] !== null && low[index] <= high[index]);
    return {
      logs: value.map((number, index) => (number === null || isMissing(index) ? NaN : Math.log(number))),
      reaches: value.map((_, index) =>
        low.length && low[index] !== null && !isMissing(index)
          ? reach * (Math.log(high[index]) - Math.log(low[index])) / 2
          : 0),
    };
  }

  /* The points of each level: of one environment, between two changes. */
  function* levels({ environments, changes }, logs) {
    const segments = new Map();
    environments.forEach((environment, index) => {
      if (!segments.has(environment)) segments.set(environment, []);
      if (!Number.isNaN(logs[index])) segments.get(environment).push(index);
    });
    const edges = [...ascending([...changes]), Infinity];
    for (const segment of segments.values())
      for (const [number, edge] of edges.entries())
        yield segment.filter((index) => index < edge && index >= (number ? edges[number - 1] : 0));
  }

  /* Distances from the median of their level, of the points nearest to the two; ascending. */
  function residualsOf(series, logs, pair) {
    const all = [];
    for (const level of levels(series, logs)) {
      if (level.length < MIN_LEVEL_POINTS) continue;
      const middle = median(level.map((index) => logs[index]));
      const shrunk = Math.sqrt(level.length / (level.length - 1));
      for (const index of level) {
        const away = Math.min(...pair.map((place) => Math.abs(index - place)));
        all.push({ away, distance: (logs[index] - middle) * shrunk });
      }
    }
    const near = all.sort((one, other) => one.away - other.away).slice(0, MAX_NOISE_POINTS);
    return ascending(Float64Array.from(near, ({ distance }) => distance));
  }

  /* How many pairs of these ascending numbers differ by less than a limit, or by no more. */
  function pairsWithin(numbers, limit, orEqual) {
    let [pairs, first] = [0, 0];
    for (let last = 0; last < numbers.length; last++) {
      while (first < last && (orEqual ? numbers[last] - numbers[first] > limit : numbers[last] - numbers[first] >= limit)) first++;
      pairs += last - first;
    }
    return pairs;
  }

  /* The difference that so many pairs do not exceed. */
  function differenceOf(numbers, rank) {
    let [low, high] = [0, numbers[numbers.length - 1] - numbers[0]];
    for (let step = 0; step < HALVINGS && low < high; step++) {
      const middle = (low + high) / 2;
      if (pairsWithin(numbers, middle, true) >= rank) high = middle;
      else low = middle;
    }
    return high;
  }

  function verdictOf([low, high], margin) {
    if (1 / (1 + margin) <= low && high <= 1 + margin) return "equivalent";
    if (low > 1) return "faster";
    return high < 1 ? "slower" : "inconclusive";
  }

  /* The comparison of two points of a series; null if one has no value. */
  function compare(series, before, after) {
    const { logs, reaches } = arraysOf(series);
    const [first, second] = series.more_is_better ? [after, before] : [before, after];
    const middle = logs[first] - logs[second];
    if (Number.isNaN(middle)) return null;
    const residuals = residualsOf(series, logs, [first, second]);
    const points = residuals.length;
    if (points < MIN_NOISE_POINTS) return { ratio: Math.exp(middle), interval: null, verdict: "inconclusive", p: null };
    const pairs = points * (points - 1) / 2;
    const share = Math.min(CONFIDENCE * (1 + 1 / points), 1);
    const noise = differenceOf(residuals, Math.min(Math.ceil(share * pairs), pairs));
    const reach = Math.max(noise, Math.hypot(reaches[first], reaches[second]));
    const interval = [Math.exp(middle - reach), Math.exp(middle + reach)];
    return {
      ratio: Math.exp(middle),
      interval,
      verdict: verdictOf(interval, series.margin),
      p: (1 + pairs - pairsWithin(residuals, Math.abs(middle), false)) / (1 + pairs),
      overNoise: reach > 0 ? Math.abs(middle) / reach : Math.abs(middle) && Infinity,
    };
  }

  /* The largest p-value that is significant among all of these (Benjamini and Hochberg). */
  function significantUpTo(values) {
    const tested = ascending(values.filter((p) => p !== null));
    return tested.findLast((p, index) => p <= 0.05 * (index + 1) / tested.length) ?? -1;
  }

  /* What differs from one environment to another, as `environment_difference` says it. */
  function difference(one, other) {
    const [old, now] = [new Map(one), new Map(other)];
    const names = [...new Set([...old.keys(), ...now.keys()])];
    return names.filter((name) => (old.get(name) ?? "") !== (now.get(name) ?? "")).join(", ");
  }

  /* Every series of some points files at two commits: what was compared, and what was not and why. */
  corebound.compareCommits = ({ environments, series }, [before, after]) => {
    const [compared, uncompared] = [[], []];
    for (const [anchor, one] of Object.entries(series)) {
      const [first, second] = [before, after].map((sha) => one.commit.findLastIndex((each) => each?.startsWith(sha)));
      if (first < 0 && second < 0) continue;
      const row = { anchor, scenario: one.scenario, host: one.host, cell: one.cell, unit: one.unit, isMoreBetter: one.more_is_better };
      const apart = first >= 0 && second >= 0
        && difference(...[first, second].map((index) => environments[one.environments[index]]));
      if (first < 0 || second < 0) uncompared.push({ ...row, why: `only in commit ${first < 0 ? after : before}` });
      else if (apart) uncompared.push({ ...row, why: `measured with another ${apart}` });
      else if (!one.changes) uncompared.push({ ...row, why: "its history could not be analysed" });
      else compared.push({ ...row, before: one.value[first], after: one.value[second], comparison: compare(one, first, second) });
    }
    return { compared, uncompared };
  };

  /* The same rows, the clearest difference first, each with its verdict among all of them. */
  corebound.judged = (compared) => {
    const limit = significantUpTo(compared.map(({ comparison }) => comparison && comparison.p));
    const isClear = ({ p, verdict }) => verdict === "equivalent" || (p !== null && p <= limit);
    return compared
      .map((row) => ({ ...row, verdict: row.comparison && (isClear(row.comparison) ? row.comparison.verdict : "inconclusive") }))
      .sort((one, other) => (other.comparison?.overNoise ?? 0) - (one.comparison?.overNoise ?? 0));
  };

  /* Numbers in words, as `analysis/wording.py` and `units.py` write them. */

  const grouped = (number, digits) =>
    number.toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits });

  function significant(number) {
    const size = Math.abs(number);
    if (!size) return "0";
    if (size <= 1e-9 || size >= 1e15) return number.toExponential(2);
    const rounded = Math.abs(Number(number.toExponential(2)));
    return grouped(number, Math.max(0, 3 - (rounded >= 1 ? String(Math.trunc(rounded)).length : 0)));
  }

  const TIMES = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
  const SIZES = [[2 ** 30, "GiB"], [2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "bytes"]];

  corebound.valueText = (number, unit) => {
    if (number === null) return "–";
    const known = { ns: TIMES, bytes: SIZES }[unit];
    const [length, name] = known ? known.find(([size]) => Math.abs(number) >= size) || known.at(-1) : [1, unit];
    return `${significant(number / length)} ${name}`.trim();
  };

  function times(factor) {
    if (factor >= 10) return factor < 1e15 ? `${grouped(factor, 0)}×` : `${factor.toExponential(1)}×`;
    const isClose = Number(factor.toFixed(2)) === 1 && Number(factor.toFixed(3)) > 1;
    return `${factor.toFixed(isClose ? 3 : 2)}×`;
  }

  /* The ratio in words: only times have a speed, other values are less or more. */
  corebound.changeText = ({ comparison, unit, isMoreBetter }) => {
    if (!comparison) return "–";
    const words = unit === "ns" ? ["faster", "slower"] : isMoreBetter ? ["more", "less"] : ["less", "more"];
    const larger = Math.max(comparison.ratio, 1 / comparison.ratio);
    const word = Number(larger.toFixed(3)) === 1 ? "" : ` ${words[comparison.ratio > 1 ? 0 : 1]}`;
    return `${times(larger)}${word}`;
  };

  const MOST_DECIMALS = 9;

  function end(number) {
    if (number >= 10) return grouped(number, number >= 100 ? 0 : 1);
    if (number < 0.1 && number) return number >= 0.01 ? number.toFixed(3) : number.toPrecision(2);
    for (let digits = 2; digits <= MOST_DECIMALS; digits++)
      if (Number(number.toFixed(digits)) !== 1) return number.toFixed(digits);
    return number.toFixed(2);
  }

  /* With one more decimal if it would be 0, and without sign if it is. */
  function signed(number, digits) {
    const text = [digits, digits + 1].map((places) => grouped(Math.abs(number), places)).find((each) => /[1-9]/.test(each));
    return text ? `${number < 0 ? "−" : "+"}${text}` : "0";
  }

  corebound.intervalText = ({ comparison }) => {
    if (!comparison) return "–";
    if (!comparison.interval) return "too few points";
    const [low, high] = comparison.interval;
    const most = low > 1 || high < 1 ? 100 : 4;
    if (low !== high && !(low > 0 && high <= low * most)) return "values differ too much";
    if (low >= 1) return `${end(low)}–${end(high)}`;
    if (high <= 1) return `${end(1 / high)}–${end(1 / low)}`;
    const digits = Math.max(1 - low, high - 1) < 0.1 ? 1 : 0;
    return `${signed((low - 1) * 100, digits)} to ${signed((high - 1) * 100, digits)} %`;
  };

  corebound.verdictText = ({ verdict, unit, isMoreBetter }) => {
    if (!verdict) return ["plain", "", "not compared"];
    if (verdict === "equivalent") return ["plain", "≈", verdict];
    if (verdict === "inconclusive") return ["plain", "?", verdict];
    const isFaster = verdict === "faster";
    const word = unit === "ns" ? verdict : isFaster === isMoreBetter ? "more" : "less";
    return [isFaster ? "good" : "bad", isFaster ? "▲" : "▼", word];
  };
})();
