/** Formats numbers and names for people. */

/** @typedef {import('./types.js').Board} Board */

const NUMBER = new Intl.NumberFormat('en', {maximumFractionDigits: 0});
const ORDINALS = ['First', 'Second', 'Third', 'Fourth', 'Fifth', 'Sixth', 'Seventh', 'Eighth'];
const MANY_POINTS = 100; // of which a hundredth tells nothing
const POINTS = new Intl.NumberFormat('en', {maximumFractionDigits: 1});

/**
 * @param {number} count
 * @returns {string} `12,345`
 */
export const formatCount = (count) => NUMBER.format(count);

/**
 * @param {number} count
 * @returns {string} `345`, `1,234`, `12.3k`, `1.2M`: at most five characters
 */
export function formatShort(count) {
  if (count < 10_000) return formatCount(count);
  return count < 1_000_000 ? `${(count / 1000).toFixed(count < 100_000 ? 1 : 0)}k` : `${(count / 1e6).toFixed(1)}M`;
}

/**
 * @param {number} share in [0, 1]
 * @returns {string} `57%`; `<1%` for a small share above 0
 */
export function formatShare(share) {
  const percent = Math.round(100 * share);
  return percent === 0 && share > 0 ? '<1%' : `${percent}%`;
}

/**
 * @param {number} value in [-1, 1]
 * @returns {string} `+0.42`, with a true minus sign
 */
export function formatValue(value) {
  const digits = Math.abs(value).toFixed(2);
  if (digits === '0.00') return '0.00';
  return `${value < 0 ? '−' : '+'}${digits}`;
}

/**
 * @param {number} count of points, perhaps expected
 * @returns {string} `1,234`, `−8.4`, with a true minus sign
 */
export const formatPoints = (count) => POINTS.format(count).replace('-', '−');

/**
 * @param {number} value
 * @param {number | null} points that a value of 1 is for people; null if it is none
 * @returns {string} `+0.42`, or in points
 */
export const formatWorth = (value, points) =>
  points === null || points < MANY_POINTS ? formatValue((points ?? 1) * value) : formatPoints(points * value);

/**
 * @param {number} seconds
 * @returns {string} `0.25 s`, `12.3 s`
 */
export const formatSeconds = (seconds) => `${seconds.toFixed(seconds < 1 ? 2 : 1)} s`;

/**
 * @param {number} value expected result in [-1, 1]
 * @returns {number} expected points in [0, 1]; a draw is 0.5
 */
export const toPoints = (value) => (1 + value) / 2;

/**
 * @param {import('./types.js').Exact} exact
 * @returns {{short: string, long: string, tone: 'win' | 'draw' | 'loss'}}
 */
export function formatExact({result, best, plies, proven}) {
  if (result === null) return best ? {short: '●', long: 'best', tone: 'draw'} : {short: '', long: '–', tone: 'draw'};
  const tone = result > 0 ? 'win' : result < 0 ? 'loss' : 'draw';
  if (tone === 'draw') return {short: 'D', long: 'draw', tone};
  const after = plies === null ? '' : ` in ${proven ? '≤ ' : ''}${plies}`;
  return {short: `${tone === 'win' ? 'W' : 'L'}${plies ?? ''}`, long: `${tone}${after}`, tone};
}

/**
 * Return a game's title.
 * @param {string} name of its package
 * @returns {string}
 */
export function gameTitle(name) {
  const titles = /** @type {Record<string, string>} */ ({
    connectfour: 'Connect four',
    threes: 'Tic-tac-toe for three',
    tictactoe: 'Tic-tac-toe',
  });
  if (name.startsWith('twenty48')) return name.replace('twenty48:', '2048 on ').replace('twenty48', '2048').replace('x', '×');
  const last = name.replace(/^openspiel:|\(.*/g, '').split('.').at(-1) ?? name;
  return titles[name] ?? last.charAt(0).toUpperCase() + last.slice(1).replaceAll('_', ' ');
}

/**
 * Name the players by what one sees: as their board does, by the colors of their stones, else by their marks.
 * @param {import('../board/geometry.js').Style} style
 * @param {Board | null} board
 * @param {boolean} flipped whether the colors are swapped
 * @param {number} [count] of players; with more than two, the colors stay
 * @returns {string[]}
 */
export function playerNames(style, board, flipped, count = 2) {
  if (count === 1) return ['Player'];
  if (count > 2) return board?.marks.length === count ? board.marks : ORDINALS.slice(0, count);
  if (board?.players) return flipped ? [board.players[1], board.players[0]] : board.players;
  if (style === 'rack') return flipped ? ['Yellow', 'Red'] : ['Red', 'Yellow'];
  if (style === 'hexagons' || style === 'race') return flipped ? ['Orange', 'Blue'] : ['Blue', 'Orange'];
  if (style === 'stones') return flipped ? ['White', 'Black'] : ['Black', 'White'];
  return board && board.marks.length === 2 ? [board.marks[0], board.marks[1]] : ['First', 'Second'];
}

/**
 * @param {number} player
 * @returns {string} `first`
 */
export const ordinal = (player) => ORDINALS[player].toLowerCase();

/**
 * @param {number | number[]} result for player 0, with more than two for each
 * @returns {number[]} who has the most; all of them if it is a draw
 */
export function winnersOf(result) {
  const results = typeof result === 'number' ? [result, -result] : result;
  const most = Math.max(...results);
  return [...results.keys()].filter((player) => results[player] === most);
}

/**
 * @param {number | number[] | null} result for player 0, with more than two for each; null if the game was cut off
 * @param {string[]} names
 * @param {number | null} [points] that a result of 1 is for people
 * @returns {string} `Red wins`, `X and Z share first place`; of one player `480 points`
 */
export function formatResult(result, names, points = null) {
  if (result === null) return 'Cut off';
  if (typeof result === 'number' && names.length === 1) return points === null ? `Result ${formatValue(result)}` : `${formatPoints(points * result)} points`;
  const winners = winnersOf(result);
  if (winners.length === names.length) return 'Draw';
  return `${winners.map((player) => names[player]).join(' and ')} ${winners.length > 1 ? 'share first place' : 'wins'}`;
}
