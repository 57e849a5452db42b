/**
 * Runs one pattern over a text that comes in pieces: all ways to match at once, character by character, so that a text
 * costs no more than its length. Of the ways that begin first it finds what a search that steps back would find. @hot
 */
import type { Instruction, PatternProgram } from './pattern-program.ts'
import type { CharSet } from './pattern-syntax.ts'

export interface PatternMatch {
  readonly start: number
  readonly end: number
  /** By the names of groups; groups that took no part are not there. */
  readonly groups: ReadonlyMap<string, string>
}

/** The text so far: `text` begins at place `base` of the whole. */
export interface RunText {
  readonly text: string
  readonly base: number
  /** No more comes. */
  readonly isEnd: boolean
}

/** A match under way. */
interface Thread {
  readonly pc: number
  readonly start: number
  /** Where it has ended, if what follows is only looked at; else -1. */
  readonly end: number
  /** Places of its groups, -1 for none. */
  readonly slots: readonly number[]
}

export interface RunLimits {
  /** Characters of a match; what has not come to its end by then is none. */
  readonly maxMatch: number
  /** Characters behind a match for one that is preferred to it to come to its end. */
  readonly maxWait: number
  /** Characters that are looked at, some of them again and again. @throws Error beyond it */
  readonly maxSteps: number
}

/** Of marks in a stream: what may still become one is held back. */
export const STREAM_LIMITS: RunLimits = {
  maxMatch: 16_384,
  maxWait: 256,
  maxSteps: Number.POSITIVE_INFINITY,
}
/** Of matches in a whole text, for each of its characters. */
const STEPS_PER_CHAR = 32
const LEAST_STEPS = 4_096
const NO_SLOTS: readonly number[] = []

export class PatternRun {
  readonly #program: PatternProgram
  readonly #limits: RunLimits
  #steps = 0
  readonly #marks: Int32Array
  #generation = 0
  /** Before every step; in the order in which they are preferred, so that those that began first are first. */
  #threads: Thread[] = []
  #at = 0
  /** A match of no character here is none: there was one already. */
  #noEmptyAt = -1
  /** The best match that has come to its end; those that are preferred to it may still do so. */
  #found: Thread | null = null
  #foundEnd = 0

  constructor(program: PatternProgram, limits: RunLimits = STREAM_LIMITS) {
    this.#program = program
    this.#limits = limits
    this.#marks = new Int32Array(program.code.length)
  }

  /** Begins anew. @param noEmptyAt -1 for nowhere */
  reset(at: number, noEmptyAt: number): void {
    this.#at = at
    this.#noEmptyAt = noEmptyAt
    this.#threads = []
    this.#found = null
  }

  /** Nothing is under way: the text may be passed over up to a character of `firsts`. */
  get isIdle(): boolean {
    return this.#threads.length === 0 && this.#found === null
  }

