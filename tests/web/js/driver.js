/**
 * Runs what the tests of the engine ask for: reads one JSON object from standard input, writes one to standard output.
 *
 *     {"rules": URL of a rules.js, "task": "search" | "rules" | "solve" | "conversation" | "review" | "results", ...}
 */

import {readFileSync} from 'node:fs';
import {Conversation} from '../../../seraphim/web/engine/conversation.js';
import {Search} from '../../../seraphim/web/engine/search.js';
import {GameTree} from '../../../seraphim/web/explorer/game_tree.js';
import {mistakeOf, reviewLine} from '../../../seraphim/web/analysis/values.js';
import {worstMoves} from '../../../seraphim/web/analysis/worst_moves.js';
import {formatResult} from '../../../seraphim/web/shared/format.js';
import {exactResults} from '../../../seraphim/web/engine/solver.js';
import {evaluate} from './hash_network.js';

const request = JSON.parse(readFileSync(0, 'utf8'));
const {default: only, named} = await import(request.rules);
const game = request.game ? named(request.game) : only;

/** Plays all readouts; returns what the search found, in the form of `found` in tests/web/test_js_search.py. */
function run(search, readouts) {
  const observation = new Uint8Array(game.observationShape.reduce((cells, length) => cells * length, 1));
  search.begin(readouts);
  for (let leaf = search.advance(); leaf !== null; leaf = search.advance()) {
    game.observe(leaf, observation);
    const told = request.outputs?.[game.toWords(leaf).join()];
    const {logits, value} = told ? {logits: told.slice(0, -1), value: told.at(-1)} : evaluate(game, observation);
    search.supply(logits, value);
  }
  const visits = new Array(game.numActions).fill(0);
  for (const candidate of search.candidates) visits[candidate.action] = candidate.visits;
  const {best, value, values, proven, candidates} = search;
  return {visits, best, value, values, proven, candidates};
}

/**
 * Searches each position; then, where asked, goes on to its best successor, where chance moves by the first of the
 * likeliest outcomes, and searches that with what is known.
 */
function searches() {
  return request.states.map((words) => {
    const search = new Search(game, request.options);
    search.start(game.fromWords(words));
    const found = [run(search, request.readouts)];
    for (let more = 0; more < (request.moves ?? 0); more += 1) {
      search.play(search.best);
      while (!game.outcome(search.state).ended && game.toPlay(search.state) < 0) {
        const chances = game.chances(search.state);
        search.play(chances.indexOf(Math.max(...chances)));
      }
      if (game.outcome(search.state).ended) break;
      found.push(run(search, request.readouts));
    }
    return found;
  });
}

/** All that the rules say along games, each a list of actions. */
function games() {
  return request.games.map((actions) => {
    const told = [];
    let state = game.initial();
    for (const action of [...actions, null]) {
      const observation = new Uint8Array(game.observationShape.reduce((cells, length) => cells * length, 1));
      if (game.toPlay(state) >= 0) game.observe(state, observation);
      const words = game.toWords(state);
      told.push({
        words,
        legal: game.legal(state),
        to_play: game.toPlay(state),
        outcome: game.outcome(state),
        numbers: [game.numActions, game.numPlayers ?? 2, game.maxPlies, game.valueScale ?? 1],
        observation: [...observation],
        board: game.board?.(state) ?? null,
        text: game.text(state),
        line: game.line?.(state) ?? [],
        again: game.toWords(game.fromWords(words)),
        known: game.outcome(state).ended ? null : (game.knownResult?.(state) ?? null),
        progress: game.progress?.(state) ?? null,
        same: game.key(game.fromWords(words)) === game.key(state),
        drawn: game.fromDrawing ? game.toWords(game.fromDrawing(game.text(state))) : null,
        chances: game.chances?.(state) ?? null,
        labels: (game.chances?.(state) ?? []).map((_, outcome) => game.chanceLabel(state, outcome)),
        banked: game.banked?.(state) ?? null,
      });
      if (action !== null) state = game.step(state, action);
    }
    return told;
  });
}

/** The exact results of the moves in each position. */
const solved = () => request.states.map((words) => all(exactResults(game, game.fromWords(words))));

/** What a generator returns in the end. */
function all(steps) {
  let step = steps.next();
  while (!step.done) step = steps.next();
  return step.value;
}

/** What the page makes of games: of what is known about each position, and of the moves, in order. */
function review() {
  return request.games.map(({known, moves}) => {
    const tree = new GameTree();
    for (const [action, label] of moves) tree.play(action, label);
    for (const [ply, node] of tree.line().entries()) Object.assign(node, known[ply]);
    const line = reviewLine(tree.line());
    const toMove = ({node, lost, better}) => [node.ply, node.label, lost, better];
    return {
      values: line.map(({value, values}) => values ?? value),
      worst: Array.from({length: game.numPlayers ?? 2}, (_, player) => player).map((player) => worstMoves(line, player).map(toMove)),
      marked: tree.line().filter((node) => mistakeOf(node)).map(({ply}) => ply),
    };
  });
}

/** What pages call results. */
const results = () => request.results.map((result) => formatResult(result, request.names));

/** Everything that the engine says to the messages of a page, of which each waits for the answer to the one before. */
async function conversation() {
  const said = [];
  const answers = [];
  const waiting = new Map();
  const network = {description: 'hash', evaluate: async (observation) => evaluate(game, observation)};
  const openModel = async (name) => {
    if (name !== 'hash') throw new Error(`there is no model ${name}`);
    return {snapshot: 'one', game, options: request.options ?? {}, network};
  };
  const send = (message) => {
    said.push(message);
    if (message.type !== 'analysis' || message.done) waiting.get(message.id)?.();
  };
  const told = new Conversation(openModel, send, () => new Promise(setImmediate));
  for (const message of request.messages) {
    const answered = new Promise((resolve) => waiting.set(message?.id ?? null, resolve));
    void told.handle(message);
    answers.push(answered);
    if (!message?.hurried) await answered;
  }
  await Promise.all(answers);
  return said;
}

const tasks = {search: searches, rules: games, solve: solved, conversation, review, results};
process.stdout.write(JSON.stringify(await tasks[request.task ?? 'search']()));
