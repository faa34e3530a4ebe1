/** The hashes by which chance draws in the search, the same as in seraphim/search/rng.py: of 64 bits, as BigInt. */

const INCREMENT = 0x9e3779b97f4a7c15n;
const [FIRST, SECOND] = [0xbf58476d1ce4e5b9n, 0x94d049bb133111ebn];
const BELOW_ONE = 1 - 2 ** -53;

const wrap = (bits) => BigInt.asUintN(64, bits);

function hash(key, counter) {
  let bits = wrap(key + (counter + 1n) * INCREMENT);
  bits = wrap((bits ^ (bits >> 30n)) * FIRST);
  bits = wrap((bits ^ (bits >> 27n)) * SECOND);
  return bits ^ (bits >> 31n);
}

/** The key of a new stream for a key and a counter. */
export const fork = (key, counter) => hash(hash(key, BigInt(counter)), FIRST);

/** The first number of a stream, uniform in the open interval (0, 1). */
export const uniform = (key) => Math.min((Number(hash(key, 0n) >> 11n) + 0.5) * 2 ** -53, BELOW_ONE);
