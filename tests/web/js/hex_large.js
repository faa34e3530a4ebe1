/** Hex 9×9 with the swap rule: a player's cells take two words. */

import {named} from '../../../hex/rules.js';

export default named('hex:9,swap');
