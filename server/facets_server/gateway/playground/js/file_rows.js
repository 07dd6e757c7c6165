/** Reads files as rows in bounded memory: JSON lines, JSON arrays, CSV, TSV, plain text. */

const SUFFIXES = {
  jsonl: lines,
  ndjson: lines,
  json: array,
  csv: table,
  tsv: table,
  txt: whole,
  text: whole,
  md: whole,
  markdown: whole,
  rst: whole,
};
const MAX_ARRAY_BYTES = 100_000_000; // limit of a JSON array, which is read into memory as a whole
const MAX_TEXT_BYTES = 15_000_000; // the server accepts 16 MiB per request
const PIECE_BYTES = 16_384; // decoded at once, so that the progress is not far ahead of the stored rows
const TEXTS = ["text", "body", "content", "contents", "abstract", "passage", "article", "description", "message", "summary", "note", "notes", "comment", "comments", "details"];
const TITLES = ["title", "headline", "heading", "subject"];
const IDS = ["id", "_id", "doc_id", "docid", "document_id", "uuid"];

/** The formats that this page reads. */
export const READABLE = "JSON lines, JSON, CSV, TSV, text, Markdown";
export const ACCEPT = Object.keys(SUFFIXES).map((suffix) => `.${suffix}`).join(",");

/** An error that says in one sentence why a file cannot be read. */
export class FileError extends Error {}

/** The rows of a file; a row is an object, or a string that says what is wrong. `read` is told the bytes read so far. */
export async function* rowsOf(file, read = () => {}) {
  const reader = SUFFIXES[suffixOf(file)];
  if (!reader) throw new FileError(`${file.name} has a format that this page does not read (${READABLE}). The command facets index reads PDF, HTML, Parquet and more.`);
  yield* reader(file, read);
}

function suffixOf(file) {
  return file.name.toLowerCase().split(".").at(-1);
}

/** Whether a file is one document. */
export function isOneDocument(file) {
  return SUFFIXES[suffixOf(file)] === whole;
}

/** Chunks of text, decoded as UTF-8, as UTF-16 with a byte order mark, or else as Windows-1252. */
async function* chunks(file, read) {
  const decoder = new TextDecoder(await encodingOf(file));
  for (let start = 0; start < file.size; start += PIECE_BYTES) {
    yield decoder.decode(await file.slice(start, start + PIECE_BYTES).arrayBuffer(), { stream: true });
    read(start + PIECE_BYTES);
  }
  yield decoder.decode();
}

async function encodingOf(file) {
  const head = new Uint8Array(await file.slice(0, PIECE_BYTES).arrayBuffer());
  const utf16 = { "255,254": "utf-16le", "254,255": "utf-16be" }[head.slice(0, 2)];
  if (utf16) return utf16;
  if (head.includes(0)) throw new FileError(`${file.name} is not a text file: it has zero bytes.`);
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(head, { stream: file.size > head.length });
    return "utf-8";
  } catch {
    return "windows-1252";
  }
}

async function* lines(file, read) {
  let rest = "";
  for await (const chunk of chunks(file, read)) {
    rest += chunk;
    if (!chunk.includes("\n")) continue; // joins long lines only once
    const parts = rest.split("\n");
    rest = parts.pop();
    for (const line of parts) if (line.trim()) yield object(line);
  }
  if (rest.trim()) yield object(rest);
}

function object(line) {
  try {
    return checked(JSON.parse(line));
  } catch {
    return "is not JSON";
  }
}

function checked(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value) ? value : "is not a JSON object";
}

async function* array(file, read) {
  if (file.size > MAX_ARRAY_BYTES) throw new FileError(`${file.name} is too large for one JSON value. JSON lines may have any size.`);
  let value;
  try {
    value = JSON.parse(await text(file, read));
  } catch {
    throw new FileError(`${file.name} is not JSON.`);
  }
  const items = Array.isArray(value) ? value : Object.values(value).find(Array.isArray) ?? [value];
  for (const [index, item] of items.entries()) {
    read((file.size * index) / items.length);
    yield checked(item);
  }
}

