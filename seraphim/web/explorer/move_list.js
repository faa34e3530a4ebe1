/** The moves of a game and its branches, each a button. */

import {html, keepFocus} from '../shared/dom.js';

/**
 * @typedef {import('./game_tree.js').GameNode} GameNode
 *
 * @typedef {object} MoveLook
 * @property {number} player the player who made it
 * @property {boolean} doubtful whether it was likely a mistake
 */

export class MoveList {
  #drawn = '';
  /** @type {WeakMap<GameNode, HTMLElement>} */
  #buttons = new WeakMap();

  /**
   * @param {HTMLElement} element is filled
   * @param {object} on
   * @param {(node: GameNode) => void} on.choose
   * @param {(node: GameNode) => MoveLook} on.look
   */
  constructor(element, on) {
    this.element = element;
    this.on = on;
  }

  /**
   * @param {GameNode} root
   * @param {GameNode} current
   * @param {string} key changes whenever the moves look different
   */
  show(root, current, key) {
    const all = `${key} ${describe(root)}`;
    if (all !== this.#drawn) {
      this.#drawn = all;
      keepFocus(this.element, () =>
        this.element.replaceChildren(
          root.children.length ? this.#line(root) : html('p', {class: 'empty'}, 'No moves yet.'),
        ),
      );
    }
    for (const button of this.element.querySelectorAll('button')) {
      const here = button.dataset.node === String(current.id);
      if (here) button.setAttribute('aria-current', 'true');
      else button.removeAttribute('aria-current');
      if (here) this.#reveal(button);
    }
  }

  /**
   * The main line after a node, with the alternatives to each move below it.
   * @param {GameNode} from
   * @returns {HTMLElement}
   */
  #line(from) {
    const list = html('ol', {class: 'line'});
    for (let node = /** @type {GameNode} */ (from); node.children.length; node = node.children[0]) {
      const [main, ...others] = node.children;
      list.append(html('li', {}, this.#move(main)));
      for (const other of others) {
        const branch = html('ol', {class: 'line'}, html('li', {}, this.#move(other)));
        if (other.children.length) branch.append(...this.#line(other).childNodes);
        list.append(html('li', {class: 'branch'}, branch));
      }
    }
    return list;
  }

  /**
   * A move's button, which stays the same element, so that it keeps focus.
   * @param {GameNode} node
   * @returns {HTMLElement}
   */
  #move(node) {
    const {player, doubtful} = this.on.look(node);
    const button =
      this.#buttons.get(node) ??
      html('button', {type: 'button', 'data-node': node.id, onclick: () => this.on.choose(node)});
    this.#buttons.set(node, button);
    button.className = `move player-${player}${doubtful ? ' doubtful' : ''}`;
    button.replaceChildren(
      html('span', {class: 'visually-hidden'}, 'Move '),
      html('span', {class: 'number'}, node.ply),
      html('span', {class: 'visually-hidden'}, ': '),
      html('span', {class: 'dot'}),
      html('span', {}, node.label),
      ...(doubtful ? [html('span', {class: 'doubt', title: 'Likely a mistake'}, '?')] : []),
    );
    return button;
  }

  /**
   * Scroll the list, but not the page, to a move.
   * @param {HTMLElement} button
   */
  #reveal(button) {
    const [box, list] = [button.getBoundingClientRect(), this.element.getBoundingClientRect()];
    if (box.top < list.top) this.element.scrollTop += box.top - list.top - 8;
    else if (box.bottom > list.bottom) this.element.scrollTop += box.bottom - list.bottom + 8;
  }
}

/**
 * @param {GameNode} root
 * @returns {string} a key that identifies the tree
 */
function describe(root) {
  const ids = [];
  const pending = [root];
  for (let node = pending.pop(); node; node = pending.pop()) {
    ids.push(`${node.parent?.id}>${node.id}:${node.action}`);
    pending.push(...node.children);
  }
  return ids.join();
}
