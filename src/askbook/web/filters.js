// Where to look and for whom: the module, and what the book says of its lessons (hardware, level, layer).

import { icon, make } from "./dom.js";

const ALL = "";

export function renderFilters(form, opener, book, contents, onChange) {
  const choices = choicesOf(book, contents);
  opener.hidden = !choices.length;
  form.hidden = true;
  form.replaceChildren(...choices.map(([name, label, options]) => renderChoice(name, label, options)));
  const tell = () => {
    const chosen = Object.fromEntries([...new FormData(form)].filter(([, value]) => value !== ALL));
    const count = Object.keys(chosen).length;
    opener.replaceChildren(icon("filter"), count ? `Filters · ${count}` : "Filters");
    opener.classList.toggle("active", count > 0);
    onChange(toRequest(chosen));
  };
  form.onchange = tell;
  form.onsubmit = (event) => event.preventDefault();
  opener.onclick = () => {
    form.hidden = !form.hidden;
    opener.setAttribute("aria-expanded", String(!form.hidden));
    if (!form.hidden) form.querySelector("select").focus();
  };
  opener.setAttribute("aria-expanded", "false");
  tell();
}

function choicesOf(book, contents) {
  const { hardware_tier: tiers, proficiency_level: levels, layer: layers } = book.facets;
  const modules = contents.modules.map((one) => [one.module, one.title]);
  return [
    modules.length > 1 && ["module_filter", "Module", [[ALL, "The whole book"], ...modules]],
    tiers?.length && ["hardware_tier", "Hardware", [[ALL, "Any"], ...tiers.map((tier) => [tier, `Up to tier ${tier}`])]],
    levels?.length && ["proficiency_level", "Written for", [[ALL, "Any level"], ...levels.map((level) => [level, `Level ${level}`])]],
    layers?.length && ["layer", "Layer", [[ALL, "Any"], ...layers.map((layer) => [layer, layer])]],
  ].filter(Boolean);
}

function renderChoice(name, label, options) {
  const select = make("select", { name }, options.map(([value, words]) => make("option", { value: String(value) }, words)));
  return make("label", {}, make("span", {}, label), select);
}

function toRequest({ module_filter, hardware_tier, ...profile }) {
  const reader = { ...profile, ...(hardware_tier && { hardware_tier: Number(hardware_tier) }) };
  return { ...(module_filter && { module_filter }), ...(Object.keys(reader).length && { reader }) };
}
