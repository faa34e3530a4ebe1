/** The buttons, selects and keys of the explorer. */

import {drawnOutcome} from '../analysis/scheduler.js';
import {moverAt} from '../analysis/values.js';
import {hasPlaces} from '../board/geometry.js';
import {byId, setOptions} from '../shared/dom.js';
import {offer} from '../shared/notices.js';
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
 * @property {(model: string, snapshot: string | null, address: null, running: boolean) => Promise<void>} open
 * @property {(done: string, running: boolean, work: () => Promise<void>) => Promise<void>} replace the game
 * @property {() => Promise<void>} restore the game that was replaced
 * @property {() => void} offer lets the scheduler decide what the engine does now
 * @property {(on: boolean) => void} setSolution
 */

const OF_TURNS = ['0', '1', '6400']; // strengths of a model that values turns, not readouts
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
      const {game, node} = handles.session;
      if (!game || byId('explorer').inert) return false;
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
function prepareMatch({session, scheduler, preferences, save, fail, offer, replace}) {
  for (const player of [0, 1]) {
    select(`player-${player}`).addEventListener('change', () => {
      scheduler.seat(player, /** @type {Player} */ (select(`player-${player}`).value));
      offer();
    });
  }
  select('strength').addEventListener('change', () => {
    preferences.strength = select('strength').value;
    scheduler.strength = Number(preferences.strength);
    save();
    offer();
  });
  scheduler.strength = Number(preferences.strength);
  const rolls = /** @type {HTMLInputElement} */ (byId('rolls'));
  rolls.addEventListener('change', () => {
    scheduler.rolls = !rolls.checked;
    offer();
  });
  onClick('pause', () => {
    const {position} = session.node;
    if (position?.chances && !(scheduler.running && scheduler.rolls)) {
      scheduler.running = true;
      session.play(drawnOutcome(position)).catch(fail);
      return;
    }
    scheduler.running = !scheduler.running;
    offer();
  });
  onClick('move-now', () => {
    const best = session.node.analysis?.best;
    if (best !== undefined && !session.node.position?.ended) session.play(best).catch(fail);
  });
  onClick('new', () => replace('New game.', true, () => session.begin(null)).catch(fail));
  onClick('swap', () => {
    scheduler.players.unshift(.../** @type {[Player]} */ (scheduler.players.splice(-1)));
    scheduler.running = true;
    offer();
  });
  onClick('flip', () => {
    preferences.flipped = !preferences.flipped;
    save();
  });
}

/** @param {Handles} handles */
function prepareAnalysis(handles) {
  const {scheduler, preferences, save, offer, setSolution} = handles;
  scheduler.analyzing = preferences.analyzing;
  scheduler.count = Number(preferences.amount);
  const analyze = /** @type {HTMLInputElement} */ (byId('analyze'));
  analyze.addEventListener('change', () => {
    scheduler.analyzing = preferences.analyzing = analyze.checked;
    save();
    offer();
  });
  select('amount').addEventListener('change', () => {
    preferences.amount = select('amount').value;
    scheduler.count = Number(preferences.amount);
    scheduler.analyzing = preferences.analyzing = true;
    save();
    offer();
  });
  for (const input of radios())
    input.addEventListener('change', () => setMetric(handles, /** @type {Metric} */ (input.value)));
  const solution = /** @type {HTMLInputElement} */ (byId('solution'));
  solution.addEventListener('change', () => setSolution(solution.checked));
  onClick('review', () => (scheduler.review ? offer() : void scheduler.analyzeGame()));
}

/** @param {Handles} handles */
function prepareWalk({session, scheduler, fail, walkTo, restore}) {
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
  onClick('undo', () => (session.node.parent ? goTo(humanTurn((node) => node.parent)) : restore().catch(fail)));
  onClick('redo', () => goTo(humanTurn((node) => node.next)));
  onClick('remove', () => {
    const {tree, node} = session;
    const putBack = tree.remove(node);
    scheduler.running = false;
    session.go(tree.current).catch(fail);
    offer(`Deleted the branch ${node.label}.`, 'Undo', () => session.tree === tree && session.go(putBack()).catch(fail));
  });
}

