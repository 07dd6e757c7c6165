/** The frame of the page: navigation, API key, theme, state of the connection. */

import { connection, headers, setKey, storage } from "./api.js";
import { button, h } from "./dom.js";
import { problem } from "./panel.js";
import { forget, listModels } from "./catalog.js";

const LINKS = [...document.querySelectorAll("#views a, #status-link, #http-link")];
const NAMES = LINKS.map(({ hash }) => hash.slice(1));
const VIEWS = Object.fromEntries(NAMES.map((name) => [name, () => import(`./views/${name}.js`)]));
const CONNECTION = { waiting: "Connecting", reached: "Connected", lost: "No connection" };
const THEMES = ["auto", "light", "dark"];

const [main, banner, served, keyButton, themeButton] = ["main", "banner", "served", "key-button", "theme-button"].map((id) => document.getElementById(id));
let shown = {};
let numRoutes = 0;
let dropped = [];

async function route({ focus = true } = {}) {
  const [name, query = ""] = location.hash.slice(1).split("?", 2);
  if (name === "main") return; // the skip link
  const view = NAMES.includes(name) ? name : "search";
  const current = (numRoutes += 1);
  shown.close?.();
  shown = {};
  const title = mark(view);
  try {
    const module = await VIEWS[view]();
    if (current !== numRoutes) return;
    const root = h("div", { class: `view ${view}`, data: { view, title } });
    main.replaceChildren(root);
    const opened = (await module.open(root)) ?? {};
    if (current !== numRoutes) return opened.close?.();
    shown = opened;
    await opened.open?.(Object.fromEntries(new URLSearchParams(query)));
    opened.take?.(dropped.splice(0));
  } catch (error) {
    if (current === numRoutes) failed(error);
  }
  if (focus && current === numRoutes) main.focus({ preventScroll: true });
}

/** Shows why a view could not open; tries again once the server is back. */
function failed(error) {
  main.replaceChildren(h("div", { class: "view" }, h("h1", {}, "Facets"), problem(error)));
  if (error.code === "unavailable") connection.lost(); // the gateway may outlive its server for a moment
  const again = (event) => event.detail === "reached" && route();
  connection.addEventListener("change", again, { once: true });
  shown = { close: () => connection.removeEventListener("change", again) };
}

/** Marks the link of a view as the current one; returns its text, the title of the view. */
function mark(name) {
  for (const link of LINKS) link.removeAttribute("aria-current");
  const current = LINKS[NAMES.indexOf(name)];
  current.setAttribute("aria-current", "page");
  document.title = `${current.textContent} \u2013 Facets playground`;
  return current.textContent;
}

function showConnection() {
  const label = document.getElementById("connection");
  label.dataset.state = connection.state;
  label.textContent = CONNECTION[connection.state];
  banner.hidden = connection.state !== "lost";
  const text = "The server does not answer. The page tries again every few seconds; your input is kept.";
  banner.replaceChildren(...(banner.hidden ? [] : [h("span", {}, text), button("Try now", () => connection.probe())]));
}

async function showServed() {
  const models = await listModels().catch(() => []); // the view shows the error
  served.textContent = models.length ? `Models: ${models.map((model) => model.name).join(", ")}` : "";
}

function setUpKey() {
  const dialog = document.getElementById("key-dialog");
  const label = () => (keyButton.textContent = headers().Authorization ? "Key: set" : "Key");
  label();
  keyButton.addEventListener("click", () => dialog.showModal());
  dialog.addEventListener("close", () => {
    if (!dialog.returnValue) return;
    const input = document.getElementById("key");
    setKey(dialog.returnValue === "use" ? input.value : "");
    input.value = dialog.returnValue = "";
    label();
    forget();
    showServed();
    route();
  });
}

function setUpTheme() {
  const { dataset } = document.documentElement;
  const label = () => (themeButton.textContent = `Theme: ${dataset.theme}`);
  label();
  themeButton.addEventListener("click", () => {
    dataset.theme = THEMES[(THEMES.indexOf(dataset.theme) + 1) % THEMES.length];
    storage("localStorage", "setItem", "facets-theme", dataset.theme);
    label();
    document.dispatchEvent(new Event("themechange"));
  });
}

/** Adds files that are dropped anywhere; by default the browser would open them. */
function receive(event) {
  if (!event.dataTransfer.types.includes("Files")) return;
  event.preventDefault();
  if (event.type !== "drop") return;
  if (shown.take) return shown.take(event.dataTransfer.files);
  dropped = [...event.dataTransfer.files];
  location.hash = "#add";
}

connection.addEventListener("change", showConnection);
for (const kind of ["dragover", "drop"]) addEventListener(kind, receive);
addEventListener("hashchange", () => route());
setUpKey();
setUpTheme();
showServed();
// Loads the other views in the background, so that they open even if the server becomes unavailable.
route({ focus: false }).then(() => Promise.allSettled(Object.values(VIEWS).map((load) => load())));
