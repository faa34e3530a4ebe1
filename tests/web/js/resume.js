/** What the page's client sends again after a lost connection, to a server that answers positions only. */

globalThis.window = globalThis;

const {Engine} = await import(new URL('../../../seraphim/web/engine/client.js', import.meta.url));

const sent = [];
const connection = {send: (message) => sent.push(message)};
const engine = new Engine(connection);
const answer = (type) => connection.onmessage({id: sent.at(-1).id, type});
connection.onopen();
void engine.open('model', null);
answer('opened');
void engine.position(null, [1]);
answer('position');
void engine.solution(); // asked in the first position, and not answered
void engine.position(null, [2]);
answer('position');
void engine.position(null, [3]); // not answered
void engine.move();
connection.onlost();
sent.length = 0;
connection.onopen();
console.log(JSON.stringify(sent.map(({type, moves}) => (moves ? `${type} ${moves}` : type))));
