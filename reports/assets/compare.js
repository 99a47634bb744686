/* The choice of two runs: their page if the report made one, else the command that compares them. */
"use strict";

(() => {
  const { made, copyable } = window.corebound;
  const [before, after] = document.querySelectorAll(".choice select");
  const answer = document.querySelector(".choice [role=status]");
  const pages = new Map([...document.querySelectorAll("a[data-pair]")].map((link) => [link.dataset.pair, link]));
  const group = (select) => select.selectedOptions[0].parentNode;

  function command(line) {
    const box = made("div", { class: "block" });
    const code = made("pre", { class: "command", tabindex: "0", role: "group", "aria-label": "Command" }, line);
    box.append(code);
    copyable(code, "command");
    return box;
  }

  function look() {
    const [one, other] = [before.value, after.value];
    const page = pages.get(`${one} ${other}`) || pages.get(`${other} ${one}`);
    history.replaceState(null, "", `#${one}..${other}`);
    if (one === other) answer.replaceChildren("Choose two different ones.");
    else if (page) answer.replaceChildren(made("a", { href: page.href }, `Compare ${one} and ${other}`));
    else if (group(before) !== group(after))
      answer.replaceChildren(`${group(before).label} and ${group(after).label} are not comparable.`);
    else answer.replaceChildren("Not compared in this report. To compare them:", command(`${answer.dataset.command} ${one} ${other}`));
  }

  function restore() {
    const chosen = decodeURIComponent(location.hash.slice(1)).split("..");
    const isKnown = (select, at) => [...select.options].some((option) => option.value === chosen[at]);
    if (![before, after].every(isKnown)) return;
    [before.value, after.value] = chosen;
    look();
  }

  if (!answer) return;
  for (const select of [before, after]) select.addEventListener("change", look);
  restore();
})();