async function* whole(file, read) {
  if (file.size > MAX_TEXT_BYTES) throw new FileError(`${file.name} has ${Math.ceil(file.size / 1e6)} MB. The command facets index stores texts of more than 15 MB.`);
  yield { id: file.name, text: await text(file, read), title: file.name };
}

async function text(file, read) {
  let content = "";
  for await (const chunk of chunks(file, read)) content += chunk;
  return content;
}

async function* table(file, read) {
  let header = null;
  for await (const cells of cellsOf(file, read)) {
    if (header === null) header = columnNames(cells);
    else if (cells.length > header.length) yield `has ${cells.length} values, expected ${header.length}`;
    else yield Object.fromEntries(cells.map((cell, index) => [header[index], valueOf(cell)]).filter(([, value]) => value !== ""));
  }
  if (header === null) throw new FileError(`${file.name} is empty.`);
}

/** Names unnamed columns and numbers repeated ones, as `facets index` does. */
function columnNames(cells) {
  return cells.reduce((names, cell, index) => {
    let name = cell.trim() || `column ${index + 1}`;
    for (let number = 2; names.includes(name); number += 1) name = `${cell.trim()} ${number}`;
    return [...names, name];
  }, []);
}

/** A number, unless the cell is a code such as 007. */
function valueOf(cell) {
  return /^-?(0|[1-9]\d{0,14})(\.\d{1,15})?$/.test(cell) ? Number(cell) : cell;
}

/** Rows of cells by RFC 4180: quoted cells may contain delimiters, line ends and doubled quotes. */
async function* cellsOf(file, read) {
  let delimiter = "";
  let [cells, cell, quoted, closed] = [[], "", false, false];
  for await (const chunk of chunks(file, read)) {
    delimiter ||= file.name.toLowerCase().endsWith(".tsv") ? "\t" : delimiterOf(chunk);
    for (const character of chunk) {
      if (quoted) {
        if (character === '"') [quoted, closed] = [false, true];
        else cell += character;
      } else if (character === '"' && (closed || cell === "")) {
        if (closed) cell += '"';
        [quoted, closed] = [true, false];
      } else if (character === delimiter) {
        cells.push(cell);
        [cell, closed] = ["", false];
      } else if (character === "\n") {
        cells.push(cell.replace(/\r$/, ""));
        if (cells.length > 1 || cells[0] !== "") yield cells;
        [cells, cell, closed] = [[], "", false];
      } else {
        cell += character;
      }
    }
  }
  if (quoted) throw new FileError(`${file.name}: a quote is not closed.`);
  if (cell !== "" || cells.length) yield [...cells, cell];
}

function delimiterOf(chunk) {
  const line = chunk.split("\n", 1)[0];
  const counts = [",", ";", "\t", "|"].map((delimiter) => [line.split(delimiter).length, delimiter]);
  return counts.sort((first, second) => second[0] - first[0])[0][1];
}

/** Guesses text, title and id columns by their names; the text is otherwise the longest column. */
export function guessed(rows) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const named = (known) => known.map((wanted) => names.find((name) => name.trim().toLowerCase() === wanted)).find(Boolean) ?? "";
  const length = (name) => rows.reduce((sum, row) => sum + String(row[name] ?? "").length, 0);
  const text = named(TEXTS) || names.toSorted((first, second) => length(second) - length(first))[0];
  return { names, text, title: [named(TITLES)].find((title) => title !== text) ?? "", id: named(IDS) };
}

/** Converts a row to a document, or to a string that says why it is invalid. `madeId`: for rows without an id. */
export function documentOf(row, columns, madeId) {
  const { [columns.text]: text, [columns.id]: id, ...payload } = row;
  if (payload[columns.title] !== undefined) {
    const { [columns.title]: title } = payload;
    delete payload[columns.title];
    payload.title = title;
  }
  if (typeof text !== "string" && typeof text !== "number") return `has no text in column ${columns.text}`;
  if (String(text).trim() === "") return "has an empty text";
  return { id: String(id ?? "") || madeId, text: String(text), payload };
}
