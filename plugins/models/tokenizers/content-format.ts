/**
 * Determines from a template's syntax tree whether it expects message content as one string or as a list of parts.
 */
import type { ContentFormat } from '#kernel'
import { isNode, type Node, type Program, parseTemplate } from './template-program.ts'

/** Maximum length of a chain of variables that are set from each other. */
const MAX_PASSES = 16

/** Returns `parts` if the template iterates over the content; a test of its type alone is not enough. */
export function detectContentFormat(template: string): ContentFormat {
  try {
    return new Detector(parseTemplate(template)).usesParts ? 'parts' : 'string'
  } catch {
    return 'string'
  }
}

class Detector {
  readonly usesParts: boolean
  /** Variables that are assigned the content of a message. */
  readonly #contents = new Set<string>()
  readonly #nodes: readonly Node[]

  constructor(tree: Program) {
    this.#nodes = [...walk(tree)]
    // Variables may be set from one another in any order of nesting.
    let known = -1
    for (let pass = 0; pass < MAX_PASSES && known !== this.#contents.size; pass++) {
      known = this.#contents.size
      for (const node of this.#nodes) this.#learn(node)
    }
    this.usesParts = this.#nodes.some((node) => this.#goesThrough(node)) || this.#hasPartsMacro()
  }

  #learn({ type, assignee, value }: Node): void {
    if (type !== 'Set' || !isNode(assignee) || assignee.type !== 'Identifier' || !isNode(value)) return
    if (this.#isContent(value)) this.#contents.add(String(assignee.value))
  }

  #goesThrough(node: Node): boolean {
    if (node.type === 'For') return this.#isContent(sourceOf(node.iterable))
    if (node.type === 'FilterExpression' && isNode(node.operand) && isNode(node.filter))
      return nameOf(node.filter) === 'length' && this.#isContent(node.operand)
    if (node.type !== 'MemberExpression' || node.computed !== true || !isNode(node.property)) return false
    return node.property.type === 'IntegerLiteral' && isNode(node.object) && this.#isContent(node.object)
  }

  /** `message.content`, `message['content']`, or a variable with the content. */
  #isContent(node: unknown): boolean {
    if (!isNode(node)) return false
    if (node.type === 'Identifier') return this.#contents.has(String(node.value))
    if (node.type !== 'MemberExpression' || !isNode(node.property)) return false
    return node.property.value === 'content' && ['Identifier', 'StringLiteral'].includes(node.property.type)
  }

  /** A macro that tests the type of its argument and loops over it, and that is called with content. */
  #hasPartsMacro(): boolean {
    return this.#nodes.some(({ type, args, body }) => {
      if (type !== 'Macro') return false
      const names = (args as Node[]).map((argument) =>
        String(isNode(argument.key) ? argument.key.value : argument.value),
      )
      const inside = (body as Node[]).flatMap((statement) => [...walk(statement)])
      const isTested = (name: string) =>
        inside.some((node) => node.type === 'TestExpression' && isNamed(node.operand, name))
      const isLooped = (name: string) =>
        inside.some((node) => node.type === 'For' && isNamed(sourceOf(node.iterable), name))
      return names.some((name) => isTested(name) && isLooped(name))
    })
  }
}

/** Of `for x in list if test`, the list. */
function sourceOf(iterable: unknown): unknown {
  return isNode(iterable) && iterable.type === 'SelectExpression' ? iterable.lhs : iterable
}

function isNamed(node: unknown, name: string): boolean {
  return isNode(node) && node.type === 'Identifier' && node.value === name
}

function nameOf(filter: Node): unknown {
  return filter.type === 'CallExpression' ? (filter.callee as Node).value : filter.value
}

function* walk(root: unknown): Generator<Node> {
  const open: unknown[] = [root]
  while (open.length > 0) {
    const next = open.pop()
    // One by one: a template may have more parts than a call may have arguments.
    if (Array.isArray(next)) for (const part of next.toReversed()) open.push(part)
    else if (next instanceof Map) for (const part of [...next].flat()) open.push(part)
    else if (isNode(next)) {
      yield next
      for (const member of Object.values(next)) if (typeof member === 'object') open.push(member)
    }
  }
}
