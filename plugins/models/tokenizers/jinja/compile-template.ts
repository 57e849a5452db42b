/** Compiles chat templates: statements become functions that write to an output. */
import { checkValue, spendSteps } from '../render-budget.ts'
import { CallableMembers, compileExpression, compileFilter, type Evaluate } from './compile-expression.ts'
import {
  type Block,
  type Expression,
  type Parameter,
  parseTemplate,
  type Statement,
  type Target,
} from './parser.ts'
import { Output, Scope } from './scope.ts'
import { toText } from './to-text.ts'
import {
  isEqual,
  isTrue,
  itemsOf,
  type Names,
  Namespace,
  TemplateError,
  Tuple,
  Undefined,
  type Value,
} from './values.ts'

/** How a statement ended: the rest of the loop's body, or of the loop, is skipped. */
type Jump = 'break' | 'continue' | undefined
type Run = (scope: Scope, output: Output) => Jump

/** @returns the text that the template writes. @throws TemplateError, RenderLimitExceeded */
export type Render = (variables: Map<string, Value>, globals: ReadonlyMap<string, Value>) => string

/** @throws SyntaxError for an invalid or too deeply nested template */
export function compileTemplate(template: string): Render {
  const run = compileBlock(parseTemplate(template), false)
  return (variables, globals) => {
    const output = new Output()
    run(new Scope(new Scope(null, new Map(globals)), variables), output)
    return output.text
  }
}

function compileBlock(block: Block, isInLoop: boolean): Run {
  const statements = block.map((statement) => compileStatement(statement, isInLoop))
  return (scope, output) => {
    for (const run of statements) {
      const jump = run(scope, output)
      if (jump !== undefined) return jump
    }
    return undefined
  }
}

function compileStatement(node: Statement, isInLoop: boolean): Run {
  switch (node.kind) {
    case 'text': {
      const { text } = node
      return (_, output) => {
        spendSteps()
        output.write(text)
        return undefined
      }
    }
    case 'print': {
      const value = compileExpression(node.value)
      return (scope, output) => {
        spendSteps()
        output.write(toText(value(scope)))
        return undefined
      }
    }
    case 'if': {
      const test = compileExpression(node.test)
      const [yes, no] = [compileBlock(node.yes, isInLoop), compileBlock(node.no, isInLoop)]
      return (scope, output) => {
        spendSteps()
        return isTrue(test(scope)) ? yes(scope, output) : no(scope, output)
      }
    }
    case 'for':
      return compileLoop(node)
    case 'set': {
      const [assign, value] = [compileTarget(node.target), compileExpression(node.value)]
      return (scope) => {
        spendSteps()
        assign(scope, value(scope))
        return undefined
      }
    }
    case 'set-block': {
      const [assign, text] = [compileTarget(node.target), filtered(node.filter, compileText(node.body))]
      return (scope) => {
        assign(scope, text(scope))
        return undefined
      }
    }
    case 'macro': {
      const { name } = node
      const macro = compileMacro(name, node.parameters, node.body)
      return (scope) => {
        scope.set(name, macro(scope))
        return undefined
      }
    }
    case 'call-block':
      return compileCallBlock(node)
    case 'filter-block': {
      const text = filtered(node.filter, compileText(node.body))
      return (scope, output) => {
        output.write(toText(text(scope)))
        return undefined
      }
    }
    case 'with':
      return compileWith(node, isInLoop)
    case 'break':
    case 'continue': {
      if (!isInLoop) throw new SyntaxError(`{% ${node.kind} %} outside of a loop`)
      const jump = node.kind
      return () => jump
    }
  }
}

/** The text that a block writes, as a value. */
function compileText(block: Block): Evaluate {
  const run = compileBlock(block, false)
  return (scope) => {
    spendSteps()
    const output = new Output()
    run(new Scope(scope), output)
    checkValue(output.text)
    return output.text
  }
}

/** @param filter filters without an operand at their beginning; null for none */
function filtered(filter: Expression | null, text: Evaluate): Evaluate {
  if (filter === null) return text
  if (filter.kind !== 'filter') throw new SyntaxError('a filter is expected')
  return compileFilter(filter, filtered(filter.operand, text))
}

