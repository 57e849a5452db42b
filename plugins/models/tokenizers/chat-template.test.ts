/** Templates print, compare and loop like Python. The expected texts are those of Jinja2. */
import { describe, expect, test } from 'vitest'
import { ChatTemplates } from './chat-template.ts'

const SPECIAL = { bos: '<s>', eos: '</s>', unk: null, pad: null, all: [] }
const NOW = new Date(2026, 2, 5, 14, 7, 9)

function render(template: string, templateKwargs: Record<string, unknown> = {}, prompt: object = {}): string {
  const templates = new ChatTemplates(new Map([['default', template]]), SPECIAL, { now: () => NOW })
  return templates.render({ messages: [], templateKwargs, ...prompt })
}

test.each([
  ['{{ none }} {{ true }} {{ missing }} {{ 1 }} {{ 1.5 }} {{ 2.0 }}', 'None True  1 1.5 2.0'],
  [
    `{{ ["a'b", "c", none, 1] }} {{ {"k": 'v'} }} {{ ('a', 1) }}`,
    `["a'b", 'c', None, 1] {'k': 'v'} ('a', 1)`,
  ],
  ['{{ "a" ~ 1 ~ none ~ true }}', 'a1NoneTrue'],
  ['{{ "a" + "b" + "c" }} {{ 1 + 2 + 3 }} {{ 1 + 0.5 }} {{ [1] + [2] }}', 'abc 6 1.5 [1, 2]'],
  [
    '{{ {"a": [1]} == {"a": [1.0]} }} {{ "1" == 1 }} {{ [] == "" }} {{ "x" != "y" }}',
    'True False False True',
  ],
  ['{{ "\n a \n".strip("\n") }}|{{ "xxaxx".lstrip("x") }}|{{ "ab".rstrip("b") }}', ' a |axx|a'],
  ['{{ " a ".strip() }}|{{ "a-b-c".rsplit("-", 1) }}|{{ ", ".join(["a", "b"]) }}', "a|['a-b', 'c']|a, b"],
  ['{{ "hELLO wORLD".capitalize() }} {{ "a b" | title }} {{ "😀é" | length }}', 'Hello world A B 2'],
  [
    '{{ "prefix-x".removeprefix("prefix-") }} {{ "abc".find("c") }} {{ "a.b".partition(".") }}',
    "x 2 ('a', '.', 'b')",
  ],
  ['{{ {"b": 1, "a": [true, none]} | tojson }}', '{"b": 1, "a": [true, null]}'],
  ['{{ {"b": 1, "a": "é<"} | tojson(sort_keys=true, ensure_ascii=true) }}', '{"a": "\\u00e9<", "b": 1}'],
  ['{{ {"b": [1, {}], "a": []} | tojson(indent=2) }}', '{\n  "b": [\n    1,\n    {}\n  ],\n  "a": []\n}'],
  ['{{ [1, {"a": 2}] | tojson(separators=(",", ":")) }}', '[1,{"a":2}]'],
  ['{{ [1.0, 0.5] | tojson }}', '[1.0, 0.5]'],
  ['{{ x | selectattr("a", "undefined") | list | length }}{{ x | map(attribute="b") | join("-") }}', '12-3'],
  ['{{ x | rejectattr("a") | map("tojson") | join }}', '{"b": 3}'],
  [
    '{{ strftime_now("%d %b %Y, %A %B %-d %I:%M %p %j %%") }}',
    '05 Mar 2026, Thursday March 5 02:07 PM 064 %',
  ],
  ['{%- generation %}a {% endgeneration %}b', 'a b'],
  [
    '{{ bos_token }}{{ eos_token }}{{ unk_token is defined }}{{ tools is none }}{{ documents is none }}',
    '<s></s>FalseTrueTrue',
  ],
  [
    '{% for i in missing %}x{% else %}none{% endfor %}{% for c in "ab" if c != "a" %}{{ c }}{% endfor %}',
    'noneb',
  ],
  ['{% for i in range(3) %}{{ i }}{% else %}none{% endfor %}', '012'],
  [
    `{% set p = 'q' %}{% for m in ['a', 'b', 'c'] %}{% if m == 'a' %}{% set p = m %}{% endif %}[{{ p }}]{% endfor %}{{ p }}`,
    '[a][q][q]q',
  ],
  [
    `{% set p = 'q' %}{% for k, v in {'a': 1, 'b': 2}.items() %}{% if v == 1 %}{% set p = k %}{% endif %}[{{ p }}{{ loop.index }}]{% endfor %}`,
    '[a1][q2]',
  ],
  [
    `{% for m in ['x', 'a', 'b'] if m != 'x' %}{% if loop.first %}{% set p = m %}{% endif %}[{{ p }}{{ loop.length }}]{% endfor %}{{ p is defined }}`,
    '[a2][2]False',
  ],
  [
    `{% for a in ['x', 'y'] %}{% for b in [1, 2] %}{% if b == 1 %}{% set s = a %}{% endif %}{{ s or '-' }}{% if b == 1 %}{% continue %}{% endif %}{% endfor %}{{ s or '-' }}{% endfor %}`,
    'x--y--',
  ],
  [`{% for a, (b, c) in [['x', ['y', 'z']]] %}{{ a ~ b ~ c }}{% endfor %}`, 'xyz'],
  // A method is an attribute, which comes before the key; in brackets the key comes first.
  [
    `{% set d = {'items': 1, 'a': 2} %}{% for k, v in d.items() %}{{ k ~ v }}{% endfor %}{{ d['items'] }}`,
    'items1a21',
  ],
  [
    `{{ {'get': 1}.get('get') }}{{ {'a': none}.get('a', 5) }}{{ 'x'.append is defined }}{{ [].append is defined }}`,
    '1NoneFalseFalse',
  ],
  [
    `{% set m = {0: 'a', 512: 'b', none: 'c'} %}{{ m[512] }}{{ m[none] }}{{ m }}`,
    "bc{0: 'a', 512: 'b', None: 'c'}",
  ],
  [
    `{{ '{}-{b:>3}'.format(1, b='x') }}|{{ '%s %05.1f %d%%' | format('a', 2.25, 3) }}|{{ '%s' % ['a'] }}`,
    "1-  x|a 002.2 3%|['a']",
  ],
  [`{% for t in none | selectattr('a') %}x{% endfor %}{{ none | map('upper') | list }}`, '[]'],
  [
    `{{ {'a': 1}.b is defined }}{{ [3, 1, 2] | min }}{{ [3, 1] | max }}{{ 'ab' * 2 }}{{ [0] * 2 }}`,
    'False13abab[0, 0]',
  ],
  ['{% raw %}{{ x }}{% endraw %} y', '{{ x }} y'],
  ['{{ "".__class__ }}{{ {}.__proto__ is defined }}{{ {"__a": 1}.__a }}', 'False1'],
  [
    `{{ {} is iterable }}{{ none is iterable }}{{ (1, 2) }}{{ [(1,)] }}{{ 'a\u2028\u00a0b' | list }}`,
    "TrueFalse(1, 2)[(1,)]['a', '\\u2028', '\\xa0', 'b']",
  ],
  [
    '{{ -7 % 3 }} {{ -7 // 2 }} {{ 7 / 2 }} {{ 2 ** 3 }} {{ 2 ** 64 }} {{ 1e20 }} {{ 1 < 2 < 2 }}',
    '2 -4 3.5 8 18446744073709551616 1e+20 False',
  ],
  [`{{ '<a>' | safe + '<b>' }}{{ '<a>' ~ ('<b>' | safe) }}`, '<a>&lt;b&gt;<a><b>'],
  [
    `{% for n in [[1, [2]], [3, []]] recursive %}{{ n[0] if n is sequence else n }}{% if n is sequence and n[1] %}({{ loop(n[1]) }}){% endif %}{% endfor %}`,
    '1(2)3',
  ],
  [
    `{{ x | map(attribute='a', default='-') | join(',') }}{% if x | selectattr('none') %}always{% endif %}`,
    '1,-always',
  ],
  [
    `{% macro m(a, b='d') %}{{ a }}{{ b }}{{ caller() if caller is defined }}{% endmacro %}{{ m(1) }}{% call m(1, b=none) %}!{% endcall %}`,
    '1d1None!',
  ],
  [
    `{% set ns = namespace(a=1) %}{% for i in [1] %}{% set ns.a = i + 1 %}{% endfor %}{{ ns.a }}{% with b = 3 %}{{ b }}{% endwith %}{{ b is defined }}`,
    '23False',
  ],
  [
    `{{ 'a.b'.split('.')[-1] }}{{ 'abc'[::-1] }}{{ 'abc'[1:] }}{{ [1, 2, 3][:-1] }}{{ 'x' if false }}`,
    'bcbabc[1, 2]',
  ],
  ['a\n  {# note #}\n  {%- if true %}\nb\n  {%+ endif %}c\n', 'a\nb\n  c'],
  [
    `{{ [1, 'a'] is sequence }}{{ 3 is divisibleby 3 }}{{ 1 is in [1] }}{{ 'a' is not string }}{{ 'b' is eq('b') }}`,
    'TrueTrueTrueFalseTrue',
  ],
])('%s', (template, expected) => {
  expect(render(template, { x: [{ a: 1, b: 2 }, { b: 3 }] })).toBe(expected)
})

