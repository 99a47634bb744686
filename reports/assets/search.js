/* The search of the site, a combobox (WAI-ARIA 1.2): names that begin with the words come first,
   then names that contain them, then names and details that contain each word. */
"use strict";

(() => {
  const { index, made, plain, top } = window.corebound;
  const MOST = 12;
  const input = document.querySelector(".search input");
  const list = document.querySelector(".search ul");
  const entries = index.flatMap(([kind, group, rows]) =>
    rows.map(([name, path, detail = ""]) => {
      const more = [kind, group, detail].filter(Boolean).join(", ");
      return { name, path, more, key: plain(name), said: plain(`${name} ${more}`) };
    }));
  let active = -1;

  function rank({ key, said }, text, words) {
    if (key.startsWith(text)) return 0;
    if (key.includes(text)) return 1;
    return words.every((word) => said.includes(word)) ? 2 : 3;
  }

  function matches(text) {
    const words = text.split(/\s+/).filter(Boolean);
    const ranked = entries.map((entry) => [rank(entry, text, words), entry]).filter(([place]) => place < 3);
    /* Sorting is stable: what is alike stays in the order of the index. */
    return ranked.sort(([one], [other]) => one - other).map(([, entry]) => entry);
  }

  const options = () => [...list.querySelectorAll("[data-path]")];

  function option({ name, path, more }, at) {
    const item = made("li", { role: "option", id: `found-${at}`, "aria-selected": "false", "data-path": path }, name);
    item.append(made("small", {}, more));
    return item;
  }

  function activate(at) {
    active = at;
    options().forEach((item, place) => item.setAttribute("aria-selected", String(place === at)));
    const item = options()[at];
    if (item) {
      input.setAttribute("aria-activedescendant", item.id);
      item.scrollIntoView({ block: "nearest" });
    } else input.removeAttribute("aria-activedescendant");
  }

  function show(open) {
    list.hidden = !open;
    input.setAttribute("aria-expanded", String(open));
    activate(-1);
  }

  function look() {
    const text = plain(input.value.trim());
    const found = text ? matches(text) : [];
    list.replaceChildren(...found.slice(0, MOST).map(option));
    const left = found.length - MOST;
    if (!found.length || left > 0) {
      const note = found.length ? `${left.toLocaleString("en")} more: type more of the name` : "Nothing found";
      list.append(made("li", { role: "option", "aria-disabled": "true", "aria-selected": "false" }, note));
    }
    show(Boolean(text));
  }

  const go = (item) => (location.href = new URL(item.dataset.path, top).href);

  input.addEventListener("input", look);
  input.addEventListener("focus", () => input.value.trim() && look());
  input.addEventListener("blur", () => show(false));
  input.addEventListener("keydown", (event) => {
    const all = options();
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && all.length) {
      event.preventDefault();
      if (list.hidden) show(true);
      /* From the input itself, which is before the first and after the last. */
      const places = all.length + 1;
      activate(((active + 1 + step + places) % places) - 1);
    } else if (event.key === "Enter" && !list.hidden && all.length) {
      event.preventDefault();
      go(all[Math.max(active, 0)]);
    } else if (event.key === "Escape") {
      if (list.hidden) input.value = "";
      show(false);
    }
  });
  /* The input keeps the focus, so that the list stays until the button is up. */
  list.addEventListener("pointerdown", (event) => event.preventDefault());
  list.addEventListener("click", ({ target }) => {
    const item = target.closest("[data-path]");
    if (item) go(item);
  });
  /* Typed while this was loading. */
  if (document.activeElement === input) look();
})();
