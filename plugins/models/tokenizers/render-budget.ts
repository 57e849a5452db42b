/**
 * Limits one rendering of a chat template: steps, length of texts and lists, time and heap. A rendering is synchronous, so
 * a thread has one budget at a time, which the interpreter and the functions of templates consume.
 */
import { getHeapStatistics } from 'node:v8'

export interface RenderLimits {
  /** Evaluated expressions and statements; 64 characters read or written by a function count as one. */
  readonly maxSteps: number
  /** Characters of any text that is computed, the prompt included. */
  readonly maxCharacters: number
  /** Milliseconds by the clock. */
  readonly maxMs: number
}

/**
 * One rendering delays those of all other models. The steps last for half a second, and are the same on every machine; the time
 * is longer, since an overloaded machine must not reject long chats.
 */
export const DEFAULT_LIMITS: RenderLimits = { maxSteps: 5_000_000, maxCharacters: 8_388_608, maxMs: 10_000 }

/** A rendering exceeded a limit, which the message names. */
export class RenderLimitExceeded extends Error {}

/** Maximum length of a list. */
export const MAX_ITEMS = 1_000_000
/** Length of a text or list from which clock and heap are checked. */
const LARGE = 4_096
const STEPS_PER_CHECK = 128
const STEPS_PER_HEAP_CHECK = 65_536
const CHARACTERS_PER_STEP = 64
const CHARACTERS_PER_HEAP_CHECK = 16_777_216
/** Maximum share of the thread's heap in use; exhausting the heap would end the thread. */
const MAX_HEAP_SHARE = 0.75
/** Patterns longer than this make a search cost more than one pass over the text. */
const SHORT_PATTERN = 16

let limits: RenderLimits | null = null
let stepsLeft = 0
let nextCheck = 0
let nextHeapCheck = 0
let endMs = 0
let characters = 0

/** Runs a rendering within the limits; a nested call shares the budget of the outer one. @throws RenderLimitExceeded */
export function withBudget<T>(given: RenderLimits, run: () => T): T {
  if (limits !== null) return run()
  limits = given
  stepsLeft = given.maxSteps
  nextCheck = stepsLeft - STEPS_PER_CHECK
  nextHeapCheck = stepsLeft - STEPS_PER_HEAP_CHECK
  endMs = performance.now() + given.maxMs
  characters = 0
  try {
    return run()
  } finally {
    limits = null
  }
}

/** @throws RenderLimitExceeded */
export function spendSteps(count = 1): void {
  stepsLeft -= count
  if (stepsLeft <= nextCheck) check()
}

/** Charges characters that a function reads or writes, or items that it copies. @throws RenderLimitExceeded */
export function spendCharacters(count: number): void {
  characters += count
  if (count > LARGE) nextCheck = stepsLeft
  spendSteps(count / CHARACTERS_PER_STEP)
}

/** Charges the search of a pattern in a text; the worst case of V8's algorithm is the product of their lengths. @throws RenderLimitExceeded */
export function spendSearch(text: string, pattern: string): void {
  const passes = pattern.length > SHORT_PATTERN ? pattern.length / 4 : 1
  spendCharacters(text.length * passes)
}

/** Checks the size of a computed value. @throws RenderLimitExceeded */
export function checkValue(value: unknown): void {
  if (typeof value === 'string') {
    if (value.length > LARGE) checkLarge(value.length)
  } else if (Array.isArray(value) && value.length > LARGE) {
    if (value.length > MAX_ITEMS) throw new RenderLimitExceeded(`${MAX_ITEMS} items of a list`)
    checkLarge(0)
  }
}

/** Checks the current or future length of a text. @throws RenderLimitExceeded */
export function checkLength(length: number): void {
  const max = limits?.maxCharacters ?? Number.POSITIVE_INFINITY
  if (length > max)
    throw new RenderLimitExceeded(`${max} characters (plugins.tokenizers.rendering.maxCharacters)`)
}

function checkLarge(length: number): void {
  checkLength(length)
  characters += length
  check()
}

function check(): void {
  nextCheck = stepsLeft - STEPS_PER_CHECK
  if (limits === null) return
  if (stepsLeft < 0)
    throw new RenderLimitExceeded(`${limits.maxSteps} steps (plugins.tokenizers.rendering.maxSteps)`)
  if (performance.now() > endMs)
    throw new RenderLimitExceeded(`${limits.maxMs} ms (plugins.tokenizers.rendering.maxMs)`)
  if (characters < CHARACTERS_PER_HEAP_CHECK && stepsLeft > nextHeapCheck) return
  characters = 0
  nextHeapCheck = stepsLeft - STEPS_PER_HEAP_CHECK
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics()
  if (used > limit * MAX_HEAP_SHARE)
    throw new RenderLimitExceeded('the memory of its thread (plugins.tokenizers.heapMiB)')
}
