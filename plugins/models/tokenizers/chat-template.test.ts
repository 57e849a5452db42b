/** Templates print, compare and loop like Python. The expected texts are those of Jinja2. */
import { describe, expect, test } from 'vitest'
import { ChatTemplates } from './chat-template.ts'
import { detectContentFormat } from './content-format.ts'

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
    "x 2 ['a', '.', 'b']",
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
  ['{{ "a" + 1 }}', 'cannot add'],
  ['{{ "a" + none }}', 'cannot add'],
  ['{{ none.strip() }}', 'no method strip'],
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

  test.each([
    ["{% for p in message['content'] %}{% endfor %}", 'parts'],
    ['{% set c = message.content %}{% for p in c if p.text %}{% endfor %}', 'parts'],
    ['{{ message.content[0].text }}', 'parts'],
    ['{{ message.content | length }}', 'parts'],
    [
      '{% macro show(c) %}{% if c is string %}{{ c }}{% else %}{% for p in c %}{% endfor %}{% endif %}{% endmacro %}',
      'parts',
    ],
    ['{% if message.content is string %}{{ message.content }}{% endif %}', 'string'],
    ["{{ message.content.split('x')[0] }}", 'string'],
    ['{% if %}', 'string'],
  ])('the content format of %s is %s', (template, format) => {
    expect(detectContentFormat(template)).toBe(format)
  })

  test('a template with more parts than the argument limit of a call is analysed', () => {
    const template = `${'{{ a }}'.repeat(150_000)}{{ message.content | length }}`
    expect(detectContentFormat(template)).toBe('parts')
  })
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
