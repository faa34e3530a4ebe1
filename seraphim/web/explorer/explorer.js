/** The explorer: a board to play on and the analysis of its position. Connects session, engine and views. */

import {readAddress} from '../shared/address.js';
import {BoardView} from '../board/board.js';
import {CandidateTable, MOST_ROWS} from '../analysis/candidates.js';
import {listModels, openConnection, readConfig} from '../engine/connection.js';
import {prepareControls, showControls, showModels} from './controls.js';
import {CHANCE, mistakeOf, playerOf, reviewLine, worthOf} from '../analysis/values.js';
import {prepareDialogs} from './dialogs.js';
import {byId} from '../shared/dom.js';
import {Engine} from '../engine/client.js';
import {ExpectationBar} from '../analysis/expectation.js';
import {formatCount, formatResult, formatSeconds, gameTitle, playerNames, winnersOf} from '../shared/format.js';
import {ValueGraph, amongMany, betweenTwo, ofOne} from '../analysis/graph.js';
import {toOpinions} from '../board/marks.js';
import {MoveList} from './move_list.js';
import {announce, clearNotices, notify, offer, sentence, showConnection, textOf} from '../shared/notices.js';
import {readPreferences, writePreferences} from '../shared/preferences.js';
import {Session} from './session.js';
import {Scheduler} from '../analysis/scheduler.js';

/**
 * @typedef {import('./game_tree.js').GameNode} GameNode
 * @typedef {import('../shared/types.js').Model} Model
 */

const ADDRESS_DELAY = 120; // milliseconds: browsers limit how often the address changes

const preferences = readPreferences();
const engine = new Engine(openConnection());
const session = new Session(engine, showPosition);
const scheduler = new Scheduler(session, showAnalysis, fail);
/** @type {Model[]} */
let models = [];
let shownGame = '';
let solutionWanted = false;
let solutionAsked = false; // and not answered yet
let addressTimer = 0;
/** @type {GameNode | null} the position shown before */
let before = null;
/** @type {{node: GameNode, action: number} | null} a move made before its position was known */
let premove = null;

const board = new BoardView(byId('board'), (action) => makeMove(action));
const bar = new ExpectationBar(byId('expectation'));
const table = new CandidateTable(byId('candidates'), byId('more-moves'), {
  play: (action) => makeMove(action),
  preview: (candidate) => board.write({variation: candidate?.actions ?? []}),
});
const graph = new ValueGraph(byId('graph'), (ply) => walkTo(session.tree.line()[ply]));
const moves = new MoveList(byId('moves'), {
  choose: (node) => walkTo(node),
  look: (node) => ({player: playerOf(node), doubtful: Boolean(mistakeOf(node))}),
});

/** @param {unknown} error */
function fail(error) {
  notify(textOf(error));
}

/** @returns {string[]} of the players */
function names() {
  const {style, initial, game} = session;
  return playerNames(style, initial?.board ?? null, preferences.flipped, game?.num_players);
}

/** @returns {number | null} the points that a result of 1 is in this game, for one player at least 1 */
const pointsOfGame = () => session.game?.points ?? (session.game?.num_players === 1 ? 1 : null);

/**
 * @param {GameNode} node not the root
 * @returns {string} who made its move
 */
const moverName = (node) => names()[playerOf(node)] ?? 'Chance';

/** Show another position and start the engine on it. */
function showPosition() {
  const {node} = session;
  const {position} = node;
  if (!position) return;
  if (shownGame !== session.game?.name) beginGame();
  const stepped = node.parent === before;
  before = node;
  document.documentElement.dataset.style = session.style;
  byId('analysis').style.setProperty('--rows', String(Math.min(session.game?.num_actions ?? 0, MOST_ROWS)));
  const title = gameTitle(session.game?.name ?? '');
  byId('title').textContent = `${title}, Explorer`;
  document.title = `${title} · Seraphim`;
  board.write({variation: [], opinions: new Map(), solution: null});
  scheduler.offer();
  showBoard(stepped);
  clearTimeout(addressTimer);
  addressTimer = window.setTimeout(() => history.replaceState(null, '', session.address()), ADDRESS_DELAY);
  byId('to-history').setAttribute('href', `history.html${session.address()}`);
  const last = node.parent ? `${moverName(node)}: ${node.label}. ` : '';
  announce(last + statusText());
  if (premove?.node === node) makeMove(premove.action);
}

