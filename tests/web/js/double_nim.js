/** Nim in which the players move in the order 0 1 1 0 0 1 1 0 0 …: the game MOVES_TWICE of tests/support/games.py. */

const playerAt = (ply) => Math.floor((ply + 1) / 2) % 2;

export default {
  name: 'nim of double moves',
  numActions: 3,
  observationShape: [13],
  maxPlies: 12,
  labels: ['take 1', 'take 2', 'take 3'],
  initial: () => ({heap: 12, ply: 0}),
  step: ({heap, ply}, action) => ({heap: heap - 1 - action, ply: ply + 1}),
  legal: ({heap}) => [0, 1, 2].slice(0, heap),
  toPlay: ({ply}) => playerAt(ply),
  // Who moved last has won.
  outcome: ({heap, ply}) => ({ended: heap === 0, result: heap === 0 ? 1 - 2 * playerAt(ply - 1) : 0}),
  observe({heap, ply}, out) {
    out.fill(0);
    out[heap] = 1 + (ply % 2);
  },
  progress: ({ply}) => ply / 12,
  key: ({heap, ply}) => `${heap} ${ply}`,
  fromWords: ([heap, ply]) => ({heap: Number(heap), ply: Number(ply)}),
  toWords: ({heap, ply}) => [String(heap), String(ply)],
  text: ({heap, ply}) => `${heap} ${ply}`,
};
