/**
 * The messages between pages and engines, as in seraphim/server/searcher/messages.py: checks requests, writes positions
 * and analyses. Invalid requests throw an Error.
 */

const MOST_READOUTS = 100_000;
const MOST_LINES = 1e10; // of play in a game that is solved: tic-tac-toe has fewer, and 5,478 positions
const LONGEST_VARIATION = 17;

const isText = (value) => typeof value === 'string';
const isList = (value, holds) => Array.isArray(value) && value.every(holds);

const CHECKS = {
  model: [isText, 'text'],
  snapshot: [(value) => value === null || isText(value), 'null or text'],
  start: [(value) => value === null || isList(value, isText), 'null or a list of words in decimal, each as text'],
  moves: [(value) => isList(value, Number.isInteger), 'a list of actions, each an int'],
  readouts: [
    (value) => Number.isInteger(value) && value >= 1 && value <= MOST_READOUTS,
    `an int from 1 to ${MOST_READOUTS.toLocaleString('en')}`,
  ],
  text: [isText, 'text'],
};

const FIELDS = {
  open: ['model', 'snapshot'],
  position: ['start', 'moves'],
  think: ['readouts'],
  stop: [],
  load: ['text'],
  solve: [],
};

/** Returns a checked request, with null for missing optional fields. */
export function checkRequest(message) {
  if (!Number.isInteger(message?.id)) throw new Error('a message must have an int id');
  const fields = Object.hasOwn(FIELDS, message.type) ? FIELDS[message.type] : null;
  if (fields === null) throw new Error(`type must be one of ${Object.keys(FIELDS).join(', ')}, not ${message.type}`);
  const request = {id: message.id, type: message.type};
  for (const name of fields) {
    const value = message[name] ?? null;
    const [holds, expected] = CHECKS[name];
    if (!holds(value)) throw new Error(`${name} must be ${expected}, not ${JSON.stringify(message[name])}`);
    request[name] = value;
  }
  return request;
}

const isChance = (game, state) => game.toPlay(state) < 0;

/** The legal actions; or where chance moves the possible outcomes. */
function followers(game, state) {
  if (!isChance(game, state)) return game.legal(state);
  return game.chances(state).flatMap((chance, outcome) => (chance > 0 ? [outcome] : []));
}

/** The label of an action, or of an outcome where chance moves. */
function labelIn(game, state, action) {
  if (isChance(game, state)) return game.chanceLabel(state, action);
  return game.labelIn?.(state, action) ?? game.labels[action];
}

const isForMany = (game) => game.numPlayers > 2;

/** The moves of a position, each with the player who made it, or CHANCE; null where positions tell the players. */
function toPlayed(game, start, moves) {
  if (!game.chances && !isForMany(game)) return moves.map((action) => ({label: game.labels[action], player: null}));
  let state = start === null ? game.initial() : game.fromWords(start);
  return moves.map((action) => {
    const played = {label: labelIn(game, state, action), player: game.toPlay(state)};
    state = game.step(state, action);
    return played;
  });
}

/** Returns the state that a client's start and moves lead to. */
export function toState(game, start, moves) {
  if (moves.length > game.maxPlies) {
    throw new Error(`a game of ${game.name} has at most ${game.maxPlies} moves, not ${moves.length}`);
  }
  let state = start === null ? game.initial() : checkedStart(game, start);
  for (const [place, action] of moves.entries()) {
    if (!followers(game, state).includes(action)) {
      const label = (isChance(game, state) ? null : game.labels[action]) ?? action;
      throw new Error(`move ${place + 1}, ${label}, is not legal in this game of ${game.name}`);
    }
    state = game.step(state, action);
  }
  return state;
}

/** A start is valid if parsing its own diagram gives it back. */
function checkedStart(game, start) {
  if (!game.fromDrawing) throw new Error(`games of ${game.name} begin with the initial position: start must be null`);
  try {
    const state = game.fromDrawing(game.text(game.fromWords(start)));
    if (game.toWords(state).join() === start.join()) return state;
  } catch {
    // rules may throw anything on invalid words
  }
  throw new Error(`start is not a position of ${game.name}: ${start.join(' ')}`);
}

/** Whether the game has ended or is cut off. */
export const isOver = (game, {state, moves}) => game.outcome(state).ended || moves.length >= game.maxPlies;

/** Throws an error if no player moves in a position; `purpose` is what for. */
export function checkUnfinished(game, line, purpose) {
  if (isOver(game, line)) throw new Error(`the game is over here: there is nothing to ${purpose}`);
  if (isChance(game, line.state)) {
    throw new Error(`chance moves here: there is nothing to ${purpose} before its outcome is known`);
  }
}