/** Let the user begin in a game that follows another one. */
function beginGame() {
  scheduler.players = names().map((_, player) => (player ? 'computer' : scheduler.players[0]));
  if (shownGame) {
    scheduler.players[0] = 'human';
    scheduler.rolls = true;
    preferences.flipped = false;
    writePreferences(preferences);
    document.documentElement.removeAttribute('data-flipped');
  }
  shownGame = session.game?.name ?? '';
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
    playable: scheduler.isHumanTurn,
    animate,
    last: position.last,
    move: node.label,
    rolled: session.tree.path().findLast((each) => each.parent && playerOf(each) === CHANCE)?.label,
    before: node.parent?.position?.board ?? null,
    initial: initial ?? position,
  });
  showAnalysis();
}

/** Show the engine's latest numbers and everything that depends on them. */
function showAnalysis() {
  const {node, tree} = session;
  const {position, analysis} = node;
  if (!position) return;
  const playable = scheduler.isHumanTurn;
  const solution = hasSolution() ? node.solution : null;
  const judged = position.ended ? null : analysis;
  board.write({opinions: judged ? toOpinions(judged, preferences.metric) : new Map(), solution});
  const isMany = names().length > 2;
  const each = /** @type {HTMLInputElement} */ (byId('each')).checked;
  table.show(judged, solution, playable, pointsOfGame(), isMany && each ? names() : []);
  const line = reviewLine(tree.line());
  const points = line.map(({node, value, values, mistake}) => {
    return {value, values, player: node.parent ? playerOf(node) : 0, label: node.label, doubtful: Boolean(mistake)};
  });
  const worth = worthOf(node)?.value ?? null;
  if (isMany) {
    listSeats().catch(fail);
    graph.show(points, node.ply, amongMany(names(), pointsOfGame()));
  } else if (names().length > 1) {
    bar.show(worth, names());
    graph.show(points, node.ply, betweenTwo(names()));
  } else {
    bar.showOne(worth, position.banked?.[0] ?? 0, pointsOfGame() ?? 1);
    graph.show(points, node.ply, ofOne(points.map(({value}) => value), pointsOfGame() ?? 1));
  }
  moves.show(tree.root, node, line.map(({mistake}) => Boolean(mistake)).join() + preferences.flipped);
  listWorst(line.at(-1)?.node === scheduler.reviewed && names().length > 1 ? line : []).catch(fail);
  byId('goal').textContent = goalText();
  byId('status').textContent = statusText();
  byId('turn-dot').className = position.ended || position.chances ? 'dot none' : `dot player-${position.to_play}`;
  byId('figures').textContent = judged ? figures(judged) : '';
  byId('engine').textContent = session.engineText;
  byId('solution-note').textContent = solutionNote();
  byId('nothing').textContent = emptyText();
  showControls({session, scheduler, preferences, models, names: names(), solutionWanted});
  void askSolution();
}

/** Show what each of more than two players can expect. */
async function listSeats() {
  const {showSeats} = await import('./seats.js');
  const {position} = session.node;
  if (!position || names().length <= 2) return; // of another game by now
  const {values = null, exact = false} = worthOf(session.node) ?? {};
  const mover = position.ended || position.chances ? null : position.to_play;
  const {players} = scheduler;
  const seats = {names: names(), players, program: session.program, mover, values, exact, points: pointsOfGame()};
  showSeats(byId('seats'), seats, (player, choice) => {
    scheduler.seat(player, choice);
    offerAgain();
  });
}

/** Let the scheduler decide what the engine does now. */
function offerAgain() {
  clearNotices(false);
  scheduler.offer();
  showBoard(false);
}

/** @param {ReturnType<typeof reviewLine>} line empty if the game was not analyzed */
async function listWorst(line) {
  const element = byId('worst');
  if (!line.length && !element.hasChildNodes()) return;
  const {showWorst} = await import('../analysis/worst_moves.js');
  showWorst(element, line, names(), session.node, walkTo);
}

/** @returns {boolean} whether exact results are wanted, and there are any of this game */
function hasSolution() {
  return solutionWanted && Boolean(session.game?.solved);
}

/**
 * @param {import('../shared/types.js').Analysis} analysis
 * @returns {string} `1,234 readouts · 5,678/s · 0.25 s`, or `ends of turns: 31 · 0.05 s`
 */
