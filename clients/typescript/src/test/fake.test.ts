/** Tests the client with slow, full and unreachable servers, which run in this process. */
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import type { DescService } from "@bufbuild/protobuf";
import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import { connect, partOf, type ConnectOptions, type FacetsClient } from "../index.js";
import { readFacets } from "../arrays.js";
import { CollectionService, DocumentService } from "../generated/facets_proto/v1/documents_pb.js";
import { EmbeddingService } from "../generated/facets_proto/v1/texts_pb.js";
import { BadRequestSchema, ErrorInfoSchema, RetryInfoSchema } from "../generated/google/rpc/error_details_pb.js";
import { pauseBefore } from "../retry.js";
import { serve } from "./fake.js";

/** A client of a server with these handlers of one service. */
async function fake<Service extends DescService>(
  context: TestContext, service: Service, handlers: Partial<ServiceImpl<Service>>, options: ConnectOptions = {},
): Promise<FacetsClient> {
  const server = await serve((router) => router.service(service, handlers));
  const client = connect(server.target, options);
  context.after(() => (client.close(), server.stop()));
  return client;
}

const full = (pushback: string): ConnectError =>
  new ConnectError("full", Code.ResourceExhausted, { "grpc-retry-pushback-ms": pushback });

test("a transient error is retried, unless the server forbids it or attempts run out", async (context) => {
  let calls = 0;
  let fail: (call: number) => string | undefined;
  const client = await fake(context, CollectionService, {
    listCollections() {
      const pushback = fail((calls += 1));
      if (pushback !== undefined) throw full(pushback);
      return { collections: [{ name: "wiki" }] };
    },
  }, { maxAttempts: 3 });
  fail = (call) => (call < 3 ? "1" : undefined);
  const { collections } = await client.collections.listCollections({});
  assert.deepEqual([calls, collections.map((collection) => collection.name)], [3, ["wiki"]]);
  fail = () => "-1";
  await assert.rejects(client.collections.listCollections({}), { name: "FacetsError", code: "RESOURCE_EXHAUSTED" });
  assert.equal(calls, 4);
  fail = () => "1";
  await assert.rejects(client.collections.listCollections({}), { retryAfterMs: 1 });
  assert.equal(calls, 7);
});

test("a call ends at its deadline, whether it is retried or not answered, and at once when it is cancelled", async (context) => {
  const client = await fake(context, CollectionService, {
    listCollections() {
      throw full("3600000");
    },
    async getCollection(_, call) {
      await new Promise((resolve) => call.signal.addEventListener("abort", resolve));
      return {};
    },
  }, { timeoutMs: 300 });
  const controller = new AbortController();
  const cases = [
    ["DEADLINE_EXCEEDED", client.collections.listCollections({})],
    ["DEADLINE_EXCEEDED", client.collections.getCollection({ name: "a" })],
    ["CANCELED", client.collections.listCollections({}, { signal: controller.signal })],
  ] as const;
  controller.abort();
  await Promise.all(cases.map(([code, call]) => assert.rejects(call, { name: "FacetsError", code })));
});

test("a permanent error has its code, field, reason and request id, and is not retried", async (context) => {
  let calls = 0;
  const client = await fake(context, EmbeddingService, {
    embed() {
      calls += 1;
      throw new ConnectError("texts[1] is empty", Code.InvalidArgument, { "x-request-id": "r-7" }, [
        { desc: ErrorInfoSchema, value: { reason: "TEXT_EMPTY", domain: "facets.dev" } },
        { desc: BadRequestSchema, value: { fieldViolations: [{ field: "texts[1]", description: "is empty" }] } },
      ]);
    },
  });
  const expected = { code: "INVALID_ARGUMENT", field: "texts[1]", reason: "TEXT_EMPTY", requestId: "r-7" };
  await assert.rejects(client.embed(["a", ""]), { name: "FacetsError", message: "texts[1] is empty", ...expected });
  assert.equal(calls, 1);
});

