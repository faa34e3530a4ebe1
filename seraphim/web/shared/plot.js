/** A line plot with a legend that toggles lines, values under the pointer, and a table of all values. */

/** @typedef {[x: number, y: number, low?: number, high?: number]} Point with the bounds of its interval, if known */

import {html, svg} from './dom.js';
import {boundedScale, linearScale, logScale} from './scales.js';

/**
 * @typedef {import('./scales.js').Scale} Scale
 *
 * @typedef {object} Series
 * @property {string} name
 * @property {Point[]} points by ascending x
 *
 * @typedef {object} PlotOptions
 * @property {string} title
 * @property {string} xName name of the x axis
 * @property {Series[]} series
 * @property {(y: number) => string} format of y values
 * @property {boolean} zero whether the linear axis starts at 0
 * @property {boolean} logarithmic whether the y axis starts logarithmic
 */

const [LEFT, RIGHT, TOP, BOTTOM] = [60, 14, 10, 26]; // pixels
const HEIGHT = 250;
const COUNT = new Intl.NumberFormat('en', {notation: 'compact', maximumFractionDigits: 1});
const WHOLE = new Intl.NumberFormat('en', {maximumFractionDigits: 1});

export class Plot {
  #hidden = new Set();
  #width = 0;
  /** @type {number | null} index into the xs */
  #at = null;

  /** @param {PlotOptions} options */
  constructor(options) {
    this.options = options;
    this.logarithmic = options.logarithmic;
    const ys = valuesOf(options.series);
    this.xs = [...new Set(options.series.flatMap(({points}) => points.map(([x]) => x)))].sort((a, b) => a - b);
    this.canvas = html('div', {
      class: 'canvas',
      role: 'slider',
      tabindex: 0,
      'aria-label': `${options.title}, by ${options.xName}`,
      'aria-valuemin': 0,
      'aria-valuemax': this.xs.length - 1,
      onpointermove: (/** @type {PointerEvent} */ event) => this.#point(event),
      onpointerleave: () => this.#show(null),
      onkeydown: (/** @type {KeyboardEvent} */ event) => this.#walk(event),
      onblur: () => this.#show(null),
    });
    this.tip = html('div', {class: 'tip', 'aria-hidden': 'true'});
    this.tip.hidden = true;
    const scale = html(
      'button',
      {
        type: 'button',
        class: 'scale',
        'aria-pressed': String(this.logarithmic),
        onclick: () => this.#toggleScale(scale),
      },
      'log',
      html('span', {class: 'visually-hidden'}, ` scale: ${options.title}`),
    );
    scale.hidden = ys.some((y) => y < 0);
    this.element = html(
      'figure',
      {class: 'plot panel'},
      html('figcaption', {class: 'head'}, html('h3', {}, options.title), scale),
      html('div', {class: 'stage'}, this.canvas, this.tip),
      this.#legend(),
      this.#table(),
    );
    this.#describe(this.xs.length - 1);
    new ResizeObserver(([entry]) => {
      this.#width = Math.floor(entry.contentRect.width);
      this.#draw();
    }).observe(this.canvas);
  }

  /** @returns {Series[]} */
  get #visible() {
    return this.options.series.filter(({name}) => !this.#hidden.has(name));
  }

