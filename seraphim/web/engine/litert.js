/** Runs a network with LiteRT.js, in WebAssembly on one thread. The only module that uses that library. */

/** A function with the instruction i8x16.relaxed_swizzle: browsers that accept it run the faster build. */
const RELAXED_SIMD = new Uint8Array([
  0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 15, 1, 13, 0, 65, 1, 253, 15, 65, 2, 253, 15,
  253, 128, 2, 11,
]);

/** The build of the library that this browser runs. */
const BUILD = WebAssembly.validate(RELAXED_SIMD) ? 'litert_wasm_internal' : 'litert_wasm_compat_internal';

let library = null; // a promise of it, once requested

/**
 * Loads the library.
 * @param {URL} module of its JavaScript
 * @param {URL} folder of its builds, with a slash at the end
 */
async function load(module, folder) {
  // The build is a script for importScripts, which a module worker does not have. It also offers its factory to a
  // loader of modules, if there is one; the library finds it where the script would have left it.
  globalThis.define = Object.assign((_, factory) => (globalThis.ModuleFactory = factory()), {amd: true});
  globalThis.importScripts = () => {};
  globalThis.Module = {locateFile: (file) => new URL(file, folder).href, print: () => {}, printErr: () => {}};
  await import(new URL(`${BUILD}.js`, folder).href);
  delete globalThis.define;
  // It asks for a graphics processor, which is not used here: answering "none" keeps a warning off the console.
  const noDevice = {features: new Set(), limits: {}, requestDevice: () => Promise.resolve(null)};
  Object.defineProperty(navigator, 'gpu', {
    configurable: true,
    value: {requestAdapter: () => Promise.resolve(noDevice)},
  });
  const litert = await import(module.href);
  await litert.loadLiteRt(new URL(`${BUILD}.js`, folder).href);
  return litert;
}

/**
 * Loads a network: a .tflite file that takes one observation, uint8, and gives `policy` and `value`, float32.
 * @param {{library: string, wasm: string, title: string}} runtime
 * @param {string} model
 * @param {number[]} shape of an observation
 * @param {string} base what these URLs are relative to
 */
export async function loadNetwork(runtime, model, shape, base) {
  library ??= load(new URL(runtime.library, base), new URL(runtime.wasm, base));
  library.catch(() => (library = null)); // so that it can be tried again
  const [litert, response] = await Promise.all([library, fetch(new URL(model, base))]);
  if (!response.ok) throw new Error(`${model} cannot be loaded: the server answered ${response.status}`);
  const bytes = new Uint8Array(await response.arrayBuffer());
  const compiled = await litert.loadAndCompile(bytes, {accelerator: 'wasm'});
  const network = {
    description: `${runtime.title} in float32, on one thread of this browser`,

    /** @param {Uint8Array} observation */
    async evaluate(observation) {
      const input = new litert.Tensor(observation, [1, ...shape]);
      const {policy, value} = await compiled.run({observation: input});
      const values = [...value.toTypedArray()]; // one, or those of each of more than two players
      const outputs = {logits: policy.toTypedArray().slice(), value: values.length > 1 ? values : values[0]};
      for (const tensor of [input, policy, value]) tensor.delete();
      return outputs;
    },

    /** Frees the memory. */
    close: () => compiled.delete(),
  };
  // Warm-up: the first run is slow.
  await network.evaluate(new Uint8Array(shape.reduce((cells, length) => cells * length, 1)));
  return network;
}
