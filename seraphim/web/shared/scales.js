/** Axes of a plot: positions of values, and tick marks. */

/**
 * @typedef {object} Scale
 * @property {(value: number) => number} at position of a value in [0, 1]; clamped
 * @property {number[]} ticks values to label
 */

const clamp = (/** @type {number} */ share) => Math.max(0, Math.min(1, share));

/**
 * @param {number} low
 * @param {number} high
 * @param {number} count of ticks, about
 * @returns {Scale} from a round number at or below `low` to one at or above `high`
 */
export function linearScale(low, high, count) {
  const step = roundStep((high - low || Math.abs(high) || 1) / count);
  const [first, last] = [Math.floor(low / step), Math.max(Math.ceil(high / step), Math.floor(low / step) + 1)];
  const ticks = Array.from({length: last - first + 1}, (_, index) => Number(((first + index) * step).toPrecision(12)));
  return {ticks, at: (value) => clamp((value - first * step) / ((last - first) * step))};
}

/**
 * @param {number} low
 * @param {number} high
 * @param {number} count of ticks, about
 * @returns {Scale} from `low` to `high`, with round ticks between them
 */
export function boundedScale(low, high, count) {
  const step = roundStep((high - low || Math.abs(high) || 1) / count);
  const first = Math.ceil(low / step);
  const ticks = Array.from(
    {length: Math.max(1, Math.floor(high / step) - first + 1)},
    (_, index) => (first + index) * step,
  );
  return {ticks, at: (value) => clamp((value - low) / (high - low || 1))};
}

/**
 * @param {number} low above 0
 * @param {number} high
 * @param {boolean} zero whether the lower end is 0, labeled, a gap below the rest
 * @returns {Scale}
 */
export function logScale(low, high, zero) {
  const [bottom, top] = [Math.log10(low * 0.9), Math.log10(Math.max(high, low * 2) * 1.1)];
  const mantissas = top - bottom > 2.5 ? [1] : top - bottom > 1.2 ? [1, 3] : [1, 2, 5];
  const ticks = zero ? [0] : [];
  const gap = zero ? 0.1 : 0;
  for (let power = Math.floor(bottom); power <= top; power++) {
    for (const mantissa of mantissas) {
      const value = mantissa * 10 ** power;
      if (Math.log10(value) >= bottom && Math.log10(value) <= top) ticks.push(Number(value.toPrecision(3)));
    }
  }
  const above = (/** @type {number} */ value) => clamp((Math.log10(value) - bottom) / (top - bottom));
  return {ticks, at: (value) => (value > 0 ? gap + (1 - gap) * above(value) : 0)};
}

/**
 * @param {number} step
 * @returns {number} the next of 1, 2, 5, 10, … times a power of ten
 */
function roundStep(step) {
  const power = 10 ** Math.floor(Math.log10(step));
  return power * ([1, 2, 5].find((mantissa) => mantissa * power >= step * 0.999) ?? 10);
}