/** @param {Handles} handles */
function prepareModels({session, scheduler, fail, open}) {
  select('model').addEventListener('change', () => open(select('model').value, null, null, true).catch(fail));
  select('snapshot').addEventListener('change', () => {
    open(session.model, select('snapshot').value || null, null, scheduler.running).catch(fail);
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
 * @param {{session: Session, scheduler: Scheduler, preferences: Preferences, models: Model[], names: string[],
 *     solutionWanted: boolean}} state
 */
export function showControls({session, scheduler, preferences, models, names, solutionWanted}) {
  const {node, tree} = session;
  const position = node.position;
  const isAlone = names.length === 1;
  const isMany = names.length > 2;
  byId('second').hidden = byId('swap').hidden = isAlone;
  byId('flip').hidden = names.length !== 2;
  byId('seats').hidden = byId('each-choice').hidden = !isMany;
  byId('match').classList.toggle('many', isMany);
  byId('candidates').classList.toggle('alone', isAlone);
  byId('metric').hidden = !hasPlaces(session.style);
  byId('rolls-choice').hidden = !session.game?.chance;
  const byTurns = Boolean(session.game?.by_turns);
  byId('explorer').classList.toggle('by-turns', byTurns);
  for (const option of select('strength').options) option.hidden = byTurns && !OF_TURNS.includes(option.value);
  if (byTurns && preferences.metric === 'visits') preferences.metric = 'off';
  /** @type {HTMLInputElement} */ (byId('rolls')).checked = !scheduler.rolls;
  for (const player of isMany ? [] : names.keys()) {
    byId(`name-${player}`).textContent = names[player];
    const discs = position?.board?.cells.flat().filter((mark) => mark === player).length ?? 0;
    byId(`discs-${player}`).textContent = session.style === 'stones' ? String(discs) : '';
    showPlayers(select(`player-${player}`), session.program);
    select(`player-${player}`).value = scheduler.players[player];
    select(`player-${player}`).setAttribute('aria-label', `${names[player]} is played by`);
  }
  const {strength} = preferences;
  select('strength').value = byTurns && !OF_TURNS.includes(strength) ? OF_TURNS[2] : strength;
  select('amount').value = preferences.amount;
  for (const input of radios()) input.checked = input.value === preferences.metric;
  const solution = /** @type {HTMLInputElement} */ (byId('solution'));
  solution.checked = solutionWanted;
  byId('solution-choice').hidden = !session.game?.solved;
  button('flip').setAttribute('aria-pressed', String(preferences.flipped));
  /** @type {HTMLInputElement} */ (byId('analyze')).checked = preferences.analyzing;
  byId('figures').classList.toggle('busy', scheduler.busy !== null);
  const onlyComputers = !scheduler.players.includes('human');
  const isChance = Boolean(position?.chances);
  const waits = position !== null && !position.ended && scheduler.players[position.to_play] !== 'human';
  button('pause').hidden = Boolean(position?.ended) || !(waits || onlyComputers);
  const goesOn = scheduler.running && (scheduler.rolls || !isChance);
  button('pause').textContent = goesOn ? 'Pause' : isChance ? 'Roll' : 'Resume';
  button('move-now').disabled = !node.analysis || Boolean(position?.ended);
  button('undo').disabled = !node.parent && !session.before;
  button('back').disabled = button('first').disabled = !node.parent;
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
export function showPlayers(choice, program) {
  if (choice.options.length === (program ? 3 : 2) && choice.options[2]?.text === (program ?? undefined)) return;
  const players = /** @type {Array<[string, string]>} */ ([['human', 'You'], ['computer', 'Computer']]);
  setOptions(choice, program ? [...players, ['program', program]] : players, choice.value);
}

/**
 * @param {{model: string, snapshot: string | null}} chosen
 * @param {Model[]} models
 */
export function showModels({model, snapshot}, models) {
  const snapshots = [...(models.find(({name}) => name === model)?.snapshots ?? [])].sort().reverse();
  const key = `${models.map(({name}) => name)} ${snapshots}`;
  if (byId('model').dataset.shown !== key) {
    byId('model').dataset.shown = key;
    setOptions(
      select('model'),
      models.map(({name}) => [name, name]),
      model,
    );
    const named = snapshots.map((name) => /** @type {[string, string]} */ ([name, stepOf(name)]));
    setOptions(select('snapshot'), [['', 'champion'], ...named], '');
    byId('snapshot-choice').hidden = snapshots.length === 0;
  }
  select('model').value = model;
  select('snapshot').value = snapshot ?? '';
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
