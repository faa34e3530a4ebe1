/** The history page: a model's learning curves and self-play games. */

import {fetchJson} from '../shared/api.js';
import {readAddress} from '../shared/address.js';
import {listModels} from '../engine/connection.js';
import {axesOf, drawCurves, drawTiles} from './curves.js';
import {byId, html, setOptions} from '../shared/dom.js';
import {GameList} from './game_list.js';
import {clearNotices, notify, offer, textOf} from '../shared/notices.js';
import {Replay} from './replay.js';

/** @param {unknown} error */
const fail = (error) => notify(textOf(error));

/** @param {() => Promise<void>} work that the page shows nothing without: if it fails, it can be tried again */
async function attempt(work) {
  const mine = ++attempts;
  clearNotices();
  clear();
  try {
    await work();
  } catch (error) {
    if (mine !== attempts) return;
    say('Nothing is loaded.');
    offer(textOf(error), 'Try again', () => attempt(work), false);
  }
}

const select = /** @type {HTMLSelectElement} */ (byId('model'));
const replay = new Replay();
const games = new GameList((game) => choose(game.game_id).catch(fail), fail);
/** @type {import('./curves.js').Curves | null} */
let curves = null; // until they are loaded
let attempts = 0;
let choices = 0; // of games and models: a game that arrives after a later one is dropped

/** @returns {HTMLInputElement[]} */
const axes = () => [...byId('axis').querySelectorAll('input')];

/** @param {string} id of a game of the selected model */
async function choose(id) {
  const [model, choice] = [select.value, ++choices];
  const game = await fetchJson(`api/models/${encodeURIComponent(model)}/games/${encodeURIComponent(id)}`);
  if (choice !== choices) return;
  clearNotices();
  games.mark(id);
  await replay.open(model, game);
}

/** @param {string} text in place of the curves */
const say = (text) => byId('plots').replaceChildren(html('p', {class: 'panel nothing'}, text));

/** Show nothing of the model shown so far. */
function clear() {
  choices++;
  curves = null;
  byId('tiles').replaceChildren();
  games.clear();
  replay.close();
  say('Loading …');
}

/** Draw the curves over the selected axis. */
function drawAll() {
  if (!curves) return;
  const axis = /** @type {import('./curves.js').Axis} */ (axes().find((input) => input.checked)?.value ?? 'steps');
  const plots = drawCurves(curves, axis);
  byId('plots').replaceChildren(...plots);
  if (plots.length) return;
  const begun = Object.values(curves).some(({length}) => length);
  if (begun) say('No curve has two points yet: each generation of seraphim learn adds one.');
  else say('This model has no learning curves yet: seraphim learn writes them.');
}

/** @param {string} name of the model */
async function show(name) {
  byId('title').textContent = `Learning history of ${name}`;
  const came = readAddress(location.hash).model === name ? location.hash : ''; // with the game that is played there
  const address = came || `#model=${encodeURIComponent(name)}`;
  byId('to-explorer').setAttribute('href', `./${address}`);
  history.replaceState(null, '', address);
  const [answer, first] = await Promise.all([
    fetchJson(`api/models/${encodeURIComponent(name)}/curves`),
    games.show(name),
  ]);
  if (name !== select.value) return;
  const known = axesOf(answer.series);
  for (const input of axes()) {
    const offered = known.includes(/** @type {import('./curves.js').Axis} */ (input.value));
    /** @type {HTMLElement} */ (input.parentElement).hidden = !offered;
    if (input.checked && !offered) axes()[0].checked = true;
  }
  byId('axis').hidden = known.length < 2;
  curves = answer.series;
  byId('tiles').replaceChildren(...drawTiles(answer.series, games.total));
  drawAll();
  if (first.length) await choose(first[0].game_id).catch(fail);
}

async function start() {
  const models = await listModels();
  if (!models.length) throw new Error('There are no models yet: create one with seraphim learn.');
  const wanted = readAddress(location.hash).model;
  const name = models.find((model) => model.name === wanted)?.name ?? models[0].name;
  setOptions(
    select,
    models.map((model) => [model.name, model.name]),
    name,
  );
  await show(name);
  if (wanted && wanted !== name) notify(`there is no model “${wanted}” here: this is ${name}`);
}

select.addEventListener('change', () => attempt(() => show(select.value)));
for (const input of axes()) input.addEventListener('change', drawAll);
void attempt(start);
