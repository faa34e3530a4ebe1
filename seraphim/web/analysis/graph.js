/** The expected result over a game, as a graph for the mouse and the arrow keys. */

import {svg} from '../shared/dom.js';
import {formatPoints, formatShare, formatWorth, toPoints} from '../shared/format.js';

/**
 * @typedef {object} Point of the game
 * @property {number | null} value for player 0, in [-1, 1]; null if it is not known
 * @property {number[] | null} [values] the same for each of more than two players
 * @property {number} [player] who made the move, of more than two
 * @property {string} label of the move that led here
 * @property {boolean} doubtful whether that move lost much of the expected result
 *
 * @typedef {object} Scale
 * @property {Array<[value: number, text: string]>} marks the highest value, one in the middle, and the lowest
 * @property {number} base the value from which the area is filled
 * @property {(point: Point) => string} describe one that is known
 * @property {string[]} [names] of more than two players, each of whom has a curve
 */

const [LEFT, RIGHT, TOP, BOTTOM] = [52, 10, 8, 18]; // pixels around the curve
const NAME = 13; // pixels of a name at the end of a curve
const HEIGHT = 132;
const FEWEST_PLIES = 8; // the axis is at least as long

/**
 * @param {string[]} names of two players
 * @returns {Scale}
 */
export const betweenTwo = (names) => ({
  marks: [[1, names[0]], [0, 'even'], [-1, names[1]]],
  base: 0,
  describe: ({value}) => `${names[0]} ${formatShare(toPoints(value ?? 0))}`,
});

/**
 * @param {string[]} names of more than two players
 * @param {number | null} points that a result of 1 is for people, if it is some
 * @returns {Scale}
 */
export const amongMany = (names, points) => ({
  marks: [[1, formatWorth(1, points)], [0, '0'], [-1, formatWorth(-1, points)]],
  base: 0,
  describe: ({values}) => names.map((name, player) => `${name} ${formatWorth(values?.[player] ?? 0, points)}`).join(', '),
  names,
});

/**
 * @param {Array<number | null>} values for the only player
 * @param {number} points that a value of 1 is for people
 * @returns {Scale} in points, of what is known
 */
export function ofOne(values, points) {
  const known = values.filter((value) => value !== null);
  const [low, high] = [Math.min(0, ...known), Math.max(known.length ? -Infinity : 1, ...known)];
  const top = high > low ? high : low + 1 / points;
  const marks = [top, (low + top) / 2, low].map((value) => /** @type {[number, string]} */ ([value, formatPoints(points * value)]));
  return {marks, base: low, describe: ({value}) => `${formatPoints(points * (value ?? 0))} points`};
}

export class ValueGraph {
  /** @type {Point[]} */
  #points = [];
  #current = 0;
  #scale = betweenTwo(['First', 'Second']);
  #width = 0;
  #drawn = ''; // the arguments of the last `show`

