/** An engine as functions that return promises. After a lost connection it repeats unanswered requests, a few times. */

import {isAnswer} from './connection.js';

/**
 * @typedef {import('../shared/types.js').Analysis} Analysis
 * @typedef {import('../shared/types.js').Position} Position
 * @typedef {import('../shared/types.js').Opened} Opened
 * @typedef {import('../shared/types.js').Solution} Solution
 *
 * @typedef {object} Question
 * @property {{id: number, type: string}} message
 * @property {(answer: any) => void} resolve
 * @property {(error: Error) => void} reject
 * @property {(analysis: Analysis) => void} [onpart]
 * @property {object | null} at the message of the position in which it was asked
 * @property {number} lost connections since it was sent, or since a part of its answer came
 */

const MOST_BYTES = 64 * 1024; // of a message, as in seraphim/server/searcher/requests.py
const MOST_LOST = 3; // connections, after which a request is not repeated: it may be what ends them

export class Engine {
  /** @type {import('./connection.js').Connection} */
  #connection;
  #lastId = 0;
  /** @type {Map<number, Question>} */
  #waiting = new Map();
  /** The last messages that set up the session; a new connection repeats them first. */
  #session = /** @type {Record<'open' | 'position', object | null>} */ ({open: null, position: null});
  /** The message of the last position that was asked for. @type {object | null} */
  #at = null;

  #refusal = ''; // what the server said instead of taking requests
  #connected = false;

  /** @type {(status: 'open' | 'lost', reason?: string) => void} called with `open` on each answer */
  onstatus = () => {};

  /** @param {import('./connection.js').Connection} connection */
  constructor(connection) {
    this.#connection = connection;
    connection.onmessage = (message) => this.#receive(message);
    connection.onopen = () => this.#resume();
    connection.onlost = () => this.#lose();
    connection.onfailed = (reason) => this.#reject(() => true, reason);
  }

  /**
   * @param {string} model
   * @param {string | null} snapshot null for the champion
   * @returns {Promise<Opened>}
   */
  open(model, snapshot) {
    return this.#ask('open', {model, snapshot});
  }

  /**
   * Set the session's position.
   * @param {string[] | null} start
   * @param {number[]} moves
   * @returns {Promise<Position>}
   */
  position(start, moves) {
    return this.#ask('position', {start, moves});
  }

  /**
   * Add readouts to the session's position.
   * @param {number} readouts at most
   * @param {(analysis: Analysis) => void} onpart called with each analysis, including the last one
   * @returns {Promise<Analysis>} the last one
   */
  think(readouts, onpart) {
    return this.#ask('think', {readouts}, onpart);
  }

  /** @returns {Promise<void>} resolved once the search has stopped */
  stop() {
    return this.#ask('stop', {});
  }

  /**
   * Parse moves or a board diagram.
   * @param {string} text
   * @returns {Promise<{start: string[] | null, moves: number[]}>}
   */
  load(text) {
    return this.#ask('load', {text});
  }

  /** @returns {Promise<number>} the action that the server's program chooses in the session's position */
  async move() {
    return (await this.#ask('move', {})).action;
  }

  /** @returns {Promise<Solution>} exact results of the session's position */
  async solution() {
    return (await this.#ask('solve', {})).actions;
  }

  /**
   * @param {string} type
   * @param {object} content
   * @param {(analysis: Analysis) => void} [onpart]
   * @returns {Promise<any>}
   */
  #ask(type, content, onpart) {
    const message = {id: ++this.#lastId, type, ...content};
    const bytes = new TextEncoder().encode(JSON.stringify(message)).length;
    if (bytes > MOST_BYTES) {
      const [most, size] = [MOST_BYTES, bytes].map((count) => count.toLocaleString('en'));
      return Promise.reject(new Error(`this is too long: it takes ${size} bytes, and at most ${most} can be sent`));
    }
    if (type === 'open' || type === 'position') this.#at = type === 'open' ? null : message;
    return new Promise((resolve, reject) => {
      this.#waiting.set(message.id, {message, resolve, reject, onpart, at: this.#at, lost: 0});
      this.#connection.send(message);
    });
  }

  /** @param {any} message */
  #receive(message) {
    if (isAnswer(message)) this.onstatus('open');
    else this.#refusal = message.message;
    const question = this.#waiting.get(message.id);
    if (!question) return;
    question.lost = 0;
    if (message.type === 'analysis') question.onpart?.(message);
    if (message.type === 'analysis' && !message.done) return;
    this.#waiting.delete(message.id);
    if (message.type === 'error') question.reject(new Error(message.message));
    else question.resolve(message);
    if (message.type === 'opened') this.#session = {open: question.message, position: null};
    if (message.type === 'position') this.#session.position = question.message;
  }

  #lose() {
    if (this.#connected && !this.#refusal) {
      for (const question of this.#waiting.values()) question.lost += 1;
      this.#reject(({lost}) => lost >= MOST_LOST, 'the connection to the engine was lost each time this was asked');
    }
    this.#connected = false;
    this.onstatus('lost', this.#refusal);
  }

  /**
   * @param {(question: Question) => boolean} which
   * @param {string} reason
   */
  #reject(which, reason) {
    for (const [id, question] of this.#waiting) {
      if (which(question) && this.#waiting.delete(id)) question.reject(new Error(reason));
    }
  }

  #resume() {
    this.#connected = true;
    this.#refusal = '';
    const {open, position} = this.#session;
    for (const message of [open, position]) if (message) this.#connection.send(message);
    let at = position;
    for (const question of this.#waiting.values()) {
      const {type} = question.message;
      if (['think', 'move', 'solve'].includes(type) && question.at && question.at !== at) this.#connection.send(question.at);
      this.#connection.send(question.message);
      at = type === 'open' ? null : question.at;
    }
    if (this.#at && this.#at !== at) this.#connection.send(this.#at);
  }
}
