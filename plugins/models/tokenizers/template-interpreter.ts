/**
 * Evaluates chat templates with the template engine's interpreter, within the budget of a rendering and with Python's
 * semantics: printed values, operators, filters and methods of strings are evaluated here, as are loops, whose scopes differ
 * from Jinja2's, and the look-up of variables and members, which the engine does with exceptions and copies (measured by
 * bench/micro/tokenizers.ts).
 */
import { Environment, Interpreter } from '@huggingface/jinja'
import { checkValue, spendSteps } from './render-budget.ts'
import { FILTERS, isMember, runFilter } from './template-filters.ts'
import { itemsOf, METHODS, runMethod } from './template-methods.ts'
import { type Node, WHOLE_LOOP } from './template-program.ts'
import {
  concat,
  isEqual,
  isList,
  isMapping,
  isString,
  isTrue,
  type Names,
  NO_NAMES,
  NONE,
  sum,
  toBooleanValue,
  toIntegerValue,
  toMappingValue,
  toStringValue,
  toText,
  typeName,
  UNDEFINED,
  type Value,
} from './template-values.ts'

/** Methods of the engine that templates may call: each takes at most one pass over its value. */
const ENGINE_METHODS = new Set(['get', 'items', 'keys', 'values', 'upper', 'lower'])

/** Statements that print nothing by themselves. */
const SILENT = new Set(['Set', 'Macro', 'Comment', 'Break', 'Continue'])

type Operator = (left: Value, right: Value) => Value

/** Operators that differ from Python's in the engine. */
const OPERATORS: ReadonlyMap<string, Operator> = new Map<string, Operator>([
  ['+', sum],
  ['~', (left, right) => toStringValue(concat(toText(left), toText(right)))],
  ['==', (left, right) => toBooleanValue(isEqual(left, right))],
  ['!=', (left, right) => toBooleanValue(!isEqual(left, right))],
  ['in', (left, right) => toBooleanValue(isMember(left, right))],
  ['not in', (left, right) => toBooleanValue(!isMember(left, right))],
])

/** Objects that may be evaluated twice. */
const REPEATABLE = new Set(['Identifier', 'MemberExpression', 'Held'])
/** A part of a node that is evaluated already, before the engine evaluates the node. */
const held = (value: Value): Node => ({ type: 'Held', value })

const NAMED = new Set(['KeywordArgumentExpression', 'KeywordSpreadExpression'])

type Arguments = readonly [places: readonly Value[], names: Names]
const NO_ARGUMENTS: Arguments = [[], NO_NAMES]

/** The parts of the engine that are used here: its declarations cannot be resolved by this project's rules. */
interface Scope {
  readonly parent?: Scope
  readonly variables: ReadonlyMap<string, Value>
  setVariable(name: string, value: Value): void
}
interface EngineInterpreter {
  evaluate(statement: unknown, scope: Scope): Value
  run(program: unknown): Value
}
const EngineInterpreter: new (scope: Scope) => EngineInterpreter = Interpreter
const EngineScope: new (parent?: Scope) => Scope = Environment

/** Every expression and statement of a template passes through `evaluate`, also within the engine. */
export class TemplateInterpreter extends EngineInterpreter {
  /** The jump that ends the current iteration of the innermost loop. */
  #jump: 'Break' | 'Continue' | null = null

  /** @throws RenderLimitExceeded */
  override evaluate(statement: unknown, scope: Scope): Value {
    if (statement === undefined || statement === null) return UNDEFINED
    spendSteps()
    const node = statement as Node
    const value = this.#evaluate(node, scope) ?? this.#byEngine(node, scope)
    checkValue(value.value)
    return value
  }

  /** Output of statements outside of loops, such as those of a macro. */
  #output(statements: unknown, scope: Scope): Value {
    const text = this.#block(statements, scope)
    if (this.#jump !== null) throw new Error(`${this.#jump.toLowerCase()} outside of a loop`)
    return toStringValue(text)
  }

  /** Output of statements up to a jump. */
  #block(statements: unknown, scope: Scope): string {
    let text = ''
    for (const statement of statements as readonly Node[]) {
      const value = this.evaluate(statement, scope)
      if (!SILENT.has(statement.type)) text = concat(text, toText(value))
      if (this.#jump !== null) break
    }
    checkValue(text)
    return text
  }

