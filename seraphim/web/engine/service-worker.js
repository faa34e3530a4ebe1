/**
 * Caches the files of an exported site, so that its page works offline after the first load. Lies beside index.html
 * there, with offline.js, which lists the files and a version that changes with any of them.
 */

importScripts('offline.js');

const {version, always, relaxed, compatible} = self.SERAPHIM_OFFLINE;
// Sites on one host share the cache storage: the address tells their caches apart.
const PREFIX = `seraphim ${self.registration.scope} `;
const CACHE = PREFIX + version;

/** As in litert.js: which build of the library this browser runs. */
const RELAXED_SIMD = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 15, 1, 13, 0, 65, 1, 253, 15, 65, 2, 253, 15,
  253, 128, 2, 11,
]);

/** Imports of a module, as modules on a CDN import each other. */
const IMPORTED = /\b(?:from|import)\s*["']([^"']+)["']/g;

async function keep() {
  const cache = await caches.open(CACHE);
  const files = [...always, ...(WebAssembly.validate(RELAXED_SIMD) ? relaxed : compatible)];
  await cache.addAll(files.map((file) => new Request(file, {cache: 'no-cache'})));
  const isElsewhere = (file) => new URL(file, location.href).origin !== location.origin;
  for (const file of always.filter(isElsewhere)) await keepImported(cache, file);
  await self.skipWaiting();
}

/** The page that installs this worker bypasses it when loading its modules, so their imports are fetched here. */
async function keepImported(cache, file) {
  const response = await cache.match(file);
  for (const [, name] of (await response.text()).matchAll(IMPORTED)) {
    const imported = new URL(name, response.url).href;
    if (await cache.match(imported)) continue;
    await cache.add(imported);
    await keepImported(cache, imported);
  }
}

async function takeOver() {
  const outdated = (await caches.keys()).filter((name) => name.startsWith(PREFIX) && name !== CACHE);
  await Promise.all(outdated.map((name) => caches.delete(name)));
  await self.clients.claim();
}

async function answer(request) {
  const cache = await caches.open(CACHE);
  const kept = await cache.match(request.mode === 'navigate' ? './' : request, {ignoreSearch: true});
  return kept ?? fetch(request);
}

/** The page itself, or one of its files; anything else below it, such as another site, is not handled. */
const isOurs = ({method, mode, url}) => {
  const page = self.registration.scope;
  const address = url.split(/[?#]/)[0];
  return method === 'GET' && (mode !== 'navigate' || address === page || address === `${page}index.html`);
};

self.addEventListener('install', (event) => event.waitUntil(keep()));
self.addEventListener('activate', (event) => event.waitUntil(takeOver()));
self.addEventListener('fetch', (event) => {
  if (isOurs(event.request)) event.respondWith(answer(event.request));
});
