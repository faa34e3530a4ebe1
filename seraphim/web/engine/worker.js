/**
 * The engine of a page without a server: a module worker with the messages of seraphim/server/searcher/messages.py.
 *
 * Its first message is {type: 'config', base, models}. Each model has `name`, `game`, `champion` (its snapshot),
 * `options` of the search, and the addresses `model`, `rules`, `runtime.library` and `runtime.wasm`, relative to `base`.
 */

import {Conversation} from './conversation.js';
import {loadNetwork} from './litert.js';

let config = {base: self.location.href, models: []};

async function openModel(name, snapshot) {
  const found = config.models.find((model) => model.name === name);
  if (found === undefined) {
    const names = config.models.map((model) => model.name).join(', ');
    throw new Error(`there is no model ${name} on this page: expected one of ${names}`);
  }
  if (snapshot !== null && snapshot !== found.champion) {
    throw new Error(`model ${name} has only the snapshot ${found.champion} on this page`);
  }
  const {default: only, named} = await import(new URL(found.rules, config.base).href);
  const game = named?.(found.game) ?? only; // of a family such as Hex, by its name
  const network = await loadNetwork(found.runtime, found.model, game.observationShape, config.base);
  return {snapshot: found.champion, game, options: found.options, network};
}

// A message to oneself arrives after those already waiting. A search and the solver may both wait for theirs.
const {port1: here, port2: there} = new MessageChannel();
const pausing = [];
here.onmessage = () => pausing.shift()();
const pause = () =>
  new Promise((resolve) => {
    pausing.push(resolve);
    there.postMessage(null);
  });

const conversation = new Conversation(openModel, (message) => self.postMessage(message), pause);

self.onmessage = ({data}) => {
  if (data?.type === 'config') config = data;
  else void conversation.handle(data);
};
