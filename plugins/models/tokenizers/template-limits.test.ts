/** Templates that would take minutes or exhaust memory are stopped, and the error names the limit. */
import { describe, expect, test } from 'vitest'
import { ChatTemplates } from './chat-template.ts'
import { DEFAULT_LIMITS, RenderLimitExceeded } from './render-budget.ts'

const SPECIAL = { bos: null, eos: null, unk: null, pad: null, all: [] }
/** Active only if a chat requests it: the trial renderings at load time pass. */
const HARMLESS_UNTIL = '{% if messages[0].content == "go" %}'
/** A text of 2^23 characters. */
const LONG =
  "{% set ns = namespace(s='a', l=[0]) %}{% for i in range(23) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}"
/** A small list that prints 2^60 items. */
const DEEP = '{% set d = namespace(v=["x"]) %}{% for i in range(60) %}{% set d.v = [d.v, d.v] %}{% endfor %}'
const DEEP2 = DEEP.replaceAll('d.v', 'e.v').replace('set d', 'set e')
const LIST = '{% set big = range(100000)|list %}'

const HOSTILE: readonly (readonly [string, string])[] = [
  [
    'nested loops over ranges',
    '{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}',
  ],
  [
    'nested loops over strings',
    `${LONG}{% for a in ns.s[:99999] %}{% for b in ns.s[:99999] %}{% endfor %}{% endfor %}`,
  ],
  [
    'loops with conditions',
    '{% for a in range(100000) %}{% for b in range(100000) if b < 0 %}{% endfor %}{% endfor %}',
  ],
  [
    'a string that is doubled',
    "{% set ns = namespace(s='a') %}{% for i in range(99) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
  ],
  ['output in a loop', `${LONG}{% for a in range(100) %}{{ ns.s }}{% endfor %}`],
  [
    'a macro that calls itself twice',
    '{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}',
  ],
  ['a block that is set', `${LONG}{% set x %}{{ ns.s }}{{ ns.s }}{{ ns.s }}{% endset %}`],
  ['a list that a macro doubles', `${LIST}{% macro f(x) %}{{ f(x + x) }}{% endmacro %}{{ f(big) }}`],
  [
    'a list that is doubled',
    `{% set ns = namespace(l=[1]) %}{% for i in range(99) %}{% set ns.l = ns.l + ns.l %}{% endfor %}`,
  ],
  ['kept texts', `${LONG}{% for i in range(5000) %}{% set ns.l = ns.l + [(ns.s ~ i)|upper] %}{% endfor %}`],
  ['join by a method', `${LIST}${LONG}{{ ns.s.join(big|map('string')) }}`],
  ['join by a filter', `${LIST}${LONG}{{ big|join(ns.s) }}`],
  ['replace', `${LONG}{{ ns.s.replace('a', ns.s) }}`],
  ['replace as a filter', `${LONG}{{ ns.s|replace('a', ns.s) }}`],
  ['replace as a filter of a block', `${LONG}{% filter replace('a', ns.s) %}{{ ns.s }}{% endfilter %}`],
  ['replace of nothing', `${LONG}{{ ns.s.replace('', ns.s) }}`],
  ['indent', "{{ 'a\nb'|indent(500000000) }}"],
  ['indent of many lines', `${LONG}{{ ns.s.replace('a', '\n')|indent(1000, true, true) }}`],
  ['indent of a block', '{% filter indent(500000000, true) %}a{% endfilter %}'],
  ['tojson', `${DEEP}{{ d.v|tojson }}`],
  ['tojson with spaces', `${DEEP}{{ d.v|tojson(indent=64) }}`],
  ['printing', `${DEEP}{{ d.v }}`],
  ['printing of a namespace', `${DEEP}{{ namespace(a=d.v) }}`],
  ['printing of what a call gives', `${DEEP}{% call namespace({'a': d.v}) %}{% endcall %}`],
  ['comparison', `${DEEP}${DEEP2}{{ d.v == e.v }}`],
  ['comparison with a word', `${DEEP}{{ d.v == 'x' }}{{ 'x' == d.v }}{{ d.v|string }}`],
  ['membership', `${DEEP}${DEEP2}{{ d.v in [e.v] }}`],
  ['slices with a step', `${LONG}{% for i in range(100000) %}{% set x = ns.s[::-1] %}{% endfor %}`],
  [
    'arithmetic with a list',
    `${LONG}${LIST}{% for i in big %}{{ (ns.s ~ 'a') in [ns.s ~ 'b', ns.s ~ 'c'] }}{% endfor %}`,
  ],
  [
    'search',
    `${LONG}{% set p = ns.s[:50000] ~ 'b' ~ ns.s[:50000] %}{% for i in big %}{% endfor %}{{ p in ns.s }}`,
  ],
  ['find', `${LONG}{{ ns.s.find(ns.s[:50000] ~ 'b' ~ ns.s[:50000]) }}`],
  ['count', `${LONG}{{ ns.s.count(ns.s[:50000] ~ 'b' ~ ns.s[:50000]) }}`],
  ['split', `${LONG}{{ ns.s.split('a')|length }}`],
  ['a list of letters', `${LONG}{{ ns.s|list|length }}`],
  [
    'sort',
    `${LONG}${LIST}{% set m = {'k': ns.s} %}{% set p = namespace(l=[m, m]) %}{% for i in range(16) %}{% set p.l = p.l + p.l %}{% endfor %}{{ p.l|sort(attribute='k')|length }}`,
  ],
  [
    'map',
    `${LONG}${LIST}{% set p = namespace(l=[ns.s]) %}{% for i in range(16) %}{% set p.l = p.l + p.l %}{% endfor %}{{ p.l|map('upper')|list|length }}`,
  ],
  ['slices', `${LONG}{% for i in range(100000) %}{% set x = ns.s[::2] %}{% endfor %}`],
  ['case', `${LONG}{% for i in range(100000) %}{% set x = ns.s.upper() %}{% endfor %}`],
  ['titles', `${LONG}{% for i in range(100000) %}{% set x = ns.s.replace('aa', 'a ')|title %}{% endfor %}`],
  ['tests of case', `${LONG}{% for i in range(100000) %}{% if ns.s is lower %}{% endif %}{% endfor %}`],
  ['padding', '{% for i in range(100000) %}{% set x = "a".rjust(100000) %}{% endfor %}'],
]

