/** How the server is: load, disk, last backup, models, collections; a collection made, taken along, deleted. */

import { call } from "../api.js";
import { card, count, h, plural, table } from "../dom.js";
import { problem } from "../panel.js";
import { listCollections, listModels } from "../served.js";

const PAGE = 200;
const BACKUP_MS = 3_600_000; // many gigabytes take a while
const UNITS = ["B", "kB", "MB", "GB", "TB"];

/** Fills `root` with the view. */
export async function open(root) {
  const notice = h("div", { class: "notice", role: "status" });
  const body = h("div", { class: "results" });
  root.replaceChildren(h("h1", {}, "Status"), h("p", { class: "lede" }, "How this server is, what it holds, and when it was last backed up."), notice, body);
  const show = async () => {
    const [state, models, collections] = await Promise.all([serverStatus(), listModels(), listCollections()]);
    body.replaceChildren(...[server(state), backup(state, { notice, show }), collectionCard(collections, { notice, show }), modelCard(models)].filter(Boolean));
  };
  await show();
  return { open: () => {}, close: () => {} };
}

/** Null where the key may not ask. */
async function serverStatus() {
  try {
    return await call("ModelService/GetServerStatus", {});
  } catch (error) {
    if (error.code === "permission_denied") return null;
    throw error;
  }
}

function bytes(number) {
  let [value, unit] = [Number(number ?? 0), 0];
  while (value >= 1000 && unit < UNITS.length - 1) [value, unit] = [value / 1000, unit + 1];
  return `${value < 10 && unit ? value.toFixed(1) : Math.round(value)} ${UNITS[unit]}`;
}

/** "Nov 23, 2026, 4:40 PM": a day that nobody takes for a month. */
function time(text) {
  return new Date(text).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
}

function server(state) {
  if (!state) return null;
  const disk = (state.diskUses ?? []).filter((one) => Number(one.numBytes ?? 0)).map((one) => `${one.part} ${bytes(one.numBytes)}`);
  const answered = (state.requestCounts ?? []).map((one) => `${count(one.numRequests)} ${one.code === "OK" ? "answered" : one.code.toLowerCase().replaceAll("_", " ")}`);
  const facts = [
    ["Version", state.version],
    ["Up since", time(state.startTime)],
    ["Calls now", `${state.numRunning ?? 0} worked on, ${state.numQueued ?? 0} waiting, ${plural(state.numStreams ?? 0, "stream")}`],
    ["Calls so far", answered.join(", ") || "none"],
    ["Disk", disk.join(", ") || "nothing yet"],
    ["Disk left", Number(state.freeBytes ?? 0) ? bytes(state.freeBytes) : "not known"],
  ];
  return card("Server", table([], facts));
}

/** Taken here where the server has a folder for backups; put back by command, for no server may be using the data then. */
function backup(state, { notice, show }) {
  if (!state) return null;
  const command = (text) => h("pre", { tabindex: 0, "aria-label": "Command" }, h("code", {}, text));
  const last = state.lastBackupTime ? `The last one is of ${time(state.lastBackupTime)}.` : "None has been taken yet.";
  if (!state.backupDir) {
    const how = " Started with the setting backup_dir, this server takes them from here; where it runs, also while it answers:";
    return card("Backup", h("p", {}, last, how), command("facets-server backup NEW-FOLDER --data-dir DATA"));
  }
  const button = h("button", { type: "button", class: "primary" }, "Take a backup");
  button.addEventListener("click", async () => {
    [button.disabled, button.textContent] = [true, "Taking a backup"];
    try {
      const { backup: taken, problems = [], removedFolders: gone = [] } = await call("ModelService/TakeBackup", {}, undefined, BACKUP_MS);
      await show();
      notice.replaceChildren(problems.length ? `What was copied is damaged: ${problems.join("; ")}` : `All of ${bytes(taken.numBytes)} is in ${taken.folder}, compared with its checksums.${gone.length ? ` ${plural(gone.length, "older one")} removed.` : ""}`);
    } catch (error) {
      [button.disabled, button.textContent] = [false, "Take a backup"];
      notice.replaceChildren(problem(error));
    }
    notice.scrollIntoView({ block: "nearest" });
  });
  const kept = { 0: "", 1: "; only the latest is kept" }[state.backupKeep ?? 0] ?? `; the latest ${state.backupKeep} are kept`;
  const rows = (state.backups ?? []).map((one) => [time(one.made), bytes(one.numBytes), one.folder]);
  const back = rows.length > 0 && [table(["Taken", "Size", "Folder of the server"], rows), h("p", {}, "To go back to one, stop the server, and start it again with the folder that this makes:"), command(`facets-server restore "${state.backups[0].folder}" --data-dir NEW-FOLDER`)];
  return card("Backup", h("p", {}, last, ` Backups go to ${state.backupDir}, also while the server answers${kept}.`), h("div", {}, button), back);
}