function compileTarget(target: Target): (scope: Scope, value: Value) => void {
  if (target.kind === 'name') {
    const { name } = target
    return (scope, value) => scope.set(name, value)
  }
  if (target.kind === 'member') {
    const { object, name } = target
    if (name.startsWith('_')) throw new SyntaxError(`the member ${name} of a namespace cannot be set`)
    return (scope, value) => {
      const holder = scope.find(object)
      if (!(holder instanceof Namespace))
        throw new TemplateError(`cannot assign attribute on non-namespace object (${object}.${name})`)
      holder.members.set(name, value)
    }
  }
  const targets = target.items.map(compileTarget)
  return (scope, value) => {
    if (value instanceof Undefined) throw new TemplateError(value.reason)
    const items = itemsOf(value)
    if (items.length !== targets.length)
      throw new TemplateError(`${targets.length} variables need as many values, got ${items.length}`)
    for (const [place, assign] of targets.entries()) assign(scope, items[place])
  }
}

function compileWith(node: Extract<Statement, { kind: 'with' }>, isInLoop: boolean): Run {
  const sets = node.sets.map(([target, value]) => [compileTarget(target), compileExpression(value)] as const)
  const body = compileBlock(node.body, isInLoop)
  return (outer, output) => {
    spendSteps()
    const scope = new Scope(outer)
    for (const [assign, value] of sets) assign(scope, value(outer))
    return body(scope, output)
  }
}

/** `loop`. */
class Loop extends CallableMembers {
  readonly items: readonly Value[]
  readonly depth: number
  readonly #recurse: (items: Value, depth: number) => string
  place = 0
  #changed: readonly Value[] | null = null

  constructor(items: readonly Value[], depth: number, recurse: (items: Value, depth: number) => string) {
    super()
    this.items = items
    this.depth = depth
    this.#recurse = recurse
  }

  call([items]: readonly Value[]): Value {
    return this.#recurse(items, this.depth + 1)
  }

  member(name: string): Value | undefined {
    const { items, place, depth } = this
    switch (name) {
      case 'index':
        return place + 1
      case 'index0':
        return place
      case 'revindex':
        return items.length - place
      case 'revindex0':
        return items.length - place - 1
      case 'first':
        return place === 0
      case 'last':
        return place === items.length - 1
      case 'length':
        return items.length
      case 'previtem':
        return place > 0 ? items[place - 1] : new Undefined('there is no previous item')
      case 'nextitem':
        return place + 1 < items.length ? items[place + 1] : new Undefined('there is no next item')
      case 'depth':
        return depth + 1
      case 'depth0':
        return depth
      case 'cycle':
        return (values) => values[place % values.length] ?? null
      case 'changed':
        return (values) => {
          const isSame = this.#changed !== null && isEqual(this.#changed, values)
          this.#changed = values
          return !isSame
        }
      default:
        return undefined
    }
  }
}

/** Variables set by an iteration end with it; only then does the next iteration need a new scope. */
function compileLoop(node: Extract<Statement, { kind: 'for' }>): Run {
  const [iterable, assign] = [compileExpression(node.items), compileTarget(node.target)]
  const test = node.test === null ? null : compileExpression(node.test)
  const [body, otherwise] = [compileBlock(node.body, true), compileBlock(node.otherwise, false)]
  const setsVariables = hasOwnVariables(node.body)
  const { isRecursive } = node
  const run = (value: Value, depth: number, outer: Scope, output: Output): void => {
    const all = itemsOf(value)
    const items = test === null ? all : selected(all, test, assign, outer)
    const loop = new Loop(items, depth, (inner, innerDepth) => {
      if (!isRecursive) throw new TemplateError("The loop must have the 'recursive' marker to be called.")
      const part = new Output()
      run(inner, innerDepth, outer, part)
      return part.text
    })
    let scope: Scope | null = null
    for (let place = 0; place < items.length; place++) {
      spendSteps()
      if (scope === null || setsVariables) {
        scope = new Scope(outer)
        scope.set('loop', loop)
      }
      loop.place = place
      assign(scope, items[place])
      if (body(scope, output) === 'break') break
    }
    if (items.length === 0) otherwise(new Scope(outer), output)
  }
  return (scope, output) => {
    spendSteps()
    run(iterable(scope), 0, scope, output)
    return undefined
  }
}

