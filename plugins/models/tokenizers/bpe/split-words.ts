/** Splits a text into the words within which a vocabulary merges. */
import { toWordPattern } from './word-pattern.ts'

/** Words of a text, in order. Text between words has no tokens. */
export type SplitWords = (text: string) => readonly string[]

interface Step {
  readonly pattern: RegExp
  /** Text that the pattern does not match is not a word. */
  readonly dropsRest: boolean
}

interface Section {
  readonly type?: string
  readonly pretokenizers?: readonly Section[]
  readonly pattern?: { readonly Regex?: string; readonly String?: string }
  readonly behavior?: string
  readonly invert?: boolean
  readonly individual_digits?: boolean
  readonly add_prefix_space?: boolean
  readonly use_regex?: boolean
}

/** Of `ByteLevel`. */
const GPT2 = "'(?:[sdmt]|ll|ve|re)| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"

/** @param section `pre_tokenizer` of a `tokenizer.json`. @returns null for unsupported rules */
export function toSplitWords(section: unknown): SplitWords | null {
  const one = (section ?? {}) as Section
  const sections = one.type === 'Sequence' ? (one.pretokenizers ?? []) : [one]
  const steps: Step[] = []
  for (const [place, part] of sections.entries()) {
    if (part.type === 'ByteLevel') {
      if (place + 1 !== sections.length || part.add_prefix_space !== false) return null
      const pattern = toWordPattern(GPT2)
      if (part.use_regex !== false && pattern !== null) steps.push({ pattern, dropsRest: false })
      return (text) => splitAll(text, steps)
    }
    const step = toStep(part)
    if (step === null) return null
    steps.push(step)
  }
  return null
}

function toStep({ type, pattern, behavior, invert, individual_digits: isSingle }: Section): Step | null {
  if (type === 'Digits') return { pattern: isSingle === true ? /\p{N}/gu : /\p{N}+/gu, dropsRest: false }
  if (type !== 'Split' || pattern?.Regex === undefined) return null
  const words = toWordPattern(pattern.Regex)
  const dropsRest = behavior === 'Removed' && invert === true
  const isKnown = dropsRest || (behavior === 'Isolated' && invert !== true)
  return words === null || !isKnown ? null : { pattern: words, dropsRest }
}

function splitAll(text: string, steps: readonly Step[]): readonly string[] {
  let pieces: readonly string[] = [text]
  for (const step of steps)
    pieces = pieces.length === 1 ? split(pieces[0], step) : pieces.flatMap((piece) => split(piece, step))
  return pieces
}

function split(text: string, { pattern, dropsRest }: Step): readonly string[] {
  const matches = text.match(pattern)
  if (matches === null) return dropsRest || text === '' ? [] : [text]
  let length = 0
  for (const match of matches) length += match.length
  return dropsRest || length === text.length ? matches : withRest(text, pattern)
}

/** Matches and the text between them. */
function withRest(text: string, pattern: RegExp): string[] {
  const pieces: string[] = []
  let start = 0
  for (const { 0: match, index } of text.matchAll(pattern)) {
    if (index > start) pieces.push(text.slice(start, index))
    if (match !== '') pieces.push(match)
    start = index + match.length
  }
  if (start < text.length) pieces.push(text.slice(start))
  return pieces
}
