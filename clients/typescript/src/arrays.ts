import { DataType, type FacetArray, type Span } from "./generated/facets_proto/v1/common_pb.js";

/** Facets of texts: `data` has `shape[0] * shape[1] * shape[2]` numbers, row-major. */
export class Facets {
  constructor(
    /** `[texts, facets, dim]`. */
    readonly shape: readonly [number, number, number],
    readonly data: Float32Array,
  ) {}

  /** A view of one facet of one text: `dim` numbers. */
  facet(text: number, facet: number): Float32Array {
    const [texts, facets, dim] = this.shape;
    if (!(text >= 0 && text < texts && facet >= 0 && facet < facets)) {
      throw new RangeError(`facet(${text}, ${facet}) is out of range: ${texts} texts of ${facets} facets`);
    }
    const start = (text * facets + facet) * dim;
    return this.data.subarray(start, start + dim);
  }
}

/** Concatenates arrays along the texts. */
export function joinFacets(parts: readonly Facets[]): Facets {
  const [, facets, dim] = parts[0]?.shape ?? [0, 0, 0];
  const data = new Float32Array(parts.reduce((total, part) => total + part.data.length, 0));
  let offset = 0;
  for (const part of parts) {
    data.set(part.data, offset);
    offset += part.data.length;
  }
  return new Facets([parts.reduce((total, part) => total + part.shape[0], 0), facets, dim], data);
}

/** Reads an array in the wire format, little-endian float32, on machines of any byte order. */
export function readFacets(array: FacetArray | undefined): Facets {
  const [texts = 0, facets = 0, dim = 0] = array?.shape ?? [];
  if (!array || array.dtype !== DataType.FLOAT32 || array.data.length !== 4 * texts * facets * dim) {
    throw new RangeError(`expected float32 numbers of shape ${array?.shape ?? "?"}, got ${array?.data.length ?? 0} bytes`);
  }
  const view = new DataView(array.data.buffer, array.data.byteOffset, array.data.byteLength);
  const data = Float32Array.from({ length: texts * facets * dim }, (_, index) => view.getFloat32(4 * index, true));
  return new Facets([texts, facets, dim], data);
}

/**
 * The part of a text that a span covers; empty without a span.
 *
 * Spans count Unicode code points and JavaScript strings count UTF-16 units, so `text.slice` is wrong after an emoji.
 */
export function partOf(text: string, span: Span | undefined): string {
  return span ? Array.from(text).slice(span.start, span.end).join("") : "";
}
