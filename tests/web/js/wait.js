/** The player to move waits or ends the game; who only waits is cut off: the game `Wait` of tests/support/games.py. */

const OVER = 2;

export default {
  name: 'wait',
  numActions: 2,
  observationShape: [1],
  maxPlies: 40,
  labels: ['wait', 'end'],
  initial: () => 0,
  step: (state, action) => (action === 1 ? OVER : 1 - state),
  legal: () => [0, 1],
  toPlay: (state) => state % 2,
  outcome: (state) => ({ended: state === OVER, result: 0}),
  observe(state, out) {
    out[0] = state;
  },
  key: String,
  fromWords: ([state]) => Number(state),
  toWords: (state) => [String(state)],
  text: String,
};
