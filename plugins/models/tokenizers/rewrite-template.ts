/**
 * Rewrites a parsed template where the engine and Python differ: printed values, `+`, `~`, `==`, filters and string methods
 * become calls of our own functions, and loops keep what was printed before `break` and `continue`.
 */
import { parse, tokenize } from '@huggingface/jinja'
import { FILTERS, isMember, runFilter } from './template-filters.ts'
import { METHODS, runMethod } from './template-methods.ts'
import {
  concat,
  isEqual,
  isList,
  isString,
  splitArguments,
  sum,
  toBooleanValue,
  toFunctionValue,
  toStringValue,
  toText,
  typeName,
  type Value,
} from './template-values.ts'

export type Program = ReturnType<typeof parse>
/** A node of the syntax tree; its members depend on its type. */
export interface Node {
  readonly type: string
  [member: string]: unknown
}

/** Deeper nesting would exhaust the stack somewhere. */
const MAX_DEPTH = 200

/** Statements that print nothing by themselves, or text that needs no treatment. */
const SILENT = new Set([
  'Set',
  'If',
  'For',
  'Macro',
  'CallStatement',
  'Break',
  'Continue',
  'Comment',
  'StringLiteral',
])
const BODIES = ['body', 'alternate', 'defaultBlock']

type OwnFunction = (args: readonly Value[]) => Value

const OWN: ReadonlyMap<string, OwnFunction> = new Map<string, OwnFunction>([
  ['weir_text', ([value]) => (isString(value) ? value : toStringValue(toText(value)))],
  ['weir_join', ([left, right]) => toStringValue(concat(toText(left), toText(right)))],
  ['weir_add', sumOf],
  ['weir_eq', ([left, right]) => toBooleanValue(isEqual(left, right))],
  ['weir_ne', ([left, right]) => toBooleanValue(!isEqual(left, right))],
  ['weir_in', ([left, right]) => toBooleanValue(isMember(left, right))],
  ['weir_operand', ([value]) => operand(value)],
  ['weir_not_in', ([left, right]) => toBooleanValue(!isMember(left, right))],
  ...Object.keys(FILTERS).map(
    (name) => [`weir_filter_${name}`, (args: readonly Value[]) => runFilter(name, args)] as const,
  ),
  ...Object.keys(METHODS).map(
    (name) => [`weir_method_${name}`, (args: readonly Value[]) => callOn(name, args)] as const,
  ),
])

function operand(value: Value): Value {
  if (isList(value)) throw new Error('the operator does not apply to a list')
  return value
}

/** Functions that rewritten templates call by name, where arguments have names or are spread. */
export const REWRITE_FUNCTIONS: ReadonlyMap<string, Value> = new Map(
  [...OWN].map(([name, run]) => [name, toFunctionValue(run)]),
)

/** Methods of strings only; a list's `count` or a mapping's member of that name is not meant. */
function callOn(name: string, args: readonly Value[]): Value {
  const [object] = splitArguments(args).places
  if (object?.type === 'StringValue') return runMethod(name, args)
  const member = object?.type === 'ObjectValue' ? (object.value as Map<string, Value>).get(name) : undefined
  if (member?.type === 'FunctionValue')
    return (member.value as (args: readonly Value[]) => Value)(args.slice(1))
  throw new Error(`a value of type ${typeName(object)} has no method ${name}`)
}

/** Parses and rewrites. @throws SyntaxError for an invalid template */
export function parseTemplate(template: string): Program {
  const program = parse(tokenize(template, { lstrip_blocks: true, trim_blocks: true }))
  const rewriter = new Rewriter()
  const root = program as unknown as Node
  root.body = rewriter.statements(root.body as Node[], 0)
  markLoops(root)
  return program
}

/** Marker in the members of a loop: `loop` is used as a whole. */
export const WHOLE_LOOP = '*'

/**
 * Records at each loop which members of `loop` its body uses; only these are created.
 * @param asked collects the members that this node uses
 */
