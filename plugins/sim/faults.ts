/**
 * Scripted faults. A fault is a list of words joined by commas or semicolons:
 *
 * | word | effect |
 * |---|---|
 * | `status=503` | an error response of that status |
 * | `retry-after=2` | adds that header to the error response, seconds |
 * | `delay=500` | delays everything else by that many milliseconds |
 * | `hang` | never answers |
 * | `hang-after=3` | streams 3 events, then hangs; a JSON response hangs |
 * | `drop` | closes the connection at once |
 * | `drop-after=3` | streams 3 events, then closes the connection; a JSON response is dropped |
 * | `drip=200` | sends the first 64 bytes of a stream one at a time, that many milliseconds apart; delays a JSON response by the same time |
 * | `die` | ends the generation of the engine for good: this and all later requests fail, and `/health` is 503 |
 * | `malformed` | corrupts the second event of a stream; truncates a JSON response to its first half |
 *
 * A hanging event stream gets heartbeat comments of the kernel unless the heartbeat is off.
 *
 * Faults are requested by header `x-sim-fault`, by body field `sim_fault`, or in advance by POST /sim/faults, since gateways
 * drop unknown headers.
 */
import { simErrors } from './errors.ts'

export interface Fault {
  readonly status: number | null
  readonly retryAfterSec: string | null
  readonly delayMs: number
  readonly isHanging: boolean
  /** Events before silence; null: no silence. */
  readonly hangAfter: number | null
  readonly isDropped: boolean
  /** Events before the connection is closed; null: it is not. */
  readonly dropAfter: number | null
  /** Milliseconds between single bytes; 0: whole events. */
  readonly dripMs: number
  readonly isMalformed: boolean
  readonly isFatal: boolean
}

export const NO_FAULT: Fault = Object.freeze({
  status: null,
  retryAfterSec: null,
  delayMs: 0,
  isHanging: false,
  hangAfter: null,
  isDropped: false,
  dropAfter: null,
  dripMs: 0,
  isMalformed: false,
  isFatal: false,
})

/** Words with a number. */
const NUMBERS: Readonly<Record<string, (value: number) => Partial<Fault>>> = {
  status: (status) => ({ status }),
  'retry-after': (seconds) => ({ retryAfterSec: String(seconds) }),
  delay: (delayMs) => ({ delayMs }),
  'hang-after': (hangAfter) => ({ hangAfter }),
  'drop-after': (dropAfter) => ({ dropAfter }),
  drip: (dripMs) => ({ dripMs }),
}

/** Words without a value. */
const FLAGS: Readonly<Record<string, Partial<Fault>>> = {
  hang: { isHanging: true },
  drop: { isDropped: true },
  malformed: { isMalformed: true },
  die: { isFatal: true },
}

/** @throws unknown_fault (400) naming the word */
export function parseFault(text: string): Fault {
  let fault = NO_FAULT
  for (const word of text.split(/[,;]/)) {
    const trimmed = word.trim()
    if (trimmed !== '') fault = { ...fault, ...parseWord(trimmed) }
  }
  return fault
}

function parseWord(word: string): Partial<Fault> {
  const [name, value] = word.split('=', 2)
  if (value === undefined && Object.hasOwn(FLAGS, name)) return FLAGS[name]
  const isNumber = value !== undefined && /^\d{1,9}$/.test(value)
  if (!isNumber || !Object.hasOwn(NUMBERS, name)) throw simErrors.unknown_fault(word)
  const number = Number(value)
  if (name === 'status' && (number < 200 || number > 599)) throw simErrors.unknown_fault(word)
  return NUMBERS[name](number)
}