test('loops keep the text printed before break and continue', () => {
  const template =
    '{% for i in x %}{% for j in x %}{{ j }}{% if j == i %}{% break %}{% endif %},{% endfor %};' +
    '{% if i == 2 %}{% continue %}{% elif i == 3 %}!{% break %}{% endif %}.{% else %}none{% endfor %}'
  expect(render(template, { x: [1, 2, 3, 4] })).toBe('1;.1,2;1,2,3;!')
  expect(render('{% for i in x %}{{ i }}{% continue %}{% else %}none{% endfor %}', { x: [1, 2] })).toBe('12')
  expect(render(template, { x: [] })).toBe('none')
})

test.each([
  ['{{ raise_exception("not so") }}', 'not so'],
  ['{{ "a" + 1 }}', "unsupported operand type(s) for +: 'str' and 'int'"],
  ['{{ "a" + none }}', "'str' and 'NoneType'"],
  ['{{ none.strip() }}', "None has no attribute 'strip'"],
  ['{{ 1 | tojson(colour=1) }}', 'no argument named colour'],
  ['{% for i in range(1000000000) %}{% endfor %}', 'too long'],
])('%s is rejected', (template, reason) => {
  expect(() => render(template)).toThrowError(reason)
})

test('nesting that would exhaust the stack is an error, not a crash', () => {
  const deep = `${'{% if true %}'.repeat(2_000)}x${'{% endif %}'.repeat(2_000)}`
  expect(() => render(deep)).toThrowError()
  let value: unknown = 1
  for (let i = 0; i < 20_000; i++) value = [value]
  expect(() => render('{{ x | tojson }}', { x: value })).toThrowError()
})

