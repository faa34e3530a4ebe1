/** The expected result as a bar between the two players; of one player, what is reached so far of it. */

import {formatPoints, formatShare, toPoints} from '../shared/format.js';

export class ExpectationBar {
  /** @param {HTMLElement} element a meter with `.fill`, and two `.points` */
  constructor(element) {
    this.element = element;
    this.fill = /** @type {HTMLElement} */ (element.querySelector('.fill'));
    this.points = /** @type {HTMLElement[]} */ ([...element.querySelectorAll('.points')]);
  }

  /**
   * @param {number | null} value for player 0, in [-1, 1]; null if it is not known
   * @param {string[]} names of the players
   */
  show(value, names) {
    const share = toPoints(value ?? 0);
    this.element.classList.toggle('unknown', value === null);
    this.element.classList.remove('one');
    const texts = value === null ? ['', ''] : [formatShare(share), formatShare(1 - share)];
    this.#draw(share, texts, value === null ? 'not analyzed' : `${names[0]} ${texts[0]}, ${names[1]} ${texts[1]}`);
  }

  /**
   * @param {number | null} value for the only player
   * @param {number} banked what they already have of it
   * @param {number} points that a value of 1 is for people
   */
  showOne(value, banked, points) {
    this.element.classList.toggle('unknown', value === null);
    this.element.classList.add('one');
    const texts = [`${formatPoints(points * banked)} so far`, value === null ? '' : `${formatPoints(points * value)} expected`];
    const share = value ? Math.max(0, Math.min(1, banked / value)) : 0;
    this.#draw(share, texts, texts.filter(Boolean).join(', '));
  }

  /**
   * @param {number} share that is filled
   * @param {string[]} texts at its ends
   * @param {string} described
   */
  #draw(share, texts, described) {
    this.fill.style.width = `${(100 * share).toFixed(1)}%`;
    this.points.forEach((element, index) => (element.textContent = texts[index]));
    this.element.setAttribute('aria-valuenow', (100 * share).toFixed(0));
    this.element.setAttribute('aria-valuetext', described);
  }
}
