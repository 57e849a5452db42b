/** Parses YAML or JSON text, with the positions of its values. */
import { isMap, isNode, isScalar, isSeq, LineCounter, type Node, parseDocument, stringify } from 'yaml'
import { messageOf } from '../../../kernel/errors/message-of.ts'
import type { ConfigProblem } from './config-error.ts'

export interface ConfigSource {
  /** Plain data; undefined if there are problems. */
  readonly value: unknown
  /** Syntax errors. */
  readonly problems: readonly ConfigProblem[]
  /** `name:line:column` of a path or of its nearest existing ancestor; null if there is none. */
  locate(path: readonly string[]): string | null
}

/** @param name the file's name as the operator gave it, for messages */
export function parseSource(text: string, name: string): ConfigSource {
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false })
  const at = (offset: number) => {
    const { line, col } = lines.linePos(offset)
    return `${name}:${line}:${col}`
  }
  const problems = [...document.errors, ...document.warnings].map((fault) => ({
    path: '',
    text: fault.message,
    where: at(fault.pos[0]),
  }))
  const locate = (path: readonly string[]) => {
    const offset = offsetOf(document.contents, path)
    return offset === null ? null : at(offset)
  }
  if (problems.length > 0) return { value: undefined, problems, locate }
  try {
    return { value: document.toJS(), problems, locate }
  } catch (error) {
    // The library detects excessive aliases only here.
    const text = messageOf(error)
    return { value: undefined, problems: [{ path: '', text, where: name }], locate }
  }
}

/** Offset of the last key of a path, or of its nearest existing ancestor. */
function offsetOf(contents: unknown, path: readonly string[]): number | null {
  let node: unknown = contents
  let offset: number | null = null
  for (const key of path) {
    const step = stepInto(node, key)
    if (step === null) break
    node = step.value
    offset = step.offset ?? offset
  }
  return offset
}

function stepInto(node: unknown, key: string): { value: unknown; offset: number | null } | null {
  if (isMap(node)) {
    const pair = node.items.find((item) => isScalar(item.key) && String(item.key.value) === key)
    return pair === undefined ? null : { value: pair.value, offset: startOf(pair.key) }
  }
  if (isSeq(node) && isNode(node.items[Number(key)])) {
    const item = node.items[Number(key)] as Node
    return { value: item, offset: startOf(item) }
  }
  return null
}

function startOf(node: unknown): number | null {
  return isNode(node) && node.range ? node.range[0] : null
}

/** Plain data as YAML, for `weir config show`. */
export function renderYaml(value: unknown): string {
  return stringify(value, { lineWidth: 0, aliasDuplicateObjects: false })
}
