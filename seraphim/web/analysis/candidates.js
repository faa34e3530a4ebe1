/** The table of candidate moves with their variations. */

import {html, keepFocus} from '../shared/dom.js';
import {formatCount, formatExact, formatShare, formatShort, formatWorth} from '../shared/format.js';

/**
 * @typedef {import('../shared/types.js').Analysis} Analysis
 * @typedef {import('../shared/types.js').Candidate} Candidate
 * @typedef {import('../shared/types.js').Solution} Solution
 *
 * @typedef {object} Row
 * @property {HTMLTableRowElement} element
 * @property {HTMLButtonElement} move
 * @property {Record<'prior' | 'visits' | 'q' | 'u' | 'solution', HTMLElement>} cells
 * @property {HTMLElement} bar
 * @property {HTMLElement} share
 * @property {HTMLElement} variation
 */

/** The most rows, unless all moves are asked for. */
export const MOST_ROWS = 10;

export class CandidateTable {
  /** @type {Map<number, Row>} by action */
  #rows = new Map();
  #order = '';
  #all = false; // whether the moves that the search left aside are shown, too
  /** What is shown. @type {[Analysis | null, Solution | null, boolean, number | null, string[]]} */
  #shown = [null, null, false, null, []];

  /**
   * @param {HTMLTableElement} table with a head and an empty body
   * @param {HTMLButtonElement} more shows all moves, or few again
   * @param {object} on
   * @param {(action: number) => void} on.play
   * @param {(candidate: Candidate | null) => void} on.preview shows the variation of a candidate; null hides it
   */
  constructor(table, more, on) {
    this.table = table;
    this.more = more;
    this.body = table.tBodies[0];
    this.on = on;
    /** @type {Map<number, Candidate>} */
    this.candidates = new Map();
    more.addEventListener('click', () => {
      this.#all = !this.#all;
      this.show(...this.#shown);
    });
  }

  /**
   * @param {Analysis | null} analysis
   * @param {Solution | null} solution
   * @param {boolean} playable whether the user may play one of the moves
   * @param {number | null} points that a value of 1 is for people, if it is some
   * @param {string[]} names of the players whose values are shown in place of the mover's; none for the mover's alone
   */
  show(analysis, solution, playable, points, names) {
    this.#shown = [analysis, solution, playable, points, names];
    this.table.classList.toggle('with-each', names.length > 0);
    this.table.style.setProperty('--players', String(names.length));
    const head = /** @type {HTMLTableRowElement} */ (this.table.tHead?.rows[0]).cells[3];
    head.replaceChildren(...(names.length ? names.map((name) => html('span', {}, name)) : ['Q']));
    const found = analysis?.candidates ?? [];
    const visited = found.filter(({visits}) => visits);
    const few = (visited.length ? visited : found).slice(0, MOST_ROWS);
    const candidates = this.#all ? found : few;
    this.more.hidden = few.length === found.length;
    this.more.textContent = this.#all ? 'Fewer' : `${formatCount(found.length - few.length)} more`;
    this.more.setAttribute('aria-expanded', String(this.#all));
    this.candidates = new Map(candidates.map((candidate) => [candidate.action, candidate]));
    const order = candidates.map(({action}) => action).join();
    if (order !== this.#order) this.#arrange(candidates);
    this.#order = order;
    this.table.classList.toggle('with-solution', solution !== null);
    const most = Math.max(1, ...candidates.map(({visits}) => visits));
    for (const candidate of candidates) {
      this.#fill(candidate, analysis?.best === candidate.action, candidate.visits / most, solution, playable);
    }
  }

  /**
   * Sort the rows like the candidates. A row stays the same element, so it keeps focus and hover.
   * @param {Candidate[]} candidates
   */
  #arrange(candidates) {
    for (const [action, row] of this.#rows) {
      if (!this.candidates.has(action)) {
        row.element.remove();
        this.#rows.delete(action);
      }
    }
    keepFocus(this.body, () => {
      candidates.forEach(({action, label}, index) => {
        const row = this.#rows.get(action) ?? this.#row(action, label);
        this.#rows.set(action, row);
        if (this.body.rows[index] !== row.element) this.body.insertBefore(row.element, this.body.rows[index] ?? null);
      });
    });
  }

  /**
   * @param {number} action
   * @param {string} label
   * @returns {Row}
   */
  #row(action, label) {
    const move = html(
      'button',
      {type: 'button', class: 'chip', onclick: () => move.ariaDisabled !== 'true' && this.on.play(action)},
      label,
    );
    const [prior, q, u, solution] = [
      html('td'),
      html('td'),
      html('td', {class: 'wide'}),
      html('td', {class: 'solution-cell'}),
    ];
    const [bar, count] = [html('span', {class: 'bar'}), html('span', {class: 'count'}, '0')];
    const share = html('span', {class: 'share'});
    count.append(share);
    const visits = html('td', {class: 'visits'}, bar, count);
    const variation = html('td', {class: 'variation'});
    const preview = () => this.on.preview(this.candidates.get(action) ?? null);
    const element = html(
      'tr',
      {
        onpointerenter: preview,
        onfocusin: preview,
        onpointerleave: () => this.on.preview(null),
        onfocusout: () => this.on.preview(null),
      },
      html('th', {scope: 'row'}, move),
      prior,
      visits,
      q,
      u,
      solution,
      variation,
    );
    return {element, move, cells: {prior, visits: count, q, u, solution}, bar, share, variation};
  }

  /**
   * @param {Candidate} candidate
   * @param {boolean} best
   * @param {number} width of its bar, as a share of the widest
   * @param {Solution | null} solution
   * @param {boolean} playable
   */
  #fill(candidate, best, width, solution, playable) {
    const row = /** @type {Row} */ (this.#rows.get(candidate.action));
    const {prior, visits, q, u, solution: exactly} = row.cells;
    row.element.classList.toggle('best', best);
    row.move.setAttribute('aria-label', `Play ${candidate.label}${best ? ', best so far' : ''}`);
    row.move.setAttribute('aria-disabled', String(!playable));
    prior.textContent = formatShare(candidate.prior);
    visits.firstChild?.replaceWith(formatShort(candidate.visits));
    row.share.textContent = ` · ${formatShare(candidate.share)}`;
    visits.title = `${formatCount(candidate.visits)} visits`;
    row.bar.style.width = `${(100 * width).toFixed(1)}%`;
    const [, , , points, names] = this.#shown;
    const values = names.length ? (candidate.values ?? []) : [candidate.q];
    const texts = values.map((value) => (candidate.visits || candidate.proven ? formatWorth(value, points) : '–'));
    q.replaceChildren(...texts.map((text) => html('span', {}, text)));
    q.classList.toggle('proven', candidate.proven);
    q.title = candidate.proven ? 'exact: proven by the search' : '';
    u.textContent = candidate.u.toFixed(2);
    const exact = solution?.[candidate.action];
    const result = exact ? formatExact(exact) : null;
    exactly.textContent = result?.long ?? '';
    exactly.title = exact?.proven ? 'proven by a certificate' : '';
    exactly.className = `solution-cell ${result?.tone ?? ''}${exact?.best ? ' best' : ''}`;
    row.variation.textContent = candidate.variation.slice(1).join(' ');
    row.variation.title = candidate.variation.join(' ');
  }
}
