/** The paged list of a model's self-play games. */

import {fetchJson} from '../shared/api.js';
import {byId, html} from '../shared/dom.js';
import {formatCount, formatPoints, ordinal, winnersOf} from '../shared/format.js';

/**
 * @typedef {object} GameSummary
 * @property {string} game_id
 * @property {number | null} result for player 0; null if the game was cut off
 * @property {number[] | null} [results] of more than two players
 * @property {number} plies
 * @property {string[]} moves
 */

const PAGE = 16;

export class GameList {
  #offset = 0;
  #model = '';
  /** @type {number | null} that a result of 1 is for the only player; null with two players */
  #points = null;
  total = 0;
  #asked = 0; // counts requests: answers to earlier ones are dropped

  /**
   * @param {(game: GameSummary) => void} onchoose
   * @param {(error: unknown) => void} onerror
   */
  constructor(onchoose, onerror) {
    this.onchoose = onchoose;
    this.body = /** @type {HTMLTableElement} */ (byId('games')).tBodies[0];
    const turn = (/** @type {number} */ by) => this.show(this.#model, this.#offset + by).catch(onerror);
    byId('newer').addEventListener('click', () => turn(-PAGE));
    byId('older').addEventListener('click', () => turn(PAGE));
  }

  /** Show nothing. */
  clear() {
    this.#asked++;
    this.total = 0;
    this.body.replaceChildren();
    for (const id of ['total', 'range']) byId(id).textContent = '';
    for (const id of ['newer', 'older']) /** @type {HTMLButtonElement} */ (byId(id)).disabled = true;
  }

  /**
   * Show a page of games.
   * @param {string} model
   * @param {number} [offset] of the first one
   * @returns {Promise<GameSummary[]>} none if another page was asked for meanwhile
   */
  async show(model, offset = 0) {
    const asked = ++this.#asked;
    if (model !== this.#model) [this.#model, this.#offset] = [model, 0];
    const answer = await fetchJson(`api/models/${encodeURIComponent(model)}/games?offset=${offset}&limit=${PAGE}`);
    if (asked !== this.#asked) return [];
    const games = /** @type {GameSummary[]} */ (answer.games);
    this.#points = answer.num_players === 1 ? (answer.points ?? 1) : null;
    byId('winner').textContent = this.#points === null ? 'Winner' : 'Result';
    this.#offset = offset;
    this.total = answer.total;
    this.body.replaceChildren(...games.map((game, index) => this.#row(game, offset + index + 1)));
    /** @type {HTMLElement} */ (this.body.parentElement).hidden = byId('pages').hidden = !this.total;
    byId('total').textContent = this.total
      ? `${formatCount(this.total)} stored`
      : `none stored: play some by “seraphim generate ${this.#model}”`;
    byId('range').textContent = this.total ? `${formatCount(offset + 1)}–${formatCount(offset + games.length)}` : '';
    /** @type {HTMLButtonElement} */ (byId('newer')).disabled = offset === 0;
    /** @type {HTMLButtonElement} */ (byId('older')).disabled = offset + games.length >= this.total;
    return games;
  }

  /**
   * Highlight the game being replayed.
   * @param {string} id
   */
  mark(id) {
    for (const row of this.body.rows) {
      const chosen = row.dataset.game === id;
      row.classList.toggle('chosen', chosen);
      row.querySelector('button')?.setAttribute('aria-pressed', String(chosen));
    }
  }

  /**
   * @param {GameSummary} game
   * @param {number} number
   * @returns {HTMLElement}
   */
  #row(game, number) {
    const {game_id: id, result, results, plies, moves} = game;
    const isAlone = this.#points !== null;
    const winners = result === null || isAlone ? [] : winnersOf(results ?? result);
    const winner = winners.length === 1 ? `player-${winners[0]}` : 'none';
    const ended = winners.length === (results?.length ?? 2) ? 'draw' : winners.map(ordinal).join(', ');
    const text = result === null ? 'cut off' : isAlone ? formatPoints((this.#points ?? 1) * result) : ended;
    const choose = () => this.onchoose(game);
    return html(
      'tr',
      {'data-game': id, onclick: choose},
      html(
        'th',
        {scope: 'row'},
        html(
          'button',
          {type: 'button', class: 'open', 'aria-pressed': 'false', 'aria-label': `Replay game ${number}`},
          number,
        ),
      ),
      html('td', {}, html('span', {class: `dot ${winner}`, 'aria-hidden': 'true'}), text),
      html('td', {class: 'number'}, plies),
      html('td', {class: 'moves-column'}, moves.join(' ')),
    );
  }
}