function figures({readouts, readouts_per_second: speed, seconds, proven}) {
  if (session.game?.by_turns) return `ends of turns: ${formatCount(readouts)} · ${formatSeconds(seconds)}`;
  if (proven) return `${formatCount(readouts)} readouts · exact`;
  return `${formatCount(readouts)} readouts · ${formatCount(speed)}/s · ${formatSeconds(seconds)}`;
}

/** @returns {string} the reason for an empty table */
function emptyText() {
  const {position, analysis} = session.node;
  if (scheduler.failure) return sentence(scheduler.failure);
  if (position?.ended) return 'The game is over: nothing to analyze.';
  if (position?.chances) return 'Chance moves: the analysis goes on after it.';
  return analysis || scheduler.busy ? '' : 'Switch the analysis on to see what the model thinks of each move.';
}

/** @returns {string} the rules in a sentence, and whom the user plays */
function goalText() {
  const you = soleHuman();
  const isAlone = names().length === 1;
  return [session.game?.goal, you === null || isAlone ? '' : `You are ${names()[you]}.`].filter(Boolean).join(' ');
}

/** @returns {string} */
function statusText() {
  const {position} = session.node;
  if (!position) return 'Loading …';
  if (scheduler.review) return scheduler.review;
  if (position.ended) {
    const moves = session.tree.path().filter((node) => node.parent && playerOf(node) !== CHANCE).length;
    return `${formatResult(position.results ?? position.result, names(), pointsOfGame())} after ${moves} moves${verdict()}`;
  }
  if (position.chances) return scheduler.rolls && scheduler.running ? 'Chance moves …' : 'Chance moves';
  const isAlone = names().length === 1;
  const name = isAlone ? 'The computer' : names()[position.to_play];
  const mustPass = position.legal.length === 1 && position.labels[position.legal[0]] === 'pass';
  if (scheduler.players[position.to_play] === 'human' && isAlone) return 'Your move';
  if (scheduler.players[position.to_play] === 'human') return mustPass ? `${name} must pass` : `${name} to move`;
  if (scheduler.players[position.to_play] === 'computer') return `${name} ${scheduler.running ? 'is thinking …' : 'is waiting'}`;
  return scheduler.running ? `${session.program} is thinking …` : `${session.program} is waiting`;
}

/** @returns {string} what the end of a game means to the user who played it */
function verdict() {
  const {result, results} = /** @type {import('../shared/types.js').Position} */ (session.node.position);
  const you = soleHuman();
  if (result === null || you === null || names().length === 1) return '';
  const winners = winnersOf(results ?? result);
  if (!winners.includes(you)) return ': you lose';
  return winners.length === 1 ? ': you win!' : '';
}

/** @returns {number | null} the player that the user plays; null if that is several or none */
function soleHuman() {
  const you = scheduler.players.indexOf('human');
  return you >= 0 && you === scheduler.players.lastIndexOf('human') ? you : null;
}

/** @param {number} action of the user; played as soon as the position is known */
function makeMove(action) {
  const {node} = session;
  premove = node.position ? null : {node, action};
  if (premove || !scheduler.isHumanTurn || !node.position?.legal.includes(action)) return;
  clearNotices();
  scheduler.running = true;
  session.play(action).catch(fail);
}

/**
 * Go to a position of the game and pause the computer.
 * @param {GameNode | null | undefined} node
 */
function walkTo(node) {
  if (!node || node === session.node) return;
  clearNotices(false);
  scheduler.running = false;
  session.go(node).catch(fail);
}

/** Request the exact results of the current position, one position at a time. */
async function askSolution() {
  const {node} = session;
  const known = node.solution || node.solutionError || !node.position || node.position.ended || node.position.chances;
  if (solutionAsked || known || !hasSolution() || scheduler.review) return;
  solutionAsked = true;
  await session.solve(node);
  solutionAsked = false;
  showAnalysis(); // which asks for those of the position that is current by now
}

/** @returns {string} progress or failure of the solver */
function solutionNote() {
  const {node} = session;
  if (!hasSolution() || node.solution || node.position?.ended || node.position?.chances) return '';
  return node.solutionError || 'Solving …';
}

/**
 * Do what replaces the game. What it replaces can be brought back; if it is refused, that stays.
 * @param {string} done what to say then
 * @param {boolean} running whether the computer moves at once, if it is its turn
 * @param {() => Promise<void>} work
 */
async function replace(done, running, work) {
  const [before, ran] = [session.before, scheduler.running];
  scheduler.running = running;
  try {
    await work();
    clearNotices();
  } catch (error) {
    scheduler.running = ran;
    throw error;
  } finally {
    if (session.before !== before && session.before) offer(done, 'Undo', () => restore().catch(fail));
  }
}

