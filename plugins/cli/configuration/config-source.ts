/** Parses YAML or JSON text, with the positions of its values. */
import {
  type Document,
  isMap,
  isNode,
  isScalar,
  isSeq,
  LineCounter,
  type Node,
  parseDocument,
  stringify,
  visit,
} from 'yaml'
import { messageOf } from '../../../kernel/errors/message-of.ts'
import type { ConfigProblem } from './config-error.ts'

export interface ConfigSource {
  /** Plain data; undefined if the text cannot be read. */
  readonly value: unknown
  /** Syntax errors, and references in the syntax of other programs that cannot stay. */
  readonly problems: readonly ConfigProblem[]
  /** `name:line:column` of a path or of its nearest existing ancestor, `name` for the whole file; null if there is none. */
  locate(path: readonly string[]): string | null
}

const SHELL_REFERENCE = /\$\{([A-Za-z_]\w*)\}/
const SHELL_REFERENCES = new RegExp(SHELL_REFERENCE, 'g')
/** Of the length of what they replace, so that positions stay; in no text of an operator. */
const MARK = '\ue000\ue001'
const MARK_END = '\ue002'
const MARKED = new RegExp(`${MARK}(\\w+)${MARK_END}`, 'g')

/** Most syntax errors that are reported; the rest usually follows from the first, or the file is no configuration. */
const MAX_SYNTAX_PROBLEMS = 10
/** Longest text of a syntax error, which quotes the file, in characters. */
const MAX_SYNTAX_TEXT = 200

/** @param name the file's name as the operator gave it, for messages */
export function parseSource(text: string, name: string): ConfigSource {
  let lines = new LineCounter()
  const parse = (source: string): Document => {
    lines = new LineCounter()
    return parseDocument(source, { lineCounter: lines, prettyErrors: false })
  }
  let document = parse(text)
  // In `{ }`, a brace of a reference ends the mapping, and everything after it is a fault of syntax.
  const isMarked = document.errors.length > 0 && SHELL_REFERENCE.test(text)
  if (isMarked) document = parse(text.replaceAll(SHELL_REFERENCES, `${MARK}$1${MARK_END}`))
  const at = (offset: number) => {
    const { line, col } = lines.linePos(offset)
    return `${name}:${line}:${col}`
  }
  const problems = [...document.errors, ...document.warnings]
    .slice(0, MAX_SYNTAX_PROBLEMS)
    .map(({ message, pos }) => ({
      path: '',
      text: message.length > MAX_SYNTAX_TEXT ? `${message.slice(0, MAX_SYNTAX_TEXT)}…` : message,
      where: at(pos[0]),
    }))
  problems.push(
    ...prototypeKeys(document).map((offset) => ({
      path: '',
      text: '__proto__ cannot be used as a name',
      where: at(offset),
    })),
  )
  const locate = (path: readonly string[]) => {
    if (path.length === 0) return name
    const offset = offsetOf(document.contents, path)
    return offset === null ? null : at(offset)
  }
  if (problems.length > 0) return { value: undefined, problems, locate }
  if (isMarked)
    problems.push(
      ...restoreReferences(document).map(({ text, offset }) => ({ path: '', text, where: at(offset) })),
    )
  try {
    return { value: document.toJS(), problems, locate }
  } catch (error) {
    // The library detects excessive aliases only here.
    const text = messageOf(error)
    return { value: undefined, problems: [{ path: '', text, where: name }], locate }
  }
}

/** Offsets of the keys that an assignment would take for the prototype of the object. */
function prototypeKeys(document: Document): number[] {
  const offsets: number[] = []
  visit(document, {
    Pair(_, { key }) {
      if (isScalar(key) && key.value === '__proto__') offsets.push(key.range?.[0] ?? 0)
    },
  })
  return offsets
}

/** Restores the references. @returns those that are only a part of a text; whole ones are found when values are read */
function restoreReferences(document: Document): { text: string; offset: number }[] {
  const found: { text: string; offset: number }[] = []
  visit(document, {
    Scalar(_, node) {
      if (typeof node.value !== 'string' || !node.value.includes(MARK)) return
      const text = node.value.replaceAll(MARKED, (_, name: string) => `\${${name}}`)
      node.value = text
      const [reference] = SHELL_REFERENCE.exec(text) ?? ['']
      if (reference !== text)
        found.push({
          text: `${reference} in a text is not replaced; write the whole value as { $env: NAME }`,
          offset: node.range?.[0] ?? 0,
        })
    },
  })
  return found
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
