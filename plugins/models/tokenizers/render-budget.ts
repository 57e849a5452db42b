/**
 * Bounds one rendering of a chat template: steps, length of texts and lists, time and heap. A rendering is synchronous, so
 * that a thread has one budget at a time; the interpreter and the functions of templates draw on it.
 */
import { getHeapStatistics } from 'node:v8'

export interface RenderLimits {
  /** Evaluated expressions and statements; 64 characters read or written by a function count as one. */
  readonly maxSteps: number
  /** Characters of any text that is computed, the prompt included. */
  readonly maxCharacters: number
  /** Milliseconds. */
  readonly maxMs: number
}

export const DEFAULT_LIMITS: RenderLimits = { maxSteps: 5_000_000, maxCharacters: 8_388_608, maxMs: 5_000 }

/** A rendering that was stopped; the message names the limit. */
export class BudgetExceeded extends Error {}

/** Items of any list. */
export const MAX_ITEMS = 1_000_000
/** Characters and items from which a value is large enough to look at clock and heap. */
const LARGE = 4_096
const STEPS_PER_CHECK = 128
const STEPS_PER_HEAP_CHECK = 65_536
const CHARACTERS_PER_STEP = 64
const CHARACTERS_PER_HEAP_CHECK = 16_777_216
/** Share of the thread's heap that may be in use; running out of it would end the thread. */
const MAX_HEAP_SHARE = 0.75
/** Patterns longer than this make a search cost more than one pass over the text. */
const SHORT_PATTERN = 16

let limits: RenderLimits | null = null
let stepsLeft = 0
let nextCheck = 0
let nextHeapCheck = 0
let endMs = 0
let characters = 0

/** Runs it within the limits; inside of another one it shares that one's budget. @throws BudgetExceeded */
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

/** @throws BudgetExceeded */
export function spendSteps(count = 1): void {
  stepsLeft -= count
  if (stepsLeft <= nextCheck) check()
}

/** For a function that reads or writes so many characters, or copies so many items. @throws BudgetExceeded */
export function spendCharacters(count: number): void {
  characters += count
  if (count > LARGE) nextCheck = stepsLeft
  spendSteps(count / CHARACTERS_PER_STEP)
}

/** For a search of a pattern in a text: the worst case of the engine's algorithm is their product. @throws BudgetExceeded */
export function spendSearch(text: string, pattern: string): void {
  const passes = pattern.length > SHORT_PATTERN ? pattern.length / 4 : 1
  spendCharacters(text.length * passes)
}

/** Checks a value that was computed. @throws BudgetExceeded */
export function checkValue(value: unknown): void {
  if (typeof value === 'string') {
    if (value.length > LARGE) checkLarge(value.length)
  } else if (Array.isArray(value) && value.length > LARGE) {
    if (value.length > MAX_ITEMS) throw new BudgetExceeded(`${MAX_ITEMS} items of a list`)
    checkLarge(0)
  }
}

/** Checks the length that a text is going to have, or has already. @throws BudgetExceeded */
export function checkLength(length: number): void {
  const max = limits?.maxCharacters ?? Number.POSITIVE_INFINITY
  if (length > max) throw new BudgetExceeded(`${max} characters (plugins.tokenizers.rendering.maxCharacters)`)
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
    throw new BudgetExceeded(`${limits.maxSteps} steps (plugins.tokenizers.rendering.maxSteps)`)
  if (performance.now() > endMs)
    throw new BudgetExceeded(`${limits.maxMs} ms (plugins.tokenizers.rendering.maxMs)`)
  if (characters < CHARACTERS_PER_HEAP_CHECK && stepsLeft > nextHeapCheck) return
  characters = 0
  nextHeapCheck = stepsLeft - STEPS_PER_HEAP_CHECK
  const { used_heap_size: used, heap_size_limit: limit } = getHeapStatistics()
  if (used > limit * MAX_HEAP_SHARE)
    throw new BudgetExceeded('the memory of its thread (plugins.tokenizers.heapMiB)')
}
