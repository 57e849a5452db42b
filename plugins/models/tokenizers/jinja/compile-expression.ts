/** Compiles expressions of templates to functions. Each evaluation is charged to the budget of the rendering. */
import { checkValue, spendSteps } from '../render-budget.ts'
import { runFilter } from './filters.ts'
import { itemOf, memberOf } from './methods.ts'
import { BINARY, compare, signed, slice } from './operators.ts'
import type { Arguments, Constant, Expression } from './parser.ts'
import type { Scope } from './scope.ts'
import { runTest } from './tests.ts'
import { joinTexts, toText } from './to-text.ts'
import {
  Float,
  integerOf,
  isText,
  isTrue,
  itemsOf,
  Members,
  type Names,
  NO_NAMES,
  setKey,
  TemplateError,
  Tuple,
  textOf,
  typeName,
  Undefined,
  type Value,
} from './values.ts'

export type Evaluate = (scope: Scope) => Value

/** An object that templates call, such as `loop` and macros. */
export abstract class CallableMembers extends Members {
  abstract call(places: readonly Value[], names: Names): Value
}

export function compileExpression(node: Expression): Evaluate {
  switch (node.kind) {
    case 'constant': {
      const value = toValue(node.value)
      return () => value
    }
    case 'name': {
      const { name } = node
      return (scope) => scope.find(name)
    }
    case 'list': {
      const items = node.items.map(compileExpression)
      return (scope) => evaluateAll(items, scope)
    }
    case 'tuple': {
      const items = node.items.map(compileExpression)
      return (scope) => new Tuple(evaluateAll(items, scope))
    }
    case 'concat': {
      const items = node.items.map(compileExpression)
      return (scope) => joinTexts(items, '', (item) => toText(item(scope)))
    }
    case 'mapping':
      return mapping(
        node.entries.map(([key, value]) => [compileExpression(key), compileExpression(value)] as const),
      )
    case 'attribute': {
      const [object, { name }] = [compileExpression(node.object), node]
      return (scope) => {
        spendSteps()
        return memberOf(object(scope), name)
      }
    }
    case 'item': {
      const [object, key] = [compileExpression(node.object), compileExpression(node.key)]
      return (scope) => {
        spendSteps()
        return itemOf(object(scope), key(scope))
      }
    }
    case 'slice':
      return sliced(node)
    case 'call':
      return call(compileExpression(node.callee), compileArguments(node.args))
    case 'filter': {
      if (node.operand === null) throw new SyntaxError('a filter has no operand')
      return compileFilter(node, compileExpression(node.operand))
    }
    case 'test': {
      const [{ name }, operand, args] = [node, compileExpression(node.operand), compileArguments(node.args)]
      return (scope) => runTest(name, operand(scope), args(scope)[0])
    }
    case 'unary': {
      const [{ operator }, operand] = [node, compileExpression(node.operand)]
      if (operator === 'not') return (scope) => !isTrue(operand(scope))
      return (scope) => signed(operator, operand(scope))
    }
    case 'binary':
      return binary(node.operator, compileExpression(node.left), compileExpression(node.right))
    case 'compare': {
      const first = compileExpression(node.first)
      const rest = node.rest.map(([operator, operand]) => [operator, compileExpression(operand)] as const)
      return comparison(first, rest)
    }
    case 'choice': {
      const [test, yes] = [compileExpression(node.test), compileExpression(node.yes)]
      const no = node.no === null ? null : compileExpression(node.no)
      return (scope) => {
        spendSteps()
        if (isTrue(test(scope))) return yes(scope)
        return no === null ? new Undefined('the inline if-expression has no else branch') : no(scope)
      }
    }
  }
}

function toValue(constant: Constant): Value {
  return typeof constant === 'object' && constant !== null ? new Float(constant.float) : constant
}

function evaluateAll(items: readonly Evaluate[], scope: Scope): Value[] {
  spendSteps(1 + items.length / 4)
  return items.map((item) => item(scope))
}

function mapping(entries: readonly (readonly [Evaluate, Evaluate])[]): Evaluate {
  return (scope) => {
    spendSteps(1 + entries.length)
    const value = new Map<Value, Value>()
    for (const [key, item] of entries) setKey(value, key(scope), item(scope))
    return value
  }
}

