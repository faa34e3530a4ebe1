/** Keyboard shortcuts: single keys, except in fields, dialogs and controls that use the key themselves. */

/**
 * @param {(key: string) => boolean} onkey returns whether it handled the key
 * @param {() => boolean} areOn
 */
export function listenForShortcuts(onkey, areOn) {
  document.addEventListener('keydown', (event) => {
    if (!areOn() || event.defaultPrevented || event.altKey || event.ctrlKey || event.metaKey || event.repeat) return;
    const target = /** @type {Element | null} */ (event.target instanceof Element ? event.target : null);
    if (
      target?.closest('input:not([type="checkbox"], [type="radio"]), select, textarea, dialog') ||
      (event.key.startsWith('Arrow') && target?.closest('[type="radio"]')) ||
      document.querySelector('dialog[open]')
    )
      return;
    if (onkey(event.key)) event.preventDefault();
  });
}

/**
 * Return the move that a key stands for: the one with that label, an arrow for the direction that it names, or in a
 * small game the one with that number.
 * @param {string} key
 * @param {Record<string, string>} labels by action
 * @returns {number | null} the action
 */
export function actionOfKey(key, labels) {
  const actions = Object.keys(labels);
  const name = key.startsWith('Arrow') ? key.slice('Arrow'.length).toLowerCase() : key;
  const named = actions.find((action) => labels[action] === name);
  if (named !== undefined) return Number(named);
  const number = /^[1-9]$/.test(key) && actions.length <= 9 ? Number(key) : 0;
  return number && number <= actions.length ? Number(actions[number - 1]) : null;
}
