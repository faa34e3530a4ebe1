/** A board that shows a position and takes moves by mouse, touch and keyboard. */

import {html, svg} from '../shared/dom.js';
import {drawHint, drawLast, drawLine, drawOpinion, drawStep, drawSolution, drawArrow} from './marks.js';
import {center, hasPlaces, sourceOf} from './geometry.js';
import {animateTurn, mayAnimate, toPiece} from './drawing.js';
import {drawingOf, layOut} from './styles.js';
import {Targets} from './targets.js';

/**
 * @typedef {import('../shared/types.js').Board} Board
 * @typedef {import('../shared/types.js').Cell} Cell
 * @typedef {import('../shared/types.js').Solution} Solution
 * @typedef {import('./marks.js').Opinion} Opinion
 * @typedef {import('./geometry.js').Geometry} Geometry
 * @typedef {import('./geometry.js').Style} Style
 *
 * @typedef {object} Shown what the board shows of a position
 * @property {Board | null} board
 * @property {string} text
 * @property {number} to_play -1 where chance moves
 * @property {Cell[]} line
 * @property {Record<string, string>} labels of the legal actions
 *
 * @typedef {object} Setting
 * @property {Style} style of the game, which is loaded
 * @property {string[]} names of the players
 * @property {boolean} playable whether the user may move now
 * @property {boolean} animate whether a new piece is animated
 * @property {number | null} last action that led here
 * @property {Board | null} [before] the board that it was played on, if it is known
 * @property {string} [move] the label of that action
 * @property {string} [rolled] the label of the last outcome of chance on the way here
 * @property {{board: Board | null, labels: Record<string, string>}} initial a position of the same game in which most
 *     moves are legal; it gives their cells and labels
 */

const EMPTY = -1;
const NO_BOARD = 'no board'; // in place of the key of a board

export class BoardView {
  /** @type {Geometry | null} */
  #geometry = null;
  #layers = {pieces: svg('g'), marks: svg('g', {class: 'marks'}), ghost: svg('g', {class: 'ghost'})};
  #key = ''; // of the drawing
  #text = html('div', {class: 'as-text'}); // the position of a game without a board
  /** @type {Map<string, SVGGElement>} pieces by `row,column,mark` */
  #pieces = new Map();
  /** Pieces that were turned over, until they are gone. @type {SVGGElement[]} */
  #turning = [];
  /** @type {Shown | null} */
  #shown = null;
  /** @type {Setting | null} */
  #setting = null;
  /** The cells of each action that was ever legal on this board. @type {Map<number, Cell[]>} */
  #places = new Map();
  /** @type {{opinions: Map<number, Opinion>, solution: Solution | null, variation: number[]}} */
  #over = {opinions: new Map(), solution: null, variation: []};

  /**
   * @param {HTMLElement} element is filled
   * @param {(action: number) => void} onplay called with each move that the user makes
   */
  constructor(element, onplay) {
    this.element = element;
    this.targets = new Targets(
      onplay,
      (action) => this.#hover(action),
      () => this.#drawMarks(),
    );
    element.after(this.targets.others);
  }

