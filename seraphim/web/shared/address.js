/** A position as the fragment of a link: model, snapshot, start and moves. */

/**
 * @typedef {object} Address
 * @property {string | null} model
 * @property {string | null} snapshot
 * @property {string[] | null} start words of a state
 * @property {string | null} board a board diagram, if the words are not known
 * @property {string} moves of the whole line, as `writeMoves` wrote them
 * @property {number | null} ply number of moves that lead to the current position; null for all
 */

/**
 * @param {Partial<Address>} address
 * @returns {string} `#model=connectfour&moves=4453`
 */
export function writeAddress({model, snapshot, start, board, moves, ply}) {
  const parts = Object.entries({model, snapshot, start: start?.join(','), board, moves, ply})
    .filter(([, value]) => value !== null && value !== undefined && value !== '')
    .map(([name, value]) => `${name}=${encodeURIComponent(String(value)).replaceAll('%2C', ',')}`);
  return `#${parts.join('&')}`;
}

/**
 * @param {string} hash `#…`, or a whole link that ends with it
 * @returns {Address}
 */
export function readAddress(hash) {
  const parts = new URLSearchParams(hash.slice(hash.indexOf('#') + 1));
  const ply = Number.parseInt(parts.get('ply') ?? '', 10);
  const start = parts.get('start');
  return {
    model: parts.get('model'),
    snapshot: parts.get('snapshot'),
    start: start ? start.split(',') : null,
    board: parts.get('board'),
    moves: parts.get('moves') ?? '',
    ply: Number.isNaN(ply) ? null : ply,
  };
}

/**
 * Write moves by their labels, separated by commas; single-character labels are joined.
 * @param {number[]} actions
 * @param {string[]} labels of all actions of the game
 * @returns {string}
 */
export function writeMoves(actions, labels) {
  const names = namesOf(labels);
  return actions.map((action) => names[action]).join(isTerse(labels) ? '' : ',');
}

/**
 * The inverse of `writeMoves`.
 * @param {string} text
 * @param {string[]} labels
 * @returns {number[]}
 * @throws {Error} a word is not a move
 */
export function readMoves(text, labels) {
  const names = namesOf(labels);
  const words = isTerse(labels) ? [...text.replaceAll(/[\s,]/g, '')] : text.split(',').filter((word) => word.trim());
  return words.map((word) => {
    const action = names.indexOf(word.trim());
    if (action < 0) throw new Error(`“${word}” is not a move of this game: moves look like ${labels[0]}.`);
    return action;
  });
}

/**
 * @param {string[]} labels
 * @returns {string[]} names of actions in a link: their numbers if a label contains a comma
 */
const namesOf = (labels) =>
  labels.some((label) => label.includes(',')) ? labels.map((_, action) => String(action)) : labels;

/**
 * @param {string[]} labels
 * @returns {boolean}
 */
const isTerse = (labels) => labels.every((label) => label.length === 1);