  /** The engine gets the statements of a node as one, so that their output is made here. */
  #byEngine(node: Node, scope: Scope): Value {
    const { body } = node
    const given = Array.isArray(body) ? { ...node, body: [{ type: 'Output', body }] } : node
    const value = super.evaluate(given, scope)
    if (node.type === 'MemberExpression' && value.type === 'FunctionValue') requireEngineMethod(node)
    return value
  }

  /** Null for nodes that the engine evaluates. */
  #evaluate(node: Node, scope: Scope): Value | null {
    switch (node.type) {
      case 'Identifier':
        return find(node.value as string, scope)
      case 'MemberExpression':
        return this.#member(node, scope)
      case 'BinaryExpression':
        return this.#binary(node, scope)
      case 'FilterExpression':
      case 'FilterStatement':
        return this.#filter(node, scope)
      case 'CallExpression':
        return this.#call(node, scope)
      case 'If':
        return toStringValue(
          this.#block(isTrue(this.evaluate(node.test, scope)) ? node.body : node.alternate, scope),
        )
      case 'For':
        return this.#loop(node, scope)
      case 'Break':
      case 'Continue':
        this.#jump = node.type
        return NONE
      case 'Program':
      case 'Output':
        return this.#output(node.body, scope)
      case 'Held':
        return node.value as Value
      default:
        return null
    }
  }

  #member(node: Node, scope: Scope): Value | null {
    const property = node.property as Node
    if (node.computed === true && property.type !== 'StringLiteral' && property.type !== 'IntegerLiteral')
      return null
    const object = node.object as Node
    // The engine evaluates the object again, which must have no effects.
    if (!REPEATABLE.has(object.type)) return null
    const holder = this.evaluate(object, scope)
    if (property.type === 'IntegerLiteral')
      return isList(holder) ? (holder.value.at(property.value as number) ?? UNDEFINED) : null
    if (holder.type !== 'ObjectValue' && holder.type !== 'NamespaceValue') return null
    return (holder.value as ReadonlyMap<string, Value>).get(property.value as string) ?? null
  }

  #binary(node: Node, scope: Scope): Value | null {
    const { value: operator } = node.operator as { readonly value: string }
    if (operator === 'and' || operator === 'or') return null
    const left = this.evaluate(node.left, scope)
    const right = this.evaluate(node.right, scope)
    const own = OPERATORS.get(operator)
    if (own !== undefined) return own(left, right)
    // The engine would search a list on the right of any operator.
    if (isList(right)) throw new Error('the operator does not apply to a list')
    return super.evaluate({ ...node, left: held(left), right: held(right) }, scope)
  }

  #filter(node: Node, scope: Scope): Value | null {
    const filter = node.filter as Node
    const isCall = filter.type === 'CallExpression'
    const name = (isCall ? (filter.callee as Node) : filter).value as string
    if (!Object.hasOwn(FILTERS, name)) return null
    const isBlock = node.type === 'FilterStatement'
    const operand = isBlock ? this.#output(node.body, scope) : this.evaluate(node.operand, scope)
    return runFilter(name, operand, ...(isCall ? this.#arguments(filter, scope) : NO_ARGUMENTS))
  }

  /** Methods of strings only; a mapping's function of that name is called by the engine. */
  #call(node: Node, scope: Scope): Value | null {
    const callee = node.callee as Node
    if (callee.type !== 'MemberExpression' || callee.computed === true) return null
    const name = (callee.property as Node).value as string
    if (!Object.hasOwn(METHODS, name)) return null
    const object = this.evaluate(callee.object, scope)
    if (isString(object)) return runMethod(name, object.value, ...this.#arguments(node, scope))
    if (!isMapping(object) || object.value.get(name)?.type !== 'FunctionValue')
      throw new Error(`a value of type ${typeName(object)} has no method ${name}`)
    return super.evaluate({ ...node, callee: { ...callee, object: held(object) } }, scope)
  }

  /** As Python does, places are evaluated before names, wherever they stand. */
  #arguments({ args }: Node, scope: Scope): Arguments {
    const list = args as readonly Node[]
    if (list.length === 0) return NO_ARGUMENTS
    const places: Value[] = []
    const names = new Map<string, Value>()
    const name = (key: string, value: Value) => {
      if (names.has(key)) throw new Error(`the argument ${key} is given twice`)
      names.set(key, value)
    }
    for (const node of list) {
      if (NAMED.has(node.type)) continue
      const value = this.evaluate(node.type === 'SpreadExpression' ? node.argument : node, scope)
      if (node.type !== 'SpreadExpression') places.push(value)
      else if (isList(value)) for (const item of value.value) places.push(item)
      else throw new Error(`a value of type ${typeName(value)} cannot be spread into arguments`)
    }
    for (const node of list) {
      if (node.type === 'KeywordArgumentExpression')
        name((node.key as Node).value as string, this.evaluate(node.value, scope))
      if (node.type !== 'KeywordSpreadExpression') continue
      const value = this.evaluate(node.argument, scope)
      if (!isMapping(value)) throw new Error(`a value of type ${typeName(value)} has no names for arguments`)
      for (const [key, member] of value.value) name(key, member)
    }
    return [places, names]
  }

  /** Variables set by an iteration end with it, as in Jinja2; only then does the next iteration need a new scope. */
  #loop(node: Node, outer: Scope): Value {
    const variable = node.loopvar as Node
    const items = this.#items(node.iterable as Node, variable, outer)
    const used = node.loopMembers as ReadonlySet<string>
    let scope = new EngineScope(outer)
    let text = ''
    for (let place = 0; place < items.length; place++) {
      if (used.size > 0) scope.setVariable('loop', loopValue(items, place, used))
      bind(variable, items[place], scope)
      const { size } = scope.variables
      text = concat(text, this.#block(node.body, scope))
      const jump = this.#jump
      this.#jump = null
      if (jump === 'Break') break
      if (scope.variables.size > size) scope = new EngineScope(outer)
    }
    return toStringValue(items.length === 0 ? this.#block(node.defaultBlock, scope) : text)
  }

  /** Items of the loop; those that meet its condition if it has one. Strings and undefined values are iterable, as in Jinja2. */
  #items(iterable: Node, variable: Node, outer: Scope): readonly Value[] {
    const isSelection = iterable.type === 'SelectExpression'
    const items = itemsOf(this.evaluate(isSelection ? iterable.lhs : iterable, outer))
    if (!isSelection) return items
    const scope = new EngineScope(outer)
    return items.filter((item) => {
      bind(variable, item, scope)
      return isTrue(this.evaluate(iterable.test, scope))
    })
  }
}

