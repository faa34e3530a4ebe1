/** An engine as functions that return promises. Survives a lost connection: what has no answer is asked again. */

/**
 * @typedef {import('../shared/types.js').Analysis} Analysis
 * @typedef {import('../shared/types.js').Position} Position
 * @typedef {import('../shared/types.js').Opened} Opened
 * @typedef {import('../shared/types.js').Truth} Truth
 *
 * @typedef {object} Question
 * @property {{id: number, type: string}} message
 * @property {(answer: any) => void} resolve
 * @property {(error: Error) => void} reject
 * @property {(analysis: Analysis) => void} [onpart]
 */

/** What an engine refused, in one sentence. */
export class EngineError extends Error {}

export class Engine {
  /** @type {import('./connection.js').Connection} */
  #connection;
  #lastId = 0;
  /** @type {Map<number, Question>} */
  #waiting = new Map();
  /** The last messages that said what the session is about: a new one must hear them first. */
  #session = /** @type {Record<'open' | 'position', object | null>} */ ({open: null, position: null});

  /** @type {(status: 'open' | 'lost') => void} */
  onstatus = () => {};
  /** @type {(message: string) => void} what went wrong without a question */
  onerror = () => {};

  /** @param {import('./connection.js').Connection} connection */
  constructor(connection) {
    this.#connection = connection;
    connection.onmessage = (message) => this.#receive(message);
    connection.onopen = () => this.#resume();
    connection.onlost = () => this.onstatus('lost');
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
   * Make a position that of the session.
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
   * @param {(analysis: Analysis) => void} onpart hears of each analysis, the last one included
   * @returns {Promise<Analysis>} the last one
   */
  think(readouts, onpart) {
    return this.#ask('think', {readouts}, onpart);
  }

  /** @returns {Promise<void>} once the search has ended */
  stop() {
    return this.#ask('stop', {});
  }

  /**
   * Read moves or a drawn board.
   * @param {string} text
   * @returns {Promise<{start: string[] | null, moves: number[]}>}
   */
  load(text) {
    return this.#ask('load', {text});
  }

  /** @returns {Promise<Truth>} of the session's position */
  async truth() {
    return (await this.#ask('truth', {})).actions;
  }

  /**
   * @param {string} type
   * @param {object} content
   * @param {(analysis: Analysis) => void} [onpart]
   * @returns {Promise<any>}
   */
  #ask(type, content, onpart) {
    const message = {id: ++this.#lastId, type, ...content};
    return new Promise((resolve, reject) => {
      this.#waiting.set(message.id, {message, resolve, reject, onpart});
      this.#connection.send(message);
    });
  }

  /** @param {any} message */
  #receive(message) {
    const question = this.#waiting.get(message.id);
    if (!question) {
      if (message.type === 'error') this.onerror(message.message);
      return;
    }
    if (message.type === 'analysis') question.onpart?.(message);
    if (message.type === 'analysis' && !message.done) return;
    this.#waiting.delete(message.id);
    if (message.type === 'error') question.reject(new EngineError(message.message));
    else question.resolve(message);
    if (message.type === 'opened') this.#session = {open: question.message, position: null};
    if (message.type === 'position') this.#session.position = question.message;
  }

  #resume() {
    this.onstatus('open');
    const {open, position} = this.#session;
    const asked = [...this.#waiting.values()].map((question) => question.message);
    for (const message of [open, position, ...asked]) if (message) this.#connection.send(message);
  }
}
