/**
 * Runs one pattern over a text in chunks: follows all possible matches at once, character by character, in linear time. Finds
 * the match that a backtracking search would find. @hot
 */
import type { Instruction, PatternProgram } from './pattern-program.ts'
import type { CharSet } from './pattern-syntax.ts'

export interface PatternMatch {
  readonly start: number
  readonly end: number
  /** By name of the group, without groups that did not match. */
  readonly groups: ReadonlyMap<string, string>
}

/** Part of the text; it begins at position `base` of the whole. */
export interface RunText {
  readonly text: string
  readonly base: number
  /** The text is complete. */
  readonly isEnd: boolean
}

/** A possible match. */
interface Thread {
  readonly pc: number
  readonly start: number
  /** End of the match before a look-ahead; else -1. */
  readonly end: number
  /** Positions of its groups, -1 for none. */
  readonly slots: readonly number[]
}

export interface RunLimits {
  /** Maximum characters of a match. */
  readonly maxMatch: number
  /** Characters after a match within which one that takes precedence must end. */
  readonly maxWait: number
  /** Maximum steps; a step reads one character. */
  readonly maxSteps: number
}

/** For marks in a stream, where text that may become a mark is held back. */
export const STREAM_LIMITS: RunLimits = {
  maxMatch: 16_384,
  maxWait: 256,
  maxSteps: Number.POSITIVE_INFINITY,
}
/** For matches in a complete text, per character. */
const STEPS_PER_CHAR = 32
const LEAST_STEPS = 4_096
const NO_SLOTS: readonly number[] = []

export class PatternRun {
  readonly #program: PatternProgram
  readonly #limits: RunLimits
  #steps = 0
  readonly #marks: Int32Array
  #generation = 0
  /** In order of precedence: earlier starts first. */
  #threads: Thread[] = []
  #at = 0
  /** An empty match at this position is ignored, because there was one already. */
  #noEmptyAt = -1
  /** The best complete match; threads that take precedence may still end. */
  #found: Thread | null = null
  #foundEnd = 0

  constructor(program: PatternProgram, limits: RunLimits = STREAM_LIMITS) {
    this.#program = program
    this.#limits = limits
    this.#marks = new Int32Array(program.code.length)
  }

  /** Starts another search. @param noEmptyAt position at which an empty match is ignored; -1 for none */
  reset(at: number, noEmptyAt: number): void {
    this.#at = at
    this.#noEmptyAt = noEmptyAt
    this.#threads = []
    this.#found = null
  }

  /** There is no possible match: the text can be skipped up to a character of `firsts`. */
  get isIdle(): boolean {
    return this.#threads.length === 0 && this.#found === null
  }

  /** @returns the match, or the position from which on the text is undecided */
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

  /** Excludes a final line break until the next character shows whether it is the last one. */
  #certainLength({ text, isEnd }: RunText): number {
    return !isEnd && this.#program.asksForLineEnd && text.endsWith('\n') ? text.length - 1 : text.length
  }

  /** Skips text that cannot begin a match. @returns false at the end of the text */
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
    if (++this.#steps > maxSteps) throw new Error('the pattern needs too many steps')
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

  /** Result at the end of the chunk. */
  #atEdge(input: RunText): PatternMatch | number {
    for (const thread of this.#expand(input)) {
      if (this.#program.code[thread.pc].op !== 'match') {
        // The text is complete, so the thread cannot continue.
        if (input.isEnd) continue
        return thread.start
      }
      // An empty match at the end of the chunk may become longer.
      if (!input.isEnd && thread.start === this.#at) return this.#at
      this.#found = thread
      this.#foundEnd = thread.end < 0 ? this.#at : thread.end
      this.#threads = []
      break
    }
    return this.#found === null ? this.#at : this.#toMatch(input, this.#found)
  }

  /** Advances all threads to their next character, or to a match. */
  #expand(input: RunText): Thread[] {
    this.#generation++
    const out: Thread[] = []
    for (const thread of this.#threads) this.#follow(thread, thread.pc, input, out)
    if (this.#found === null)
      this.#follow({ pc: 0, start: this.#at, end: -1, slots: NO_SLOTS }, 0, input, out)
    return out
  }

  /** @param pc replaces the position of the thread */
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

/** Start of the lead characters that end at a position. */
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

/** Yields all matches of a complete text. @throws Error if they need too many steps */
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