function markLoops(node: unknown, asked = new Set<string>()): Set<string> {
  if (Array.isArray(node)) for (const item of node) markLoops(item, asked)
  else if (node instanceof Map) for (const entry of node) markLoops(entry, asked)
  else if (isNode(node)) {
    const member = loopMember(node)
    if (member !== null) return asked.add(member)
    const own = node.type === 'For' ? new Set<string>() : asked
    for (const part of Object.values(node)) markLoops(part, own)
    if (own === asked) return asked
    node.loopMembers = own
    for (const name of own) asked.add(name)
  }
  return asked
}

/** The member of `loop` that a node itself uses; null for none. */
function loopMember(node: Node): string | null {
  if (node.type === 'Identifier') return node.value === 'loop' ? WHOLE_LOOP : null
  if (node.type !== 'MemberExpression' || !isNode(node.object) || !isNode(node.property)) return null
  if (node.object.type !== 'Identifier' || node.object.value !== 'loop') return null
  const isNamed = node.property.type === 'StringLiteral' || node.computed !== true
  return isNamed && typeof node.property.value === 'string' ? node.property.value : WHOLE_LOOP
}

class Rewriter {
  #loops = 0

  statements(list: readonly Node[], depth: number): Node[] {
    if (depth > MAX_DEPTH) throw new SyntaxError('the template is nested too deeply')
    return list.flatMap((statement) => {
      const node = this.#node(statement, depth + 1)
      if (node.type === 'For') return this.#loop(withItems(node))
      return [SILENT.has(node.type) || isText(node) ? node : call('weir_text', [node])]
    })
  }

  #node(node: Node, depth: number): Node {
    if (depth > MAX_DEPTH) throw new SyntaxError('the template is nested too deeply')
    for (const [name, member] of Object.entries(node)) {
      if (BODIES.includes(name) && Array.isArray(member))
        node[name] = this.statements(member as Node[], depth)
      else node[name] = this.#member(member, depth)
    }
    return replaced(node)
  }

  #member(member: unknown, depth: number): unknown {
    if (Array.isArray(member)) return member.map((item) => this.#member(item, depth))
    if (member instanceof Map)
      return new Map(
        [...member].map(([key, value]) => [this.#member(key, depth), this.#member(value, depth)]),
      )
    return isNode(member) ? this.#node(member, depth + 1) : member
  }

  /** Replaces jumps by flags, because the engine drops the output of an iteration that ends early. */
  #loop(loop: Node): Node[] {
    const body = loop.body as Node[]
    loop.defaultBlock = program(loop.defaultBlock)
    if (!body.some(jumps)) {
      loop.body = program(body)
      return [loop]
    }
    const flags = `weir_loop_${++this.#loops}`
    loop.body = program([
      ifNot(`${flags}.stop`, [...statementsOf(`{% set ${flags}.skip = false %}`), ...withFlags(body, flags)]),
    ])
    return [...statementsOf(`{% set ${flags} = namespace(skip=false, stop=false) %}`), loop]
  }
}

/** Makes strings and undefined values iterable, as in Jinja2. */
function withItems(loop: Node): Node {
  const iterable = loop.iterable as Node
  if (iterable.type === 'SelectExpression') iterable.lhs = call('weir_filter_list', [iterable.lhs as Node])
  else loop.iterable = call('weir_filter_list', [iterable])
  return loop
}

function withFlags(list: readonly Node[], flags: string): Node[] {
  const result: Node[] = []
  for (const [place, node] of list.entries()) {
    if (node.type === 'Continue') return [...result, ...statementsOf(`{% set ${flags}.skip = true %}`)]
    if (node.type === 'Break')
      return [...result, ...statementsOf(`{% set ${flags}.skip = true %}{% set ${flags}.stop = true %}`)]
    result.push(node)
    if (!jumps(node)) continue
    node.body = withFlags(node.body as Node[], flags)
    node.alternate = withFlags(node.alternate as Node[], flags)
    return [...result, ifNot(`${flags}.skip`, withFlags(list.slice(place + 1), flags))]
  }
  return result
}

