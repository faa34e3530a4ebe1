/** Messages to the user: notices for errors, announcements for screen readers. */

import {byId, html} from './dom.js';

const SHOWN = 8000; // milliseconds

/**
 * Show a notice for a while, or until it is closed; screen readers read it at once.
 * @param {string} text
 */
export function notify(text) {
  const sentence = text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?:]$/.test(text) ? '' : '.');
  const box = byId('notices');
  for (const old of box.children) if (old.textContent?.startsWith(sentence)) old.remove();
  const close = html(
    'button',
    {type: 'button', 'aria-label': 'Dismiss', onclick: () => notice.remove()},
    '×',
  );
  const notice = html('p', {class: 'notice'}, sentence, close);
  box.append(notice);
  setTimeout(() => notice.remove(), SHOWN);
}

/** @param {boolean} lost whether the connection is */
export function showConnection(lost) {
  const banner = byId('connection');
  const was = !banner.hidden;
  banner.hidden = !lost;
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
