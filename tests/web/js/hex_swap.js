/** Hex 7×7 with the swap rule. */

import {named} from '../../../hex/rules.js';

export default named('hex:7,swap');
