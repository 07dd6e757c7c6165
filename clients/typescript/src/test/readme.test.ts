/** Checks the types and the behaviour of the README example. */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import ts from "typescript";

const target = process.env["FACETS_TARGET"];
const root = new URL("../../", import.meta.url);

test("the example of the README runs", { skip: target === undefined && "FACETS_TARGET names no server" }, (context) => {
  const example = /```ts\n(.*?)```/s.exec(readFileSync(new URL("README.md", root), "utf8"))![1]!;
  const source = new URL("dist/test/example.ts", root).pathname;
  const compiled = source.replace(/ts$/, "js");
  context.after(() => [source, compiled].forEach((path) => rmSync(path, { force: true })));
  writeFileSync(source, example.replace("localhost:50051", target!).replaceAll('"notes"', `"notes-${Date.now()}"`));
  const settings = { strict: true, target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.NodeNext, skipLibCheck: true };
  const program = ts.createProgram([source], settings);
  const problems = ts.getPreEmitDiagnostics(program).map((problem) => ts.flattenDiagnosticMessageText(problem.messageText, "\n"));
  assert.deepEqual(problems, []);
  program.emit();
  const lines = execFileSync(process.execPath, [compiled], { encoding: "utf8" }).trim().split("\n");
  assert.equal(lines[0], "2 stored");
  assert.match(lines[1]!, /^tax [\d.]+ .*April/);
});
