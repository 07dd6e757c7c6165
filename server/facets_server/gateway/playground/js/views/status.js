/** State of the server: load, disk, backups, models, collections; collections can be downloaded and deleted. */

import { call, ignored } from "../api.js";
import { listCollections, listModels, pages } from "../catalog.js";
import { button, card, command, count, enumLabel, h, plural, table } from "../dom.js";
import { problem } from "../panel.js";

const BACKUP_TIMEOUT_MS = 3_600_000; // many gigabytes take a long time
const BYTES = new Intl.NumberFormat("en", { notation: "compact", style: "unit", unit: "byte", unitDisplay: "narrow" });

export async function open(root) {
  const notice = h("div", { class: "row notice", role: "status" });
  const body = h("div", { class: "results" });
  root.replaceChildren(h("h1", {}, "Status"), h("p", { class: "lede" }, "Load, disk use, backups, models and collections of this server."), notice, body);
  const show = async () => {
    const allowed = call("ModelService/GetServerStatus", {}).catch(ignored("permission_denied"));
    const [state, models, collections] = await Promise.all([allowed, listModels(), listCollections()]);
    const restricted = state ? [server(state), backup(state, act)] : [];
    body.replaceChildren(...restricted, collectionCard(collections, act), modelCard(models));
  };
  /** Makes a button that runs `action`, shows its result or its error, and updates the page. */
  const act = (label, action, attributes) =>
    button(label, async (event) => {
      event.target.disabled = true;
      try {
        const text = await action((progress) => notice.replaceChildren(progress));
        await show();
        notice.replaceChildren(text);
      } catch (error) {
        notice.replaceChildren(problem(error));
      }
      event.target.disabled = false;
      notice.scrollIntoView({ block: "nearest" });
    }, attributes);
  await show();
}

const bytes = (number) => BYTES.format(Number(number ?? 0));

/** "Nov 23, 2026, 4:40 PM": the same in all locales, with the month in letters. */
function time(text) {
  return new Date(text).toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
}

function server(state) {
  const disk = (state.diskUses ?? []).filter(({ numBytes = 0 }) => Number(numBytes)).map(({ part, numBytes }) => `${part} ${bytes(numBytes)}`);
  const answered = (state.requestCounts ?? []).map(({ code, numRequests }) => `${count(numRequests)} ${code === "OK" ? "answered" : enumLabel(code, "")}`);
  return card("Server", table([], [
    ["Version", state.version],
    ["Started", time(state.startTime)],
    ["Calls now", `${state.numRunning ?? 0} running, ${state.numQueued ?? 0} waiting, ${plural(state.numStreams ?? 0, "stream")}`],
    ["Calls so far", answered.join(", ") || "none"],
    ["Disk use", disk.join(", ") || "none"],
    ["Free disk", Number(state.freeBytes ?? 0) ? bytes(state.freeBytes) : "unknown"],
  ]));
}

/** Takes backups if the server has a folder for them. A command restores them, while no server uses the data. */
function backup({ backupDir, backupKeep, backups = [], lastBackupTime }, act) {
  const last = lastBackupTime ? `Last backup: ${time(lastBackupTime)}.` : "There is no backup yet.";
  if (!backupDir) {
    const how = " With the setting backup_dir, backups can be taken here. On the server's machine, also while it runs:";
    return card("Backup", h("p", {}, last, how), command("facets-server backup NEW-FOLDER --data-dir DATA"));
  }
  const take = async (say) => {
    say("Taking a backup");
    const { backup: taken, problems = [], removedFolders = [] } = await call("ModelService/TakeBackup", {}, undefined, BACKUP_TIMEOUT_MS);
    if (problems.length) return `The backup is damaged: ${problems.join("; ")}`;
    const removed = removedFolders.length ? ` ${plural(removedFolders.length, "older backup")} removed.` : "";
    return `${bytes(taken.numBytes)} are in ${taken.folder}; the checksums are correct.${removed}`;
  };
  const kept = backupKeep ? `; the latest ${backupKeep} are kept` : "";
  const rows = backups.map(({ made, numBytes, folder }) => [time(made), bytes(numBytes), folder]);
  return card(
    "Backup",
    h("p", {}, last, ` Backups go to ${backupDir}, also while the server runs${kept}.`),
    h("div", {}, act("Take a backup", take, { class: "primary" })),
    rows.length > 0 && [
      table(["Taken", "Size", "Folder of the server"], rows),
      h("p", {}, "To restore a backup, stop the server and start it with the folder that this command creates:"),
      command(`facets-server restore "${backups[0].folder}" --data-dir NEW-FOLDER`),
    ],
  );
}

function modelCard(models) {
  const rows = models.map((model) => [model.name, model.task, model.numFacets ?? "", model.dim ?? "", (model.revision ?? "").slice(0, 12)]);
  return card("Models", table(["Model", "Task", "Facets", "Dimensions", "Revision"], rows));
}

function collectionCard(collections, act) {
  if (!collections.length) return card("Collections", h("p", {}, "There are no collections yet. ", h("a", { href: "#files" }, "Add files"), "."));
  const rows = collections.map((collection) => {
    const { name, numDocuments, numDamaged, language, model, indexKind } = collection;
    const damaged = Number(numDamaged ?? 0) ? `, ${count(numDamaged)} damaged` : "";
    const action = (label, run) => act(label, (say) => run(collection, say), { "aria-label": `${label} ${name}` });
    const link = h("a", { href: `#files?${new URLSearchParams({ c: name })}` }, name);
    return [link, `${count(numDocuments)}${damaged}`, language ?? "", model, indexKind, h("div", { class: "row" }, action("Download", download), action("Delete", remove))];
  });
  return card("Collections", table(["Collection", "Documents", "Language", "Model", "Index", ""], rows));
}

/** Downloads all documents as JSON lines, which `facets index` and this page read. */
async function download({ name, numDocuments }, say) {
  const lines = [];
  for await (const { documents = [] } of pages("DocumentService/ListDocuments", { collection: name })) {
    for (const { id, text = "", payload = {} } of documents) lines.push(`${JSON.stringify({ id, text, ...payload })}\n`);
    say(`${count(lines.length)} of ${count(numDocuments)} documents of ${name} read`);
  }
  const link = h("a", { href: URL.createObjectURL(new Blob(lines, { type: "application/x-ndjson" })), download: `${name}.jsonl` });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  return `${plural(lines.length, "document")} of ${name} in ${name}.jsonl`;
}

/** Deletes a collection after a confirmation. */
async function remove({ name, numDocuments }) {
  if (!confirm(`Delete ${name}? This cannot be undone. Download its ${plural(numDocuments ?? 0, "document")} first to keep them.`)) return "";
  const done = await call("CollectionService/DeleteCollection", { name }).catch(ignored("not_found"));
  if (!done) return `${name} was already deleted.`; // in another tab, or by another user
  return `${name} and its ${plural(done.numDocuments ?? 0, "document")} were deleted.`;
}