  /**
   * @param {HTMLElement} element turned into a slider over the plies
   * @param {(ply: number) => void} onchoose
   */
  constructor(element, onchoose) {
    this.element = element;
    this.onchoose = onchoose;
    element.addEventListener('click', (event) => this.#click(event));
    element.addEventListener('keydown', (event) => this.#walk(event));
    new ResizeObserver(([entry]) => {
      this.#width = Math.floor(entry.contentRect.width);
      this.#draw();
    }).observe(element);
  }

  /**
   * @param {Point[]} points by ply, from 0
   * @param {number} current ply
   * @param {Scale} scale
   */
  show(points, current, scale) {
    const key = JSON.stringify([points, current, scale]);
    if (key === this.#drawn) return;
    this.#drawn = key;
    this.#points = points;
    this.#current = current;
    this.#scale = scale;
    const point = points[current];
    const described = (point?.value ?? null) === null ? 'not analyzed' : scale.describe(point);
    const attributes = {
      valuemin: 0,
      valuemax: points.length - 1,
      valuenow: current,
      valuetext: `move ${current}, ${described}`,
    };
    for (const [name, content] of Object.entries(attributes))
      this.element.setAttribute(`aria-${name}`, String(content));
    this.#draw();
  }

  #draw() {
    const width = this.#width;
    if (!width || !this.#points.length) return;
    const middle = this.#y(this.#scale.base);
    const known = this.#points.flatMap(({value}, ply) => (value === null ? [] : [[this.#x(ply), this.#y(value)]]));
    const curve = known.map(([x, y]) => `${x.toFixed(1)} ${y.toFixed(1)}`).join(' L ');
    const area = known.length ? `M ${known[0][0]} ${middle} L ${curve} L ${known.at(-1)?.[0]} ${middle} Z` : '';
    const x = this.#x(this.#current);
    const here = this.#points[this.#current]?.value ?? null;
    const curves = this.#scale.names?.flatMap((name, player) => this.#curveOf(name, player));
    const picture = svg(
      'svg',
      {width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, 'aria-hidden': 'true'},
      ...this.#axes(),
      ...(curves ?? [
        svg('svg', {x: 0, y: 0, width, height: middle}, svg('path', {d: area, class: 'area player-0'})),
        svg(
          'svg',
          {x: 0, y: middle, width, height: HEIGHT - middle, viewBox: `0 ${middle} ${width} ${HEIGHT - middle}`},
          svg('path', {d: area, class: 'area player-1'}),
        ),
        known.length > 1 ? svg('path', {d: `M ${curve}`, class: 'curve'}) : null,
      ]),
      ...this.#doubts(),
      svg('line', {x1: x, x2: x, y1: TOP, y2: HEIGHT - BOTTOM, class: 'here'}),
      here === null || curves ? null : svg('circle', {cx: x, cy: this.#y(here), r: 4.5, class: 'dot'}),
    );
    this.element.replaceChildren(picture);
  }

  /**
   * @param {string} name
   * @param {number} player of more than two
   * @returns {SVGElement[]} their curve, at its end the name or a number, apart from those of others who end there
   */
  #curveOf(name, player) {
    const known = this.#points.flatMap(({values}, ply) => (values ? [[this.#x(ply), this.#y(values[player])]] : []));
    const last = this.#points.findLast(({values}) => values)?.values;
    if (!last) return [];
    const [x, y] = known[known.length - 1];
    const before = last.slice(0, player).filter((value) => Math.abs(this.#y(value) - y) < NAME).length;
    const curve = known.map((place) => place.join(' ')).join(' L ');
    const text = svg('text', {x: x + 6 + NAME * before, y, class: 'curve-name'}, name.length > 1 ? player + 1 : name);
    return [svg('g', {class: `player-${player}`}, svg('path', {d: `M ${curve}`, class: 'curve'}), text)];
  }

  /** @returns {SVGElement[]} */
  #axes() {
    const right = this.#width - this.#margin();
    const {marks} = this.#scale;
    const lines = marks.map(([value], place) => {
      const y = this.#y(value);
      return svg('line', {x1: LEFT, x2: right, y1: y, y2: y, class: place === 1 ? 'middle' : 'edge'});
    });
    const texts = marks.map(([value, text]) => svg('text', {x: LEFT - 6, y: this.#y(value), class: 'scale'}, text));
    const last = this.#last();
    const step = last > 24 ? 10 : last > 12 ? 5 : 2;
    const plies = Array.from({length: Math.floor(last / step) + 1}, (_, index) => index * step);
    const names = plies.map((ply) => svg('text', {x: this.#x(ply), y: HEIGHT - 5, class: 'ply'}, ply));
    return [...lines, ...texts, ...names];
  }

  /** @returns {SVGElement[]} a mark at each move that lost much of the expected result */
  #doubts() {
    return this.#points.flatMap(({value, values, player = 0, label, doubtful}, ply) =>
      value === null || !doubtful
        ? []
        : [
            svg(
              'circle',
              {cx: this.#x(ply), cy: this.#y(values?.[player] ?? value), r: 4, class: 'doubt'},
              svg('title', {}, `${label}: likely a mistake`),
            ),
          ],
    );
  }

  #last() {
    return Math.max(FEWEST_PLIES, this.#points.length - 1);
  }

  /**
   * @param {number} ply
   * @returns {number} pixels
   */
  #x(ply) {
    return LEFT + ((this.#width - LEFT - this.#margin()) * ply) / this.#last();
  }

  /** @returns {number} pixels at the right of the curves, with their names */
  #margin() {
    return RIGHT + NAME * (this.#scale.names?.length ?? 0);
  }

  /**
   * @param {number} value
   * @returns {number} pixels
   */
  #y(value) {
    const [[high], , [low]] = this.#scale.marks;
    return TOP + ((HEIGHT - TOP - BOTTOM) * (high - value)) / (high - low);
  }

  /** @param {MouseEvent} event */
  #click(event) {
    const x = event.clientX - this.element.getBoundingClientRect().left;
    const ply = Math.round(((x - LEFT) / (this.#width - LEFT - this.#margin())) * this.#last());
    this.#choose(ply);
  }

  /** @param {KeyboardEvent} event */
  #walk(event) {
    const step = {ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, Home: -Infinity, End: Infinity}[event.key];
    if (!step || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    this.#choose(this.#current + step);
  }

  /** @param {number} ply */
  #choose(ply) {
    this.onchoose(Math.max(0, Math.min(this.#points.length - 1, ply)));
  }
}