  /**
   * Show a position.
   * @param {Shown} shown
   * @param {Setting} setting
   */
  show(shown, setting) {
    this.#shown = shown;
    this.#setting = setting;
    document.documentElement.dataset.first = setting.names[0].toLowerCase();
    this.#build(shown, setting);
    // Elsewhere an action has the same cells in all positions.
    if (setting.style === 'pieces') this.#places.clear();
    for (const [action, cells] of Object.entries(shown.board?.targets ?? {})) this.#places.set(Number(action), cells);
    const {drawState} = drawingOf(setting.style);
    if (drawState && this.#geometry) drawState(this.#layers.pieces, this.#geometry, shown, setting);
    else if (shown.board) this.#place(shown.board, setting);
    this.targets.update(shown, setting);
    this.#drawMarks();
  }

  /**
   * Draw marks over the board, replacing those there.
   * @param {{opinions?: Map<number, Opinion>, solution?: Solution | null, variation?: number[]}} over the variation
   *     starts from the position shown
   */
  write(over) {
    Object.assign(this.#over, over);
    this.#drawMarks();
  }

  /**
   * Build the drawing and its targets, unless they exist.
   * @param {Shown} shown
   * @param {Setting} setting
   */
  #build({board, text}, {style, initial}) {
    if (!board) this.#text.replaceChildren(...drawingOf('text').drawText(text));
    const key = board ? `${style} ${board.rows}×${board.columns} ${board.marks} ${board.tracks?.length}` : NO_BOARD;
    if (key === this.#key) return;
    this.#key = key;
    if (!board) {
      this.#geometry = null;
      this.targets.build(null, null);
      this.element.style.removeProperty('--ratio');
      this.element.replaceChildren(this.#text, this.targets.element);
      return;
    }
    this.#pieces.clear();
    const reference = initial.board ?? board;
    this.#places = new Map(Object.entries(reference.targets).map(([action, cells]) => [Number(action), cells]));
    const geometry = layOut(style, board);
    const {width, height, nameSize} = geometry;
    this.#geometry = geometry;
    const {behind, front = []} = drawingOf(style).drawBoard(geometry, board, columnNames(reference, initial.labels));
    this.#layers.pieces.replaceChildren();
    this.targets.build(board, geometry);
    const image = svg(
      'svg',
      {viewBox: `0 0 ${width} ${height}`, 'aria-hidden': 'true', class: `drawing ${style}`},
      ...behind,
      this.#layers.ghost,
      this.#layers.pieces,
      ...front,
      this.#layers.marks,
    );
    image.style.setProperty('--name-size', `${nameSize}px`);
    this.element.style.setProperty('--ratio', String(width / height));
    this.element.replaceChildren(image, this.targets.element);
  }

  /**
   * @param {number} mark
   * @param {Cell} cell
   * @returns {SVGGElement}
   */
  #draw(mark, cell) {
    const geometry = /** @type {Geometry} */ (this.#geometry);
    const marks = this.#shown?.board?.marks ?? [];
    const players = Math.max(2, this.#setting?.names.length ?? 0);
    return toPiece(geometry, mark, drawingOf(geometry.style).drawShape(marks[mark]), cell, players);
  }

  /**
   * @param {Board} board
   * @param {Setting} setting
   */
  #place(board, {animate, before: earlier, last}) {
    const geometry = /** @type {Geometry} */ (this.#geometry);
    const drawing = drawingOf(geometry.style);
    const wanted = new Map();
    board.cells.forEach((row, r) =>
      row.forEach((mark, c) => mark !== EMPTY && wanted.set(`${r},${c},${mark}`, [r, c, mark])),
    );
    const fresh = [...wanted.keys()].filter((key) => !this.#pieces.has(key));
    const before = new Set([...this.#pieces.keys()].map(cellOf));
    const placed = fresh.filter((key) => !before.has(cellOf(key)));
    const played = (last !== null && earlier?.targets[last]) || [];
    const source = earlier ? sourceOf(earlier, played) : null;
    const moved = source ? fresh.filter((key) => cellOf(key) === String(played[0])) : placed;
    for (const piece of this.#turning) piece.remove();
    this.#turning = [];
    /** @type {Map<string, SVGGElement>} */
    const leaving = new Map();
    for (const [key, piece] of this.#pieces) {
      if (wanted.has(key)) continue;
      leaving.set(cellOf(key), piece);
      this.#pieces.delete(key);
    }
    for (const key of fresh) {
      const [row, column, mark] = wanted.get(key);
      const piece = this.#draw(mark, [row, column]);
      const old = leaving.get(cellOf(key));
      this.#pieces.set(key, piece);
      this.#layers.pieces.append(piece);
      if (!animate || moved.length !== 1) continue;
      const moving = /** @type {SVGGElement} */ (piece.firstElementChild);
      if (key === moved[0]) drawing.animateEntry(moving, geometry, [row, column], source);
      else if (drawing.turns && old && mayAnimate()) {
        const [from, to] = wanted.get(moved[0]);
        leaving.delete(cellOf(key));
        this.#turning.push(old);
        animateTurn(old, piece, Math.max(Math.abs(row - from), Math.abs(column - to)));
      }
    }
    for (const piece of leaving.values()) piece.remove();
  }

  #drawMarks() {
    const [geometry, shown, setting] = [this.#geometry, this.#shown, this.#setting];
    if (!geometry || !shown?.board || !setting || !hasPlaces(geometry.style)) return;
    const {opinions, solution, variation} = this.#over;
    const {targets} = shown.board;
    const steps = this.#drawVariation(variation);
    const drawn = drawLine(geometry, shown.line);
    const landed = setting.last === null || !drawingOf(geometry.style).drawShape ? null : this.#landed(setting.last, setting.before);
    if (landed && !shown.line.length) drawn.push(drawLast(geometry, landed));
    if (!steps.length) {
      const board = shown.board;
      // On a board of stones only some of the empty cells are legal.
      if (!opinions.size && setting.playable && geometry.style === 'stones')
        drawn.push(...Object.values(targets).map(([landing]) => drawHint(geometry, landing)));
      for (const [action, opinion] of opinions) {
        const source = this.#isOpen(action) ? sourceOf(board, targets[action]) : null;
        if (source) drawn.push(drawArrow(geometry, source, targets[action][0], opinion));
      }
      for (const [landing, opinion] of this.#byLanding(opinions))
        drawn.push(drawOpinion(geometry, landing, opinion, solution !== null));
      const known = Object.entries(solution ?? {}).filter(([, {result, best}]) => result !== null || best);
      const exact = new Map(known.map(([action, one]) => [Number(action), one]));
      for (const [landing, one] of this.#byLanding(exact)) drawn.push(drawSolution(geometry, landing, one));
    }
    this.#layers.marks.replaceChildren(...drawn, ...steps);
    this.element.classList.toggle('decided', shown.line.length > 0);
    for (const [key, piece] of this.#pieces) {
      const winning = shown.line.some(([row, column]) => key.startsWith(`${row},${column},`));
      piece.classList.toggle('won', winning);
    }
  }

  /**
   * @param {number} action
   * @returns {boolean} whether it is legal and compatible with the selected cells
   */
  #isOpen(action) {
    return action in (this.#shown?.board?.targets ?? {}) && this.targets.isOpen(action);
  }

  /**
   * @template {{best: boolean}} T
   * @param {Map<number, T>} about what is known of actions, most important first
   * @returns {[Cell, T][]} landing cells, each with its best or first action
   */
  #byLanding(about) {
    /** @type {Map<string, [Cell, T]>} */
    const found = new Map();
    for (const [action, one] of about) {
      if (!this.#isOpen(action)) continue;
      const landing = /** @type {Board} */ (this.#shown?.board).targets[action][0];
      if (one.best || !found.has(landing.join())) found.set(landing.join(), [landing, one]);
    }
    return [...found.values()];
  }

  /**
   * Draw a variation as far as possible without the rules: pieces placed in turn, or moved.
   * @param {number[]} actions
   * @returns {SVGElement[]}
   */
  #drawVariation(actions) {
    const [geometry, shown] = [this.#geometry, this.#shown];
    if (!geometry || !shown?.board || !actions.length || !drawingOf(geometry.style).drawShape) return [];
    const cells = shown.board.cells.map((row) => [...row]);
    const steps = [];
    let player = shown.to_play;
    for (const [index, action] of actions.entries()) {
      if (geometry.style === 'pieces' && index) break; // where later moves lead depends on the position
      const places = this.#places.get(action) ?? [];
      const moves = geometry.style === 'grid' || geometry.style === 'pieces';
      const source = moves ? sourceOf({...shown.board, cells}, places) : null;
      const cell = source ? places[0] : this.#free(action, cells);
      if (!cell) break;
      const mark = source ? cells[source[0]][source[1]] : player;
      if (source) {
        cells[source[0]][source[1]] = EMPTY;
        steps.push(drawArrow(geometry, source, cell, {weight: 1, tone: 'step', best: false}));
      }
      cells[cell[0]][cell[1]] = mark;
      steps.push(drawStep(this.#draw(mark, cell), geometry, cell, index + 1));
      player = (player + 1) % Math.max(2, this.#setting?.names.length ?? 0);
    }
    return steps;
  }

  /**
   * @param {number} action
   * @param {number[][]} cells
   * @returns {Cell | null} where a piece would land: the lowest free cell
   */
  #free(action, cells) {
    const free = (this.#places.get(action) ?? []).filter(([row, column]) => cells[row][column] === EMPTY);
    return free.reduce(
      (/** @type {Cell | null} */ lowest, cell) => (lowest && lowest[0] > cell[0] ? lowest : cell),
      null,
    );
  }

  /**
   * @param {number} action that led to the position shown
   * @param {Board | null} [before] the board that it was played on
   * @returns {Cell | null} where its piece stands: the highest occupied cell
   */
  #landed(action, before) {
    const cells = this.#shown?.board?.cells ?? [];
    const known = this.#geometry?.style === 'pieces' ? [] : this.#places.get(action);
    const taken = (before?.targets[action] ?? known ?? []).filter(([row, column]) => cells[row]?.[column] !== EMPTY);
    return taken.reduce((/** @type {Cell | null} */ top, cell) => (top && top[0] < cell[0] ? top : cell), null);
  }

  /** @param {number | null} action under the pointer */
  #hover(action) {
    const [geometry, shown] = [this.#geometry, this.#shown];
    this.#layers.ghost.replaceChildren();
    const cells = action === null ? null : shown?.board?.targets[action];
    if (!geometry || !shown?.board || !cells || !this.#setting?.playable || !drawingOf(geometry.style).drawShape) return;
    const source = geometry.style === 'pieces' ? sourceOf(shown.board, cells) : null;
    const piece = this.#draw(source ? shown.board.cells[source[0]][source[1]] : shown.to_play, cells[0]);
    if (geometry.style === 'rack')
      piece.setAttribute('transform', `translate(${center(geometry, cells[0])[0]} ${geometry.top / 2 - 11})`);
    else piece.classList.add('faint');
    this.#layers.ghost.append(piece);
  }
}

/**
 * @param {string} key of a piece
 * @returns {string} its cell
 */
function cellOf(key) {
  return key.slice(0, key.lastIndexOf(','));
}

/**
 * @param {Board} board
 * @param {Record<string, string>} labels
 * @returns {string[]} the label of the action that lands in each column; empty if there is none
 */
function columnNames({columns, targets}, labels) {
  return Array.from({length: columns}, (_, column) => {
    const action = Object.keys(targets).find((key) => targets[key][0][1] === column);
    return action === undefined ? '' : labels[action];
  });
}