function modelCard(models) {
  const rows = models.map((model) => [model.name, model.task, model.numFacets ?? "", model.dim ?? "", (model.revision ?? "").slice(0, 12)]);
  return card("Models", table(["Model", "Task", "Facets", "Dimensions", "Revision"], rows));
}

function collectionCard(collections, context) {
  if (!collections.length) return card("Collections", h("p", {}, "There is none yet. ", h("a", { href: "#add" }, "Add files"), "."));
  const rows = collections.map((one) => {
    const asked = new URLSearchParams({ collection: one.name });
    const damaged = Number(one.numDamaged ?? 0) ? `, ${count(one.numDamaged)} damaged` : "";
    const button = (label, act) => h("button", { type: "button", class: "quiet", "aria-label": `${label} ${one.name}`, on: { click: act } }, label);
    const buttons = h("div", { class: "row" }, button("Download", () => download(one, context)), button("Delete", () => remove(one, context)));
    return [h("a", { href: `#documents?${asked}` }, one.name), `${count(one.numDocuments ?? 0)}${damaged}`, one.model, one.indexKind, buttons];
  });
  return card("Collections", table(["Collection", "Documents", "Model", "Index", ""], rows));
}

/** All documents as JSON lines, as `facets index` and this page read them. */
async function download({ name, numDocuments }, { notice }) {
  const parts = [];
  let [pageToken, number] = ["", 0];
  try {
    do {
      const page = await call("DocumentService/ListDocuments", { collection: name, pageSize: PAGE, pageToken });
      for (const { id, text = "", payload = {} } of page.documents ?? []) parts.push(`${JSON.stringify({ id, text, ...payload })}\n`);
      number += page.documents?.length ?? 0;
      notice.replaceChildren(`${count(number)} of ${count(numDocuments ?? 0)} documents of ${name} read`);
      pageToken = page.nextPageToken ?? "";
    } while (pageToken);
  } catch (error) {
    notice.replaceChildren(problem(error));
    return;
  }
  const link = h("a", { href: URL.createObjectURL(new Blob(parts, { type: "application/x-ndjson" })), download: `${name}.jsonl` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  notice.replaceChildren(`${plural(number, "document")} of ${name} in ${name}.jsonl`);
}

/** Asks first: a collection does not come back. */
function remove({ name, numDocuments }, { notice, show }) {
  const dialog = h(
    "dialog",
    { "aria-labelledby": "delete-title" },
    h(
      "form",
      { method: "dialog", class: "stack" },
      h("h2", { id: "delete-title" }, `Delete ${name}?`),
      h("p", {}, `Its ${plural(numDocuments ?? 0, "document")} will not come back. Download them first to keep them.`),
      h("div", { class: "row" }, h("button", { type: "submit", class: "quiet", value: "keep", autofocus: true }, "Keep it"), h("button", { type: "submit", class: "primary danger", value: "delete" }, "Delete it")),
    ),
  );
  dialog.addEventListener("close", async () => {
    dialog.remove();
    if (dialog.returnValue !== "delete") return;
    try {
      const done = await call("CollectionService/DeleteCollection", { name });
      notice.replaceChildren(`${name} is deleted with ${plural(done.numDocuments ?? 0, "document")}.`);
    } catch (error) {
      if (error.code !== "not_found") return void notice.replaceChildren(problem(error));
      notice.replaceChildren(`${name} was gone already.`); // another tab, or somebody else
    }
    await show();
  });
  document.body.append(dialog);
  dialog.showModal();
}
