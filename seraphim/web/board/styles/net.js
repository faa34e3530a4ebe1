/** The net of a cube: up; left, front, right and back; down. */

import {svg} from '../../shared/dom.js';
import {CELL, center} from '../geometry.js';
import {drawName, mayAnimate} from '../drawing.js';

/**
 * @typedef {import('../geometry.js').Geometry} Geometry
 * @typedef {import('../../shared/types.js').Board} Board
 * @typedef {import('../../shared/types.js').Cell} Cell
 * @typedef {import('../styles.js').Shown} Shown
 * @typedef {import('../styles.js').Setting} Setting
 */

/** Of the sides U, R, F, D, L, and B: white, red, green, yellow, orange, and blue. */
const COLORS = ['#f6f7f9', '#d8393f', '#2f9e5b', '#f4cf3a', '#f08a2c', '#2d62d3'];

/** The names of the sides, at their upper left cells. @type {Array<[name: string, row: number, column: number]>} */
const SIDES = [['U', 0, 2], ['L', 2, 0], ['F', 2, 2], ['R', 2, 4], ['B', 2, 6], ['D', 4, 2]];

/** @param {Geometry} geometry */
export const drawBoard = (geometry) => ({
  behind: SIDES.map(([, row, column]) => {
    const [x, y] = center(geometry, [row, column]);
    return svg('rect', {x: x - CELL / 2, y: y - CELL / 2, width: 2 * CELL, height: 2 * CELL, rx: 16, style: 'fill: #1b2030'});
  }),
  front: SIDES.map(([name, row, column]) => {
    const [x, y] = center(geometry, [row, column]);
    const text = drawName(name, x + CELL / 2, y + CELL / 2);
    text.style.cssText = 'fill: #fff; stroke: #1b2030; stroke-width: 8px; paint-order: stroke; font-size: 30px';
    return text;
  }),
});

/**
 * @param {SVGGElement} layer
 * @param {Geometry} geometry
 * @param {Shown} shown
 * @param {Setting} setting
 */
export function drawState(layer, geometry, {board}, {animate, before}) {
  const {cells} = /** @type {Board} */ (board);
  const stickers = cells.flatMap((row, r) =>
    row.flatMap((mark, c) => {
      if (mark < 0) return [];
      const sticker = drawSticker(geometry, [r, c], mark);
      if (animate && before && before.cells[r][c] !== mark && mayAnimate()) {
        const frames = [{transform: 'scale(0.55) rotate(-45deg)', opacity: 0.3}, {transform: 'none', opacity: 1}];
        sticker.firstElementChild?.animate(frames, {duration: 220, easing: 'ease-out'});
      }
      return [sticker];
    }),
  );
  layer.replaceChildren(...stickers);
}

/**
 * @param {Geometry} geometry
 * @param {Cell} cell
 * @param {number} mark
 * @returns {SVGGElement}
 */
function drawSticker(geometry, cell, mark) {
  const [x, y] = center(geometry, cell);
  const side = CELL - 10;
  const body = {x: -side / 2, y: -side / 2, width: side, height: side, rx: 12, style: `fill: ${COLORS[mark]}`};
  return svg('g', {transform: `translate(${x} ${y})`}, svg('rect', body));
}
