/** Generated templates: each rendering ends within its limits or with a client error. */
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { ChatTemplates } from './chat-template.ts'
import { TemplateError } from './jinja/values.ts'
import { RenderLimitExceeded } from './render-budget.ts'

const SPECIAL = { bos: '<s>', eos: null, unk: null, pad: null, all: [] }
const LIMITS = { maxSteps: 10_000, maxCharacters: 20_000, maxMs: 2_000 }
/** Far above the limits, for a loaded machine. */
const LIMIT_MS = 20_000

/** Variables that every template has, so that most expressions have a value. */
const HEAD = `{% set ns = namespace(s='a', l=[1], d={'k': 'v'}) %}{% set x = 'text' %}{% macro m(a) %}{{ a }}{{ a }}{% endmacro %}`

const { expression } = fc.letrec<{ expression: string }>((tie) => {
  const one = tie('expression')
  return {
    expression: fc.oneof(
      { maxDepth: 4, depthIdentifier: 'expression' },
      fc.constantFrom(
        ...['ns.s', 'ns.l', 'ns.d', 'x', '1', '7', "'ab'", 'true', 'none', 'missing'],
        ...['messages', 'messages[0].content', 'range(500)', 'range(100000)', 'bos_token', 'm'],
      ),
      fc
        .tuple(one, one, fc.constantFrom('+', '~', '*', '-', '%', '==', 'in', 'and', 'or', '<'))
        .map(([left, right, operator]) => `(${left} ${operator} ${right})`),
      fc
        .tuple(
          one,
          fc.constantFrom(
            ...['length', 'tojson', 'tojson(indent=90)', 'upper', 'string', 'list', 'join(x)', 'join(ns.s)'],
            ...['indent(9999)', 'replace("a", ns.s)', 'replace("", x)', 'sort', 'unique', 'reverse', 'first'],
            ...['map("upper")', 'items', 'trim', 'default(x)', 'title', 'dictsort'],
          ),
        )
        .map(([value, filter]) => `(${value}|${filter})`),
      fc
        .tuple(
          one,
          fc.constantFrom(
            ...['.upper()', '.split("a")', '.replace("a", ns.s)', '.items()', '.keys()', '.rjust(9999)'],
            ...[
              '[0]',
              '[-1]',
              '[::2]',
              '[::-1]',
              '.k',
              '.find(x)',
              '.count("a")',
              '.join(ns.l)',
              '.__class__',
            ],
          ),
        )
        .map(([value, member]) => `${value}${member}`),
      fc.tuple(one, one, one).map(([yes, test, no]) => `(${yes} if ${test} else ${no})`),
      fc.array(one, { maxLength: 3 }).map((items) => `[${items.join(', ')}]`),
      one.map((value) => `{'k': ${value}}`),
      one.map((value) => `m(${value})`),
    ),
  }
})

const { block } = fc.letrec<{ block: string }>((tie) => {
  const one = tie('block')
  return {
    block: fc.oneof(
      { maxDepth: 6, depthIdentifier: 'block' },
      fc.constantFrom('text', ''),
      expression.map((value) => `{{ ${value} }}`),
      expression.map((value) => `{% set ns.s = (ns.s ~ ${value}) %}`),
      expression.map((value) => `{% set ns.l = ns.l + [${value}] %}`),
      fc.tuple(expression, one).map(([value, body]) => `{% for i in ${value} %}${body}{% endfor %}`),
      fc
        .tuple(fc.constantFrom(3, 64, 100_000), one)
        .map(
          ([count, body]) => `{% for i in range(${count}) %}{% set ns.s = ns.s ~ ns.s %}${body}{% endfor %}`,
        ),
      fc
        .tuple(expression, one, one)
        .map(([value, yes, no]) => `{% if ${value} %}${yes}{% else %}${no}{% endif %}`),
      fc
        .tuple(expression, one)
        .map(([value, body]) => `{% macro f(a) %}${body}{{ f(a) }}{% endmacro %}{{ f(${value}) }}`),
      one.map((body) => `{% set x %}${body}{{ x }}{% endset %}`),
      fc
        .tuple(fc.constantFrom('upper', 'trim', 'indent(999)'), one)
        .map(([filter, body]) => `{% filter ${filter} %}${body}{% endfilter %}`),
      fc.tuple(one, one).map(([first, second]) => first + second),
    ),
  }
})

/** @returns how the rendering ended. @throws any other error */
function render(template: string): string {
  const templates = new ChatTemplates(new Map([['default', HEAD + template]]), SPECIAL, { limits: LIMITS })
  try {
    templates.check()
    const text = templates.render({ messages: [{ role: 'user', content: 'hi' }] })
    expect(text.length).toBeLessThanOrEqual(LIMITS.maxCharacters)
    return 'text'
  } catch (error) {
    if (error instanceof RenderLimitExceeded) return 'limit'
    if (error instanceof TemplateError || error instanceof SyntaxError) return 'error'
    throw error
  }
}

test('generated templates end within their limits', () => {
  const endings = { text: 0, limit: 0, error: 0 }
  fc.assert(
    fc.property(block, (template) => {
      const startedAtMs = performance.now()
      endings[render(template) as keyof typeof endings]++
      expect(performance.now() - startedAtMs).toBeLessThan(LIMIT_MS)
    }),
    { numRuns: 500 },
  )
  // The templates must reach the limits as well as the end.
  expect(Math.min(endings.text, endings.limit, endings.error)).toBeGreaterThan(5)
})

test('any text is rendered or rejected as a template', () => {
  const piece = fc.constantFrom(
    '{%',
    '%}',
    '{{',
    '}}',
    '{#',
    '#}',
    '-%}',
    ' if ',
    ' for ',
    'endfor',
    '|',
    '(',
    "'",
    'x',
  )
  fc.assert(
    fc.property(fc.array(fc.oneof(piece, fc.string({ maxLength: 5 })), { maxLength: 30 }), (pieces) => {
      render(pieces.join(''))
    }),
    { numRuns: 500 },
  )
})
