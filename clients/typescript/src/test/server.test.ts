/** Tests the client against a real server, at FACETS_TARGET. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { connect, partOf, type FacetsClient, type NewDocument } from "../index.js";
import { relay } from "./fake.js";

const target = process.env["FACETS_TARGET"] ?? "";
const skip = target === "" && "FACETS_TARGET names no server";
let client: FacetsClient;
before(() => (client = connect(target || undefined)));
after(() => client.close());

/** Name of a new collection: the server may still have those of an earlier run. */
async function collection(purpose: string): Promise<string> {
  const name = `${purpose}-${Date.now()}`;
  await client.collections.createCollection({ name });
  return name;
}

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const found: T[] = [];
  for await (const item of items) found.push(item);
  return found;
}

test("texts become facets, in their order, over several requests", { skip }, async () => {
  const texts = ["A dog barks.", "The market fell.", "She plays the piano."];
  const facets = await client.embed(texts, { normalize: true, batchSize: 2 });
  const [alone] = [await client.embed([texts[2]!], { normalize: true })];
  assert.deepEqual([facets.shape[0], ...alone.shape], [3, 1, facets.shape[1], facets.shape[2]]);
  const cosine = facets.facet(2, 0).reduce((sum, value, place) => sum + value * alone.facet(0, 0)[place]!, 0);
  assert.ok(cosine > 0.999, String(cosine));
});

test("documents are stored and found, with the part that answers", { skip }, async () => {
  const name = await collection("found");
  const documents = [
    { id: "fox", text: "🦊 Foxes hunt at night.", payload: { kind: "animal", year: 1990 } },
    { id: "tax", text: "Income taxes are due in April.", payload: { kind: "law", year: 2001 } },
  ];
  for await (const { ack } of client.index(name, documents)) assert.deepEqual([ack.numUpserted, ack.sequence], [2, 1n]);
  const [hits] = await client.search(name, ["when do foxes hunt"], { topK: 1, mode: "lexical" });
  const hit = hits![0]!;
  assert.deepEqual([hit.id, hit.payload], ["fox", { kind: "animal", year: 1990 }]);
  assert.ok(partOf(hit.text, hit.answer).includes("hunt"));
  const where = { condition: { case: "field" as const, value: { field: "kind", test: { case: "equals" as const, value: { kind: { case: "stringValue" as const, value: "law" } } } } } };
  const [filtered] = await client.search(name, ["when do foxes hunt"], { where });
  assert.deepEqual(filtered!.map((found) => found.id), ["tax"]);
});

test("a bad document is named and the rest stored", { skip }, async () => {
  const name = await collection("bad");
  const given = [{ id: "a", text: "A dog." }, { id: "b", text: "" }, { id: "c", text: "A cat." }];
  const acks = await collect(client.index(name, given));
  assert.deepEqual(acks.map(({ ack }) => ack.rejectedDocuments.map((rejected) => [rejected.id, rejected.position])), [[["b", 1]]]);
  assert.equal((await client.documents.countDocuments({ collection: name })).numDocuments, 2n);
});

test("a stream goes on over broken connections: nothing lost, nothing twice", { skip }, async () => {
  const name = await collection("broken");
  const between = await relay(target);
  const through = connect(between.target);
  async function* documents(): AsyncGenerator<NewDocument> {
    for (let place = 0; place < 60; place += 1) yield { id: `d${place}`, text: `Document number ${place}.` };
  }
  let numAcks = 0;
  let last = 0;
  for await (const { ack, numDocuments } of through.index(name, documents(), { batchSize: 4 })) {
    numAcks += 1;
    last = numDocuments;
    assert.equal(ack.sequence, BigInt(numAcks));
    if (numAcks % 4 === 0) between.cut();
  }
  through.close();
  between.stop();
  assert.deepEqual([numAcks, last], [15, 60]);
  assert.equal((await client.documents.countDocuments({ collection: name })).numDocuments, 60n);
});

test("a call under which the connection breaks is sent again", { skip }, async () => {
  const between = await relay(target);
  const through = connect(between.target);
  await through.embed(["A dog."]);
  const call = through.embed(Array.from({ length: 64 }, (_, place) => `Document number ${place}.`));
  setImmediate(() => between.cut());
  assert.equal((await call).shape[0], 64);
  through.close();
  between.stop();
});

test("another program goes on where one stopped", { skip }, async () => {
  const name = await collection("resumed");
  const documents = Array.from({ length: 20 }, (_, place) => ({ id: `d${place}`, text: `Document number ${place}.` }));
  const first = client.index(name, documents, { batchSize: 4 });
  const { numDocuments, resumeToken } = (await first.next()).value!;
  await first.return();
  const rest = await collect(client.index(name, documents.slice(numDocuments), { batchSize: 4, resumeToken }));
  assert.equal(rest.at(-1)!.numDocuments, 16);
  assert.equal((await client.documents.countDocuments({ collection: name })).numDocuments, 20n);
});

test("errors of a real server have their code and field", { skip }, async () => {
  const expected = { name: "FacetsError", code: "INVALID_ARGUMENT", field: "texts[1]", requestId: /./ };
  await assert.rejects(client.embed(["a dog", " "]), expected);
  await assert.rejects(client.search("nowhere", ["a"]), { name: "FacetsError", code: "NOT_FOUND" });
  await assert.rejects(client.index("nowhere", [{ id: "a", text: "b" }]).next(), { code: "NOT_FOUND" });
});
