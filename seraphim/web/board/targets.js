/** The buttons over a board: one per cell, or per column of a rack; without a board, one per move. */

import {html, keepFocus} from '../shared/dom.js';
import {announce} from '../shared/notices.js';
import {CELL, hasStones, sourceOf} from './geometry.js';
import {drawingOf} from './styles.js';

/**
 * @typedef {import('../shared/types.js').Board} Board
 * @typedef {import('../shared/types.js').Cell} Cell
 * @typedef {import('./board.js').Shown} Shown
 * @typedef {import('./board.js').Setting} Setting
 * @typedef {import('./geometry.js').Geometry} Geometry
 */

/** Labels of moves that no cell names, and the words for them; OpenSpiel says who passes. @type {[RegExp, string][]} */
const OFF_BOARD = [
  [/pass$/i, 'Pass'],
  [/^swap-pieces$/, 'Swap pieces'],
];

export class Targets {
  #onplay;
  #onhover;
  /** @type {HTMLButtonElement[]} */
  #buttons = [];
  /** Buttons of moves that no cell names, by action. @type {Map<number, HTMLButtonElement>} */
  #moves = new Map();
  #columns = 0; // buttons in a row
  #visited = false; // whether a button of the board had the focus
  /** Names of cells that a legal move has named so far. @type {Map<string, string>} */
  #cellNames = new Map();
  #onchoose;
  /** Cells selected so far for a move that needs more than one. @type {Cell[]} */
  #chosen = [];
  /** @type {Shown | null} */
  #shown = null;
  #playable = false;
  #isRolling = false; // whether chance moves, and the page draws what it does
  /** What an outcome of chance looks like, if not like its label. @type {((label: string) => Element[]) | null} */
  #face = null;

  /**
   * @param {(action: number) => void} onplay
   * @param {(action: number | null) => void} onhover
   * @param {() => void} onchoose called when the result of `isOpen` changes
   */
  constructor(onplay, onhover, onchoose) {
    this.#onplay = onplay;
    this.#onhover = onhover;
    this.#onchoose = onchoose;
    /** Buttons of moves that no cell names, such as a pass, beside a board. */
    this.others = html('div', {class: 'others'});
    this.element = html('div', {
      class: 'targets',
      role: 'group',
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#move(event),
    });
  }

