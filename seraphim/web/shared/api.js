/** Requests to the server over HTTP. */

/**
 * Fetch JSON.
 * @param {string} path relative to the page
 * @returns {Promise<any>}
 * @throws {Error} the server's error message, or that it cannot be reached
 */
export async function fetchJson(path) {
  let response;
  try {
    response = await fetch(new URL(path, document.baseURI));
  } catch {
    throw new Error('Cannot reach the server: is seraphim serve still running?');
  }
  const answer = await response.json().catch(() => null);
  if (response.ok && answer !== null) return answer;
  throw new Error(answer?.error ?? `The server answered ${response.status} to ${path}.`);
}
