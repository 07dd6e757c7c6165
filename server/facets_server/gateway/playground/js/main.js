/** The frame: which view is shown, the key, the state of the connection. */

import { connection, hasKey, setKey } from "./api.js";
import { h } from "./dom.js";
import { problem } from "./panel.js";
import { forget, listModels } from "./served.js";

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
};
const CONNECTION = { waiting: "Connecting", reached: "Connected", lost: "No connection" };

const main = document.getElementById("main");
const banner = document.getElementById("banner");
let shown = { name: "", close: () => {} };
let turn = 0;
let dropped = [];

async function route({ focus = true } = {}) {
  const [name, query = ""] = location.hash.slice(1).split("?", 2);
  if (name === "main") return; // the link that skips the header
  const known = name in VIEWS ? name : "search";
  const mine = (turn += 1);
  shown.close();
  mark(known);
  try {
    const module = await VIEWS[known]();
    if (mine !== turn) return;
    const root = h("div", { class: `view ${known}` });
    main.replaceChildren(root);
    shown = { close: () => {} };
    const opened = await module.open(root);
    if (mine !== turn) return opened.close();
    shown = opened;
    await opened.open(Object.fromEntries(new URLSearchParams(query)));
    opened.take?.(dropped.splice(0));
  } catch (error) {
    if (mine === turn) failed(error);
  }
  if (focus && mine === turn) main.focus({ preventScroll: true });
}

/** A view could not even begin; once the server is back it is tried again. */
function failed(error) {
  main.replaceChildren(h("div", { class: "view" }, h("h1", {}, "Facets"), problem(error)));
  if (error.code === "unavailable") connection.lost(); // the gateway outlives its server by a moment
  const again = (event) => event.detail === "reached" && route();
  connection.addEventListener("change", again, { once: true });
  shown = { close: () => connection.removeEventListener("change", again) };
}

function mark(name) {
  for (const link of document.querySelectorAll("#views a, #status-link")) {
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
    h("span", {}, "The server does not answer. It is asked again every few seconds; nothing you typed is lost."),
    h("button", { type: "button", class: "quiet", on: { click: () => connection.probe() } }, "Ask now"),
  );
}

async function showServed() {
  try {
    const models = await listModels();
    document.getElementById("served").textContent = `Models: ${models.map((model) => model.name).join(", ")}`;
  } catch {
    document.getElementById("served").textContent = ""; // the view says what is wrong
  }
}

function setUpKey() {
  const dialog = document.getElementById("key-dialog");
  const input = document.getElementById("key");
  const button = document.getElementById("key-button");
  const label = () => {
    button.textContent = hasKey() ? "Key: set" : "Key";
  };
  label();
  button.addEventListener("click", () => dialog.showModal());
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

/** A file that is dropped anywhere is to be added; the browser would leave the page for it. */
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
// Every other view is here before it is asked for: it opens also where the server has gone meanwhile, and says so.
route({ focus: false }).then(() => Promise.allSettled(Object.values(VIEWS).map((load) => load())));
