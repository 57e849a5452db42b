/**
 * Evaluates rewritten templates with the template engine's interpreter, within the budget of a rendering. Replaced are
 * loops, whose scopes differ from Jinja2's, calls of the gateway's functions, and the look-up of variables and members,
 * which the engine does with exceptions and copies (measured by bench/micro/tokenizers.ts).
 */
import { Environment, Interpreter } from '@huggingface/jinja'
import { checkLength, checkValue, spendSteps } from './render-budget.ts'
import { type Node, WHOLE_LOOP } from './rewrite-template.ts'
import {
  isList,
  isString,
  isTrue,
  toBooleanValue,
  toIntegerValue,
  toMappingValue,
  toStringValue,
  toText,
  UNDEFINED,
  type Value,
} from './template-values.ts'

/** Methods of the engine that templates may call: each takes at most one pass over its value. */
const ENGINE_METHODS = new Set(['get', 'items', 'keys', 'values', 'upper', 'lower'])

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
  /** @throws RenderLimitExceeded */
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
    // The engine would print the value of a function without a limit.
    if (node.type === 'CallStatement') return isString(value) ? value : toStringValue(toText(value))
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
      case 'OwnCall':
        return (node.call as (args: readonly Value[]) => Value)(
          (node.args as Node[]).map((argument) => this.#value(argument, scope)),
        )
      case 'For':
        return this.#loop(node, scope)
      default:
        return null
    }
  }

  #value(node: unknown, scope: Scope): Value {
    return this.evaluate(node, scope)
  }

  #text(program: unknown, scope: Scope): string {
    return toText(this.#value(program, scope))
  }

  #member(node: Node, scope: Scope): Value | null {
    const property = node.property as Node
    if (node.computed === true && property.type !== 'StringLiteral' && property.type !== 'IntegerLiteral')
      return null
    const object = node.object as Node
    // The engine evaluates the object again, which must have no effects.
    if (object.type !== 'Identifier' && object.type !== 'MemberExpression') return null
    const holder = this.#value(object, scope)
    if (property.type === 'IntegerLiteral')
      return isList(holder) ? (holder.value.at(property.value as number) ?? UNDEFINED) : null
    if (holder.type !== 'ObjectValue' && holder.type !== 'NamespaceValue') return null
    return (holder.value as ReadonlyMap<string, Value>).get(property.value as string) ?? null
  }

  /** Variables set by an iteration end with it, as in Jinja2; only then does the next iteration need a new scope. */
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
      text += this.#text(node.body, scope)
      checkLength(text.length)
      if (scope.variables.size > size) scope = new EngineScope(outer)
    }
    return toStringValue(items.length === 0 ? this.#text(node.defaultBlock, scope) : text)
  }

  /** Items of the loop; those that meet its condition if it has one. */
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

/** @param asked names of the members to make; undefined for all */
function loopValue(items: readonly Value[], place: number, asked: ReadonlySet<string> | undefined): Value {
  const members = new Map<string, Value>()
  const names = asked === undefined || asked.has(WHOLE_LOOP) ? LOOP_MEMBERS.keys() : asked
  for (const name of names) {
    const make = LOOP_MEMBERS.get(name)
    if (make !== undefined) members.set(name, make(items, place))
  }
  return toMappingValue(members)
}
