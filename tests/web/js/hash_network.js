/** The network HashNetwork of tests/web/test_js_search.py: integers of 24 bits, so that both compute the same numbers. */

function scrambled(bits) {
  let mixed = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return ((mixed ^ (mixed >>> 16)) >>> 8) / 2 ** 24;
}

export function evaluate(game, observation) {
  let bits = 0x811c9dc5;
  for (const count of observation) bits = Math.imul(bits ^ count, 0x01000193);
  const columns = game.numPlayers > 2 ? game.numPlayers : 1;
  const outputs = Array.from({length: game.numActions + columns}, (_, k) => scrambled(bits + Math.imul(k + 1, 0x9e3779b9)));
  const values = outputs.splice(game.numActions).map((number) => Math.fround(2 * number - 1));
  return {logits: outputs.map((number) => Math.fround(6 * number - 3)), value: columns > 1 ? values : values[0]};
}
