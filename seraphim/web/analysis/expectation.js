/** The expected result as a bar between the two players. */

import {formatShare, toPoints} from '../shared/format.js';

export class ExpectationBar {
  /** @param {HTMLElement} element a meter with `.fill`, and two `.points` */
  constructor(element) {
    this.element = element;
    this.fill = /** @type {HTMLElement} */ (element.querySelector('.fill'));
    this.points = /** @type {HTMLElement[]} */ ([...element.querySelectorAll('.points')]);
  }

  /**
   * @param {number | null} value for player 0, in [-1, 1]; null if it is not known
   * @param {[string, string]} names of the players
   */
  show(value, names) {
    const share = toPoints(value ?? 0);
    this.fill.style.width = `${(100 * share).toFixed(1)}%`;
    this.element.classList.toggle('unknown', value === null);
    const texts = value === null ? ['', ''] : [formatShare(share), formatShare(1 - share)];
    this.points.forEach((element, index) => (element.textContent = texts[index]));
    this.element.setAttribute('aria-valuenow', (100 * share).toFixed(0));
    this.element.setAttribute(
      'aria-valuetext',
      value === null ? 'not analyzed' : `${names[0]} ${texts[0]}, ${names[1]} ${texts[1]}`,
    );
  }
}
