/**
 * Compiles the Python patterns of response templates to programs that `PatternRun` runs in linear time. Back references and
 * look-behind are rejected. Patterns come from files of a model, which are untrusted: a backtracking engine must not run them.
 */

import { type CharSet, literal, type Node, parsePattern } from './pattern-syntax.ts'

/** One instruction; unless it says otherwise, the thread continues with the next one. */
export type Instruction =
  | { readonly op: 'char'; readonly set: CharSet }
  /** `first` takes precedence. */
  | { readonly op: 'split'; readonly first: number; readonly second: number }
  | { readonly op: 'jump'; readonly to: number }
  | { readonly op: 'save'; readonly slot: number }
  | { readonly op: 'start' }
  /** `isLine`: also before a line break that is the last character. */
  | { readonly op: 'end'; readonly isLine: boolean }
  /** End of the match; the rest is a look-ahead. */
  | { readonly op: 'ahead' }
  | { readonly op: 'match' }

export interface PatternProgram {
  readonly code: readonly Instruction[]
  /** Names of groups in order of their slots: group n has slots 2n and 2n + 1. */
  readonly groups: readonly string[]
  /** Set of a leading `*` repeat. */
  readonly lead: CharSet | null
  /** Finds the next character that can begin a match after its lead; null if a match may be empty. The caller sets `lastIndex`. */
  readonly firsts: RegExp | null
  /** Contains `$`, which also matches before a final line break. */
  readonly asksForLineEnd: boolean
}

const MAX_CODE = 512

/** Matches any of several texts, longer ones first. @throws Error with the reason */
export function compileLiterals(literals: readonly string[]): PatternProgram {
  const ordered = [...new Set(literals)].sort((a, b) => b.length - a.length)
  const nodes = ordered.map((text): Node => ({ kind: 'all', nodes: [...text].map(literal) }))
  return assemble({ kind: 'any', nodes }, [])
}

/** @throws Error for invalid or unsupported syntax */
export function compilePattern(pattern: string): PatternProgram {
  const { node, groups } = parsePattern(pattern)
  return assemble(node, groups)
}

function assemble(node: Node, groups: readonly string[]): PatternProgram {
  if (looksAhead(node, true)) throw new Error('it has a look-ahead (?= that is not at its end')
  const code: Instruction[] = []
  emit(node, code, groups)
  add(code, { op: 'match' })
  const asksForLineEnd = code.some((step) => step.op === 'end' && step.isLine)
  const [step, next] = code
  const hasLead = step.op === 'split' && next.op === 'char' && code[2]?.op === 'jump' && code[2].to === 0
  const behind = hasLead ? Math.max(step.first, step.second) : 0
  return { code, groups, lead: hasLead ? next.set : null, firsts: firstsOf(code, behind), asksForLineEnd }
}

/** True for a look-ahead that is not at the end. @param mayEnd a look-ahead at the end of the node is allowed */
function looksAhead(node: Node, mayEnd: boolean): boolean {
  if (node.kind === 'ahead') return !mayEnd || looksAhead(node.node, false)
  if (node.kind === 'any') return node.nodes.some((part) => looksAhead(part, mayEnd))
  if (node.kind === 'all')
    return node.nodes.some((part, at) => looksAhead(part, mayEnd && at === node.nodes.length - 1))
  return (node.kind === 'group' || node.kind === 'repeat') && looksAhead(node.node, false)
}

function add(code: Instruction[], instruction: Instruction): number {
  if (code.length >= MAX_CODE) throw new Error(`it has more than ${MAX_CODE} steps`)
  return code.push(instruction) - 1
}

function emit(node: Node, code: Instruction[], groups: readonly string[]): void {
  if (node.kind === 'set') add(code, { op: 'char', set: node.set })
  else if (node.kind === 'start') add(code, { op: 'start' })
  else if (node.kind === 'end') add(code, { op: 'end', isLine: node.isLine })
  else if (node.kind === 'ahead') {
    add(code, { op: 'ahead' })
    emit(node.node, code, groups)
  } else if (node.kind === 'all') for (const part of node.nodes) emit(part, code, groups)
  else if (node.kind === 'any') emitAny(node.nodes, code, groups)
  else if (node.kind === 'repeat') emitRepeat(node, code, groups)
  else {
    const slot = groups.indexOf(node.name) * 2
    add(code, { op: 'save', slot })
    emit(node.node, code, groups)
    add(code, { op: 'save', slot: slot + 1 })
  }
}

function emitAny(nodes: readonly Node[], code: Instruction[], groups: readonly string[]): void {
  const ends: number[] = []
  for (const [at, node] of nodes.entries()) {
    const isLast = at === nodes.length - 1
    const split = isLast ? -1 : add(code, { op: 'jump', to: 0 })
    emit(node, code, groups)
    if (isLast) continue
    ends.push(add(code, { op: 'jump', to: 0 }))
    code[split] = { op: 'split', first: split + 1, second: code.length }
  }
  for (const end of ends) code[end] = { op: 'jump', to: code.length }
}

function emitRepeat(
  { node, min, max, isLazy }: Extract<Node, { kind: 'repeat' }>,
  code: Instruction[],
  groups: readonly string[],
): void {
  const before = code.length
  for (let times = 0; times < min; times++) {
    emit(node, code, groups)
    // A repeat of an empty node adds no code.
    if (code.length === before) break
  }
  const choice = (inside: number, behind: number): Instruction =>
    isLazy ? { op: 'split', first: behind, second: inside } : { op: 'split', first: inside, second: behind }
  if (max === Number.POSITIVE_INFINITY) {
    const split = add(code, { op: 'jump', to: 0 })
    emit(node, code, groups)
    add(code, { op: 'jump', to: split })
    code[split] = choice(split + 1, code.length)
    return
  }
  const splits: number[] = []
  for (let times = min; times < max; times++) {
    splits.push(add(code, { op: 'jump', to: 0 }))
    emit(node, code, groups)
  }
  for (const split of splits) code[split] = choice(split + 1, code.length)
}

function firstsOf(code: readonly Instruction[], from: number): RegExp | null {
  const seen = new Set<number>()
  const sources = new Set<string>()
  const open = [from]
  for (let pc = open.pop(); pc !== undefined; pc = open.pop()) {
    if (seen.has(pc)) continue
    seen.add(pc)
    const step = code[pc]
    if (step.op === 'match') return null
    if (step.op === 'char') sources.add(step.set.source)
    else if (step.op === 'split') open.push(step.first, step.second)
    else open.push(step.op === 'jump' ? step.to : pc + 1)
  }
  // An empty set never matches, like the pattern.
  return new RegExp(`[${[...sources].join('')}]`, 'gv')
}
