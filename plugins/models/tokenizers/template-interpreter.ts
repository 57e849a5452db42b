/**
 * Runs rewritten templates: what chats are made of — texts, members, conditions, loops and our own calls — without the
 * engine's copies; all else is left to the engine. The value of a template is the same either way.
 */
import { Environment, Interpreter } from '@huggingface/jinja'
import { checkLength, checkValue, spendSteps } from './render-budget.ts'
import { type Node, WHOLE_LOOP } from './rewrite-template.ts'
import {
  isList,
  isString,
  isTrue,
  NONE,
  toBooleanValue,
  toIntegerValue,
  toMappingValue,
  toStringValue,
  toText,
  UNDEFINED,
  type Value,
} from './template-values.ts'

/** Methods of the engine that may be used: what they do takes no longer than a pass over their value. */
const ENGINE_METHODS = new Set(['get', 'items', 'keys', 'values', 'upper', 'lower'])

/** Of the engine, what is used here: its declarations cannot be resolved by this project's rules. */
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

/** Every expression and statement of a template, those that the engine evaluates included, passes through `evaluate`. */
export class TemplateInterpreter extends EngineInterpreter {
  /** @throws BudgetExceeded */
  override evaluate(statement: unknown, scope: Scope): Value {
    if (statement === undefined || statement === null) return UNDEFINED
    spendSteps()
    const node = statement as Node
    const value = this.#evaluate(node, scope) ?? this.#byEngine(node, scope)
    checkValue(value.value)
    return value
  }

