/**
 * The types of the engine's messages and of the server's answers. Contains no code.
 *
 * @typedef {[row: number, column: number]} Cell
 *
 * @typedef {object} Board a position as a grid of cells; row 0 is the top
 * @property {number} rows
 * @property {number} columns
 * @property {number[][]} cells index into marks, -1 for an empty cell
 * @property {string[]} marks what stands in a cell: a piece of player 0, one of player 1, and so on
 * @property {Record<string, Cell[]>} targets the cells of each legal action: the piece lands in the first; a piece that
 *     moves comes from the second
 * @property {string[]} [row_names]
 * @property {string[]} [column_names] a cell's name is its column, then its row
 * @property {'marks' | 'stones' | 'hexagons' | 'pieces' | 'crossings' | 'race' | 'tiles' | 'net' | 'backgammon'} [look]
 *     how it is drawn, by default marks
 * @property {[string, string]} [players] what to call players 0 and 1
 * @property {Array<[points: number, stake: number, goal: number]>} [tracks] of the players of a race
 *
 * @typedef {object} GameInfo
 * @property {string} name
 * @property {string} goal the rules in a sentence; empty if the game offers none
 * @property {number} num_players
 * @property {boolean} chance whether chance moves in it
 * @property {number | null} points that a result of 1 is for people; null if it is none
 * @property {number} num_actions
 * @property {number} max_plies
 * @property {string[]} labels of all actions
 * @property {boolean} reads_drawings whether `load` takes a board diagram
 * @property {boolean} labels_vary whether labels depend on the position
 * @property {boolean} solved whether the engine can solve positions
 * @property {boolean} by_turns whether the model values turns, each at once, in place of readouts
 *
 * @typedef {object} Opened
 * @property {string} model
 * @property {string} snapshot
 * @property {string} engine description of the engine
 * @property {string | null} external engine that plays the game on the server
 * @property {GameInfo} game
 *
 * @typedef {object} Position
 * @property {string[] | null} start words of the state where the game starts; null for the game's initial state
 * @property {number[]} moves
 * @property {number} to_play the player to move; -1 where chance moves
 * @property {boolean} ended
 * @property {number | null} result for player 0
 * @property {number[] | null} [results] of more than two players
 * @property {number[]} legal actions; or where chance moves the possible outcomes
 * @property {Record<string, number> | null} chances the probability of each outcome where chance moves
 * @property {Record<string, string>} labels of the legal actions
 * @property {string[]} played labels of the moves
 * @property {Array<number | null>} players who made the moves, -1 for chance; null where positions tell
 * @property {number[] | null} banked what each player already has of the result
 * @property {Board | null} board
 * @property {string} text the board as text
 * @property {number | null} last action
 * @property {Cell[]} line the winning cells
 *
 * @typedef {object} Candidate
 * @property {number} action
 * @property {string} label
 * @property {number} prior
 * @property {number} searched_prior
 * @property {number} visits
 * @property {number} share of all visits
 * @property {number} q for the player to move
 * @property {number[]} [values] the same for each of more than two players
 * @property {number} u
 * @property {boolean} proven
 * @property {string[]} variation labels, this move first
 * @property {number[]} actions of the variation
 *
 * @typedef {object} Analysis
 * @property {number} readouts visits at the root
 * @property {number} value for the player to move, in [-1, 1]
 * @property {number} value_first the same for player 0
 * @property {number[]} [values] the same for each of more than two players
 * @property {number} best action
 * @property {number} seconds of this search
 * @property {number} readouts_per_second
 * @property {boolean} proven
 * @property {Candidate[]} candidates the best one, then the most visited first
 * @property {boolean} done
 *
 * @typedef {{result: number | null, best: boolean, plies: number | null, proven: boolean}} Exact exact result of a move, for the
 * player to move; proven by a proof, not a solver: then `plies` is a maximum
 * @typedef {Record<string, Exact>} Solution by action
 *
 * @typedef {object} Model
 * @property {string} name
 * @property {string} game
 * @property {string} champion
 * @property {string[]} snapshots
 */

export {};