  /** @returns the match, or the place from which on nothing is certain yet: that of the text's end at most */
  advance(input: RunText): PatternMatch | number {
    if (this.#found !== null && this.#threads.length === 0) return this.#toMatch(input, this.#found)
    const stop = input.base + this.#certainLength(input)
    while (this.#at < stop) {
      if (this.isIdle && !this.#skip(input)) break
      this.#step(input)
      if (this.#found !== null && this.#threads.length === 0) return this.#toMatch(input, this.#found)
    }
    return this.#atEdge(input)
  }

  /** Whether a line end is the last character of the whole is known when the next one comes. */
  #certainLength({ text, isEnd }: RunText): number {
    return !isEnd && this.#program.asksForLineEnd && text.endsWith('\n') ? text.length - 1 : text.length
  }

  /** Passes over what no match begins with. @returns false when the text is over */
  #skip(input: RunText): boolean {
    const { text, base } = input
    const { firsts, lead } = this.#program
    if (firsts === null) return true
    const from = this.#at - base
    firsts.lastIndex = from
    let place = firsts.exec(text)?.index ?? text.length
    if (lead !== null) place = leadStart(text, from, place, lead)
    const certain = this.#certainLength(input)
    this.#at = base + Math.min(place, certain)
    return place < certain
  }

  #step(input: RunText): void {
    const place = this.#at - input.base
    const code = input.text.codePointAt(place) as number
    const { maxMatch, maxWait, maxSteps } = this.#limits
    if (++this.#steps > maxSteps) throw new Error('a pattern that looks at its text too often')
    const oldest = this.#at - maxMatch
    const ready = this.#expand(input)
    this.#at += code > 0xffff ? 2 : 1
    this.#threads = []
    if (this.#found !== null && this.#at - this.#foundEnd > maxWait) return
    for (const thread of ready) {
      const step = this.#program.code[thread.pc]
      if (step.op === 'match') {
        this.#found = thread
        this.#foundEnd = thread.end < 0 ? place + input.base : thread.end
        return
      }
      if (thread.start < oldest) continue
      if (step.op === 'char' && step.set.has(code))
        this.#threads.push({ pc: thread.pc + 1, start: thread.start, end: thread.end, slots: thread.slots })
    }
  }

  /** What the text as far as it has come allows to say. */
  #atEdge(input: RunText): PatternMatch | number {
    for (const thread of this.#expand(input)) {
      if (this.#program.code[thread.pc].op !== 'match') {
        // At the end nothing goes on.
        if (input.isEnd) continue
        return thread.start
      }
      // A match of nothing at the edge may be another one when more comes.
      if (!input.isEnd && thread.start === this.#at) return this.#at
      this.#found = thread
      this.#foundEnd = thread.end < 0 ? this.#at : thread.end
      this.#threads = []
      break
    }
    return this.#found === null ? this.#at : this.#toMatch(input, this.#found)
  }

  /** All threads at the next character, or at a match. */
  #expand(input: RunText): Thread[] {
    this.#generation++
    const out: Thread[] = []
    for (const thread of this.#threads) this.#follow(thread, thread.pc, input, out)
    if (this.#found === null)
      this.#follow({ pc: 0, start: this.#at, end: -1, slots: NO_SLOTS }, 0, input, out)
    return out
  }

  /** @param thread of which all but its place in the program holds */
  #follow(thread: Thread, pc: number, input: RunText, out: Thread[]): void {
    if (this.#marks[pc] === this.#generation) return
    this.#marks[pc] = this.#generation
    const { start, end, slots } = thread
    const step: Instruction = this.#program.code[pc]
    switch (step.op) {
      case 'split':
        this.#follow(thread, step.first, input, out)
        this.#follow(thread, step.second, input, out)
        return
      case 'jump':
        this.#follow(thread, step.to, input, out)
        return
      case 'save':
        this.#follow({ pc, start, end, slots: this.#saved(slots, step.slot) }, pc + 1, input, out)
        return
      case 'ahead':
        this.#follow({ pc, start, end: this.#at, slots }, pc + 1, input, out)
        return
      case 'start':
        if (this.#at === 0) this.#follow(thread, pc + 1, input, out)
        return
      case 'end': {
        const isNear = this.#isNearEnd(input, step.isLine)
        if (isNear && input.isEnd) this.#follow(thread, pc + 1, input, out)
        else if (isNear) out.push({ pc, start, end, slots })
        return
      }
      case 'match': {
        const isEmpty = start === (end < 0 ? this.#at : end)
        if (!isEmpty || start !== this.#noEmptyAt) out.push({ pc, start, end, slots })
        return
      }
      default:
        out.push({ pc, start, end, slots })
    }
  }

  #isNearEnd({ text, base }: RunText, isLine: boolean): boolean {
    const place = this.#at - base
    return place === text.length || (isLine && place === text.length - 1 && text[place] === '\n')
  }

  #saved(slots: readonly number[], slot: number): readonly number[] {
    const next =
      slots.length > 0 ? slots.slice() : new Array<number>(this.#program.groups.length * 2).fill(-1)
    next[slot] = this.#at
    return next
  }

  #toMatch({ text, base }: RunText, { start, slots }: Thread): PatternMatch {
    const groups = new Map<string, string>()
    for (const [at, name] of this.#program.groups.entries()) {
      const from = slots[at * 2] ?? -1
      const to = slots[at * 2 + 1] ?? -1
      if (from >= 0 && to >= 0) groups.set(name, text.slice(from - base, to - base))
    }
    return { start, end: this.#foundEnd, groups }
  }
}

/** Where the characters of a lead begin that end at a place. */
function leadStart(text: string, from: number, place: number, lead: CharSet): number {
  let at = place
  while (at > from) {
    const isPair = at - from > 1 && (text.codePointAt(at - 2) as number) > 0xffff
    const before = isPair ? at - 2 : at - 1
    if (!lead.has(text.codePointAt(before) as number)) break
    at = before
  }
  return at
}

/** All matches of a whole text, one after the other, of any length. @throws Error when they are too much work */
export function* allMatches(program: PatternProgram, text: string): Generator<PatternMatch> {
  const any = Number.POSITIVE_INFINITY
  const maxSteps = LEAST_STEPS + STEPS_PER_CHAR * text.length
  const run = new PatternRun(program, { maxMatch: any, maxWait: any, maxSteps })
  const input = { text, base: 0, isEnd: true }
  let noEmptyAt = -1
  for (let at = 0; at <= text.length; ) {
    run.reset(at, noEmptyAt)
    const match = run.advance(input)
    if (typeof match === 'number') return
    yield match
    at = match.end
    noEmptyAt = match.end
  }
}