describe('template selection and form', () => {
  const named = new ChatTemplates(
    new Map([
      ['tool_use', 'tools: {{ tools | length }}'],
      ['default', 'plain'],
    ]),
    SPECIAL,
  )

  test('tool_use is used if there are tools', () => {
    expect(named.render({ messages: [], tools: [{}] })).toBe('tools: 1')
    expect(named.render({ messages: [], tools: [] })).toBe('plain')
  })

  test('arguments are values, unless the template uses their text', () => {
    const calls = [{ id: '1', type: 'function', function: { name: 'f', arguments: '{"a":1}' } }]
    const messages = [{ role: 'assistant', tool_calls: calls }]
    const loop = (inner: string) =>
      `{% for m in messages %}{% for c in m.tool_calls %}${inner}{% endfor %}{% endfor %}`
    expect(render(loop('{{ c.function.arguments | tojson }}'), {}, { messages })).toBe('{"a": 1}')
    expect(render(loop("{{ '<' + c.function.arguments + '>' }}"), {}, { messages })).toBe('<{"a":1}>')
  })

  test('text parts become one string, or stay parts', () => {
    const content = [
      { type: 'text', text: 'a' },
      { type: 'image_url', image_url: { url: 'x' } },
      { type: 'input_text', text: 'b' },
    ]
    const messages = [{ role: 'user', content }]
    expect(render('{% for m in messages %}{{ m.content }}{% endfor %}', {}, { messages })).toBe('a\nb')
    const parts =
      '{% for m in messages %}{% for p in m.content %}{{ p.text if p.type == "text" else "<" ~ p.type ~ ">" }}{% endfor %}{% endfor %}'
    expect(render(parts, {}, { messages })).toBe('a<image>b')
  })
})

