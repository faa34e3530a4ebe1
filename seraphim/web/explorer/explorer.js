/** The explorer: a board to play on, and what the search thinks of it. Joins session, engine and views. */

import {readAddress} from '../shared/address.js';
import {BoardView} from '../board/board.js';
import {CandidateTable} from '../analysis/candidates.js';
import {listModels, openConnection, readConfig} from '../engine/connection.js';
import {prepareControls, showControls} from './controls.js';
import {isDoubtful, playerOf, valueOf} from '../analysis/values.js';
import {prepareDialogs} from './dialogs.js';
import {byId} from '../shared/dom.js';
import {Engine} from '../engine/client.js';
import {ExpectationBar} from '../analysis/expectation.js';
import {formatCount, formatResult, formatSeconds, gameTitle, playerNames} from '../shared/format.js';
import {ValueGraph} from '../analysis/graph.js';
import {toOpinions} from '../board/marks.js';
import {MoveList} from './move_list.js';
import {announce, notify, showConnection} from '../shared/notices.js';
import {readPreferences, writePreferences} from '../shared/preferences.js';
import {Session} from './session.js';
import {Thinking} from '../analysis/scheduler.js';

/**
 * @typedef {import('./game_tree.js').GameNode} GameNode
 * @typedef {import('../shared/types.js').Model} Model
 */

const ADDRESS_DELAY = 120; // milliseconds: browsers allow few changes of the address a second

const preferences = readPreferences();
const engine = new Engine(openConnection());
const session = new Session(engine, showPosition);
const thinking = new Thinking(session, showThoughts, fail);
/** @type {Model[]} */
let models = [];
let truthWanted = false;
let truthAsked = false; // and not answered
let addressTimer = 0;
/** @type {GameNode | null} the position that the board showed before */
let before = null;
/** @type {{node: GameNode, action: number} | null} a move made before its position was known */
let early = null;

const board = new BoardView(byId('board'), (action) => makeMove(action));
const bar = new ExpectationBar(byId('expectation'));
const table = new CandidateTable(byId('candidates'), {
  play: (action) => makeMove(action),
  preview: (candidate) => board.write({variation: candidate?.actions ?? []}),
});
const graph = new ValueGraph(byId('graph'), (ply) => walkTo(session.tree.line()[ply]));
const moves = new MoveList(byId('moves'), {
  choose: (node) => walkTo(node),
  look: (node) => ({player: playerOf(node), doubtful: isDoubtful(node)}),
});

/** @param {unknown} error */
function fail(error) {
  notify(error instanceof Error ? error.message : String(error));
}

/** @returns {[string, string]} */
function names() {
  return playerNames(session.style, session.initial?.board ?? null, preferences.flipped);
}

/** Show another position, and let the engine turn to it. */
function showPosition() {
  const {node} = session;
  const {position} = node;
  if (!position) return;
  const stepped = node.parent === before;
  before = node;
  document.documentElement.dataset.style = session.style;
  byId('explorer').inert = false;
  board.write({variation: [], opinions: new Map(), truth: null});
  thinking.consider();
  showBoard(stepped);
  clearTimeout(addressTimer);
  addressTimer = window.setTimeout(() => history.replaceState(null, '', session.address()), ADDRESS_DELAY);
  const last = node.parent ? `${names()[playerOf(node)]}: ${node.label}. ` : '';
  announce(last + statusText());
  if (truthWanted) void askTruth();
  if (early?.node === node) makeMove(early.action);
}

/** @param {boolean} animate */
function showBoard(animate) {
  const {node} = session;
  const {position} = node;
  if (!position) return;
  const {style, initial} = session;
  board.show(position, {
    style,
    names: names(),
    playable: thinking.isPersonsTurn,
    animate,
    last: position.last,
    initial: initial ?? position,
  });
  showThoughts();
}

/** Show new numbers of the engine, and everything that depends on them. */
function showThoughts() {
  const {node, tree} = session;
  const {position, analysis} = node;
  if (!position) return;
  const playable = thinking.isPersonsTurn;
  const truth = truthWanted ? node.truth : null;
  board.write({opinions: analysis && !position.ended ? toOpinions(analysis, preferences.metric) : new Map(), truth});
  table.show(position.ended ? null : analysis, truth, playable);
  bar.show(valueOf(node), names());
  const line = tree.line();
  graph.show(
    line.map((each) => ({value: valueOf(each), label: each.label, doubtful: isDoubtful(each)})),
    node.ply,
    names(),
  );
  moves.show(tree.root, node, line.map(isDoubtful).join() + preferences.flipped);
  byId('status').textContent = statusText();
  byId('turn-dot').className = position.ended ? 'dot none' : `dot player-${position.to_play}`;
  byId('figures').textContent = analysis && !position.ended ? figures(analysis) : '';
  byId('engine').textContent = session.engineText;
  byId('truth-note').textContent = truthNote();
  byId('nothing').textContent = emptyText();
  showControls({session, thinking, preferences, models, names: names(), truthWanted});
}

