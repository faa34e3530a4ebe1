/** The dialogs: load a position, share it, help. */

import {readAddress} from '../shared/address.js';
import {byId} from '../shared/dom.js';
import {placeMessages, sentence} from '../shared/notices.js';

/**
 * @typedef {object} DialogActions
 * @property {(text: string) => Promise<void>} load parses moves or a board diagram
 * @property {(address: import('../shared/address.js').Address) => Promise<void>} follow a link
 * @property {() => {link: string, moves: string, drawing: string}} share
 * @property {() => {what: string, example: string}} loadable what can be loaded
 * @property {(on: boolean) => void} setShortcuts
 */

/**
 * Connect the page's buttons to its dialogs.
 * @param {DialogActions} actions
 * @param {boolean} shortcuts whether keyboard shortcuts are enabled
 */
export function prepareDialogs(actions, shortcuts) {
  prepareLoad(actions);
  prepareShare(actions);
  byId('help').addEventListener('click', () => open('help-dialog'));
  const box = /** @type {HTMLInputElement} */ (byId('shortcuts'));
  box.checked = shortcuts;
  box.addEventListener('change', () => actions.setShortcuts(box.checked));
  for (const dialog of document.querySelectorAll('dialog')) dialog.addEventListener('close', placeMessages);
  for (const button of document.querySelectorAll('dialog .close')) {
    button.addEventListener('click', () => button.closest('dialog')?.close());
  }
}

/** @param {DialogActions} actions */
function prepareLoad({load, follow, loadable}) {
  const [text, error] = [/** @type {HTMLTextAreaElement} */ (byId('load-text')), byId('load-error')];
  const dialog = /** @type {HTMLDialogElement} */ (byId('load-dialog'));
  byId('load').addEventListener('click', () => {
    error.textContent = '';
    const {what, example} = loadable();
    byId('load-what').textContent = what;
    text.placeholder = example;
    open('load-dialog');
    text.select();
  });
  byId('load-form').addEventListener('submit', async (event) => {
    event.preventDefault();
    const pasted = text.value.trim();
    if (!pasted) return dialog.close();
    const isLink = /^https?:|^#/.test(pasted) && pasted.includes('#');
    try {
      await (isLink ? follow(readAddress(pasted)) : load(text.value));
      dialog.close();
    } catch (problem) {
      error.textContent = sentence(/** @type {Error} */ (problem).message);
      text.focus();
    }
  });
}

/** @param {DialogActions} actions */
function prepareShare({share}) {
  const fields = ['share-link', 'share-moves', 'share-drawing'].map((id) => /** @type {HTMLInputElement} */ (byId(id)));
  byId('share').addEventListener('click', () => {
    const {link, moves, drawing} = share();
    [link, moves, drawing].forEach((value, index) => (fields[index].value = value));
    byId('share-done').textContent = '';
    open('share-dialog');
    fields[0].select();
  });
  for (const button of document.querySelectorAll('#share-dialog [data-copies]')) {
    button.addEventListener('click', () => copy(/** @type {HTMLElement} */ (button).dataset.copies ?? ''));
  }
}

/**
 * Copy a field to the clipboard; if the browser refuses, select it for copying by hand.
 * @param {string} id
 */
async function copy(id) {
  const field = /** @type {HTMLInputElement} */ (byId(id));
  const done = byId('share-done');
  try {
    await navigator.clipboard.writeText(field.value);
    done.textContent = 'Copied.';
  } catch {
    field.select();
    done.textContent = 'Selected: press Ctrl+C to copy.';
  }
}

/** @param {string} id */
function open(id) {
  /** @type {HTMLDialogElement} */ (byId(id)).showModal();
  placeMessages();
}