test('numbers and the order of keys are those of the JSON text', () => {
  const text = '{"z": 1.0, "10": 1e16, "2": -0.0, "n": 12345678901234567890, "f": 1E-7, "h": 0.10}'
  const expected = '{"z": 1.0, "10": 1e+16, "2": -0.0, "n": 12345678901234567890, "f": 1e-07, "h": 0.1}'
  const calls = [{ id: '1', type: 'function', function: { name: 'f', arguments: text } }]
  const template =
    '{% for m in messages %}{% for c in m.tool_calls %}{{ c.function.arguments | tojson }}{% endfor %}{% endfor %}' +
    '{% for t in tools or [] %}{{ t | tojson }}{% endfor %}'
  const messages = [{ role: 'assistant', content: null, tool_calls: calls }]
  expect(render(template, {}, { messages })).toBe(expected)
  expect(render(template, {}, { tools: [text] })).toBe(expected)
})

test.each([
  // Qwen3 and others: a string method on the content.
  [
    '{{ m.content.strip() }}{% for c in m.tool_calls %}{{ c.function.name }}{{ c.function.arguments.city }}{% endfor %}',
    'f',
    'empty',
  ],
  // DeepSeek R1: calls are shown only if the content is none.
  [
    '{% if m.content is none %}{{ m.tool_calls[0].function.name }}{{ m.tool_calls[0].function.arguments.city }}{% else %}{{ m.content }}{% endif %}',
    'f',
    'null',
  ],
])('the content of tool calls alone is found by trials for %s', (body, expected, form) => {
  const template = `{% for m in messages %}${body}{% endfor %}`
  const templates = new ChatTemplates(new Map([['default', template]]), SPECIAL)
  const calls = [{ id: '1', type: 'function', function: { name: 'f', arguments: '{}' } }]
  expect(templates.render({ messages: [{ role: 'assistant', content: null, tool_calls: calls }] })).toBe(
    expected,
  )
  expect(templates.reports.get('default')?.form.emptyContent).toBe(form)
})

test('developer messages keep their role where the template knows it', () => {
  const messages = [{ role: 'developer', content: 'Be brief.' }]
  const known = `{% for m in messages %}{% if m.role == 'developer' %}<dev>{% endif %}{{ m.content }}{% endfor %}`
  expect(render(known, {}, { messages })).toBe('<dev>Be brief.')
  expect(render('{% for m in messages %}{{ m.role }}{% endfor %}', {}, { messages })).toBe('system')
})

test('a report names the conversations that a template refuses, and why', () => {
  const template = `{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}{{ messages[0].content }}`
  const templates = new ChatTemplates(new Map([['default', template]]), SPECIAL)
  templates.check()
  expect(templates.reports.get('default')?.refused).toEqual([
    { conversation: 'system message', reason: 'no system role' },
  ])
})

test('a template that refuses every conversation is invalid', () => {
  const templates = new ChatTemplates(new Map([['default', '{{ none + 1 }}']]), SPECIAL)
  expect(() => templates.check()).toThrow(/'default' refuses every conversation: unsupported operand/)
})

test.each([
  ['{{ m.content }}', 'It is ', '<assistant>It is '],
  // The template trims the message, and so is its end.
  ['{{ m.content | trim }}', 'It is ', '<assistant>It is'],
  ['<think></think>{{ m.content }}', 'It', '<assistant><think></think>It'],
])('a final message that is written as %s is cut at its end', (written, content, expected) => {
  const template = `{% for m in messages %}<{{ m.role }}>${written}</>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}`
  const messages = [{ role: 'assistant', content }]
  expect(render(template, {}, { messages, continueFinalMessage: true })).toBe(expected)
})

test('the prompt ends with the text to be continued', () => {
  const template =
    '{% for m in messages %}<{{ m.role }}>{{ m.content }}</>{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}'
  const messages = [
    { role: 'user', content: 'x' },
    { role: 'assistant', content: 'It is ' },
  ]
  const prompt = { messages, continueFinalMessage: true, addGenerationPrompt: false }
  expect(render(template, {}, prompt)).toBe('<user>x</><assistant>It is ')
  expect(() => render(template, {}, { messages: [messages[0]], continueFinalMessage: true })).toThrowError(
    'assistant',
  )
})
