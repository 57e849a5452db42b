/**
 * Scripted trouble. A fault is a list of words joined by commas or semicolons:
 *
 * | word | effect |
 * |---|---|
 * | `status=503` | an error reply of that status |
 * | `retry-after=2` | adds that header to the error reply, seconds |
 * | `delay=500` | nothing happens for that many milliseconds, then the rest |
 * | `hang` | never answers |
 * | `hang-after=3` | streams 3 events, then falls silent; a whole reply hangs |
 * | `drop` | closes the connection at once |
 * | `drop-after=3` | streams 3 events, then closes the connection; a whole reply is dropped |
 * | `drip=200` | the first 64 bytes of a stream leave one at a time, that many milliseconds apart; a whole reply is late by as much |
 * | `malformed` | the second event of a stream, or the second half of a whole reply, is broken |
 *
 * A silent event stream gets the kernel's comment lines unless its heartbeat is off.
 *
 * They come with the request (header `x-sim-fault`, body field `sim_fault`) or are laid out beforehand through
 * POST /sim/faults, because gateways drop headers they do not know.
 */
import { simErrors } from './errors.ts'
import { Random } from './random.ts'
import type { FaultRule } from './wire.ts'

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
})

/** What a word with a number changes. */
const NUMBERS: Readonly<Record<string, (value: number) => Partial<Fault>>> = {
  status: (status) => ({ status }),
  'retry-after': (seconds) => ({ retryAfterSec: String(seconds) }),
  delay: (delayMs) => ({ delayMs }),
  'hang-after': (hangAfter) => ({ hangAfter }),
  'drop-after': (dropAfter) => ({ dropAfter }),
  drip: (dripMs) => ({ dripMs }),
}

/** What a word alone changes. */
const FLAGS: Readonly<Record<string, Partial<Fault>>> = {
  hang: { isHanging: true },
  drop: { isDropped: true },
  malformed: { isMalformed: true },
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

/** A rule that still has requests to hit. */
export interface ActiveFault extends FaultRule {
  /** Requests left. */
  count: number
  readonly parsed: Fault
}

/** The faults laid out beforehand, in the order they came; the first rule that fits is used. */
export class FaultBook {
  #rules: ActiveFault[] = []
  readonly #random: Random

  constructor(seed: number) {
    this.#random = new Random(seed)
  }

  /** @throws unknown_fault (400) */
  add(rule: FaultRule): void {
    this.#rules.push({ ...rule, parsed: parseFault(rule.fault) })
  }

  /** @param isServing the request is a POST of the serving API, which rules without a path are for */
  take(path: string, isServing: boolean): Fault {
    if (this.#rules.length === 0) return NO_FAULT
    for (const rule of this.#rules) {
      if (rule.match.path === undefined ? !isServing : rule.match.path !== path) continue
      if (rule.probability < 1 && this.#random.next() >= rule.probability) continue
      rule.count -= 1
      if (rule.count === 0) this.#rules = this.#rules.filter((other) => other !== rule)
      return rule.parsed
    }
    return NO_FAULT
  }

  list(): FaultRule[] {
    return this.#rules.map(({ parsed, ...rule }) => rule)
  }

  clear(): void {
    this.#rules = []
  }
}