/** Only methods called by their name are bounded; the engine's own methods, as values or computed names, are not. */
function requireEngineMethod({ computed, property }: Node): void {
  const name = (property as Node).value
  if (computed === true || typeof name !== 'string' || !ENGINE_METHODS.has(name))
    throw new Error(`the method ${String(name)} can only be called by its name`)
}

/** Sets the variables of a loop. */
function bind(variable: Node, item: Value, scope: Scope): void {
  if (variable.type === 'Identifier') {
    scope.setVariable(variable.value as string, item)
    return
  }
  if (variable.type !== 'TupleLiteral') throw new Error(`a loop needs variables: got ${variable.type}`)
  const names = variable.value as Node[]
  if (!isList(item) || item.value.length !== names.length)
    throw new Error(`${names.length} variables of a loop need as many values`)
  for (const [place, name] of names.entries()) bind(name, item.value[place], scope)
}

function find(name: string, from: Scope): Value {
  for (let scope: Scope | undefined = from; scope !== undefined; scope = scope.parent) {
    const value = scope.variables.get(name)
    if (value !== undefined) return value
  }
  return UNDEFINED
}

type LoopMember = (items: readonly Value[], place: number) => Value
const LOOP_MEMBERS: ReadonlyMap<string, LoopMember> = new Map<string, LoopMember>([
  ['index', (_, place) => toIntegerValue(place + 1)],
  ['index0', (_, place) => toIntegerValue(place)],
  ['revindex', ({ length }, place) => toIntegerValue(length - place)],
  ['revindex0', ({ length }, place) => toIntegerValue(length - place - 1)],
  ['first', (_, place) => toBooleanValue(place === 0)],
  ['last', ({ length }, place) => toBooleanValue(place === length - 1)],
  ['length', ({ length }) => toIntegerValue(length)],
  ['previtem', (items, place) => items[place - 1] ?? UNDEFINED],
  ['nextitem', (items, place) => items[place + 1] ?? UNDEFINED],
])

/** @param used names of the members to make */
function loopValue(items: readonly Value[], place: number, used: ReadonlySet<string>): Value {
  const members = new Map<string, Value>()
  const names = used.has(WHOLE_LOOP) ? LOOP_MEMBERS.keys() : used
  for (const name of names) {
    const make = LOOP_MEMBERS.get(name)
    if (make !== undefined) members.set(name, make(items, place))
  }
  return toMappingValue(members)
}
