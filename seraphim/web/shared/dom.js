/** Creates HTML and SVG elements in one expression. */

const SVG = 'http://www.w3.org/2000/svg';

/**
 * @typedef {Node | string | number | null | undefined} Child
 * @typedef {Record<string, unknown>} Attributes functions are listeners (`onclick`), `true` is an empty attribute,
 *     `false`, `null` and `undefined` are left out
 */

/**
 * Create an HTML element.
 * @template {keyof HTMLElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[Tag]}
 */
export function html(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/**
 * Create an SVG element.
 * @template {keyof SVGElementTagNameMap} Tag
 * @param {Tag} tag
 * @param {Attributes} [attributes]
 * @param {...Child} children
 * @returns {SVGElementTagNameMap[Tag]}
 */
export function svg(tag, attributes = {}, ...children) {
  return fill(/** @type {SVGElementTagNameMap[Tag]} */ (document.createElementNS(SVG, tag)), attributes, children);
}

/**
 * Return the element with an id, which must exist.
 * @template {HTMLElement} [Kind=HTMLElement]
 * @param {string} id
 * @returns {Kind}
 */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no element #${id}`);
  return /** @type {Kind} */ (found);
}

/**
 * Change what an element contains. What has the focus there keeps it, unless it is gone.
 * @param {HTMLElement} element
 * @param {() => void} change
 */
export function keepFocus(element, change) {
  const focused = document.activeElement;
  change();
  if (focused instanceof HTMLElement && element.contains(focused)) focused.focus({preventScroll: true});
}

/**
 * Fill a select with options and choose one.
 * @param {HTMLSelectElement} select
 * @param {Array<[value: string, text: string]>} options
 * @param {string} chosen
 */
export function setOptions(select, options, chosen) {
  select.replaceChildren(...options.map(([value, text]) => html('option', {value}, text)));
  select.value = chosen;
}

/**
 * @template {Element} Kind
 * @param {Kind} element
 * @param {Attributes} attributes
 * @param {Child[]} children
 * @returns {Kind}
 */
function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    else if (name === 'style') /** @type {HTMLElement} */ (/** @type {unknown} */ (element)).style.cssText = String(value); // which pages may set
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, String(value));
  }
  for (const child of children) {
    if (child !== null && child !== undefined) element.append(child instanceof Node ? child : String(child));
  }
  return element;
}
