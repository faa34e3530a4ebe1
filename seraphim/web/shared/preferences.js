/** The user's preferences, stored by the browser. */

const KEY = 'seraphim';

/**
 * @typedef {object} Preferences
 * @property {import('../board/marks.js').Metric} metric
 * @property {boolean} analyzing
 * @property {string} amount readouts of an analysis, or `Infinity`
 * @property {string} strength readouts of the computer's moves; 0 for a beginner
 * @property {boolean} flipped colors
 * @property {boolean} shortcuts
 */

/** @type {Preferences} */
const DEFAULTS = {metric: 'off', analyzing: true, amount: '400', strength: '0', flipped: false, shortcuts: true};

/** @returns {Preferences} */
export function readPreferences() {
  try {
    return {...DEFAULTS, ...JSON.parse(localStorage.getItem(KEY) ?? '{}')};
  } catch {
    return {...DEFAULTS};
  }
}

/** @param {Preferences} preferences */
export function writePreferences(preferences) {
  try {
    localStorage.setItem(KEY, JSON.stringify(preferences));
  } catch {
    // The page also works without storage.
  }
}