export const toGameInfo = (game) => ({
  name: game.name,
  goal: game.goal ?? '',
  num_players: game.numPlayers ?? 2,
  chance: Boolean(game.chances),
  points: game.points ?? null,
  num_actions: game.numActions,
  max_plies: game.maxPlies,
  labels: game.labels,
  reads_drawings: Boolean(game.fromDrawing),
  labels_vary: Boolean(game.chances),
  solved: !isForMany(game) && game.numActions ** game.maxPlies <= MOST_LINES, // by exhaustive search, which has to end soon
  by_turns: false,
});

export function toPosition(game, {start, moves, state}) {
  const {ended, result} = game.outcome(state);
  const over = isOver(game, {state, moves});
  const legal = over ? [] : followers(game, state);
  const played = toPlayed(game, start, moves);
  const chances = isChance(game, state) ? game.chances(state) : null;
  const [first] = [result].flat();
  return {
    start,
    moves,
    to_play: game.toPlay(state),
    ended: over,
    result: ended ? first : null,
    ...(isForMany(game) && {results: ended ? result : null}),
    legal,
    chances: chances && Object.fromEntries(legal.map((outcome) => [outcome, chances[outcome]])),
    labels: Object.fromEntries(legal.map((action) => [action, labelIn(game, state, action)])),
    banked: game.banked?.(state) ?? null,
    played: played.map(({label}) => label),
    players: played.map(({player}) => player),
    board: game.board?.(state) ?? null,
    text: game.text(state),
    last: moves.at(-1) ?? null,
    line: game.line?.(state) ?? [],
  };
}

/** The state of a search; `readouts` and `seconds` are those of the running request. */
export function toAnalysis(game, search, readouts, seconds, done) {
  const isFirst = game.toPlay(search.state) === 0;
  const {values} = search;
  return {
    readouts: search.visits,
    value: search.value,
    value_first: values ? values[0] : isFirst ? search.value : -search.value,
    ...(values && {values}),
    best: search.best,
    seconds,
    readouts_per_second: Math.round(readouts / Math.max(seconds, 1e-6)),
    proven: search.proven,
    candidates: search.candidates.map((candidate) => {
      const actions = candidate.variation.slice(0, LONGEST_VARIATION);
      const variation = labelsAlong(game, search.state, actions);
      return {...candidate, label: variation[0], variation, actions};
    }),
    done,
  };
}

function labelsAlong(game, start, actions) {
  let state = start;
  return actions.map((action) => {
    const label = labelIn(game, state, action);
    state = game.step(state, action);
    return label;
  });
}

/** Parses moves by their labels, or a board diagram; returns `start` and `moves` as in `toPosition`. */
export function readText(game, text) {
  if (/^\s*\(\s*;|^game: /m.test(text)) {
    throw new Error(
      'saved games and SGF are read by the server’s page (seraphim serve): paste moves, a link or a board diagram here',
    );
  }
  const rows = text.trim().replaceAll('/', '\n').split('\n');
  let moves;
  try {
    moves = toMoves(game, text);
  } catch (error) {
    if (rows.length === 1 || !game.fromDrawing) throw error;
    return {start: game.toWords(game.fromDrawing(text)), moves: []};
  }
  toState(game, null, moves);
  return {start: null, moves};
}

/** Labels with spaces or commas between them; single-character labels may also be joined. */
function toMoves(game, text) {
  if (game.chances) return toMovesOfChance(game, text);
  const labels = game.labels.map((label) => label.toLowerCase());
  const parts = text.toLowerCase().split(/[\s,]+/).filter(Boolean);
  const alone = labels.every((label) => label.length === 1);
  return (alone ? [...parts.join('')] : parts).map((part, place) => {
    const action = labels.indexOf(part);
    if (action === -1) {
      throw new Error(`move ${place + 1} is ${part}, not a move of ${game.name}: expected one like ${game.labels[0]}`);
    }
    return action;
  });
}

/** Labels of moves and of outcomes, each as it is called in its position. */
function toMovesOfChance(game, text) {
  let state = game.initial();
  return text.split(/[\s,]+/).filter(Boolean).map((part, place) => {
    const possible = followers(game, state);
    const labels = possible.map((action) => labelIn(game, state, action));
    const exact = labels.indexOf(part);
    const index = exact >= 0 ? exact : labels.findIndex((label) => label.toLowerCase() === part.toLowerCase());
    if (index < 0) {
      const expected = labels.length ? `one like ${labels[0]}` : 'none, as the game is over';
      throw new Error(`move ${place + 1} is ${part}, not a move here: expected ${expected}`);
    }
    state = game.step(state, possible[index]);
    return possible[index];
  });
}