  #draw() {
    if (!this.#width) return;
    const [width, inner] = [this.#width, HEIGHT - TOP - BOTTOM];
    const scale = this.#scale();
    const along = boundedScale(Math.min(0, ...this.xs), Math.max(...this.xs), width > 420 ? 6 : 4);
    const x = (/** @type {number} */ value) => LEFT + along.at(value) * (width - LEFT - RIGHT);
    const y = (/** @type {number} */ value) => TOP + (1 - scale.at(value)) * inner;
    const grid = scale.ticks.map((tick) =>
      svg('line', {x1: LEFT, x2: width - RIGHT, y1: y(tick), y2: y(tick), class: 'grid'}),
    );
    const names = scale.ticks.map((tick) =>
      svg('text', {x: LEFT - 8, y: y(tick), class: 'y-name'}, this.options.format(tick).replace(/(\.\d*?)0+$/, '$1')),
    );
    const below = along.ticks.map((tick) =>
      svg('text', {x: x(tick), y: HEIGHT - 7, class: 'x-name'}, COUNT.format(tick)),
    );
    const lines = this.options.series.map((series, index) =>
      this.#hidden.has(series.name) ? null : drawSeries(series, index, x, y),
    );
    const marks = this.#at === null ? [] : this.#marks(this.xs[this.#at], x, y);
    this.canvas.replaceChildren(
      svg(
        'svg',
        {width, height: HEIGHT, viewBox: `0 0 ${width} ${HEIGHT}`, 'aria-hidden': 'true'},
        ...grid,
        ...names,
        ...below,
        ...lines,
        ...marks,
      ),
    );
    this.place = x;
  }

  /** @returns {Scale} of the visible values */
  #scale() {
    const ys = valuesOf(this.#visible);
    if (!ys.length) return linearScale(0, 1, 4);
    const positive = ys.filter((y) => y > 0);
    if (this.logarithmic && positive.length)
      return logScale(Math.min(...positive), Math.max(...positive), positive.length < ys.length);
    return linearScale(this.options.zero ? Math.min(0, ...ys) : Math.min(...ys), Math.max(...ys), 4);
  }

  /**
   * @param {number} at
   * @param {(value: number) => number} x
   * @param {(value: number) => number} y
   * @returns {SVGElement[]}
   */
  #marks(at, x, y) {
    const dots = this.options.series.flatMap((series, index) => {
      const point = this.#hidden.has(series.name) ? undefined : series.points.find(([place]) => place === at);
      return point ? [svg('circle', {cx: x(at), cy: y(point[1]), r: 4.5, class: `mark series-${index % 8}`})] : [];
    });
    return [svg('line', {x1: x(at), x2: x(at), y1: TOP, y2: HEIGHT - BOTTOM, class: 'here'}), ...dots];
  }

  /** @returns {HTMLElement} */
  #legend() {
    const keys = this.options.series.map(({name}, index) => {
      const button = html(
        'button',
        {type: 'button', class: 'key', 'aria-pressed': 'true', onclick: () => this.#toggle(name, button)},
        html('span', {class: `swatch series-${index % 8}`}),
        name,
      );
      return button;
    });
    const bounded = this.options.series.some(({points}) => points.some(([, , low]) => low !== undefined));
    const note = bounded ? html('span', {class: 'note'}, 'shaded: 95% interval') : null;
    return html('div', {class: 'keys', role: 'group', 'aria-label': 'Lines'}, ...keys, note);
  }

