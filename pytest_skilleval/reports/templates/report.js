"use strict";
/* Everything can be read without this: it only filters, opens what a link points at, and switches the theme. */
(() => {
  const find = (id) => document.getElementById(id);
  const root = document.documentElement;
  const theme = find("theme");
  theme.hidden = false;
  theme.addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  /* A link to a group or trial opens it and what it lies in. */
  const open = () => {
    const target = location.hash.length > 1 && find(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    for (let node = target; node; node = node.parentElement) if (node.tagName === "DETAILS") node.open = true;
    if (target.tagName === "DETAILS") {
      if (target.hidden) clear();
      target.firstElementChild.focus({ preventScroll: true });
      target.scrollIntoView();
    }
  };
  addEventListener("hashchange", open);
  /* Not before: going to the link's target by itself, the browser takes the focus away. */
  addEventListener("load", open);

  const list = find("groups");
  if (!list) return;
  const groups = [...list.children];
  const box = find("q");
  const chips = [...document.querySelectorAll(".chip")];
  const texts = new Map();
  const text = (group) => {
    if (!texts.has(group)) {
      const parts = [...group.querySelectorAll(".name, .meta, .t > summary, .checks, .links li, .errbox")];
      texts.set(group, [group.dataset.l, group.dataset.c, ...parts.map((part) => part.textContent)].join(" ").toLowerCase());
    }
    return texts.get(group);
  };
  const fits = (group, wanted, words) => {
    for (const [name, values] of wanted) {
      const own = (group.dataset[name] || "").split(" ");
      if (!values.some((value) => own.includes(value))) return false;
    }
    return words.every((word) => text(group).includes(word));
  };
  const apply = () => {
    const wanted = new Map();
    for (const chip of chips) {
      if (chip.getAttribute("aria-pressed") !== "true") continue;
      wanted.set(chip.dataset.f, [...(wanted.get(chip.dataset.f) || []), chip.dataset.v]);
    }
    const words = box.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const group of groups) {
      group.hidden = !fits(group, wanted, words);
      if (!group.hidden) shown += 1;
    }
    const outcomes = wanted.get("o");
    for (const trial of list.querySelectorAll(".in > [data-o], .links > [data-o]")) trial.hidden = Boolean(outcomes) && !outcomes.includes(trial.dataset.o);
    find("shown").textContent = shown === groups.length ? groups.length + " groups" : shown + " of " + groups.length + " groups";
    find("nothing").hidden = shown > 0;
    find("none").hidden = !wanted.size && !words.length;
  };
  const clear = () => {
    box.value = "";
    for (const chip of chips) chip.setAttribute("aria-pressed", "false");
    apply();
  };
  let timer = 0;
  box.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(apply, 80); });
  box.addEventListener("keydown", (event) => { if (event.key === "Escape") clear(); });
  for (const chip of chips) chip.addEventListener("click", () => {
    chip.setAttribute("aria-pressed", chip.getAttribute("aria-pressed") === "true" ? "false" : "true");
    apply();
  });
  find("none").addEventListener("click", clear);
  find("bar").hidden = false;

  addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = /^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName);
    if (event.key === "/" && !typing) { event.preventDefault(); box.focus(); return; }
    /* Up and down go from summary to summary, once one has the focus. */
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || document.activeElement.tagName !== "SUMMARY" || !list.contains(document.activeElement)) return;
    const summaries = [...list.querySelectorAll("summary")].filter((one) => one.checkVisibility());
    const next = summaries[summaries.indexOf(document.activeElement) + step];
    if (next) { event.preventDefault(); next.focus(); }
  });
  apply();
})();
