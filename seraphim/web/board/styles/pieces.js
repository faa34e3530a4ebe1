/** Squares with pieces of chess or checkers. */

import {svg} from '../../shared/dom.js';
import {animateMark as animateEntry, drawEdgeNames, drawFrame, drawMark, drawSquares} from '../drawing.js';

/**
 * @typedef {import('../geometry.js').Geometry} Geometry
 * @typedef {import('../../shared/types.js').Board} Board
 */

export {animateEntry};

const [KING, MAN] = [0x2654, 0x26c0]; // the first of chess and of checkers in Unicode: ♔ and ⛀
const BASE = 'M -26 36 V 29 Q -26 22 -18 22 H 18 Q 26 22 26 29 V 36 Z';
const CROWN = 'M -18 6 L -28 -20 L -14 -7 L -9 -27 L 0 -9 L 9 -27 L 14 -7 L 28 -20 L 18 6 Z';

/** The outline and the lines of king, queen, rook, bishop, knight and pawn, in the order of Unicode. */
const FIGURES = [
  [
    'M -19 24 Q -13 12 -20 0 Q -25 -17 -11 -18 Q -3 -18 0 -9 Q 3 -18 11 -18 Q 25 -17 20 0 Q 13 12 19 24 Z' +
      'M -3 -10 V -21 H -10 V -27 H -3 V -35 H 3 V -27 H 10 V -21 H 3 V -10 Z',
    'M -15 12 Q 0 7 15 12 M 0 -8 V 4',
  ],
  [
    `M -19 24 Q -13 14 -18 2 H 18 Q 13 14 19 24 Z ${CROWN}` +
      [ball(-28, -22, 4.5), ball(-9, -29, 4.5), ball(9, -29, 4.5), ball(28, -22, 4.5)].join(' '),
    'M -16 8 Q 0 3 16 8',
  ],
  [
    'M -18 24 L -14 -10 H 14 L 18 24 Z M -21 -9 V -30 H -11 V -23 H -5 V -30 H 5 V -23 H 11 V -30 H 21 V -9 Z',
    'M -15 -9 H 15 M -16 15 H 16',
  ],
  [
    `M -16 24 Q -7 16 -8 6 H 8 Q 7 16 16 24 Z M -14 10 V 3 H 14 V 10 Z ${ball(0, -32, 5)}` +
      'M -9 4 Q -20 -8 -10 -20 Q -5 -26 0 -31 Q 5 -26 10 -20 Q 20 -8 9 4 Z',
    'M 0 -19 V -5 M -6 -12 H 6',
  ],
  [
    'M -19 24 Q -18 9 -3 -2 Q -9 2 -14 2 Q -19 9 -25 6 Q -31 2 -27 -5 Q -20 -13 -16 -22 L -13 -34 L -4 -27' +
      'Q 18 -23 20 0 Q 21 13 19 24 Z',
    'M -15 -14 L -11 -15 M 3 -19 Q 12 -12 12 2',
  ],
  [`M -17 24 Q -6 11 -7 -2 H 7 Q 6 11 17 24 Z M -14 3 V -4 H 14 V 3 Z ${ball(0, -15, 12)}`, 'M -13 21 H 13'],
];

/**
 * @param {number} x
 * @param {number} y
 * @param {number} r
 * @returns {string} path data of a ball
 */
function ball(x, y, r) {
  return `M ${x - r} ${y} a ${r} ${r} 0 1 1 ${2 * r} 0 a ${r} ${r} 0 1 1 ${-2 * r} 0 Z`;
}

/**
 * @param {Geometry} geometry
 * @param {Board} board
 */
export const drawBoard = (geometry, board) => ({
  behind: [drawFrame(geometry), ...drawSquares(geometry), ...drawEdgeNames(geometry, board)],
});

/**
 * @param {string} mark
 * @returns {SVGElement[]}
 */
export function drawShape(mark) {
  const code = mark.codePointAt(0) ?? 0;
  const [figure, man] = [code - KING, code - MAN];
  if (figure >= 0 && figure < 2 * FIGURES.length) {
    const [outline, lines] = FIGURES[figure % FIGURES.length];
    return [svg('path', {d: BASE + outline, class: 'figure'}), svg('path', {d: lines, class: 'figure-line'})];
  }
  if (man < 0 || man > 3) return drawMark(mark);
  const isKing = man % 2 === 1;
  return [
    svg('circle', {r: 36, class: 'figure'}),
    svg('circle', {r: 30, class: 'figure-line'}),
    isKing
      ? svg('path', {d: CROWN, class: 'figure-crown', transform: 'translate(0 8) scale(0.8)'})
      : svg('circle', {r: 22, class: 'figure-line'}),
  ];
}