function selected(
  all: readonly Value[],
  test: Evaluate,
  assign: (scope: Scope, value: Value) => void,
  outer: Scope,
): Value[] {
  const scope = new Scope(outer)
  return all.filter((item) => {
    spendSteps()
    assign(scope, item)
    return isTrue(test(scope))
  })
}

/** Whether the statements set variables of their own scope, or define macros, which keep it. */
function hasOwnVariables(block: Block): boolean {
  return block.some((statement) => {
    if (statement.kind === 'if') return hasOwnVariables(statement.yes) || hasOwnVariables(statement.no)
    return ['set', 'set-block', 'macro', 'call-block'].includes(statement.kind)
  })
}

class Macro extends CallableMembers {
  readonly #name: string
  readonly #run: (places: readonly Value[], names: Names) => Value

  constructor(name: string, run: (places: readonly Value[], names: Names) => Value) {
    super()
    this.#name = name
    this.#run = run
  }

  call(places: readonly Value[], names: Names): Value {
    return this.#run(places, names)
  }

  member(name: string): Value | undefined {
    return name === 'name' ? this.#name : undefined
  }
}

/** @returns makes the macro for the scope in which it is defined */
function compileMacro(name: string, parameters: readonly Parameter[], block: Block): (scope: Scope) => Macro {
  const body = compileBlock(block, false)
  const known = parameters.map((parameter) => ({
    name: parameter.name,
    otherwise: parameter.default === null ? null : compileExpression(parameter.default),
  }))
  const usesMore = (variable: string) => usesName(block, variable)
  const takes = { varargs: usesMore('varargs'), kwargs: usesMore('kwargs') }
  return (outer) =>
    new Macro(name, (places, names) => {
      spendSteps()
      const scope = new Scope(outer)
      const rest = new Map<Value, Value>(names)
      if (places.length > known.length && !takes.varargs)
        throw new TemplateError(`macro '${name}' takes not more than ${known.length} argument(s)`)
      for (const [place, { name: parameter, otherwise }] of known.entries()) {
        const given = place < places.length ? places[place] : names.get(parameter)
        rest.delete(parameter)
        if (given !== undefined) scope.set(parameter, given)
        else if (otherwise !== null) scope.set(parameter, otherwise(scope))
        else scope.set(parameter, new Undefined(`parameter '${parameter}' was not provided`))
      }
      const caller = names.get('caller')
      if (caller !== undefined) scope.set('caller', caller)
      rest.delete('caller')
      if (takes.varargs) scope.set('varargs', new Tuple(places.slice(known.length)))
      if (takes.kwargs) scope.set('kwargs', rest)
      else if (rest.size > 0)
        throw new TemplateError(`macro '${name}' takes no keyword argument '${String([...rest.keys()][0])}'`)
      const output = new Output()
      body(scope, output)
      return output.text
    })
}

/** Whether a syntax tree contains a variable of the name. */
function usesName(node: unknown, name: string): boolean {
  if (Array.isArray(node)) return node.some((part) => usesName(part, name))
  if (typeof node !== 'object' || node === null) return false
  const { kind, name: own } = node as { kind?: unknown; name?: unknown }
  return (kind === 'name' && own === name) || Object.values(node).some((part) => usesName(part, name))
}

function compileCallBlock(node: Extract<Statement, { kind: 'call-block' }>): Run {
  if (node.call.kind !== 'call') throw new SyntaxError(`a call is expected, got ${node.call.kind}`)
  const caller = compileMacro('caller', node.parameters, node.body)
  const named: Expression = { kind: 'name', name: CALLER }
  const { args } = node.call
  const call = compileExpression({
    ...node.call,
    args: { ...args, names: [...args.names, ['caller', named]] },
  })
  return (outer, output) => {
    const scope = new Scope(outer)
    scope.set(CALLER, caller(outer))
    output.write(toText(call(scope)))
    return undefined
  }
}

/** No variable of a template has this name. */
const CALLER = ' caller'
