/** Conditions on payload fields, written as the command takes them: `topic=sport; year>=2015; !draft`. */

const CONDITION = /^((?:"[^"]*"|[^=!<>~])+?)\s*(!=|<=|>=|=|<|>|~)\s*(.*)$/s;
const BOUNDS = new Map([["<", "lt"], ["<=", "lte"], [">", "gt"], [">=", "gte"]]);

/** The Filter message that requires all conditions; undefined without conditions. */
export function filterOf(text = "") {
  const conditions = text.match(/(?:"(?:\\.|[^"\\])*"|[^;])+/g) ?? []; // semicolons in quotes separate nothing
  const filters = conditions.map((condition) => condition.trim()).filter(Boolean).map(conditionOf);
  return filters.length ? { allOf: { filters } } : undefined;
}

/** The condition that a field has a value. */
export function equals(name, value) {
  const isPlain = typeof value !== "string" || (scalarOf(value) === value && !/[;|"]/.test(value));
  return `${name.includes(".") ? `"${name}"` : name}=${isPlain ? value : JSON.stringify(value)}`;
}

function conditionOf(condition) {
  const [, field, operator, value] = CONDITION.exec(condition) ?? [];
  if (!operator) return { field: { field: condition.replace(/^!\s*/, ""), exists: !condition.startsWith("!") } };
  const scalar = scalarOf(value);
  if (BOUNDS.has(operator)) return { field: { field, [typeof scalar === "number" ? "range" : "stringRange"]: { [BOUNDS.get(operator)]: scalar } } };
  if (operator === "~") return { field: { field, contains: scalar } };
  const filter = { field: { field, equals: scalar } };
  return operator === "=" ? filter : { noneOf: { filters: [filter] } };
}

/** A number, true or false as such; anything else, and what stands in quotes, is a string. */
function scalarOf(text) {
  try {
    const value = JSON.parse(text);
    return ["string", "number", "boolean"].includes(typeof value) ? value : text;
  } catch {
    return text;
  }
}