  /**
   * Build the buttons.
   * @param {Board | null} board null: `update` makes one button per legal move
   * @param {Geometry | null} geometry
   */
  build(board, geometry) {
    this.#chosen = [];
    this.#visited = false;
    this.#buttons = [];
    this.#moves.clear();
    this.others.replaceChildren();
    this.element.replaceChildren();
    this.element.removeAttribute('style');
    this.element.className = `targets ${geometry?.style ?? 'text'}`;
    if (!board || !geometry) return;
    const rack = geometry.style === 'rack';
    const top = rack ? 0 : geometry.top + geometry.half - geometry.rise / 2;
    this.#columns = board.columns;
    this.#cellNames.clear();
    Object.assign(this.element.style, {
      left: `${(100 * geometry.left) / geometry.width}%`,
      width: `${(100 * board.columns * CELL) / geometry.width}%`,
      top: `${(100 * top) / geometry.height}%`,
      height: `${(100 * (rack ? geometry.top + board.rows * CELL : board.rows * geometry.rise)) / geometry.height}%`,
      gridTemplateColumns: `repeat(${board.columns}, 1fr)`,
    });
    for (let row = 0; row < (rack ? 1 : board.rows); row++) {
      for (let column = 0; column < board.columns; column++) this.#buttons.push(this.#button([row, column]));
    }
    if (geometry.shift) {
      for (const [index, button] of this.#buttons.entries())
        button.style.transform = `translateX(${100 * geometry.shift * Math.floor(index / board.columns)}%)`;
    }
    this.element.append(...this.#buttons);
  }

  /**
   * Update the buttons for a position.
   * @param {Shown} shown
   * @param {Setting} setting
   */
  update(shown, {playable, names, style, initial}) {
    this.#shown = shown;
    this.#playable = playable;
    this.#setChosen([]);
    this.element.setAttribute('aria-label', playable ? `Board, ${names[shown.to_play] ?? 'chance'} to move` : 'Board');
    const {drawOutcome, describe} = drawingOf(style);
    this.#isRolling = shown.to_play < 0 && !playable;
    this.#face = shown.to_play < 0 && drawOutcome ? drawOutcome : null;
    this.#updateMoves(shown);
    const {board} = shown;
    if (!board) return;
    for (const {board: known, labels} of [initial, shown]) {
      for (const [action, cells] of Object.entries(known?.targets ?? {}))
        this.#cellNames.set(cells[0].join(), labels[action]);
    }
    const pieces = hasStones(style) ? names : board.marks;
    this.#buttons.forEach((button, index) => {
      const cell = /** @type {Cell} */ ([Math.floor(index / this.#columns), index % this.#columns]);
      const legal = this.#actionsAt(cell).length > 0;
      button.setAttribute('aria-disabled', String(!(playable && legal)));
      button.setAttribute(
        'aria-label',
        style === 'rack' ? this.#describeColumn(board, cell[1], names)
        : describe ? describe(board, cell, names)
        : this.#describeCell(board, cell, pieces),
      );
    });
    if (!this.#visited) this.#setStop(this.#nearest());
  }

  /** @returns {HTMLButtonElement} the one nearest to the middle, if possible of a legal move */
  #nearest() {
    const [row, column] = [this.#buttons.length / this.#columns, this.#columns].map((count) => Math.floor(count / 2));
    const distance = (/** @type {number} */ index) =>
      Math.hypot(Math.floor(index / this.#columns) - row, (index % this.#columns) - column);
    const indexes = [...this.#buttons.keys()];
    const legal = indexes.filter((index) => this.#buttons[index].ariaDisabled === 'false');
    const near = (legal.length ? legal : indexes).sort((one, other) => distance(one) - distance(other));
    return this.#buttons[near[0]];
  }

  /** @param {HTMLButtonElement} stop the one that the tab key leads to */
  #setStop(stop) {
    for (const button of this.#buttons) button.tabIndex = button === stop ? 0 : -1;
  }

  /**
   * Update the buttons of moves that no cell names, or all cells of which are selected, as of a promotion. If the one
   * that has the focus is gone, another button gets it.
   * @param {Shown} shown
   * @param {number[]} [open] the actions that the selected cells name
   */
  #updateMoves({board, labels}, open = []) {
    const box = board ? this.others : this.element;
    // The buttons of the last move stay, so that nothing jumps while chance moves.
    if (this.#isRolling) {
      for (const button of box.querySelectorAll('.move')) button.setAttribute('aria-disabled', 'true');
      return;
    }
    const complete = open.filter((action) => board?.targets[action].length === this.#chosen.length);
    const others = Object.keys(labels).map(Number).filter((action) => !board?.targets[action]);
    const actions = [...complete, ...others];
    if (complete.length > 1) announce('Choose one of the moves below the board');
    const buttons = actions.map((action) => this.#moveButton(action));
    for (const [index, button] of buttons.entries()) {
      const label = labels[actions[index]];
      button.textContent = board ? (OFF_BOARD.find(([end]) => end.test(label))?.[1] ?? label) : label;
      button.classList.toggle('face', this.#face !== null);
      if (this.#face) {
        button.replaceChildren(...this.#face(label));
        button.setAttribute('aria-label', label);
      } else button.removeAttribute('aria-label');
      button.setAttribute('aria-disabled', String(!this.#playable));
    }
    const hadFocus = box.contains(document.activeElement);
    keepFocus(box, () => box.replaceChildren(...buttons));
    if (!hadFocus || box.contains(document.activeElement)) return;
    (this.#buttons.find(({tabIndex}) => tabIndex === 0) ?? buttons[0])?.focus({preventScroll: true});
  }

  /**
   * @param {number} action
   * @returns {HTMLButtonElement} its button, which stays the same element
   */
  #moveButton(action) {
    const known = this.#moves.get(action);
    if (known) return known;
    const onclick = () => this.#playable && this.#onplay(action);
    const button = html('button', {type: 'button', class: 'move', onclick});
    this.#moves.set(action, button);
    return button;
  }

  /**
   * @param {number} action
   * @returns {boolean} whether it is compatible with the selected cells
   */
  isOpen(action) {
    return !this.#chosen.length || this.#actionsAt(...this.#chosen).includes(action);
  }

  /**
   * @param {Cell} cell
   * @returns {HTMLButtonElement}
   */
  #button(cell) {
    return html('button', {
      type: 'button',
      tabindex: -1,
      onclick: () => this.#choose(cell),
      onpointerenter: () => this.#point(cell),
      onpointerleave: () => this.#onhover(null),
      onfocus: (/** @type {FocusEvent} */ event) => {
        const focused = /** @type {HTMLButtonElement} */ (event.target);
        this.#visited = true;
        this.#setStop(focused);
        if (focused.matches(':focus-visible')) this.#point(cell);
      },
      onblur: () => this.#onhover(null),
    });
  }

  /** @param {Cell} cell */
  #point(cell) {
    const actions = this.#actionsAt(cell, ...this.#chosen);
    const moves = actions.length > 1 && actions.some((action) => this.#isSource(cell, action));
    this.#onhover(moves ? null : (actions[0] ?? null));
  }

  /**
   * Play the move that a cell names; select the cell if it names several moves or a piece that moves.
   * @param {Cell} cell
   */
  #choose(cell) {
    if (!this.#playable) return;
    if (this.#chosen.some((chosen) => isSame(chosen, cell))) {
      this.#setChosen([]);
      return;
    }
    let chosen = this.#chosen;
    let actions = this.#actionsAt(cell, ...chosen);
    if (!actions.length) {
      chosen = [];
      actions = this.#actionsAt(cell);
    }
    if (!actions.length) this.#refuse(cell);
    if (actions.length === 1 && (chosen.length || !this.#isSource(cell, actions[0]))) {
      this.#onhover(null);
      this.#onplay(actions[0]);
    } else this.#setChosen(actions.length ? [...chosen, cell] : []);
  }

  /**
   * @param {Cell} cell
   * @returns {string} `b2`, `Column 4`
   */
  #nameOf([row, column]) {
    const label = this.#buttons[(row * this.#columns + column) % this.#buttons.length].ariaLabel ?? '';
    return label.split(/[:,]/)[0];
  }

  /**
   * Say that a cell is no legal move.
   * @param {Cell} cell
   */
  #refuse(cell) {
    announce(`${this.#nameOf(cell)} is not legal`);
    const frames = [{boxShadow: 'inset 0 0 0 4px var(--bad)'}, {boxShadow: 'inset 0 0 0 4px transparent'}];
    this.#buttons[this.#buttons.length > this.#columns ? cell[0] * this.#columns + cell[1] : cell[1]].animate(frames, 600);
  }

  /** @param {Cell[]} cells */
  #setChosen(cells) {
    const changes = cells.length > 0 || this.#chosen.length > 0;
    this.#chosen = cells;
    if (!changes) return;
    const open = cells.length ? this.#actionsAt(...cells) : [];
    const landings = open.map((action) => /** @type {Board} */ (this.#shown?.board).targets[action][0]);
    for (const [index, button] of this.#buttons.entries()) {
      const cell = /** @type {Cell} */ ([Math.floor(index / this.#columns), index % this.#columns]);
      const chosen = cells.some((other) => isSame(other, cell));
      button.classList.toggle('chosen', chosen);
      button.classList.toggle('landing', !chosen && landings.some((other) => isSame(other, cell)));
    }
    if (this.#shown) this.#updateMoves(this.#shown, open);
    this.#onchoose();
  }

  /**
   * @param {Cell} cell
   * @param {number} action
   * @returns {boolean} whether the action moves the piece in this cell
   */
  #isSource(cell, action) {
    const board = this.#shown?.board;
    const source = board ? sourceOf(board, board.targets[action]) : null;
    return source !== null && isSame(source, cell);
  }

  /**
   * @param {...Cell} cells
   * @returns {number[]} the legal actions that all of the cells name
   */
  #actionsAt(...cells) {
    const targets = Object.entries(this.#shown?.board?.targets ?? {});
    const named = targets.filter(([, list]) =>
      cells.every(([row, column]) => list.some(([r, c]) => r === row && c === column)),
    );
    return named.map(([action]) => Number(action));
  }

  /**
   * @param {Board} board
   * @param {Cell} cell
   * @param {string[]} pieces what to call them
   * @returns {string} `b2: X`
   */
  #describeCell(board, [row, column], pieces) {
    const mark = board.cells[row][column];
    const {row_names: rows, column_names: columns} = board;
    const own = rows && columns ? columns[column] + rows[row] : this.#cellNames.get([row, column].join());
    const name = own ?? `row ${row + 1}, column ${column + 1}`;
    return `${name}: ${mark < 0 ? 'empty' : pieces[mark]}`;
  }

  /**
   * @param {Board} board
   * @param {number} column
   * @param {[string, string]} names
   * @returns {string} `Column 4, from the bottom: Red, Yellow, 4 free`
   */
  #describeColumn(board, column, names) {
    const marks = board.cells.map((row) => row[column]).reverse();
    const stones = marks.filter((mark) => mark >= 0).map((mark) => names[mark] ?? board.marks[mark]);
    const free = marks.length - stones.length;
    const content = [...stones, free ? `${free} free` : 'full'].join(', ');
    return `Column ${this.#columnName(column)}, from the bottom: ${content}`;
  }

  /**
   * @param {number} column
   * @returns {string}
   */
  #columnName(column) {
    for (const [cell, name] of this.#cellNames) if (cell.endsWith(`,${column}`)) return name;
    return String(column + 1);
  }

  /** @param {KeyboardEvent} event an arrow key moves the focus */
  #move(event) {
    const at = this.#buttons.indexOf(/** @type {HTMLButtonElement} */ (event.target));
    const rows = this.#buttons.length / this.#columns;
    const step = {ArrowLeft: -1, ArrowRight: 1, ArrowUp: -this.#columns, ArrowDown: this.#columns}[event.key];
    if (at < 0 || !step || event.altKey || event.ctrlKey || event.metaKey) return;
    const sideways = Math.abs(step) === 1 && (rows === 1 || this.#columns > 1);
    const to = at + step;
    const outside = to < 0 || to >= this.#buttons.length;
    if (outside || (sideways && Math.floor(to / this.#columns) !== Math.floor(at / this.#columns))) return;
    event.preventDefault();
    this.#buttons[to].focus();
  }
}

/**
 * @param {Cell} one
 * @param {Cell} other
 * @returns {boolean}
 */
function isSame([row, column], [otherRow, otherColumn]) {
  return row === otherRow && column === otherColumn;
}
