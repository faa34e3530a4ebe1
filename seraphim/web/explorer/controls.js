/** The buttons, selects and keys of the explorer, and what they show. */

import {moverAt} from '../analysis/values.js';
import {byId, setOptions} from '../shared/dom.js';
import {actionOfKey, listenForShortcuts} from './shortcuts.js';

/**
 * @typedef {import('./game_tree.js').GameNode} GameNode
 * @typedef {import('../board/marks.js').Metric} Metric
 * @typedef {import('../shared/preferences.js').Preferences} Preferences
 * @typedef {import('./session.js').Session} Session
 * @typedef {import('../analysis/scheduler.js').Player} Player
 * @typedef {import('../analysis/scheduler.js').Thinking} Thinking
 * @typedef {import('../shared/types.js').Model} Model
 *
 * @typedef {object} Handles what the controls act on
 * @property {Session} session
 * @property {Thinking} thinking
 * @property {Preferences} preferences
 * @property {() => void} save keeps the preferences, and shows what they changed
 * @property {(error: unknown) => void} fail
 * @property {(action: number) => void} makeMove
 * @property {(node: GameNode | null | undefined) => void} walkTo
 * @property {(address: import('../shared/address.js').Address) => Promise<void>} follow
 * @property {() => void} consider lets the engine see what it is to do now
 * @property {(on: boolean) => void} setTruth
 * @property {() => Model[]} models
 */

/** @type {Metric[]} */
const METRICS = ['off', 'prior', 'visits', 'q'];

/** @param {Handles} handles */
export function prepareControls(handles) {
  prepareMatch(handles);
  prepareAnalysis(handles);
  prepareWalk(handles);
  prepareModels(handles);
  const keys = {
    u: 'undo',
    r: 'redo',
    n: 'new',
    s: 'swap',
    f: 'flip',
    a: 'analyse',
    t: 'truth',
    '[': 'back',
    ']': 'forward',
    '?': 'help',
  };
  const cycle = () => {
    const next = METRICS[(METRICS.indexOf(handles.preferences.metric) + 1) % METRICS.length];
    setMetric(handles, next);
    return true;
  };
  listenForShortcuts(
    (key) => {
      if (!handles.session.game) return false;
      const {game, node} = handles.session;
      const action = actionOfKey(key, game.labels_vary ? (node.position?.labels ?? {}) : {...game.labels});
      if (action !== null) return (handles.makeMove(action), true);
      if (key.toLowerCase() === 'o') return cycle();
      const id = /** @type {Record<string, string>} */ (keys)[key.toLowerCase()];
      if (id) byId(id).click();
      return Boolean(id);
    },
    () => handles.preferences.shortcuts,
  );
}

/** @param {Handles} handles */
function prepareMatch({session, thinking, preferences, save, fail, consider}) {
  for (const player of /** @type {const} */ ([0, 1])) {
    select(`player-${player}`).addEventListener('change', () => {
      thinking.players[player] = /** @type {Player} */ (select(`player-${player}`).value);
      if (thinking.players[player] === 'computer') thinking.running = true;
      consider();
    });
  }
  select('strength').addEventListener('change', () => {
    preferences.strength = select('strength').value;
    thinking.strength = Number(preferences.strength);
    save();
    consider();
  });
  thinking.strength = Number(preferences.strength);
  onClick('pause', () => {
    thinking.running = !thinking.running;
    consider();
  });
  onClick('move-now', () => {
    const best = session.node.analysis?.best;
    if (best !== undefined && !session.node.position?.ended) session.play(best).catch(fail);
  });
  onClick('new', () => {
    thinking.running = true;
    session.begin(null).catch(fail);
  });
  onClick('swap', () => {
    thinking.players.reverse();
    thinking.running = true;
    consider();
  });
  onClick('flip', () => {
    preferences.flipped = !preferences.flipped;
    save();
  });
}

/** @param {Handles} handles */
function prepareAnalysis(handles) {
  const {thinking, preferences, save, consider, setTruth} = handles;
  thinking.analysing = preferences.analysing;
  thinking.amount = Number(preferences.amount);
  onClick('analyse', () => {
    thinking.analysing = preferences.analysing = !preferences.analysing;
    save();
    consider();
  });
  select('amount').addEventListener('change', () => {
    preferences.amount = select('amount').value;
    thinking.amount = Number(preferences.amount);
    thinking.analysing = preferences.analysing = true;
    save();
    consider();
  });
  for (const input of radios())
    input.addEventListener('change', () => setMetric(handles, /** @type {Metric} */ (input.value)));
  const truth = /** @type {HTMLInputElement} */ (byId('truth'));
  truth.addEventListener('change', () => setTruth(truth.checked));
  onClick('review', () => (thinking.review ? consider() : void thinking.analyseGame()));
}

