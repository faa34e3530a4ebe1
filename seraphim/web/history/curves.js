/** A model's learning curves: which series share a plot, and the axis they are drawn over. */

import {html} from '../shared/dom.js';
import {formatCount} from '../shared/format.js';
import {Plot} from '../shared/plot.js';

/**
 * @typedef {import('../shared/plot.js').Series} Series
 * @typedef {import('../shared/plot.js').Point} Point
 * @typedef {Record<string, Array<[number, number]>>} Curves by `kind/name`, over the steps of training
 * @typedef {'steps' | 'games' | 'time'} Axis
 *
 * @typedef {object} Kind
 * @property {string} title
 * @property {(y: number) => string} format
 * @property {boolean} zero
 * @property {boolean} logarithmic
 */

const percent = (/** @type {number} */ y) => `${Number((100 * y).toPrecision(3))}%`;
const plain = (/** @type {number} */ y) => formatFigure(y);
const whole = (/** @type {number} */ y) => formatCount(Math.round(y));

/** @type {Record<string, Kind>} */
const KINDS = {
  searched_mistakes: {title: 'Error rate with search', format: percent, zero: true, logarithmic: true},
  raw_mistakes: {title: 'Error rate of the raw network', format: percent, zero: true, logarithmic: true},
  loss: {title: 'Losses', format: plain, zero: true, logarithmic: false},
  strength: {title: 'Strength, Elo above random play', format: whole, zero: true, logarithmic: false},
  rating: {title: 'Rating', format: whole, zero: false, logarithmic: false},
};

/**
 * Make one plot per kind of series with at least two points.
 * @param {Curves} curves
 * @param {Axis} axis
 * @returns {HTMLElement[]}
 */
export function drawCurves(curves, axis) {
  const {xName, toX} = axisOf(curves, axis);
  /** @type {Map<string, Series[]>} */
  const kinds = new Map(Object.keys(KINDS).map((kind) => [kind, []]));
  for (const [key, points] of Object.entries(curves)) {
    const {kind, name} = parse(key);
    const [estimate, ...bounds] = ['elo', 'low', 'high'].map((each) => `${kind}/${each}`);
    if (kind === 'learning' || points.length < 2 || (estimate in curves && bounds.includes(key))) continue;
    const [low, high] = bounds.map((bound) => new Map(key === estimate ? curves[bound] : []));
    const placed = points.map(([step, y]) => /** @type {Point} */ ([toX(step), y, low.get(step), high.get(step)]));
    kinds.set(kind, [...(kinds.get(kind) ?? []), {name, points: placed}]);
  }
  const drawn = [...kinds].filter(([, series]) => series.length);
  return drawn.map(([kind, series]) => {
    const look = KINDS[kind] ?? {title: toWords(kind), format: plain, zero: false, logarithmic: false};
    return new Plot({...look, xName, series}).element;
  });
}

/**
 * @param {Curves} curves
 * @returns {Axis[]} the axes over which they can be drawn
 */
export function axesOf(curves) {
  const known = /** @type {Axis[]} */ (['steps']);
  if (curves['learning/games']?.length) known.push('games');
  if (curves['learning/seconds']?.length) known.push('time');
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
  const steps = Math.max(0, ...Object.values(curves).map((points) => points.at(-1)?.[0] ?? 0));
  /** @type {Array<[string, number | undefined, (figure: number) => string]>} */
  const figures = [
    ['training steps', steps, plain],
    ['games played', last('learning/games'), plain],
    ['games stored', total, plain],
    ['positions evaluated', last('learning/evaluations'), plain],
    ['training time', last('learning/seconds'), formatDuration],
    ['final loss', last('training/loss'), plain],
  ];
  return figures.flatMap(([name, figure, format]) =>
    figure === undefined ? [] : [html('div', {}, html('dt', {}, name), html('dd', {}, format(figure)))],
  );
}

/**
 * @param {Curves} curves
 * @param {Axis} axis
 * @returns {{xName: string, toX: (step: number) => number}}
 */
function axisOf(curves, axis) {
  const points = {steps: [], games: curves['learning/games'] ?? [], time: curves['learning/seconds'] ?? []}[axis];
  const last = points.at(-1);
  if (!last) return {xName: axis, toX: (step) => step};
  const [xName, unit] = axis === 'time' ? unitOf(last[1]) : [axis, 1];
  const all = /** @type {Array<[number, number]>} */ ([[0, 0], ...points]);
  const toX = (/** @type {number} */ step) => {
    const after = all.findIndex(([at]) => at >= step);
    if (after <= 0) return all[after === 0 ? 0 : all.length - 1][1] / unit;
    const [[x0, y0], [x1, y1]] = [all[after - 1], all[after]];
    return (y0 + ((y1 - y0) * (step - x0)) / (x1 - x0)) / unit;
  };
  return {xName, toX};
}

/**
 * @param {number} seconds that an axis spans
 * @returns {[string, number]} the axis's unit, and the seconds of one
 */
function unitOf(seconds) {
  if (seconds < 120) return ['seconds', 1];
  return seconds < 7200 ? ['minutes', 60] : ['hours', 3600];
}

/**
 * @param {number} seconds
 * @returns {string} `6 s`, `2 min 5 s`, `12 min`, `3 h 20 min`
 */
function formatDuration(seconds) {
  const unit = seconds < 600 ? 1 : 60;
  const rounded = Math.round(seconds / unit) * unit;
  /** @type {Array<[number, string]>} */
  const parts = [
    [Math.floor(rounded / 3600), 'h'],
    [Math.floor(rounded / 60) % 60, 'min'],
    [rounded % 60, 's'],
  ];
  const named = parts.filter(([count]) => count).map((part) => part.join(' '));
  return named.join(' ') || 'under 1 s';
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
  return {kind, name: name === 'elo' ? toWords(name) : name};
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
  return Math.abs(figure) >= 100 || Number.isInteger(figure) ? formatCount(figure) : figure.toPrecision(3);
}
