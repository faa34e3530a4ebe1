/** Messages to the user: notices for errors, announcements for screen readers. */

import {byId, html} from './dom.js';

const LONGEST_OFFER = 15_000; // milliseconds

/** @param {unknown} error */
export const textOf = (error) => (error instanceof Error ? error.message : String(error));

/**
 * @param {string} text
 * @returns {string} with a capital letter and a period
 */
export const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?:]$/.test(text) ? '' : '.');

/**
 * Show a notice until it is closed or cleared; screen readers read it at once.
 * @param {string} text
 * @param {...Node} buttons
 */
export function notify(text, ...buttons) {
  const box = byId('notices');
  for (const old of [...box.children]) if (old.firstChild?.textContent === sentence(text)) old.remove();
  const close = html('button', {type: 'button', 'aria-label': 'Dismiss', onclick: () => notice.remove()}, '×');
  const notice = html('p', {class: 'notice'}, html('span', {}, sentence(text)), ...buttons, close);
  box.append(notice);
  return notice;
}

/**
 * Show a notice with a button, in place of an earlier one.
 * @param {string} text
 * @param {string} label
 * @param {() => void} act
 * @param {boolean} [closes] whether the user may close it instead
 */
export function offer(text, label, act, closes = true) {
  byId('notices').querySelector('.act')?.parentElement?.remove();
  const onclick = () => (notice.remove(), act());
  const notice = notify(text, html('button', {type: 'button', class: 'act', onclick}, label));
  if (closes) setTimeout(() => notice.remove(), LONGEST_OFFER); // undo does the same
  else notice.lastChild?.remove();
}

/**
 * Remove notices, as the user goes on.
 * @param {boolean} [offers] those with a button, too
 */
export function clearNotices(offers = true) {
  for (const notice of [...byId('notices').children]) if (offers || !notice.querySelector('.act')) notice.remove();
}

/** Bring messages before the user: into the dialog that is open, as the rest of the page is out of reach then. */
export function placeMessages() {
  const messages = [byId('connection'), byId('notices')];
  const dialog = document.querySelector('dialog[open]');
  if (dialog) dialog.prepend(...messages);
  else document.querySelector('main')?.before(...messages);
}

/**
 * @param {boolean} lost whether the connection is
 * @param {string} [reason]
 */
export function showConnection(lost, reason) {
  const banner = byId('connection');
  const was = !banner.hidden;
  banner.hidden = !lost;
  if (lost) banner.textContent = `${sentence(reason || 'Lost the connection to the engine')} Reconnecting …`;
  if (was && !lost) announce('Reconnected');
}

/**
 * Let screen readers read a text when they are idle.
 * @param {string} text
 */
export function announce(text) {
  const region = byId('announcement');
  if (region.textContent !== text) region.textContent = text;
}
