/** The game Banked of tests/support/three_players.py: three players, a die that decides what goes, and a bank. */

const CHANCE = -1;

export default {
  name: 'banked',
  numActions: 2,
  numPlayers: 3,
  numChanceOutcomes: 3,
  observationShape: [20],
  maxPlies: 60,
  valueScale: 0.5,
  labels: ['1', '2'],
  initial: () => ({pile: 9, player: 0, asked: 0, taken: [0, 0, 0]}),
  step({pile, player, asked, taken}, action) {
    if (!asked) return {pile, player, asked: action + 1, taken};
    const left = Math.max(pile - asked * (action + 1), 0);
    return {pile: left, player: (player + 1) % 3, asked: 0, taken: taken.with(player, taken[player] + pile - left)};
  },
  legal: ({pile, asked}) => [0, 1].filter((action) => !asked && pile > action),
  toPlay: ({player, asked}) => (asked ? CHANCE : player),
  chances: ({asked}) => (asked ? [0.75, 0.25, 0] : [0, 0, 0]),
  chanceLabel: (_state, outcome) => String(outcome),
  outcome(state) {
    const banked = this.banked(state);
    const result = banked.map((each, player) => Math.fround(0.5 * [-1, 0, 1][(player - state.player + 3) % 3] + each));
    return {ended: state.pile === 0 && !state.asked, result};
  },
  banked: ({taken}) => taken.map((each) => Math.fround(each / 50)),
  observe({pile}, out) {
    for (let place = 0; place < 20; place += 1) out[place] = pile === place ? 1 : 0;
  },
  key: ({pile}) => `${pile}`, // all that the network sees
  text: ({pile}) => `${pile}`,
  fromWords(words) {
    const [pile, player, asked, ...taken] = words.map(Number);
    return {pile, player, asked, taken};
  },
  toWords: ({pile, player, asked, taken}) => [pile, player, asked, ...taken].map(String),
};
