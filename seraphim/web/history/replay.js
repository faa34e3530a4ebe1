/** Replays a finished game with the search's results for each position. */

import {writeAddress} from '../shared/address.js';
import {BoardView} from '../board/board.js';
import {byId} from '../shared/dom.js';
import {formatResult, formatWorth, playerNames} from '../shared/format.js';
import {ValueGraph, amongMany, betweenTwo, ofOne} from '../analysis/graph.js';
import {toPolicyOpinions} from '../board/marks.js';
import {announce} from '../shared/notices.js';
import {hasPlaces} from '../board/geometry.js';
import {loadStyle} from '../board/styles.js';

/**
 * @typedef {object} Recorded a position of a game
 * @property {number} ply
 * @property {import('../shared/types.js').Board | null} board
 * @property {string} text
 * @property {number} to_play
 * @property {number} action that was played
 * @property {string} label of it
 * @property {Record<string, string>} labels of the legal actions
 * @property {number} root_value the search's value, for the player to move
 * @property {number[]} [root_values] the same for each of more than two players
 * @property {number | null} value the game's result, for the player to move; null if it was cut off
 * @property {Record<string, number>} policy share of visits by label
 *
 * @typedef {{game_id: string, result: number | null, results?: number[] | null, labels_vary: boolean, num_players: number, chance: boolean,
 *     points: number | null, positions: Recorded[]}} RecordedGame
 */

export class Replay {
  /** @type {RecordedGame | null} */
  #game = null;
  #at = 0;
  #model = '';
  /** @type {import('../board/geometry.js').Style} */
  #style = 'text';

  constructor() {
    this.board = new BoardView(byId('board'), () => {});
    this.graph = new ValueGraph(byId('graph'), (ply) => this.go(ply));
    const steps = {first: -Infinity, back: -1, forward: 1, last: Infinity};
    for (const [id, step] of Object.entries(steps)) byId(id).addEventListener('click', () => this.go(this.#at + step));
  }

  /**
   * @param {string} model
   * @param {RecordedGame} game
   */
  async open(model, game) {
    this.#model = model;
    this.#game = game;
    const style = await loadStyle(game.positions[0].board);
    if (this.#game !== game) return;
    this.#style = style;
    document.documentElement.dataset.style = this.#style;
    byId('replay').hidden = false;
    byId('board-legend').hidden = this.#style === 'text' || !hasPlaces(this.#style); // which show no shares
    this.go(0, false);
  }

  /** Hide the replay. */
  close() {
    this.#game = null;
    byId('replay').hidden = true;
  }

  /**
   * @param {number} to index of a position; clamped to the game
   * @param {boolean} [spoken]
   */
  go(to, spoken = true) {
    const positions = this.#game?.positions;
    if (!positions) return;
    const stepped = to === this.#at + 1;
    this.#at = Math.max(0, Math.min(positions.length - 1, to));
    const position = positions[this.#at];
    const before = this.#at > 0 ? positions[this.#at - 1] : null;
    const game = /** @type {RecordedGame} */ (this.#game);
    const names = playerNames(this.#style, position.board, false, game.num_players);
    const last = {last: before?.action ?? null, before: before?.board, move: before?.label};
    this.board.show(
      {...position, line: []},
      {style: this.#style, names, playable: false, animate: stepped, ...last, initial: positions[0]},
    );
    this.board.write({opinions: opinionsOf(position)});
    this.#describe(position, names);
    const points = positions.map(toPoint);
    this.graph.show(points, this.#at, scaleOf(names, points, pointsOf(game)));
    if (spoken) announce(byId('played').textContent ?? '');
  }

  /**
   * @param {Recorded} position
   * @param {string[]} names
   */
  #describe({ply, to_play: mover, label, root_value: expected, root_values: all}, names) {
    const game = /** @type {RecordedGame} */ (this.#game);
    const outcome = formatResult(game.results ?? game.result, names, pointsOf(game));
    byId('replay-title').textContent = `Replay: ${outcome.replace(/^(Draw|Cut)/, (word) => word.toLowerCase())}`;
    byId('played-dot').className = `dot player-${mover}`;
    byId('played').textContent = `Ply ${ply}: ${names[mover]} plays ${label}`;
    const each = all?.map((value, player) => `${names[player]}\u00a0${formatWorth(value, pointsOf(game))}`).join(', ');
    byId('values').textContent = `search: ${each ?? `${formatWorth(expected, pointsOf(game))} for ${names[mover]}`}`;
    const moves = game.positions.map(({action, label}) => (game.labels_vary ? String(action) : label));
    const first = game.positions[0];
    const address = {
      model: this.#model,
      board: first.ply ? first.text : null,
      moves: moves.join(moves.every((move) => move.length === 1) ? '' : ','),
      ply: this.#at,
    };
    byId('explore').hidden = game.chance; // what chance did between the moves is not recorded
    byId('explore').setAttribute('href', `./${writeAddress(address)}`);
    const buttons = /** @type {Record<string, boolean>} */ ({
      first: !this.#at,
      back: !this.#at,
      forward: this.#at === moves.length - 1,
      last: this.#at === moves.length - 1,
    });
    for (const [id, disabled] of Object.entries(buttons))
      /** @type {HTMLButtonElement} */ (byId(id)).disabled = disabled;
  }
}

/**
 * @param {string[]} names
 * @param {import('../analysis/graph.js').Point[]} curve
 * @param {number | null} points that a result of 1 is for people, if it is some
 * @returns {import('../analysis/graph.js').Scale}
 */
function scaleOf(names, curve, points) {
  if (names.length > 2) return amongMany(names, points);
  return names.length > 1 ? betweenTwo(names) : ofOne(curve.map(({value}) => value), points ?? 1);
}

/**
 * @param {RecordedGame} game
 * @returns {number | null} the points that a result of 1 is for people, for one player at least 1
 */
const pointsOf = ({points, num_players: players}) => points ?? (players === 1 ? 1 : null);

/**
 * @param {Recorded} position
 * @returns {Map<number, import('../board/marks.js').Opinion>}
 */
function opinionsOf({policy, label, labels}) {
  const opinions = toPolicyOpinions(policy, label);
  const actions = Object.entries(labels).map(
    ([action, name]) => /** @type {const} */ ([Number(action), opinions.get(name)]),
  );
  return new Map(actions.flatMap(([action, opinion]) => (opinion ? [[action, opinion]] : [])));
}

/**
 * @param {Recorded} position
 * @returns {import('../analysis/graph.js').Point}
 */
function toPoint({to_play: mover, root_value: value, root_values: values, label}) {
  return {value: mover === 0 ? value : -value, values, label, doubtful: false};
}
