/** The frame of the page: navigation, API key, state of the connection, dropped files. */

import { connection, headers, setKey } from "./api.js";
import { button, h } from "./dom.js";
import { problem } from "./panel.js";
import { filesOf, store } from "./upload.js";

const LINKS = [...document.querySelectorAll(".bar nav a, .menu a")];
const NAMES = [...new Set(LINKS.map(({ hash }) => hash.slice(1)))];
const VIEWS = new Map(NAMES.map((name) => [name, () => import(`./views/${name}.js`)]));
const CONNECTION = { waiting: "Connecting", reached: "Connected", lost: "No connection" };

const part = (id) => document.getElementById(id);
const [main, banner, menu, tools] = ["main", "banner", "menu", "tools"].map(part);
let shown = {};
let numRoutes = 0;

/** Opens the view that the address names: `?q=...` shows answers, `#name?values` another view. */
async function route({ focus = true } = {}) {
  const [hash, values = ""] = location.hash.slice(1).split("?", 2);
  if (hash === "main") return; // the skip link
  const name = VIEWS.has(hash) ? hash : "ask";
  if (location.hash && location.search) history.replaceState(null, "", location.pathname + location.hash);
  const current = (numRoutes += 1);
  shown.close?.();
  shown = {};
  const title = mark(name);
  try {
    const view = await VIEWS.get(name)();
    if (current !== numRoutes) return;
    const root = h("div", { class: `view ${name}`, data: { view: name, title } });
    main.replaceChildren(root);
    const opened = (await view.open(root)) ?? {};
    if (current !== numRoutes) return opened.close?.();
    shown = opened;
    await opened.open?.(Object.fromEntries(new URLSearchParams(name === "ask" ? location.search : values)));
  } catch (error) {
    if (current === numRoutes) failed(error);
  }
  if (focus && current === numRoutes && !main.contains(document.activeElement)) main.focus({ preventScroll: true });
}

/** Shows why a view could not open; tries again once the server is back. */
function failed(error) {
  main.replaceChildren(h("div", { class: "view" }, h("h1", {}, "Facets"), problem(error)));
  if (error.code === "unavailable") connection.lost(); // the gateway may outlive its server for a moment
  const again = (event) => event.detail === "reached" && route();
  connection.addEventListener("change", again, { once: true });
  shown = { close: () => connection.removeEventListener("change", again) };
}

/** Marks the links of a view as the current ones; returns the title of the view. */
function mark(name) {
  if (menu.matches(":popover-open")) menu.hidePopover();
  for (const link of LINKS) link.removeAttribute("aria-current");
  const current = LINKS.findLast(({ hash }) => hash === `#${name}`);
  tools.hidden = current.parentElement !== tools;
  if (!tools.hidden) part("tools-link").setAttribute("aria-current", "true");
  current.setAttribute("aria-current", "page");
  document.title = `${current.textContent} \u2013 Facets`;
  return current.textContent;
}

function showConnection() {
  part("connection").dataset.state = connection.state;
  part("connection-text").textContent = CONNECTION[connection.state];
  banner.hidden = connection.state !== "lost";
  const text = "The server does not answer. The page tries again every few seconds; your input is kept.";
  banner.replaceChildren(...(banner.hidden ? [] : [h("span", {}, text), button("Try now", () => connection.probe())]));
}

function setUpKey() {
  const dialog = part("key-dialog");
  const label = () => (part("key-button").textContent = headers().Authorization ? "Key: set" : "Key");
  label();
  part("key-button").addEventListener("click", () => dialog.showModal());
  dialog.addEventListener("close", () => {
    if (!dialog.returnValue) return;
    const input = part("key");
    setKey(dialog.returnValue === "use" ? input.value : "");
    input.value = dialog.returnValue = "";
    label();
    route();
  });
}

/** Stores files that are dropped anywhere; by default the browser would open them. */
async function receive(event) {
  if (!event.dataTransfer.types.includes("Files")) return;
  event.preventDefault();
  if (!event.relatedTarget || event.type !== "dragleave") part("dropping").hidden = event.type !== "dragover";
  if (event.type !== "drop") return;
  const files = await filesOf(event.dataTransfer);
  await opened; // the first view chooses the collection
  if (shown.take) return shown.take(files);
  store(files);
  location.hash = "#files";
}

/** "/" moves to the box of a view, or to the question. */
function find(event) {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog")) return;
  event.preventDefault();
  const box = main.querySelector("input[type=search]");
  if (box) box.focus();
  else location.hash = "#ask";
}

connection.addEventListener("change", showConnection);
for (const kind of ["dragover", "dragleave", "drop"]) addEventListener(kind, receive);
addEventListener("keydown", find);
addEventListener("popstate", () => route());
setUpKey();
// Loads the other views in the background, so that they open even if the server becomes unavailable.
const opened = route({ focus: false });
opened.then(() => Promise.allSettled([...VIEWS.values()].map((load) => load())));
