/** Answers a page's messages to the engine in its browser: open, position, think, stop, load, solve. */

import {checkRequest, checkUnfinished, readText, toAnalysis, toGameInfo, toPosition, toState} from './messages.js';
import {Search} from './search.js';
import {exactResults} from './solver.js';

const MOST_NODES = 2 ** 17; // size limit of a tree
const MOST_EVALUATIONS = 100_000; // in the cache
const UPDATE_INTERVAL = 100; // milliseconds between two updates of a search
const CHECK_INTERVAL = 15; // milliseconds between two checks for messages
const CHUNK = 1000; // readouts between two checks

/** Cached network outputs by exact position; evicts the oldest when full. */
class Cache {
  #outputs = new Map();

  get(key) {
    return this.#outputs.get(key);
  }

  set(key, outputs) {
    if (this.#outputs.size >= MOST_EVALUATIONS) this.#outputs.delete(this.#outputs.keys().next().value);
    this.#outputs.set(key, outputs);
  }
}

export class Conversation {
  #openModel;
  #send;
  #pause;
  #queue = Promise.resolve(); // until the last message is answered
  #model = null; // the result of `openModel`, with `search`, `cache` and `observation`
  #line = null; // the position: {start, moves, state}
  #searched = null; // the position of the tree's root
  #thinking = Promise.resolve(); // until the last answer of the search
  #halted = false; // whether the running search is to end
  #solving = false;

  /**
   * @param {(name: string, snapshot: string | null) => Promise<{snapshot: string, game: object, options: object,
   *     network: {description: string, evaluate: Function, close?: Function}}>} openModel
   * @param {(message: object) => void} send
   * @param {() => Promise<void>} pause lets pending messages arrive
   */
  constructor(openModel, send, pause) {
    this.#openModel = openModel;
    this.#send = send;
    this.#pause = pause;
  }

  /** Answers a message; an invalid one is answered with an error. Resolves once the answer is sent. */
  handle(message) {
    this.#queue = this.#queue.then(async () => {
      try {
        await this.#answer(checkRequest(message));
      } catch (error) {
        this.#fail(Number.isInteger(message?.id) ? message.id : null, error);
      }
    });
    return this.#queue;
  }

  #fail(id, error) {
    this.#send({id, type: 'error', message: error.message});
  }

  async #answer(request) {
    const {id, type} = request;
    if (type === 'open') return this.#open(request);
    if (this.#model === null) throw new Error(`no model is open: send a message open before ${type}`);
    const {game} = this.#model;
    switch (type) {
      case 'position': {
        const {start, moves} = request;
        const line = {start, moves, state: toState(game, start, moves)};
        await this.#endSearch();
        this.#line = line;
        return this.#send({id, type, ...toPosition(game, line)});
      }
      case 'think':
        checkUnfinished(game, this.#line, 'search');
        await this.#endSearch();
        this.#thinking = this.#think(request);
        return undefined;
      case 'stop':
        await this.#endSearch();
        return this.#send({id, type: 'stopped'});
      case 'load':
        return this.#send({id, type: 'loaded', ...readText(game, request.text)});
      default:
        checkUnfinished(game, this.#line, 'solve');
        if (this.#solving) throw new Error('the solver is still working on your last request: wait for its answer');
        void this.#solve(id, game, this.#line.state);
        return undefined;
    }
  }

  /** Solves a position while other messages are answered. */
  async #solve(id, game, state) {
    this.#solving = true;
    try {
      const solving = exactResults(game, state);
      let step = solving.next();
      for (; !step.done; step = solving.next()) await this.#pause();
      this.#send({id, type: 'solve', actions: step.value});
    } catch (error) {
      this.#fail(id, error);
    }
    this.#solving = false;
  }

  async #open({id, model: name, snapshot}) {
    const model = await this.#openModel(name, snapshot);
    await this.#endSearch();
    this.#model?.network.close?.();
    const {game, options, network} = model;
    const cells = game.observationShape.reduce((product, length) => product * length, 1);
    const search = new Search(game, options);
    this.#model = {...model, search, cache: new Cache(), observation: new Uint8Array(cells)};
    this.#line = {start: null, moves: [], state: game.initial()};
    this.#searched = null;
    const info = {model: name, snapshot: model.snapshot, game: toGameInfo(game), engine: network.description};
    this.#send({id, type: 'opened', ...info, program: null});
  }

  async #endSearch() {
    this.#halted = true;
    await this.#thinking;
    this.#halted = false;
  }

  async #think({id, readouts}) {
    const {search, game} = this.#model;
    this.#findRoot();
    const began = performance.now();
    const before = search.visits;
    let updated = began;
    let checked = began;
    const report = (done) => {
      updated = performance.now();
      const seconds = (updated - began) / 1000;
      this.#send({id, type: 'analysis', ...toAnalysis(game, search, search.visits - before, seconds, done)});
    };
    try {
      for (let left = readouts; left > 0 && !this.#halted && search.size < MOST_NODES; left -= CHUNK) {
        search.begin(Math.min(left, CHUNK));
        for (let leaf = search.advance(); leaf !== null; leaf = search.advance()) {
          const {logits, value} = await this.#evaluate(leaf);
          search.supply(logits, value);
          const now = performance.now();
          if (now - updated >= UPDATE_INTERVAL) report(false);
          if (now - checked >= CHECK_INTERVAL) {
            await this.#pause();
            checked = performance.now();
            if (this.#halted) search.halt();
          }
        }
        if (search.proven) break;
      }
      report(true);
    } catch (error) {
      this.#searched = null;
      this.#fail(id, error);
    }
  }

  /** Makes the session's position the root; keeps its subtree if it follows from the previous root. */
  #findRoot() {
    const {search} = this.#model;
    const [before, now] = [this.#searched, this.#line];
    if (before !== null && follows(now, before)) {
      for (const action of now.moves.slice(before.moves.length)) search.play(action);
    } else {
      search.start(now.state);
    }
    this.#searched = now;
  }

  async #evaluate(state) {
    const {game, cache, observation, network} = this.#model;
    const key = game.key(state);
    let outputs = cache.get(key);
    if (outputs === undefined) {
      game.observe(state, observation);
      outputs = await network.evaluate(observation);
      cache.set(key, outputs);
    }
    return outputs;
  }
}

/** Whether a position follows from another one, or is the same. */
const follows = (now, before) =>
  now.start?.join() === before.start?.join() && before.moves.every((action, ply) => action === now.moves[ply]);
