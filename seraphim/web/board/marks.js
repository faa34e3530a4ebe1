/** Marks over a board: search statistics, exact results, a variation, the last move, the winning line. */

import {svg} from '../shared/dom.js';
import {formatExact, formatShare, formatShort, formatValue} from '../shared/format.js';
import {CELL, center, hasStones} from './geometry.js';

/**
 * @typedef {import('../shared/types.js').Analysis} Analysis
 * @typedef {import('../shared/types.js').Candidate} Candidate
 * @typedef {import('../shared/types.js').Cell} Cell
 * @typedef {import('../shared/types.js').Exact} Exact
 * @typedef {import('./geometry.js').Geometry} Geometry
 *
 * @typedef {'off' | 'prior' | 'visits' | 'q'} Metric
 *
 * @typedef {object} Opinion the search's numbers for one move, drawn where the piece would land
 * @property {string} main the number
 * @property {string} sub a smaller one below
 * @property {number} weight in [0, 1], strength of the tint
 * @property {'prior' | 'visits' | 'good' | 'bad'} tone
 * @property {boolean} best
 */

const BEYOND = 34; // how far the line through the winning cells extends at both ends

/**
 * @param {Analysis} analysis
 * @param {Metric} metric
 * @returns {Map<number, Opinion>} by action
 */
export function toOpinions(analysis, metric) {
  if (metric === 'off') return new Map();
  const shown = analysis.candidates.filter((candidate) => candidate.visits || candidate.prior >= 0.005);
  return new Map(shown.map((candidate) => [candidate.action, toOpinion(candidate, analysis.best, metric)]));
}

/**
 * @param {Candidate} candidate
 * @param {number} bestAction
 * @param {Metric} metric
 * @returns {Opinion}
 */
function toOpinion({action, prior, visits, share, q, proven}, bestAction, metric) {
  const best = action === bestAction;
  if (metric === 'prior') return {main: formatShare(prior), sub: '', weight: prior, tone: 'prior', best};
  if (metric === 'visits')
    return {main: formatShare(share), sub: formatShort(visits), weight: share, tone: 'visits', best};
  const known = visits > 0 || proven;
  const main = known ? formatValue(q) : '–';
  return {main, sub: proven ? 'exact' : '', weight: known ? Math.abs(q) : 0, tone: q < 0 ? 'bad' : 'good', best};
}

/**
 * @param {Record<string, number>} policy shares by label of the move
 * @param {string} played label of the move that was played
 * @returns {Map<string, Opinion>} by label
 */
export function toPolicyOpinions(policy, played) {
  return new Map(
    Object.entries(policy)
      .filter(([label, share]) => share > 0 || label === played)
      .map(([label, share]) => [
        label,
        {
          main: formatShare(share),
          sub: label === played ? 'played' : '',
          weight: share,
          tone: 'visits',
          best: label === played,
        },
      ]),
  );
}

/**
 * @param {Geometry} geometry
 * @param {Cell} cell
 * @param {Opinion} opinion
 * @param {boolean} [above] whether to leave the lower edge free
 * @returns {SVGElement}
 */
export function drawOpinion(geometry, cell, {main, sub, weight, tone, best}, above = false) {
  const [x, y] = center(geometry, cell);
  const r = geometry.style === 'rack' ? 39 : 42;
  const tint = (0.08 + 0.5 * Math.min(1, weight)).toFixed(2);
  return svg(
    'g',
    {transform: `translate(${x} ${y})`, class: `opinion ${tone}${best ? ' best' : ''}`},
    svg('circle', {r, class: 'tint', 'fill-opacity': tint}),
    best ? svg('circle', {r: r - 2, class: 'ring'}) : null,
    svg('text', {y: above ? -7 : sub ? -8 : 2, class: main.length > 4 ? 'main long' : 'main'}, main),
    sub && !above ? svg('text', {y: 20, class: 'sub'}, sub) : null,
  );
}

/**
 * @param {Geometry} geometry
 * @param {Cell} cell
 * @param {Exact} exact
 * @returns {SVGElement}
 */
