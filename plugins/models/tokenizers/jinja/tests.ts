/** Tests of Jinja2, such as `is defined`. */
import { spendCharacters, spendSteps } from '../render-budget.ts'
import { compare, isMember } from './operators.ts'
import {
  Float,
  integerOf,
  isEqual,
  isInteger,
  isIterable,
  isList,
  isNumber,
  isText,
  Markup,
  numberOf,
  Range,
  TemplateError,
  Tuple,
  textOf,
  typeName,
  Undefined,
  type Value,
} from './values.ts'

type Test = (value: Value, operand: Value) => boolean

const ordered =
  (operator: string): Test =>
  (value, operand) =>
    compare(operator, value, operand)

const remainder = (value: Value, by: number): number => {
  if (!isNumber(value)) throw new TemplateError(`a number is expected, got ${typeName(value)}`)
  return Math.abs(numberOf(value) % by)
}

const differs: Test = (value, operand) => !isEqual(value, operand)

const TESTS: ReadonlyMap<string, Test> = new Map<string, Test>([
  ['defined', (value) => !(value instanceof Undefined)],
  ['undefined', (value) => value instanceof Undefined],
  ['none', (value) => value === null],
  ['true', (value) => value === true],
  ['false', (value) => value === false],
  ['boolean', (value) => typeof value === 'boolean'],
  ['integer', isInteger],
  ['float', (value) => value instanceof Float],
  ['number', isNumber],
  ['string', isText],
  ['mapping', (value) => value instanceof Map],
  [
    'sequence',
    (value) =>
      isText(value) || isList(value) || [Map, Tuple, Range, Undefined].some((kind) => value instanceof kind),
  ],
  ['iterable', isIterable],
  ['callable', (value) => typeof value === 'function'],
  ['sameas', (value, operand) => value === operand],
  ['escaped', (value) => value instanceof Markup],
  ['odd', (value) => remainder(value, 2) === 1],
  ['even', (value) => remainder(value, 2) === 0],
  ['divisibleby', (value, operand) => remainder(value, integerOf(operand)) === 0],
  ['lower', (value) => isCased(value) && textOf(value) === textOf(value).toLowerCase()],
  ['upper', (value) => isCased(value) && textOf(value) === textOf(value).toUpperCase()],
  ['in', isMember],
  ...['equalto', 'eq', '=='].map((name): [string, Test] => [name, isEqual]),
  ...['ne', '!='].map((name): [string, Test] => [name, differs]),
  ...['lt', 'lessthan', '<'].map((name): [string, Test] => [name, ordered('<')]),
  ...['le', '<='].map((name): [string, Test] => [name, ordered('<=')]),
  ...['gt', 'greaterthan', '>'].map((name): [string, Test] => [name, ordered('>')]),
  ...['ge', '>='].map((name): [string, Test] => [name, ordered('>=')]),
])

function isCased(value: Value): boolean {
  const text = textOf(value)
  spendCharacters(text.length)
  return /\p{L}/u.test(text)
}

/** @throws TemplateError if there is no test of that name */
export function runTest(name: string, value: Value, [operand]: readonly Value[]): boolean {
  const test = TESTS.get(name)
  if (test === undefined) throw new TemplateError(`there is no test named ${name}`)
  spendSteps()
  return test(value, operand === undefined ? new Undefined('the test has no operand') : operand)
}