  #byEngine(node: Node, scope: Scope): Value {
    const value = super.evaluate(node, scope)
    // What a macro printed; other functions may give values that the engine would write without limits.
    if (node.type === 'CallStatement') return isString(value) ? value : toStringValue(toText(value))
    if (node.type === 'MemberExpression' && value.type === 'FunctionValue') requireEngineMethod(node)
    return value
  }

  /** Null for what the engine does itself. */
  #evaluate(node: Node, scope: Scope): Value | null {
    switch (node.type) {
      case 'StringLiteral':
        node.made ??= toStringValue(node.value as string)
        return node.made as Value
      case 'IntegerLiteral':
        node.made ??= toIntegerValue(node.value as number)
        return node.made as Value
      case 'Identifier':
        return find(node.value as string, scope)
      case 'MemberExpression':
        return this.#member(node, scope)
      case 'OwnCall':
        return (node.call as (args: readonly Value[]) => Value)(
          (node.args as Node[]).map((argument) => this.#value(argument, scope)),
        )
      case 'BinaryExpression':
        return this.#choice(node, scope)
      case 'Made':
        return node.made as Value
      case 'UnaryExpression':
        if ((node.operator as { value: string }).value !== 'not') return null
        return toBooleanValue(!isTrue(this.#value(node.argument, scope)))
      case 'Ternary':
        return this.#value(isTrue(this.#value(node.condition, scope)) ? node.trueExpr : node.falseExpr, scope)
      case 'If':
        return toStringValue(
          this.#block(isTrue(this.#value(node.test, scope)) ? node.body : node.alternate, scope),
        )
      case 'For':
        return this.#loop(node, scope)
      case 'Set':
        return this.#set(node, scope)
      case 'Program':
        return toStringValue(this.#block(node.body, scope))
      default:
        return null
    }
  }

  #value(node: unknown, scope: Scope): Value {
    return this.evaluate(node, scope)
  }

  #block(statements: unknown, scope: Scope): string {
    let text = ''
    for (const statement of statements as Node[]) {
      const value = this.#value(statement, scope)
      if (value.type === 'NullValue') continue
      text += toText(value)
      checkLength(text.length)
    }
    return text
  }

  #member(node: Node, scope: Scope): Value | null {
    const property = node.property as Node
    if (node.computed === true && property.type !== 'StringLiteral' && property.type !== 'IntegerLiteral')
      return null
    const object = node.object as Node
    // What the engine evaluates again has to be free of effects.
    if (object.type !== 'Identifier' && object.type !== 'MemberExpression') return null
    const holder = this.#value(object, scope)
    if (property.type === 'IntegerLiteral')
      return isList(holder) ? (holder.value.at(property.value as number) ?? UNDEFINED) : null
    if (holder.type !== 'ObjectValue' && holder.type !== 'NamespaceValue') return null
    return (holder.value as ReadonlyMap<string, Value>).get(property.value as string) ?? null
  }

  /** `and` and `or`; arithmetic is the engine's, but for lists, which it would search. */
  #choice(node: Node, scope: Scope): Value {
    const operator = (node.operator as { value: string }).value
    const left = this.#value(node.left, scope)
    if (operator !== 'and' && operator !== 'or') {
      const right = this.#value(node.right, scope)
      if (isList(right)) throw new Error(`the operator ${operator} does not apply to a list`)
      return super.evaluate({ ...node, left: made(left), right: made(right) }, scope)
    }
    return isTrue(left) === (operator === 'and') ? this.#value(node.right, scope) : left
  }

  #set(node: Node, scope: Scope): Value | null {
    const assignee = node.assignee as Node
    if (assignee.type !== 'Identifier') return null
    const value = node.value ? this.#value(node.value, scope) : toStringValue(this.#block(node.body, scope))
    scope.setVariable(assignee.value as string, value)
    return NONE
  }

  /** What an item sets is gone with it, as in Jinja2; only an item that sets something costs the next one a scope. */
  #loop(node: Node, outer: Scope): Value {
    const variable = node.loopvar as Node
    const items = this.#items(node.iterable as Node, variable, outer)
    const asked = node.loopMembers as ReadonlySet<string> | undefined
    let scope = new EngineScope(outer)
    let text = ''
    for (let place = 0; place < items.length; place++) {
      if (asked === undefined || asked.size > 0) scope.setVariable('loop', loopValue(items, place, asked))
      bind(variable, items[place], scope)
      const { size } = scope.variables
      text += this.#block(node.body, scope)
      checkLength(text.length)
      if (scope.variables.size > size) scope = new EngineScope(outer)
    }
    return toStringValue(items.length === 0 ? this.#block(node.defaultBlock, scope) : text)
  }

  /** Of a loop with a condition, those that meet it. */
  #items(iterable: Node, variable: Node, outer: Scope): readonly Value[] {
    const isSelection = iterable.type === 'SelectExpression'
    const list = this.#value(isSelection ? iterable.lhs : iterable, outer)
    if (!isList(list)) throw new Error(`a loop needs a list: got ${list.type}`)
    if (!isSelection) return list.value
    const scope = new EngineScope(outer)
    return list.value.filter((item) => {
      bind(variable, item, scope)
      return isTrue(this.#value(iterable.test, scope))
    })
  }
}

/** A node that has been evaluated. */
function made(value: Value): Node {
  return { type: 'Made', made: value }
}

/** Methods with limits are called by name: what the engine offers under other names, or as a value, has none. */
function requireEngineMethod({ computed, property }: Node): void {
  const name = (property as Node).value
  if (computed === true || typeof name !== 'string' || !ENGINE_METHODS.has(name))
    throw new Error(`the method ${String(name)} can only be called by its name`)
}

/** Gives a loop's variable, or each of several, its value. */
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

/** @param asked names of the members that are wanted; undefined for all */
function loopValue(items: readonly Value[], place: number, asked: ReadonlySet<string> | undefined): Value {
  const members = new Map<string, Value>()
  const names = asked === undefined || asked.has(WHOLE_LOOP) ? LOOP_MEMBERS.keys() : asked
  for (const name of names) {
    const make = LOOP_MEMBERS.get(name)
    if (make !== undefined) members.set(name, make(items, place))
  }
  return toMappingValue(members)
}