  /** @returns {HTMLElement} */
  #table() {
    const {series, format, xName} = this.options;
    const head = html(
      'tr',
      {},
      html('th', {scope: 'col'}, xName),
      ...series.map(({name}) => html('th', {scope: 'col'}, name)),
    );
    const rows = this.xs.map((x) => {
      const cells = series.map(({points}) => html('td', {}, formatAt(points, x, format)));
      return html('tr', {}, html('th', {scope: 'row'}, WHOLE.format(x)), ...cells);
    });
    const box = html(
      'div',
      {class: 'figures-box', tabindex: 0, role: 'region', 'aria-label': `${this.options.title}: values`},
      html('table', {}, html('thead', {}, head), html('tbody', {}, ...rows)),
    );
    return html('details', {}, html('summary', {}, 'Values'), box);
  }

  /**
   * @param {string} name
   * @param {HTMLElement} button
   */
  #toggle(name, button) {
    if (!this.#hidden.delete(name)) this.#hidden.add(name);
    button.setAttribute('aria-pressed', String(!this.#hidden.has(name)));
    this.#draw();
  }

  /** @param {HTMLElement} button */
  #toggleScale(button) {
    this.logarithmic = !this.logarithmic;
    button.setAttribute('aria-pressed', String(this.logarithmic));
    this.#draw();
  }

  /** @param {PointerEvent} event */
  #point(event) {
    const at = event.clientX - this.canvas.getBoundingClientRect().left;
    const distances = this.xs.map((x) => Math.abs((this.place?.(x) ?? 0) - at));
    this.#show(distances.indexOf(Math.min(...distances)));
  }

  /** @param {KeyboardEvent} event */
  #walk(event) {
    const last = this.xs.length - 1;
    const to = {ArrowLeft: (this.#at ?? last + 1) - 1, ArrowRight: (this.#at ?? -1) + 1, Home: 0, End: last}[event.key];
    if (to === undefined || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    this.#show(Math.max(0, Math.min(last, to)));
  }

  /** @param {number | null} at index into the xs whose values to show */
  #show(at) {
    this.#at = at;
    this.#draw();
    this.tip.hidden = at === null;
    if (at === null) return;
    const x = this.xs[at];
    const lines = this.options.series.map(({name, points}, index) => {
      const text = this.#hidden.has(name) ? '' : formatAt(points, x, this.options.format);
      return text
        ? html('p', {}, html('span', {class: `swatch series-${index % 8}`}), name, html('b', {}, text))
        : null;
    });
    this.tip.replaceChildren(
      html('p', {class: 'x'}, `${this.options.xName} ${WHOLE.format(x)}`),
      ...lines.filter((line) => line !== null),
    );
    const place = this.place?.(x) ?? 0;
    const left = place > this.#width / 2;
    this.tip.style.left = left ? 'auto' : `${place + 12}px`;
    this.tip.style.right = left ? `${this.#width - place + 12}px` : 'auto';
    this.#describe(at);
  }

  /** @param {number} at */
  #describe(at) {
    const x = this.xs[at];
    const values = this.#visible.flatMap(({name, points}) => {
      const text = formatAt(points, x, this.options.format);
      return text ? [`${name} ${text}`] : [];
    });
    this.canvas.setAttribute('aria-valuenow', String(at));
    this.canvas.setAttribute('aria-valuetext', `${this.options.xName} ${WHOLE.format(x)}: ${values.join(', ')}`);
  }
}

/**
 * @param {Series[]} series
 * @returns {number[]} all values and bounds
 */
const valuesOf = (series) =>
  series.flatMap(({points}) => points.flatMap(([, ...ys]) => ys.filter((y) => y !== undefined)));

/**
 * @param {Point[]} points
 * @param {number} x
 * @param {(y: number) => string} format
 * @returns {string} such as `568 (285 to 851)`; empty if there is no value
 */
function formatAt(points, x, format) {
  const [, y, low, high] = points.find(([at]) => at === x) ?? [];
  if (y === undefined) return '';
  return format(y) + (low === undefined || high === undefined ? '' : ` (${format(low)} to ${format(high)})`);
}

/**
 * @param {Series} series
 * @param {number} index
 * @param {(value: number) => number} x
 * @param {(value: number) => number} y
 * @returns {SVGElement}
 */
function drawSeries({points}, index, x, y) {
  const places = points.map(([at, value]) => `${x(at).toFixed(1)} ${y(value).toFixed(1)}`);
  const dots =
    points.length > 40 ? [] : places.map((place) => svg('circle', {r: 2.4, transform: `translate(${place})`}));
  const bounded = points.filter(([, , low]) => low !== undefined);
  const edges = [2, 3].map((bound) => bounded.map((point) => `${x(point[0])} ${y(point[bound] ?? point[1])}`));
  const around = [...edges[0], ...edges[1].reverse()].join(' L ');
  const band = around ? svg('path', {class: 'band', d: `M ${around} Z`}) : '';
  return svg('g', {class: `series series-${index % 8}`}, band, svg('path', {d: `M ${places.join(' L ')}`}), ...dots);
}
