// askbook in any page, by one line:
//   <script src="https://askbook.example.org/widget.js" data-key="askbook_…" data-title="Ask the docs" defer></script>
// This is a button and no more; the panel comes with the first click. Everything lives in a shadow root: the page's
// style does not get in, and ours does not get out. `!important` on the host is what a page's own cannot beat.
(() => {
  "use strict";
  const script = document.currentScript;
  const home = new URL(".", script.src).href.replace(/\/$/, "");
  const { key = "", book = "", theme = "auto", title = "Ask the book" } = script.dataset;
  const accent = /^#[0-9a-f]{6}$/i.test(script.dataset.accent || "") ? script.dataset.accent : "";
  const SELECTED_MAX = 5000;

  const STYLE = `
    :host { all: initial !important; position: fixed !important; inset: auto 0 0 auto !important; z-index: 2147483000 !important; display: block !important; color-scheme: light dark !important; }
    @media print { :host { display: none !important; } }
    button { all: unset; box-sizing: border-box; position: fixed; display: inline-flex; align-items: center; gap: 9px; cursor: pointer; background: ${accent || "#0f6b4f"}; color: ${isBright(accent || "#0f6b4f") ? "#111" : "#fff"}; font: 600 15px/1 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; border-radius: 99px; box-shadow: 0 2px 6px #0003, 0 8px 24px #0003; }
    button:hover { filter: brightness(1.1); }
    button:focus-visible { outline: 2px solid #fff; box-shadow: 0 0 0 4px #1d1c1a; }
    button[hidden] { display: none; }
    button[aria-busy] { opacity: .7; cursor: progress; }
    .launcher { right: max(20px, env(safe-area-inset-right)); bottom: max(20px, env(safe-area-inset-bottom)); height: 52px; padding: 0 22px 0 18px; }
    .about { height: 36px; padding: 0 14px; font-size: 14px; }
    svg { width: 20px; height: 20px; fill: none; stroke: currentColor; stroke-width: 1.8; stroke-linecap: round; stroke-linejoin: round; }
    p { position: fixed; right: 20px; bottom: 84px; margin: 0; padding: 10px 14px; border-radius: 10px; background: #3a2222; color: #fff; font: 14px/1.4 system-ui, sans-serif; }
    p:empty { display: none; }`;

  function isBright(colour) {
    const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16) / 255);
    return 0.3 * red + 0.59 * green + 0.11 * blue > 0.6;
  }

  function build(tag, properties, ...children) {
    const element = Object.assign(document.createElement(tag), properties);
    element.append(...children);
    return element;
  }

  function drawing() {
    const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
    svg.setAttribute("viewBox", "0 0 24 24");
    svg.setAttribute("aria-hidden", "true");
    path.setAttribute("d", "M12 6c-2-1.5-5-2-8-2v14c3 0 6 .5 8 2 2-1.5 5-2 8-2V4c-3 0-6 .5-8 2zM12 6v14");
    svg.append(path);
    return svg;
  }

  const host = document.createElement("askbook-widget");
  const root = host.attachShadow({ mode: "open" });
  const sheet = new CSSStyleSheet();
  sheet.replaceSync(STYLE);
  root.adoptedStyleSheets = [sheet];
  const launcher = build("button", { type: "button", className: "launcher" }, drawing(), title);
  launcher.setAttribute("aria-haspopup", "dialog");
  const about = build("button", { type: "button", className: "about", hidden: true }, "Ask about this");
  const trouble = build("p", {});
  trouble.setAttribute("role", "alert");
  root.append(launcher, about, trouble);

  let panel = null;
  async function open(selected) {
    const opener = selected ? about : launcher;
    opener.setAttribute("aria-busy", "true");
    try {
      if (!panel) {
        const { createPanel } = await import(`${home}/assets/widget-panel.js`);
        panel ||= await createPanel({ home, key, book, theme, title, accent, isBright, root, onClose });
      }
      trouble.textContent = "";
      launcher.hidden = about.hidden = true;
      panel.open(selected);
    } catch (error) {
      console.error("askbook:", error);
      trouble.textContent = "askbook cannot be reached. Try again in a moment.";
    }
    opener.removeAttribute("aria-busy");
  }

  function onClose() {
    launcher.hidden = false;
    launcher.focus();
  }

  // --- a text that is selected on the page ---

  function readSelection() {
    const selection = getSelection();
    const element = selection.anchorNode?.parentElement;
    if (selection.isCollapsed || !element || element.closest("input, textarea, [contenteditable], askbook-widget")) return "";
    return selection.toString().trim().slice(0, SELECTED_MAX);
  }

  function offer() {
    about.hidden = readSelection().length < 3 || launcher.hidden;
    if (about.hidden) return;
    const place = getSelection().getRangeAt(0).getBoundingClientRect();
    const [top, left] = [Math.min(place.bottom + 8, innerHeight - 44), Math.min(Math.max(8, place.left), innerWidth - 150)];
    about.style.setProperty("top", `${Math.max(8, top)}px`);
    about.style.setProperty("left", `${left}px`);
  }

  let waiting = 0;
  document.addEventListener("selectionchange", () => {
    clearTimeout(waiting);
    waiting = setTimeout(offer, 200);
  });
  addEventListener("scroll", () => (about.hidden = true), { passive: true });
  // A click would end the selection before it is read.
  about.addEventListener("pointerdown", (event) => event.preventDefault());
  about.addEventListener("click", () => open(readSelection()));
  launcher.addEventListener("click", () => open(""));
  const settle = () => document.body.append(host);
  if (document.body) settle();
  else addEventListener("DOMContentLoaded", settle);
})();
