/** The frame of the page: navigation, API key, state of the connection. */

import { connection, storedKey, setKey } from "./api.js";
import { button, h } from "./dom.js";
import { problem } from "./panel.js";
import { forget, listModels } from "./catalog.js";

const VIEWS = {
  search: () => import("./views/search.js"),
  documents: () => import("./views/documents.js"),
  add: () => import("./views/add.js"),
  sides: () => import("./views/sides.js"),
  diagnose: () => import("./views/diagnose.js"),
  status: () => import("./views/status.js"),
  facets: () => import("./views/facets.js"),
  similarity: () => import("./views/similarity.js"),
  summary: () => import("./views/summary.js"),
  relations: () => import("./views/relations.js"),
  papers: () => import("./views/papers.js"),
  map: () => import("./views/map.js"),
  http: () => import("./views/http.js"),
};
const CONNECTION = { waiting: "Connecting", reached: "Connected", lost: "No connection" };

const main = document.getElementById("main");
const banner = document.getElementById("banner");
let shown = { name: "", close: () => {} };
let numRoutes = 0;
let dropped = [];

async function route({ focus = true } = {}) {
  const [name, query = ""] = location.hash.slice(1).split("?", 2);
  if (name === "main") return; // the skip link
  const view = name in VIEWS ? name : "search";
  const current = (numRoutes += 1);
  shown.close();
  mark(view);
  try {
    const module = await VIEWS[view]();
    if (current !== numRoutes) return;
    const root = h("div", { class: `view ${view}` });
    main.replaceChildren(root);
    shown = { close: () => {} };
    const opened = await module.open(root);
    if (current !== numRoutes) return opened.close();
    shown = opened;
    await opened.open(Object.fromEntries(new URLSearchParams(query)));
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

function mark(name) {
  for (const link of document.querySelectorAll("#views a, #status-link, #http-link")) {
    const current = link.hash === `#${name}`;
    if (current) {
      link.setAttribute("aria-current", "page");
      document.title = `${link.textContent} \u2013 Facets playground`;
    } else {
      link.removeAttribute("aria-current");
    }
  }
}

function showConnection() {
  const label = document.getElementById("connection");
  label.dataset.state = connection.state;
  label.textContent = CONNECTION[connection.state];
  banner.hidden = connection.state !== "lost";
  if (banner.hidden) return banner.replaceChildren();
  banner.replaceChildren(
    h("span", {}, "The server does not answer. The page tries again every few seconds; your input is kept."),
    button("Try now", () => connection.probe()),
  );
}

async function showServed() {
  try {
    const models = await listModels();
    document.getElementById("served").textContent = `Models: ${models.map((model) => model.name).join(", ")}`;
  } catch {
    document.getElementById("served").textContent = ""; // the view shows the error
  }
}

function setUpKey() {
  const dialog = document.getElementById("key-dialog");
  const input = document.getElementById("key");
  const keyButton = document.getElementById("key-button");
  const label = () => {
    keyButton.textContent = storedKey() ? "Key: set" : "Key";
  };
  label();
  keyButton.addEventListener("click", () => dialog.showModal());
  dialog.addEventListener("close", () => {
    if (dialog.returnValue === "use") setKey(input.value);
    else if (dialog.returnValue === "forget") setKey("");
    else return;
    input.value = "";
    dialog.returnValue = "";
    label();
    forget();
    showServed();
    route();
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
showServed();
// Loads the other views in the background, so that they open even if the server becomes unavailable.
route({ focus: false }).then(() => Promise.allSettled(Object.values(VIEWS).map((load) => load())));
