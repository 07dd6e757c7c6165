/** State of the server: load, disk, backups, models, collections; collections can be downloaded and deleted. */

import { call } from "../api.js";
import { button, card, count, enumLabel, h, plural, table } from "../dom.js";
import { problem } from "../panel.js";
import { listCollections, listModels } from "../catalog.js";

const PAGE = 200;
const BACKUP_TIMEOUT_MS = 3_600_000; // many gigabytes take a long time
const UNITS = ["B", "kB", "MB", "GB", "TB"];

/** Fills `root` with the view. */
export async function open(root) {
  const notice = h("div", { class: "notice", role: "status" });
  const body = h("div", { class: "results" });
  root.replaceChildren(h("h1", {}, "Status"), h("p", { class: "lede" }, "Load, disk use, backups, models and collections of this server."), notice, body);
  const show = async () => {
    const [state, models, collections] = await Promise.all([serverStatus(), listModels(), listCollections()]);
    body.replaceChildren(...[server(state), backup(state, { notice, show }), collectionCard(collections, { notice, show }), modelCard(models)].filter(Boolean));
  };
  await show();
  return { open: () => {}, close: () => {} };
}

/** The result, or null if the key does not allow the call. */
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

/** "Nov 23, 2026, 4:40 PM": the same in all locales, with the month in letters. */
function time(text) {
  return new Date(text).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
}

function server(state) {
  if (!state) return null;
  const disk = (state.diskUses ?? []).filter(({ numBytes = 0 }) => Number(numBytes)).map(({ part, numBytes }) => `${part} ${bytes(numBytes)}`);
  const answered = (state.requestCounts ?? []).map(({ code, numRequests }) => `${count(numRequests)} ${code === "OK" ? "answered" : enumLabel(code, "")}`);
  const facts = [
    ["Version", state.version],
    ["Started", time(state.startTime)],
    ["Calls now", `${state.numRunning ?? 0} running, ${state.numQueued ?? 0} waiting, ${plural(state.numStreams ?? 0, "stream")}`],
    ["Calls so far", answered.join(", ") || "none"],
    ["Disk use", disk.join(", ") || "none"],
    ["Free disk", Number(state.freeBytes ?? 0) ? bytes(state.freeBytes) : "unknown"],
  ];
  return card("Server", table([], facts));
}

/** Takes backups if the server has a folder for them. A command restores them, while no server uses the data. */
function backup(state, { notice, show }) {
  if (!state) return null;
  const command = (text) => h("pre", { tabindex: 0, "aria-label": "Command" }, h("code", {}, text));
  const last = state.lastBackupTime ? `Last backup: ${time(state.lastBackupTime)}.` : "There is no backup yet.";
  if (!state.backupDir) {
    const how = " With the setting backup_dir, backups can be taken here. On the server's machine, also while it runs:";
    return card("Backup", h("p", {}, last, how), command("facets-server backup NEW-FOLDER --data-dir DATA"));
  }
  const take = button("Take a backup", async () => {
    [take.disabled, take.textContent] = [true, "Taking a backup"];
    try {
      const { backup: taken, problems = [], removedFolders: removed = [] } = await call("ModelService/TakeBackup", {}, undefined, BACKUP_TIMEOUT_MS);
      await show();
      notice.replaceChildren(problems.length ? `The backup is damaged: ${problems.join("; ")}` : `${bytes(taken.numBytes)} are in ${taken.folder}; the checksums are correct.${removed.length ? ` ${plural(removed.length, "older backup")} removed.` : ""}`);
    } catch (error) {
      [take.disabled, take.textContent] = [false, "Take a backup"];
      notice.replaceChildren(problem(error));
    }
    notice.scrollIntoView({ block: "nearest" });
  }, { class: "primary" });
  const kept = { 0: "", 1: "; only the latest is kept" }[state.backupKeep ?? 0] ?? `; the latest ${state.backupKeep} are kept`;
  const rows = (state.backups ?? []).map(({ made, numBytes, folder }) => [time(made), bytes(numBytes), folder]);
  const back = rows.length > 0 && [table(["Taken", "Size", "Folder of the server"], rows), h("p", {}, "To restore a backup, stop the server and start it with the folder that this command creates:"), command(`facets-server restore "${state.backups[0].folder}" --data-dir NEW-FOLDER`)];
  return card("Backup", h("p", {}, last, ` Backups go to ${state.backupDir}, also while the server runs${kept}.`), h("div", {}, take), back);
}

function modelCard(models) {
  const rows = models.map((model) => [model.name, model.task, model.numFacets ?? "", model.dim ?? "", (model.revision ?? "").slice(0, 12)]);
  return card("Models", table(["Model", "Task", "Facets", "Dimensions", "Revision"], rows));
}

function collectionCard(collections, context) {
  if (!collections.length) return card("Collections", h("p", {}, "There are no collections yet. ", h("a", { href: "#add" }, "Add files"), "."));
  const rows = collections.map((collection) => {
    const query = new URLSearchParams({ collection: collection.name });
    const damaged = Number(collection.numDamaged ?? 0) ? `, ${count(collection.numDamaged)} damaged` : "";
    const action = (label, run) => button(label, () => run(collection, context), { "aria-label": `${label} ${collection.name}` });
    const buttons = h("div", { class: "row" }, action("Download", download), action("Delete", remove));
    return [h("a", { href: `#documents?${query}` }, collection.name), `${count(collection.numDocuments ?? 0)}${damaged}`, collection.model, collection.indexKind, buttons];
  });
  return card("Collections", table(["Collection", "Documents", "Model", "Index", ""], rows));
}

/** Downloads all documents as JSON lines, which `facets index` and this page read. */
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

/** Deletes a collection after a confirmation. */
function remove({ name, numDocuments }, { notice, show }) {
  const dialog = h(
    "dialog",
    { "aria-labelledby": "delete-title" },
    h(
      "form",
      { method: "dialog", class: "stack" },
      h("h2", { id: "delete-title" }, `Delete ${name}?`),
      h("p", {}, `This cannot be undone. Download its ${plural(numDocuments ?? 0, "document")} first to keep them.`),
      h("div", { class: "row" }, h("button", { type: "submit", class: "quiet", value: "keep", autofocus: true }, "Keep it"), h("button", { type: "submit", class: "primary danger", value: "delete" }, "Delete it")),
    ),
  );
  dialog.addEventListener("close", async () => {
    dialog.remove();
    if (dialog.returnValue !== "delete") return;
    try {
      const done = await call("CollectionService/DeleteCollection", { name });
      notice.replaceChildren(`${name} and its ${plural(done.numDocuments ?? 0, "document")} were deleted.`);
    } catch (error) {
      if (error.code !== "not_found") return void notice.replaceChildren(problem(error));
      notice.replaceChildren(`${name} was already deleted.`); // in another tab, or by another user
    }
    await show();
  });
  document.body.append(dialog);
  dialog.showModal();
}