export function drawSolution(geometry, cell, exact) {
  const [x, y] = center(geometry, cell);
  const {short, tone} = formatExact(exact);
  const width = 18 + 15 * short.length;
  return svg(
    'g',
    {transform: `translate(${x} ${y + CELL / 2 - 20})`, class: `solution ${tone}${exact.best ? ' best' : ''}`},
    svg('rect', {x: -width / 2, y: -15, width, height: 30, rx: 15}),
    svg('text', {y: 1}, short),
  );
}

/**
 * Draw an arrow for a piece that moves.
 * @param {Geometry} geometry
 * @param {Cell} source
 * @param {Cell} landing
 * @param {{weight: number, tone: string, best: boolean}} opinion opacity and color
 * @returns {SVGElement}
 */
export function drawArrow(geometry, source, landing, {weight, tone, best}) {
  const [[x0, y0], [x, y]] = [center(geometry, source), center(geometry, landing)];
  const length = Math.hypot(x - x0, y - y0);
  const [dx, dy] = [(x - x0) / length, (y - y0) / length];
  const [shaft, base, tip, half] = [24, length - 58, length - 44, 9];
  const at = (/** @type {number} */ along, /** @type {number} */ aside) =>
    `${(x0 + dx * along - dy * aside).toFixed(1)} ${(y0 + dy * along + dx * aside).toFixed(1)}`;
  const d = `M ${at(shaft, 0)} L ${at(base, 0)} M ${at(base, half)} L ${at(tip, 0)} L ${at(base, -half)}`;
  const opacity = (0.25 + 0.75 * Math.min(1, weight)).toFixed(2);
  return svg('path', {d, class: `arrow ${tone}${best ? ' best' : ''}`, 'stroke-opacity': opacity});
}

/**
 * Draw a piece of a variation, with its number.
 * @param {SVGGElement} piece
 * @param {Geometry} geometry
 * @param {Cell} cell
 * @param {number} number from 1
 * @returns {SVGElement}
 */
export function drawStep(piece, geometry, cell, number) {
  const [x, y] = center(geometry, cell);
  piece.classList.add('step');
  return svg('g', {class: 'variation'}, piece, svg('text', {x, y: y + 1, class: 'step-number'}, number));
}

/**
 * @param {Geometry} geometry
 * @param {Cell} cell where a piece may land
 * @returns {SVGElement}
 */
export function drawHint(geometry, cell) {
  const [cx, cy] = center(geometry, cell);
  return svg('circle', {cx, cy, r: 11, class: 'hint'});
}

/**
 * @param {Geometry} geometry
 * @param {Cell} cell where the last piece landed
 * @returns {SVGElement}
 */
export function drawLast(geometry, cell) {
  const [cx, cy] = center(geometry, cell);
  if (hasStones(geometry.style)) return svg('circle', {cx, cy, r: 9, class: 'last'});
  const [x, y] = [cx - CELL / 2 + 7, cy - CELL / 2 + 7];
  return svg('rect', {x, y, width: CELL - 14, height: CELL - 14, rx: 12, class: 'last-cell'});
}

/**
 * @param {Geometry} geometry
 * @param {Cell[]} cells the winning cells
 * @returns {SVGElement[]} rings, and a line through them
 */
export function drawLine(geometry, cells) {
  if (!cells.length) return [];
  const places = cells.map((cell) => center(geometry, cell));
  if (geometry.style === 'rack' || geometry.style === 'hexagons') return places.map(([cx, cy]) => svg('circle', {cx, cy, r: 39, class: 'winning'}));
  const [[x0, y0], [x1, y1]] = [places[0], places.at(-1) ?? places[0]];
  const [dx, dy] = [Math.sign(x1 - x0) * BEYOND, Math.sign(y1 - y0) * BEYOND];
  return [svg('path', {d: `M ${x0 - dx} ${y0 - dy} L ${x1 + dx} ${y1 + dy}`, class: 'winning', pathLength: 1})];
}