/** True for a jump, and for a choice that has one inside; those of inner loops are their own. */
function jumps(node: Node): boolean {
  if (node.type === 'Break' || node.type === 'Continue') return true
  return node.type === 'If' && [...(node.body as Node[]), ...(node.alternate as Node[])].some(jumps)
}

/** Combines statements to one node, so that `evaluate` checks the length of their output. */
function program(body: unknown): Node {
  return { type: 'Program', body }
}

function replaced(node: Node): Node {
  if (node.type === 'Set' && !node.value) node.value = program(node.body)
  if (node.type === 'BinaryExpression') {
    const operator = (node.operator as { value: string }).value
    const name = BINARY[operator]
    const [left, right] = [node.left as Node, node.right as Node]
    // The engine would search a list on the right of any operator.
    if (name === undefined && !LOGICAL.has(operator)) node.right = call('weir_operand', [right])
    if (name === undefined) return node
    // A sum of many is one call: that of its left part takes one more.
    const isLonger = name === 'weir_add' && nameOfCall(left) === name
    return call(name, [...(isLonger ? (left.args as Node[]) : [left]), right])
  }
  if (node.type === 'FilterExpression' || node.type === 'FilterStatement') {
    const filter = node.filter as Node
    const isCall = filter.type === 'CallExpression'
    const name = (isCall ? (filter.callee as Node) : filter).value as string
    if (!Object.hasOwn(FILTERS, name)) return node
    const operand = node.type === 'FilterStatement' ? program(node.body) : (node.operand as Node)
    return call(`weir_filter_${name}`, [operand, ...(isCall ? (filter.args as Node[]) : [])])
  }
  if (node.type === 'CallExpression') {
    const callee = node.callee as Node
    if (callee.type !== 'MemberExpression' || callee.computed === true) return node
    const name = (callee.property as Node).value as string
    if (!Object.hasOwn(METHODS, name)) return node
    return call(`weir_method_${name}`, [callee.object as Node, ...(node.args as Node[])])
  }
  return node
}

/** Calls that give text, whatever they are given. */
const TEXT_CALLS = new Set(['weir_join', 'weir_filter_tojson', 'weir_filter_trim', 'weir_filter_string'])

/** True for an expression that is certain to be a string and is printed unchanged. */
function isText(node: Node): boolean {
  const name = nameOfCall(node)
  if (name === 'weir_add') return (node.args as Node[]).some(({ type }) => type === 'StringLiteral')
  return name !== null && TEXT_CALLS.has(name)
}

function nameOfCall(node: Node): string | null {
  if (node.type === 'OwnCall') return String(node.name)
  const callee = node.type === 'CallExpression' ? (node.callee as Node) : null
  return callee?.type === 'Identifier' ? String(callee.value) : null
}

function sumOf(parts: readonly Value[]): Value {
  let text = ''
  for (const part of parts) {
    if (!isString(part)) return parts.reduce(sum)
    text = concat(text, part.value)
  }
  return toStringValue(text)
}

const LOGICAL = new Set(['and', 'or'])

const BINARY: Readonly<Record<string, string>> = {
  '+': 'weir_add',
  '~': 'weir_join',
  '==': 'weir_eq',
  '!=': 'weir_ne',
  in: 'weir_in',
  'not in': 'weir_not_in',
}

const NAMED = new Set(['KeywordArgumentExpression', 'KeywordSpreadExpression', 'SpreadExpression'])

function call(name: string, args: readonly Node[]): Node {
  if (!args.some(({ type }) => NAMED.has(type))) return { type: 'OwnCall', name, call: OWN.get(name), args }
  const [node] = statementsOf(`{{ ${name}() }}`)
  node.args = args
  return node
}

function ifNot(condition: string, body: readonly Node[]): Node {
  const [node] = statementsOf(`{% if not ${condition} %}{% endif %}`)
  node.body = body
  return node
}

function statementsOf(template: string): Node[] {
  return parse(tokenize(template)).body as unknown as Node[]
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as Node).type === 'string'
}
