/** A model's learning curves: which series share a plot, and the axis they are drawn over. */

import {html} from '../shared/dom.js';
import {formatCount} from '../shared/format.js';
import {Plot} from '../shared/plot.js';

/**
 * @typedef {import('../shared/plot.js').Series} Series
 * @typedef {Record<string, Array<[number, number]>>} Curves by `kind/name`, over the steps of training
 * @typedef {'steps' | 'games' | 'minutes'} Axis
 *
 * @typedef {object} Kind
 * @property {string} title
 * @property {(y: number) => string} format
 * @property {boolean} zero
 * @property {boolean} logarithmic
 */

const percent = (/** @type {number} */ y) => `${Number((100 * y).toPrecision(3))}%`;
const plain = (/** @type {number} */ y) => formatFigure(y);

/** @type {Record<string, Kind>} */
const KINDS = {
  searched_mistakes: {title: 'Error rate with search', format: percent, zero: true, logarithmic: true},
  raw_mistakes: {title: 'Error rate of the raw network', format: percent, zero: true, logarithmic: true},
  loss: {title: 'Losses', format: plain, zero: true, logarithmic: false},
  strength: {title: 'Strength, Elo above random play', format: plain, zero: true, logarithmic: false},
  rating: {title: 'Rating', format: plain, zero: false, logarithmic: false},
};

/**
 * Make one plot per kind of series with at least two points.
 * @param {Curves} curves
 * @param {Axis} axis
 * @returns {HTMLElement[]}
 */
export function drawCurves(curves, axis) {
  const toX = axisOf(curves, axis);
  /** @type {Map<string, Series[]>} */
  const kinds = new Map(Object.keys(KINDS).map((kind) => [kind, []]));
  for (const [key, points] of Object.entries(curves)) {
    const {kind, name} = parse(key);
    if (kind === 'learning' || points.length < 2) continue;
    const series = {name, points: points.map(([step, y]) => /** @type {[number, number]} */ ([toX(step), y]))};
    kinds.set(kind, [...(kinds.get(kind) ?? []), series]);
  }
  const drawn = [...kinds].filter(([, series]) => series.length);
  return drawn.map(([kind, series]) => {
    const look = KINDS[kind] ?? {title: toWords(kind), format: plain, zero: false, logarithmic: false};
    return new Plot({...look, xName: axis, series}).element;
  });
}

/**
 * @param {Curves} curves
 * @returns {Axis[]} the axes over which they can be drawn
 */
export function axesOf(curves) {
  const known = /** @type {Axis[]} */ (['steps']);
  if (curves['learning/games']?.length) known.push('games');
  if (curves['learning/seconds']?.length) known.push('minutes');
  return known;
}

/**
 * Summarize the training.
 * @param {Curves} curves
 * @param {number} total number of stored games
 * @returns {HTMLElement[]} labels and values
 */
export function drawTiles(curves, total) {
  const last = (/** @type {string} */ key) => curves[key]?.at(-1)?.[1];
  const seconds = last('learning/seconds');
  const steps = Math.max(0, ...Object.values(curves).map((points) => points.at(-1)?.[0] ?? 0));
  /** @type {Array<[string, number | undefined, string]>} */
  const figures = [
    ['training steps', steps, ''],
    ['games played', last('learning/games'), ''],
    ['games stored', total, ''],
    ['positions evaluated', last('learning/evaluations'), ''],
    ['training time', seconds === undefined ? undefined : seconds / 60, ' min'],
    ['final loss', last('training/loss'), ''],
  ];
  return figures.flatMap(([name, figure, unit]) =>
    figure === undefined ? [] : [html('div', {}, html('dt', {}, name), html('dd', {}, formatFigure(figure) + unit))],
  );
}

/**
 * @param {Curves} curves
 * @param {Axis} axis
 * @returns {(step: number) => number}
 */
function axisOf(curves, axis) {
  const points = {steps: [], games: curves['learning/games'] ?? [], minutes: curves['learning/seconds'] ?? []}[axis];
  if (!points.length) return (step) => step;
  const unit = axis === 'minutes' ? 60 : 1;
  const all = /** @type {Array<[number, number]>} */ ([[0, 0], ...points]);
  return (step) => {
    const after = all.findIndex(([at]) => at >= step);
    if (after <= 0) return all[after === 0 ? 0 : all.length - 1][1] / unit;
    const [[x0, y0], [x1, y1]] = [all[after - 1], all[after]];
    return (y0 + ((y1 - y0) * (step - x0)) / (x1 - x0)) / unit;
  };
}

/**
 * @param {string} key
 * @returns {{kind: string, name: string}}
 */
function parse(key) {
  const [kind, ...rest] = key.split('/');
  const name = rest.join('/');
  if (kind === 'training')
    return name.endsWith('loss') ? {kind: 'loss', name: toWords(name)} : {kind: name, name: toWords(name)};
  return {kind, name: kind === 'rating' ? name.replace('elo', 'Elo') : name};
}

/**
 * @param {string} name
 * @returns {string} `Policy loss`
 */
const toWords = (name) => name.charAt(0).toUpperCase() + name.slice(1).replaceAll('_', ' ');

/**
 * @param {number} figure
 * @returns {string}
 */
function formatFigure(figure) {
  if (Math.abs(figure) >= 1e6) return `${Number((figure / 1e6).toPrecision(3))}M`;
  return Math.abs(figure) >= 100 ? formatCount(figure) : String(Number(figure.toPrecision(3)));
}
