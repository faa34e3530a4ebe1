/** A connection to an engine: a WebSocket to the server, or a worker in this browser. Both use the same messages. */

/**
 * @typedef {object} Connection
 * @property {(message: object) => void} send drops the message while disconnected; reopens an idle connection
 * @property {(message: any) => void} onmessage
 * @property {() => void} onopen on each connection; the engine has no session yet
 * @property {() => void} onlost
 * @property {(reason: string) => void} onfailed the engine lost all requests, and starts again with the next one
 *
 * @typedef {object} Config configuration of an exported site
 * @property {'worker'} engine
 * @property {Array<{name: string, game: string}>} models
 */

const SHORTEST_WAIT = 250; // milliseconds until the next attempt
const LONGEST_WAIT = 5000;
const IDLE = 4000; // close code of the server for idle connections

/** @returns {Config | null} null if a server runs the engine */
export function readConfig() {
  const found = /** @type {{SERAPHIM?: Config}} */ (globalThis).SERAPHIM;
  return found?.engine === 'worker' ? found : null;
}

/** @returns {Connection} */
export function openConnection() {
  const config = readConfig();
  return config ? openWorker(config) : openSocket(new URL('api/engine', document.baseURI));
}

/**
 * List the models.
 * @returns {Promise<import('../shared/types.js').Model[]>}
 */
export async function listModels() {
  const config = readConfig();
  if (config) return config.models.map((model) => ({champion: '', snapshots: [], ...model}));
  const {fetchJson} = await import('../shared/api.js');
  return fetchJson('api/models');
}

/**
 * @param {Config} config
 * @returns {Connection}
 */
function openWorker(config) {
  const connection = noConnection();
  /** @type {Worker | null} */
  let worker = null;
  const start = () => {
    const started = new Worker(new URL('worker.js', import.meta.url), {type: 'module'});
    worker = started;
    started.onmessage = ({data}) => connection.onmessage(data);
    started.onerror = (event) => {
      started.terminate();
      worker = null;
      connection.onfailed(`the engine in this page failed: ${event.message ?? 'engine/worker.js cannot be loaded'}`);
    };
    started.postMessage({type: 'config', base: document.baseURI, models: config.models});
    connection.onopen();
  };
  connection.send = (message) => (worker ? worker.postMessage(message) : start());
  return connection;
}

/**
 * A WebSocket that reconnects.
 * @param {URL} url of http or https
 * @returns {Connection}
 */
function openSocket(url) {
  url.protocol = url.protocol === 'https:' ? 'wss:' : 'ws:';
  const connection = noConnection();
  /** @type {WebSocket | null} */
  let socket = null;
  let wait = SHORTEST_WAIT;
  let timer = 0;
  let asleep = false; // until there is something to send

  const connect = () => {
    clearTimeout(timer);
    asleep = false;
    if (socket) return;
    const opened = new WebSocket(url);
    socket = opened;
    opened.onopen = () => connection.onopen();
    opened.onmessage = (event) => {
      const message = JSON.parse(event.data);
      if (isAnswer(message)) wait = SHORTEST_WAIT;
      connection.onmessage(message);
    };
    opened.onclose = ({code}) => {
      if (socket !== opened) return;
      socket = null;
      asleep = code === IDLE;
      if (asleep) return;
      connection.onlost();
      timer = window.setTimeout(connect, wait * (0.75 + Math.random() / 2));
      wait = Math.min(2 * wait, LONGEST_WAIT);
    };
  };
  connection.send = (message) => {
    if (socket?.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message));
    else if (asleep) connect(); // the client then repeats unanswered requests
  };
  // A page in the back/forward cache gives up its session and reconnects when it is shown again.
  window.addEventListener('pagehide', () => {
    clearTimeout(timer);
    const left = socket;
    socket = null;
    left?.close();
  });
  window.addEventListener('pageshow', (event) => event.persisted && connect());
  window.addEventListener('online', connect);
  connect();
  return connection;
}

/**
 * Return whether a message shows that the engine serves this page: a server without room says so, and closes.
 * @param {{id: number | null}} message
 */
export const isAnswer = ({id}) => id !== null;

/** @returns {Connection} */
function noConnection() {
  const ignore = () => {};
  return {send: ignore, onmessage: ignore, onopen: ignore, onlost: ignore, onfailed: ignore};
}
