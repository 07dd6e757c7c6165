/** Files that documents of a collection came from. */

import { call } from "./api.js";
import { pages } from "./catalog.js";

const PAGE = 1_000;
const NUM_RESTORED = 16; // documents that are restored at a time

/** Files of a collection with their numbers of documents. */
export async function listFiles(collection) {
  const files = [];
  for await (const { sources = [] } of pages("DocumentService/ListSources", { collection, pageSize: PAGE })) files.push(...sources);
  return files;
}

/** Deletes the documents of a file, or of all files of an archive; returns their number. */
export async function deleteFile(collection, name) {
  const files = (await listFiles(collection)).filter(({ source }) => source === name || source.startsWith(`${name}/`));
  let numDeleted = 0;
  for (const { source } of files) numDeleted += Number((await call("DocumentService/DeleteDocuments", { collection, source })).numDeleted ?? 0);
  return numDeleted;
}

/** All documents of a file. */
export async function documentsOf(collection, source) {
  const documents = [];
  for await (const page of pages("DocumentService/ListDocuments", { collection, source })) documents.push(...(page.documents ?? []));
  return documents;
}

/** Stores documents that were deleted. */
export async function restore(collection, documents) {
  for (let start = 0; start < documents.length; start += NUM_RESTORED) {
    const batch = documents.slice(start, start + NUM_RESTORED);
    await call("DocumentService/Upsert", { collection, documents: batch.map(({ id, text, payload, source, parts }) => ({ id, text, payload, source, parts })) });
  }
}