/** Bring back the game that was replaced last. */
function restore() {
  scheduler.reset();
  return replace('Brought back the earlier game.', false, () => session.restore());
}

/**
 * Open a model and show a position. Until it is there, the page takes no other command.
 * @param {string} model
 * @param {string | null} snapshot
 * @param {import('../shared/address.js').Address | null} address of the position; see `Session.open`
 * @param {boolean} running
 */
async function open(model, snapshot, address, running) {
  byId('explorer').inert = true;
  scheduler.reset();
  try {
    await replace(`Opened ${model}.`, running, () => session.open(model, snapshot, address));
  } catch (error) {
    if (session.game) showPosition(); // and its address, and the engine's work
    throw error;
  } finally {
    byId('explorer').inert = !session.game;
  }
}

/**
 * Open the model and the position of a link; without one, the first model. If the link leads into a game, the computer
 * waits. What a link cannot have is left out: its snapshot, and where nothing is shown yet its position or its model.
 * @param {import('../shared/address.js').Address} address
 */
async function follow(address) {
  const name = address.model ?? (session.model || models[0]?.name);
  if (!name) throw new Error('There are no models yet: create one with seraphim learn.');
  const given = {...address, model: name};
  const ways = [given, {...given, snapshot: null}];
  if (!session.game) ways.push(...[name, models[0]?.name].map((model) => ({...readAddress(''), model})));
  let first = null;
  for (const way of new Map(ways.map((each) => [JSON.stringify(each), each])).values()) {
    if (!session.game) showModels(way, models);
    try {
      if (!models.some((each) => each.name === way.model)) throw new Error(`there is no model “${way.model}” here`);
      await open(way.model, way.snapshot, way, !(way.moves || way.start || way.board));
      if (first) fail(first);
      return;
    } catch (error) {
      first ??= error;
    }
  }
  throw first;
}

/** @returns {{link: string, moves: string, drawing: string}} the current position in shareable forms */
function share() {
  const address = session.address();
  const drawing = session.node.position?.text ?? '';
  return {link: new URL(address, location.href).href, moves: session.moves(), drawing};
}

/** @returns {{what: string, example: string}} what can be loaded */
function loadable() {
  const {moves, drawing} = share();
  const first = Object.values(session.initial?.labels ?? {}).slice(0, 3).join(' ');
  const files = readConfig() ? [] : ['a saved game', 'SGF'];
  const drawings = session.game?.reads_drawings;
  return {
    what: ['Moves', ...files, ...(drawings ? ['a board diagram'] : []), 'or a link to this page'].join(', '),
    example: `${moves || first}${drawings ? `\n\n${drawing}` : ''}`,
  };
}

/** Show what the page's link leads to; if that is not possible, say why, and offer to try again. */
async function begin() {
  byId('status').textContent = statusText();
  try {
    models = await listModels();
    await follow(readAddress(location.hash));
  } catch (error) {
    byId('status').textContent = 'Nothing is loaded.';
    offer(textOf(error), 'Try again', begin, false);
  }
}

function start() {
  byId('each').addEventListener('change', showAnalysis);
  engine.onstatus = (status, reason) => showConnection(status === 'lost', reason);
  byId('to-history').hidden = readConfig() !== null;
  const save = () => {
    writePreferences(preferences);
    document.documentElement.toggleAttribute('data-flipped', preferences.flipped);
    showBoard(false);
  };
  prepareControls({
    session,
    scheduler,
    preferences,
    save,
    fail,
    makeMove,
    walkTo,
    open,
    replace,
    restore,
    offer: offerAgain,
    setSolution: (on) => {
      if (session.game?.solved) solutionWanted = on; // the key also works while the switch is hidden
      session.node.solutionError = '';
      showAnalysis();
    },
  });
  const load = (/** @type {string} */ text) => replace('Loaded the text.', false, () => session.load(text));
  const setShortcuts = (/** @type {boolean} */ on) => {
    preferences.shortcuts = on;
    save();
  };
  prepareDialogs({load, follow, share, loadable, setShortcuts}, preferences.shortcuts);
  document.documentElement.toggleAttribute('data-flipped', preferences.flipped);
  addEventListener('hashchange', () => (session.game ? follow(readAddress(location.hash)).catch(fail) : begin()));
  void begin();
}

start();