function sliced(node: Extract<Expression, { kind: 'slice' }>): Evaluate {
  const object = compileExpression(node.object)
  const bounds = node.bounds.map((bound) => (bound === null ? null : compileExpression(bound)))
  return (scope) => {
    spendSteps()
    const value = object(scope)
    const places = bounds.map((bound) => bound?.(scope) ?? null)
    return slice(
      value,
      [0, 1, 2].map((place) => (places[place] == null ? null : integerOf(places[place]))),
    )
  }
}

function binary(operator: string, left: Evaluate, right: Evaluate): Evaluate {
  if (operator === 'and')
    return (scope) => {
      spendSteps()
      const value = left(scope)
      return isTrue(value) ? right(scope) : value
    }
  if (operator === 'or')
    return (scope) => {
      spendSteps()
      const value = left(scope)
      return isTrue(value) ? value : right(scope)
    }
  const operate = BINARY.get(operator)
  if (operate === undefined) throw new SyntaxError(`the operator ${operator} is not supported`)
  return (scope) => {
    spendSteps()
    const value = operate(left(scope), right(scope))
    checkValue(value)
    return value
  }
}

/** `a < b < c` evaluates each operand once. */
function comparison(first: Evaluate, rest: readonly (readonly [string, Evaluate])[]): Evaluate {
  return (scope) => {
    spendSteps()
    let left = first(scope)
    for (const [operator, operand] of rest) {
      const right = operand(scope)
      if (!compare(operator, left, right)) return false
      left = right
    }
    return true
  }
}

type EvaluatedArguments = readonly [places: readonly Value[], names: Names]
export type EvaluateArguments = (scope: Scope) => EvaluatedArguments
const NO_ARGUMENTS: EvaluatedArguments = [[], NO_NAMES]

export function compileArguments({ places, names, spread, spreadNames }: Arguments): EvaluateArguments {
  if (places.length + names.length === 0 && spread === null && spreadNames === null) return () => NO_ARGUMENTS
  const atPlaces = places.map(compileExpression)
  const byName = names.map(([name, value]) => [name, compileExpression(value)] as const)
  const rest = spread === null ? null : compileExpression(spread)
  const restNames = spreadNames === null ? null : compileExpression(spreadNames)
  return (scope) => {
    const values = evaluateAll(atPlaces, scope)
    if (rest !== null) for (const value of itemsOf(rest(scope))) values.push(value)
    if (byName.length === 0 && restNames === null) return [values, NO_NAMES]
    const named = new Map<string, Value>(byName.map(([name, value]) => [name, value(scope)]))
    if (restNames !== null) addNames(named, restNames(scope))
    return [values, named]
  }
}

function addNames(named: Map<string, Value>, value: Value): void {
  if (!(value instanceof Map))
    throw new TemplateError(`argument after ** must be a mapping, not ${typeName(value)}`)
  for (const [key, item] of value) {
    if (!isText(key)) throw new TemplateError('keywords must be strings')
    if (named.has(textOf(key))) throw new TemplateError(`the argument ${textOf(key)} is given twice`)
    named.set(textOf(key), item)
  }
}

function call(callee: Evaluate, args: EvaluateArguments): Evaluate {
  return (scope) => {
    spendSteps()
    const called = callee(scope)
    const [places, names] = args(scope)
    const value = callValue(called, places, names)
    checkValue(value)
    return value
  }
}

/** @throws TemplateError for values that cannot be called */
export function callValue(called: Value, places: readonly Value[], names: Names): Value {
  if (typeof called === 'function') return called(places, names)
  if (called instanceof CallableMembers) return called.call(places, names)
  throw new TemplateError(
    called instanceof Undefined ? called.reason : `'${typeName(called)}' object is not callable`,
  )
}

/** @param operand evaluates the value that is filtered */
export function compileFilter(node: Extract<Expression, { kind: 'filter' }>, operand: Evaluate): Evaluate {
  const [{ name }, args] = [node, compileArguments(node.args)]
  return (scope) => {
    const value = operand(scope)
    const filtered = runFilter(name, value, ...args(scope))
    checkValue(filtered)
    return filtered
  }
}