/**
 * @param {import('../shared/types.js').Analysis} analysis
 * @returns {string} `1,234 readouts · 5,678/s · 0.25 s`
 */
function figures({readouts, readouts_per_second: speed, seconds, proven}) {
  if (proven) return `${formatCount(readouts)} readouts · exact`;
  return `${formatCount(readouts)} readouts · ${formatCount(speed)}/s · ${formatSeconds(seconds)}`;
}

/** @returns {string} why the table is empty */
function emptyText() {
  const {position, analysis} = session.node;
  if (position?.ended) return 'The game is over: there is nothing to analyse.';
  return analysis || thinking.busy ? '' : 'Analysis is off.';
}

/** @returns {string} */
function statusText() {
  const {position} = session.node;
  if (!position) return 'Loading …';
  if (position.ended) return `${formatResult(position.result, names())} after ${session.node.ply} moves`;
  const name = names()[position.to_play];
  if (thinking.review) return `Analysing move ${thinking.review.done + 1} of ${thinking.review.of} …`;
  if (thinking.players[position.to_play] === 'human') return `${name} to move`;
  return thinking.running ? `${name}: the computer is thinking …` : `${name} to move, the computer waits`;
}

/** @param {number} action of a person: the game goes on from here, or, of a position not yet known, as soon as it is */
function makeMove(action) {
  const {node} = session;
  early = node.position ? null : {node, action};
  if (early || !thinking.isPersonsTurn || !node.position?.legal.includes(action)) return;
  thinking.running = true;
  session.play(action).catch(fail);
}

/**
 * Show a position of the game; the computer waits there.
 * @param {GameNode | null | undefined} node
 */
function walkTo(node) {
  if (!node || node === session.node) return;
  thinking.running = false;
  session.go(node).catch(fail);
}

/** Ask for the exact results of the position shown, one position after the other. */
async function askTruth() {
  const {node} = session;
  const known = node.truth || node.untold || !node.position || node.position.ended;
  if (truthAsked || known || !truthWanted || thinking.review || !session.game?.solved) return;
  truthAsked = true;
  try {
    await session.tell(node);
    if (session.told === node) node.truth = await engine.truth();
  } catch (error) {
    node.untold = error instanceof Error ? error.message : String(error);
  }
  truthAsked = false;
  showThoughts();
  if (node !== session.node) await askTruth();
}

/** @returns {string} what is to be said of the truth, beside the results */
function truthNote() {
  const {node} = session;
  if (!truthWanted || node.truth || node.position?.ended) return '';
  return node.untold || 'Solving …';
}

/**
 * Open the model and the position that a link names; without a link, the first model. Where the link leads into a game,
 * the computer waits until a person has seen it.
 * @param {import('../shared/address.js').Address} address
 */
async function follow(address) {
  const name = address.model ?? session.model;
  const model = models.find((each) => each.name === name) ?? models[0];
  if (!model) throw new Error('There is no model yet: bin/learn.py makes one.');
  const found = !address.model || model.name === address.model;
  if (!found) notify(`there is no model “${address.model}” here: this is ${model.name}`);
  thinking.reset();
  thinking.running = !(address.moves || address.start || address.board);
  await session.open(model.name, address.snapshot, found ? address : null);
  byId('title').textContent = `${gameTitle(session.game?.name ?? '')}, explorer`;
  document.title = `${gameTitle(session.game?.name ?? '')} · Seraphim`;
}

/** @returns {{link: string, moves: string, drawing: string}} the position shown, to be taken elsewhere */
function share() {
  const address = session.address();
  const drawing = session.node.position?.text ?? '';
  return {link: new URL(address, location.href).href, moves: session.moves(), drawing};
}

/** @returns {string} of what can be loaded */
function example() {
  const {moves, drawing} = share();
  const first = Object.values(session.initial?.labels ?? {}).slice(0, 3).join(' ');
  return `${moves || first}\n\n${drawing}`;
}

async function start() {
  engine.onstatus = (status) => showConnection(status === 'lost');
  engine.onerror = fail;
  byId('to-learnt').hidden = readConfig() !== null;
  const save = () => {
    writePreferences(preferences);
    document.documentElement.toggleAttribute('data-flipped', preferences.flipped);
    showBoard(false);
  };
  prepareControls({
    session,
    thinking,
    preferences,
    save,
    fail,
    makeMove,
    walkTo,
    follow,
    consider: () => {
      thinking.consider();
      showBoard(false);
    },
    setTruth: (on) => {
      truthWanted = on;
      showThoughts();
      if (on) void askTruth();
    },
    models: () => models,
  });
  const load = (/** @type {string} */ text) => {
    thinking.running = false;
    return session.load(text);
  };
  const setShortcuts = (/** @type {boolean} */ on) => {
    preferences.shortcuts = on;
    save();
  };
  prepareDialogs({load, follow, share, example, setShortcuts}, preferences.shortcuts);
  document.documentElement.toggleAttribute('data-flipped', preferences.flipped);
  addEventListener('hashchange', () => follow(readAddress(location.hash)).catch(fail));
  models = await listModels();
  await follow(readAddress(location.hash));
}

start().catch(fail);
