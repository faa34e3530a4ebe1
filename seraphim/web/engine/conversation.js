/** What a page says to the engine in its browser and is told: its model, its position, its thoughts. */

import {checkRequest, isOver, readText, toAnalysis, toGameInfo, toPosition, toState} from './messages.js';
import {Search} from './search.js';
import {exactResults} from './solver.js';

const MOST_NODES = 2 ** 17; // of a tree, after which it gets no more readouts
const MOST_EVALUATIONS = 100_000; // that are remembered
const NEWS = 100; // milliseconds between two pieces of news of a thought
const BREATH = 15; // milliseconds after which it looks whether somebody wants it to end
const PART = 1000; // readouts, likewise

/** What the network said of positions that it has seen, by the exact position; where that is full, the oldest go. */
class Memory {
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
  #model = null; // what `openModel` gave, with `search`, `memory` and `observation`
  #line = null; // the position: {start, moves, state}
  #searched = null; // the same of the root of the tree
  #thinking = Promise.resolve(); // until the last answer of a thought
  #halted = false; // whether the thought under way is to end

  /**
   * @param {(name: string, snapshot: string | null) => Promise<{snapshot: string, game: object, options: object,
   *     network: {description: string, evaluate: Function, close?: Function}}>} openModel
   * @param {(message: object) => void} send
   * @param {() => Promise<void>} pause lets messages come in
   */
  constructor(openModel, send, pause) {
    this.#openModel = openModel;
    this.#send = send;
    this.#pause = pause;
  }

  /** Answers a message; what is wrong with it is answered with a sentence. Returns when the answer is on its way. */
  hear(message) {
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
        await this.#endThought();
        this.#line = line;
        return this.#send({id, type, ...toPosition(game, line)});
      }
      case 'think':
        if (isOver(game, this.#line)) throw new Error('the game is over here, so there is nothing to think about');
        await this.#endThought();
        this.#thinking = this.#think(request);
        return undefined;
      case 'stop':
        await this.#endThought();
        return this.#send({id, type: 'stopped'});
      case 'load':
        return this.#send({id, type: 'loaded', ...readText(game, request.text)});
      default:
        if (isOver(game, this.#line)) throw new Error('the game is over here, so there is nothing to solve');
        return this.#send({id, type, actions: exactResults(game, this.#line.state)});
    }
  }

  async #open({id, model: name, snapshot}) {
    const model = await this.#openModel(name, snapshot);
    await this.#endThought();
    this.#model?.network.close?.();
    const {game, options, network} = model;
    const cells = game.observationShape.reduce((product, length) => product * length, 1);
    const search = new Search(game, options);
    this.#model = {...model, search, memory: new Memory(), observation: new Uint8Array(cells)};
    this.#line = {start: null, moves: [], state: game.initial()};
    this.#searched = null;
    const info = {model: name, snapshot: model.snapshot, game: toGameInfo(game), engine: network.description};
    this.#send({id, type: 'opened', ...info});
  }

  async #endThought() {
    this.#halted = true;
    await this.#thinking;
    this.#halted = false;
  }

  async #think({id, readouts}) {
    const {search, game} = this.#model;
    this.#findRoot();
    const began = performance.now();
    const before = search.visits;
    let told = began;
    let breathed = began;
    const tell = (done) => {
      told = performance.now();
      const seconds = (told - began) / 1000;
      this.#send({id, type: 'analysis', ...toAnalysis(game, search, search.visits - before, seconds, done)});
    };
    try {
      for (let left = readouts; left > 0 && !this.#halted && search.size < MOST_NODES; left -= PART) {
        search.begin(Math.min(left, PART));
        for (let leaf = search.advance(); leaf !== null; leaf = search.advance()) {
          const {logits, value} = await this.#evaluate(leaf);
          search.supply(logits, value);
          const now = performance.now();
          if (now - told >= NEWS) tell(false);
          if (now - breathed >= BREATH) {
            await this.#pause();
            breathed = performance.now();
            if (this.#halted) search.halt();
          }
        }
        if (search.proven) break;
      }
      tell(true);
    } catch (error) {
      this.#searched = null;
      this.#fail(id, error);
    }
  }

  /** Makes the session's position the root; what is known of it stays if it follows from the root before. */
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
    const {game, memory, observation, network} = this.#model;
    const key = game.key(state);
    let outputs = memory.get(key);
    if (outputs === undefined) {
      game.observe(state, observation);
      outputs = await network.evaluate(observation);
      memory.set(key, outputs);
    }
    return outputs;
  }
}

/** Whether a position was reached by way of another one, or is the same. */
const follows = (now, before) =>
  now.start?.join() === before.start?.join() && before.moves.every((action, ply) => action === now.moves[ply]);