// Steps, characters and items are counted, so that the result does not depend on the machine.
const COUNTED = /^the chat template 'odd' needs more than \d+ (steps|characters|items)/

describe.each(HOSTILE)('%s', (_what, body) => {
  test('is stopped in a chat and at load time', () => {
    const sources = (text: string) => new Map([['odd', text]])
    const limits = { ...DEFAULT_LIMITS, maxSteps: 1_000_000, maxMs: 120_000 }
    const onUse = new ChatTemplates(sources(`${HARMLESS_UNTIL}${body}{% endif %}ok`), SPECIAL, { limits })
    onUse.check()
    const render = (content: string) => onUse.render({ messages: [{ role: 'user', content }] })
    expect(() => render('go')).toThrow(RenderLimitExceeded)
    expect(() => render('go')).toThrow(COUNTED)
    expect(render('other')).toBe('ok')
    expect(() => new ChatTemplates(sources(body), SPECIAL, { limits }).check()).toThrow(RenderLimitExceeded)
  })
})

test('a rendering is stopped by the clock as well', () => {
  const endless = '{% for a in range(100000) %}{% for b in range(100000) %}{% endfor %}{% endfor %}'
  const limits = { ...DEFAULT_LIMITS, maxSteps: 1_000_000_000, maxMs: 1 }
  const templates = new ChatTemplates(new Map([['odd', endless]]), SPECIAL, { limits })
  expect(() => templates.check()).toThrow(/more than 1 ms/)
})
