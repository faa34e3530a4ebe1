/** The buttons, selects and keys of the explorer. */

import {moverAt} from '../analysis/values.js';
import {byId, setOptions} from '../shared/dom.js';
import {actionOfKey, listenForShortcuts} from './shortcuts.js';

/**
 * @typedef {import('./game_tree.js').GameNode} GameNode
 * @typedef {import('../board/marks.js').Metric} Metric
 * @typedef {import('../shared/preferences.js').Preferences} Preferences
 * @typedef {import('./session.js').Session} Session
 * @typedef {import('../analysis/scheduler.js').Player} Player
 * @typedef {import('../analysis/scheduler.js').Scheduler} Scheduler
 * @typedef {import('../shared/types.js').Model} Model
 *
 * @typedef {object} Handles what the controls act on
 * @property {Session} session
 * @property {Scheduler} scheduler
 * @property {Preferences} preferences
 * @property {() => void} save stores the preferences and redraws
 * @property {(error: unknown) => void} fail
 * @property {(action: number) => void} makeMove
 * @property {(node: GameNode | null | undefined) => void} walkTo
 * @property {(address: import('../shared/address.js').Address) => Promise<void>} follow
 * @property {() => void} consider lets the scheduler decide what the engine does now
 * @property {(on: boolean) => void} setSolution
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
    a: 'analyze',
    t: 'solution',
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
function prepareMatch({session, scheduler, preferences, save, fail, consider}) {
  for (const player of /** @type {const} */ ([0, 1])) {
    select(`player-${player}`).addEventListener('change', () => {
      scheduler.players[player] = /** @type {Player} */ (select(`player-${player}`).value);
      if (scheduler.players[player] !== 'human') scheduler.running = true;
      consider();
    });
  }
  select('strength').addEventListener('change', () => {
    preferences.strength = select('strength').value;
    scheduler.strength = Number(preferences.strength);
    save();
    consider();
  });
  scheduler.strength = Number(preferences.strength);
  onClick('pause', () => {
    scheduler.running = !scheduler.running;
    consider();
  });
  onClick('move-now', () => {
    const best = session.node.analysis?.best;
    if (best !== undefined && !session.node.position?.ended) session.play(best).catch(fail);
  });
  onClick('new', () => {
    scheduler.running = true;
    session.begin(null).catch(fail);
  });
  onClick('swap', () => {
    scheduler.players.reverse();
    scheduler.running = true;
    consider();
  });
  onClick('flip', () => {
    preferences.flipped = !preferences.flipped;
    save();
  });
}

/** @param {Handles} handles */
function prepareAnalysis(handles) {
  const {scheduler, preferences, save, consider, setSolution} = handles;
  scheduler.analyzing = preferences.analyzing;
  scheduler.amount = Number(preferences.amount);
  onClick('analyze', () => {
    scheduler.analyzing = preferences.analyzing = !preferences.analyzing;
    save();
    consider();
  });
  select('amount').addEventListener('change', () => {
    preferences.amount = select('amount').value;
    scheduler.amount = Number(preferences.amount);
    scheduler.analyzing = preferences.analyzing = true;
    save();
    consider();
  });
  for (const input of radios())
    input.addEventListener('change', () => setMetric(handles, /** @type {Metric} */ (input.value)));
  const solution = /** @type {HTMLInputElement} */ (byId('solution'));
  solution.addEventListener('change', () => setSolution(solution.checked));
  onClick('review', () => (scheduler.review ? consider() : void scheduler.analyzeGame()));
}