test("the key is sent with every call", async (context) => {
  const seen: (string | null)[] = [];
  const client = await fake(context, DocumentService, {
    search(_, call) {
      seen.push(call.requestHeader.get("authorization"));
      return { results: [] };
    },
    async *upsertStream(requests, call) {
      seen.push(call.requestHeader.get("authorization"));
      for await (const { message } of requests) {
        if (message.case === "open") yield { message: { case: "opened" as const, value: {} } };
      }
    },
  }, { apiKey: "secret" });
  await client.search("wiki", ["a"]);
  for await (const _ of client.index("wiki", [])) assert.fail("nothing was sent");
  assert.deepEqual(seen, ["Bearer secret", "Bearer secret"]);
});

test("a stream that does not open, or is not acknowledged, ends with an error", async (context) => {
  let opened = 0;
  const client = await fake(context, DocumentService, {
    async *upsertStream(_, call) {
      opened += 1;
      if (opened <= 3) throw new ConnectError("starting", Code.Unavailable, { "grpc-retry-pushback-ms": "1" });
      yield { message: { case: "opened" as const, value: { maxUnackedBatches: 2 } } };
      await new Promise((resolve) => call.signal.addEventListener("abort", resolve));
    },
  });
  const acks = client.index("wiki", [{ id: "a", text: "b" }], { maxAttempts: 3 });
  await assert.rejects(acks.next(), { name: "FacetsError", code: "UNAVAILABLE", message: "starting" });
  assert.equal(opened, 3);
  const late = client.index("wiki", [{ id: "a", text: "b" }], { timeoutMs: 200 });
  await assert.rejects(late.next(), { name: "FacetsError", code: "DEADLINE_EXCEEDED" });
  const source = (async function* (): AsyncGenerator<never> { throw new ConnectError("no source", Code.Unavailable); })();
  await assert.rejects(client.index("wiki", source).next(), { name: "FacetsError", message: "no source" });
});

test("an unreachable server is UNAVAILABLE", async () => {
  const server = await serve(() => {});
  server.stop();
  const client = connect(server.target, { maxAttempts: 1 });
  await assert.rejects(client.embed(["a"]), { name: "FacetsError", code: "UNAVAILABLE" });
  client.close();
});

test("pauses follow the server, or grow up to a limit", () => {
  const info = { desc: RetryInfoSchema, value: { retryDelay: { seconds: 2n, nanos: 500_000_000 } } };
  assert.equal(pauseBefore(new ConnectError("full", Code.ResourceExhausted, undefined, [info]), 1), 2500);
  const plain = new ConnectError("gone", Code.Unavailable);
  assert.deepEqual([1, 2, 3, 20].map((attempt) => pauseBefore(plain, attempt, () => 1)), [100, 200, 400, 5000]);
});

test("invalid targets and texts are rejected before anything is sent", async () => {
  for (const target of ["http://localhost", "", "localhost:port", "a b", "host:1:2:x y"]) {
    assert.throws(() => connect(target), TypeError, target);
  }
  for (const target of ["localhost", "10.0.0.7:443", "::1", "[::1]:50052"]) connect(target).close();
  const client = connect();
  await assert.rejects(client.embed("one text" as unknown as string[]), /texts must be an array/);
  await assert.rejects(client.search("wiki", "goats" as unknown as string[]), /queries must be an array/);
  client.close();
});

test("spans count characters, not UTF-16 units", () => {
  const span = { start: 2, end: 5, field: "", text: "", problem: "", columns: [], cells: [], $typeName: "facets.v1.Span" as const };
  assert.equal(partOf("🐘 owl", span), "owl");
  assert.equal(partOf("owl", undefined), "");
});

test("arrays are read at any offset, and damaged ones rejected", () => {
  const bytes = new Uint8Array(9);
  new DataView(bytes.buffer).setFloat32(1, 1.5, true);
  new DataView(bytes.buffer).setFloat32(5, -2, true);
  const array = { $typeName: "facets.v1.FacetArray" as const, shape: [1, 1, 2], dtype: 1, data: bytes.subarray(1) };
  const facets = readFacets(array);
  assert.deepEqual([...facets.facet(0, 0)], [1.5, -2]);
  assert.throws(() => facets.facet(0, 1), RangeError);
  assert.throws(() => readFacets({ ...array, shape: [1, 2, 2] }), RangeError);
});