/** @param {Handles} handles */
function prepareWalk({session, thinking, fail, walkTo}) {
  const isPersons = (/** @type {GameNode} */ node) => thinking.players[moverAt(node)] === 'human';
  // Where a person is to move, if one plays: only then does the computer not make the same move again at once.
  const personsTurn = (/** @type {(node: GameNode) => GameNode | null} */ step) => {
    let to = step(session.node);
    while (to && step(to) && thinking.players.includes('human') && !isPersons(to)) to = step(to);
    return to;
  };
  const goTo = (/** @type {GameNode | null} */ node) => {
    if (!node) return;
    thinking.running = isPersons(node);
    session.go(node).catch(fail);
  };
  onClick('first', () => walkTo(session.tree.root));
  onClick('back', () => walkTo(session.node.parent));
  onClick('forward', () => walkTo(session.node.next));
  onClick('last', () => walkTo(session.tree.line().at(-1)));
  onClick('undo', () => goTo(personsTurn((node) => node.parent)));
  onClick('redo', () => goTo(personsTurn((node) => node.next)));
  onClick('remove', () => {
    const {tree, node} = session;
    tree.remove(node);
    thinking.running = false;
    session.go(tree.current).catch(fail);
  });
}

/** @param {Handles} handles */
function prepareModels({session, thinking, fail, follow, models}) {
  select('model').addEventListener('change', () => {
    const chosen = models().find(({name}) => name === select('model').value);
    if (!chosen) return;
    thinking.reset();
    thinking.running = true;
    const same = chosen.game === models().find(({name}) => name === session.model)?.game;
    const address = {model: chosen.name, snapshot: null, start: null, board: null, moves: '', ply: null};
    (same ? session.change(chosen.name, null) : follow(address)).catch(fail);
  });
  select('snapshot').addEventListener('change', () => {
    thinking.reset();
    session.change(session.model, select('snapshot').value || null).catch(fail);
  });
}

/**
 * @param {Handles} handles
 * @param {Metric} metric
 */
function setMetric({preferences, save}, metric) {
  preferences.metric = metric;
  save();
}

/**
 * Let the controls show the state that they change.
 * @param {{session: Session, thinking: Thinking, preferences: Preferences, models: Model[], names: [string, string],
 *     truthWanted: boolean}} state
 */
export function showControls({session, thinking, preferences, models, names, truthWanted}) {
  const {node, tree} = session;
  const position = node.position;
  for (const player of [0, 1]) {
    byId(`name-${player}`).textContent = names[player];
    select(`player-${player}`).value = thinking.players[player];
    select(`player-${player}`).setAttribute('aria-label', `${names[player]} is played by`);
  }
  select('strength').value = preferences.strength;
  select('amount').value = preferences.amount;
  for (const input of radios()) input.checked = input.value === preferences.metric;
  const truth = /** @type {HTMLInputElement} */ (byId('truth'));
  truth.checked = truthWanted;
  byId('truth-choice').hidden = !session.game?.solved;
  button('flip').setAttribute('aria-pressed', String(preferences.flipped));
  button('analyse').setAttribute('aria-pressed', String(preferences.analysing));
  byId('figures').classList.toggle('busy', thinking.busy !== null);
  const onlyComputers = !thinking.players.includes('human');
  const waits = position !== null && !position.ended && thinking.players[position.to_play] === 'computer';
  button('pause').hidden = Boolean(position?.ended) || !(waits || onlyComputers);
  button('pause').textContent = thinking.running ? 'Pause' : 'Resume';
  button('move-now').disabled = !node.analysis || Boolean(position?.ended);
  button('undo').disabled = button('back').disabled = button('first').disabled = !node.parent;
  button('redo').disabled = button('forward').disabled = button('last').disabled = !node.next;
  button('remove').disabled = !node.parent;
  button('review').disabled = tree.line().length < 2;
  button('review').textContent = thinking.review ? 'Stop' : 'Analyse all moves';
  showModels(session, models);
}

/**
 * @param {Session} session
 * @param {Model[]} models
 */
function showModels({model, snapshot}, models) {
  const known = models.find(({name}) => name === model);
  const key = `${models.map(({name}) => name)} ${model} ${snapshot}`;
  if (byId('model').dataset.shown === key) return;
  byId('model').dataset.shown = key;
  setOptions(
    select('model'),
    models.map(({name}) => [name, name]),
    model,
  );
  const snapshots = [...(known?.snapshots ?? [])]
    .sort()
    .reverse()
    .map((name) => /** @type {[string, string]} */ ([name, stepOf(name)]));
  setOptions(select('snapshot'), [['', 'champion'], ...snapshots], snapshot ?? '');
  byId('snapshot-choice').hidden = snapshots.length === 0;
}

/**
 * @param {string} snapshot
 * @returns {string} `step 4,050`
 */
const stepOf = (snapshot) => `step ${Number.parseInt(snapshot, 10).toLocaleString('en')}`;

/**
 * @param {string} id
 * @param {() => void} action
 */
const onClick = (id, action) => byId(id).addEventListener('click', action);

/**
 * @param {string} id
 * @returns {HTMLSelectElement}
 */
const select = (id) => byId(id);

/**
 * @param {string} id
 * @returns {HTMLButtonElement}
 */
const button = (id) => byId(id);

/** @returns {HTMLInputElement[]} */
const radios = () => [...byId('metric').querySelectorAll('input')];