/** @param {Handles} handles */
function prepareWalk({session, scheduler, fail, walkTo}) {
  const isHumans = (/** @type {GameNode} */ node) => scheduler.players[moverAt(node)] === 'human';
  // Stop at the user's turn, if the user plays: otherwise the computer would repeat its move at once.
  const humanTurn = (/** @type {(node: GameNode) => GameNode | null} */ step) => {
    let to = step(session.node);
    while (to && step(to) && scheduler.players.includes('human') && !isHumans(to)) to = step(to);
    return to;
  };
  const goTo = (/** @type {GameNode | null} */ node) => {
    if (!node) return;
    scheduler.running = isHumans(node);
    session.go(node).catch(fail);
  };
  onClick('first', () => walkTo(session.tree.root));
  onClick('back', () => walkTo(session.node.parent));
  onClick('forward', () => walkTo(session.node.next));
  onClick('last', () => walkTo(session.tree.line().at(-1)));
  onClick('undo', () => goTo(humanTurn((node) => node.parent)));
  onClick('redo', () => goTo(humanTurn((node) => node.next)));
  onClick('remove', () => {
    const {tree, node} = session;
    tree.remove(node);
    scheduler.running = false;
    session.go(tree.current).catch(fail);
  });
}

/** @param {Handles} handles */
function prepareModels({session, scheduler, fail, follow, models}) {
  select('model').addEventListener('change', () => {
    const chosen = models().find(({name}) => name === select('model').value);
    if (!chosen) return;
    scheduler.reset();
    scheduler.running = true;
    const same = chosen.game === models().find(({name}) => name === session.model)?.game;
    const address = {model: chosen.name, snapshot: null, start: null, board: null, moves: '', ply: null};
    (same ? session.change(chosen.name, null) : follow(address)).catch(fail);
  });
  select('snapshot').addEventListener('change', () => {
    scheduler.reset();
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
 * Show the current state in the controls.
 * @param {{session: Session, scheduler: Scheduler, preferences: Preferences, models: Model[], names: [string, string],
 *     solutionWanted: boolean}} state
 */
export function showControls({session, scheduler, preferences, models, names, solutionWanted}) {
  const {node, tree} = session;
  const position = node.position;
  for (const player of [0, 1]) {
    byId(`name-${player}`).textContent = names[player];
    showPlayers(select(`player-${player}`), session.program);
    select(`player-${player}`).value = scheduler.players[player];
    select(`player-${player}`).setAttribute('aria-label', `${names[player]} is played by`);
  }
  select('strength').value = preferences.strength;
  select('amount').value = preferences.amount;
  for (const input of radios()) input.checked = input.value === preferences.metric;
  const solution = /** @type {HTMLInputElement} */ (byId('solution'));
  solution.checked = solutionWanted;
  byId('solution-choice').hidden = !session.game?.solved;
  button('flip').setAttribute('aria-pressed', String(preferences.flipped));
  button('analyze').setAttribute('aria-pressed', String(preferences.analyzing));
  byId('figures').classList.toggle('busy', scheduler.busy !== null);
  const onlyComputers = !scheduler.players.includes('human');
  const waits = position !== null && !position.ended && scheduler.players[position.to_play] !== 'human';
  button('pause').hidden = Boolean(position?.ended) || !(waits || onlyComputers);
  button('pause').textContent = scheduler.running ? 'Pause' : 'Resume';
  button('move-now').disabled = !node.analysis || Boolean(position?.ended);
  button('undo').disabled = button('back').disabled = button('first').disabled = !node.parent;
  button('redo').disabled = button('forward').disabled = button('last').disabled = !node.next;
  button('remove').disabled = !node.parent;
  button('review').disabled = tree.line().length < 2;
  button('review').textContent = scheduler.review ? 'Stop' : 'Analyze game';
  showModels(session, models);
}

/**
 * @param {HTMLSelectElement} choice
 * @param {string | null} program
 */
function showPlayers(choice, program) {
  if (choice.options.length === (program ? 3 : 2) && choice.options[2]?.text === (program ?? undefined)) return;
  const players = /** @type {Array<[string, string]>} */ ([['human', 'You'], ['computer', 'Computer']]);
  setOptions(choice, program ? [...players, ['program', program]] : players, choice.value);
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
