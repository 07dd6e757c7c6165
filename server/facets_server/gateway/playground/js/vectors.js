/** Small linear algebra on rows of one Float32Array: means, principal components, clusters by cosine. */

const POWER_STEPS = 24;

/** Rows `[count, dim]` of a FacetArray message, without those that are all zero. */
export function rowsOf(array) {
  const dim = array?.shape?.at(-1) ?? 0;
  const binary = atob(array?.data ?? "");
  const bytes = new Uint8Array(binary.length);
  for (let place = 0; place < binary.length; place += 1) bytes[place] = binary.charCodeAt(place);
  const numbers = new Float32Array(bytes.buffer);
  const rows = [];
  for (let row = 0; row * dim < numbers.length; row += 1) {
    const vector = numbers.subarray(row * dim, (row + 1) * dim);
    if (vector.some((number) => number !== 0)) rows.push({ row, vector });
  }
  return rows;
}

/** A FacetArray message of these vectors. */
export function arrayMessage(vectors) {
  const dim = vectors[0].length;
  const numbers = new Float32Array(vectors.length * dim);
  vectors.forEach((vector, row) => numbers.set(vector, row * dim));
  let binary = "";
  for (const byte of new Uint8Array(numbers.buffer)) binary += String.fromCharCode(byte);
  return { shape: [vectors.length, dim], dtype: "DATA_TYPE_FLOAT32", data: btoa(binary) };
}

export function dot(first, second) {
  let sum = 0;
  for (let place = 0; place < first.length; place += 1) sum += first[place] * second[place];
  return sum;
}

/** The vector at length 1, in place. */
export function normalized(vector) {
  const length = Math.sqrt(dot(vector, vector)) || 1;
  for (let place = 0; place < vector.length; place += 1) vector[place] /= length;
  return vector;
}

export function mean(vectors) {
  const sum = new Float32Array(vectors[0].length);
  for (const vector of vectors) for (let place = 0; place < sum.length; place += 1) sum[place] += vector[place];
  for (let place = 0; place < sum.length; place += 1) sum[place] /= vectors.length;
  return sum;
}

/**
 * The two directions along which vectors differ most, by power iteration.
 * @param {Float32Array[]} vectors
 * @param {Float32Array[]} [before] Directions of an earlier call: where to begin, so that a growing map does not flip.
 */
export function principalPlane(vectors, before = []) {
  const center = mean(vectors);
  const axes = [];
  for (const number of [0, 1]) {
    let axis = before[number] ?? vectors[number % vectors.length].map((value, place) => value - center[place]);
    for (let step = 0; step < POWER_STEPS; step += 1) axis = stretched(vectors, center, without(axis, axes));
    axes.push(axis);
  }
  return { center, axes };
}

/** The covariance times `axis`, at length 1. */
function stretched(vectors, center, axis) {
  const offset = dot(center, axis);
  const sum = new Float32Array(axis.length);
  for (const vector of vectors) {
    const weight = dot(vector, axis) - offset;
    for (let place = 0; place < sum.length; place += 1) sum[place] += weight * (vector[place] - center[place]);
  }
  return normalized(sum);
}

function without(axis, others) {
  const left = Float32Array.from(axis);
  for (const other of others) {
    const along = dot(left, other);
    for (let place = 0; place < left.length; place += 1) left[place] -= along * other[place];
  }
  return normalized(left);
}

/** Where a vector stands in a plane. */
export function project(vector, { center, axes }) {
  return axes.map((axis) => dot(vector, axis) - dot(center, axis));
}

/**
 * Clusters unit vectors by cosine; the same vectors always give the same clusters.
 * @returns {Float32Array[]} Their centers, at length 1.
 */
export function clusters(vectors, number, steps = 12) {
  let centers = spread(vectors, Math.min(number, vectors.length));
  const labels = new Int32Array(vectors.length);
  for (let step = 0; step < steps; step += 1) {
    vectors.forEach((vector, place) => (labels[place] = closest(vector, centers)));
    centers = centers.map((center, label) => {
      const mine = vectors.filter((_, place) => labels[place] === label);
      return mine.length ? normalized(mean(mine)) : center;
    });
  }
  return centers;
}

export function closest(vector, centers) {
  let best = 0;
  let highest = -Infinity;
  centers.forEach((center, place) => {
    const cosine = dot(vector, center);
    if (cosine > highest) [best, highest] = [place, cosine];
  });
  return best;
}

/** First centers far from one another (k-means++), drawn with a fixed seed. */
function spread(vectors, number) {
  const random = generator(7);
  const centers = [vectors[Math.floor(random() * vectors.length)]];
  const distances = new Float32Array(vectors.length).fill(Infinity);
  while (centers.length < number) {
    let total = 0;
    vectors.forEach((vector, place) => {
      distances[place] = Math.min(distances[place], Math.max(0, 1 - dot(vector, centers.at(-1))) ** 2);
      total += distances[place];
    });
    let left = random() * total;
    const chosen = distances.findIndex((distance) => (left -= distance) < 0);
    centers.push(vectors[chosen < 0 ? vectors.length - 1 : chosen]);
  }
  return centers;
}

/** Numbers in [0, 1), the same ones for the same seed. */
function generator(seed) {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}
