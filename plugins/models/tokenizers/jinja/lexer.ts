/** Splits a chat template into text and tokens as Jinja2 does with `trim_blocks` and `lstrip_blocks`. */

export type TokenType = 'text' | 'begin' | 'end' | 'name' | 'string' | 'integer' | 'float' | 'operator'

export interface Token {
  readonly type: TokenType
  /** Of `begin` and `end`: the delimiter, `{{` or `{%`. Of `string`: its value. */
  readonly value: string
  readonly line: number
}

/** White space of Python's `str`, which differs from that of JavaScript. */
export const SPACE = '\\t-\\r\\x1c-\\x20\\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000'

/** A tag's beginning, its sign, and the tag of raw text as a whole. */
const TAG = new RegExp(`\\{%([-+]?)[${SPACE}]*raw[${SPACE}]*(?:-%\\}[${SPACE}]*|%\\})|\\{([%{#])([-+]?)`, 'g')
const RAW_END = new RegExp(
  `\\{%([-+]?)[${SPACE}]*endraw[${SPACE}]*(?:\\+%\\}|-%\\}[${SPACE}]*|%\\}\\n?)`,
  'g',
)
const COMMENT_END = new RegExp(`\\+#\\}|-#\\}[${SPACE}]*|#\\}\\n?`, 'g')
const ENDS: Readonly<Record<string, RegExp>> = {
  '{%': new RegExp(`\\+%\\}|-%\\}[${SPACE}]*|%\\}\\n?`, 'y'),
  '{{': new RegExp(`-\\}\\}[${SPACE}]*|\\}\\}`, 'y'),
}
const PARTS: readonly (readonly [TokenType | null, RegExp])[] = [
  [null, new RegExp(`[${SPACE}]+`, 'y')],
  ['float', /(?<!\.)(?:\d+_)*\d+(?:(?:\.(?:\d+_)*\d+)?e[+-]?(?:\d+_)*\d+|\.(?:\d+_)*\d+)/iy],
  ['integer', /0b(?:_?[0-1])+|0o(?:_?[0-7])+|0x(?:_?[\da-f])+|[1-9](?:_?\d)*|0(?:_?0)*/iy],
  ['name', /[\p{L}_][\p{L}\p{M}\p{N}_]*/uy],
  ['string', /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/sy],
  ['operator', /\/\/|\*\*|==|!=|<=|>=|[-+*/%~[\](){}<>=.:|,;]/y],
]
const CLOSING: Readonly<Record<string, string>> = { '(': ')', '[': ']', '{': '}' }

/** @throws SyntaxError with the line */
export function tokenize(template: string): Token[] {
  const source = template.replace(/\r\n?/g, '\n').replace(/\n$/, '')
  const tokens: Token[] = []
  let line = 1
  let at = 0
  /** Whether the text that follows begins a line. */
  let startsLine = true
  const moveTo = (end: number) => {
    for (let place = at; place < end; place++) if (source[place] === '\n') line++
    startsLine = source[end - 1] === '\n'
    at = end
  }
  const push = (type: TokenType, value: string) => tokens.push({ type, value, line })
  const pushText = (text: string) => {
    if (text !== '') push('text', text)
  }
  const find = (pattern: RegExp, missing: string): RegExpExecArray => {
    pattern.lastIndex = at
    const found = pattern.exec(source)
    if (found === null) throw new SyntaxError(`line ${line}: ${missing}`)
    return found
  }
  while (at < source.length) {
    TAG.lastIndex = at
    const tag = TAG.exec(source)
    if (tag === null) {
      pushText(source.slice(at))
      break
    }
    const [whole, rawSign, kind, sign] = tag
    pushText(beforeTag(source.slice(at, tag.index), rawSign ?? sign, kind !== '{', startsLine))
    moveTo(tag.index + whole.length)
    if (kind === undefined) {
      const end = find(RAW_END, '{% raw %} has no {% endraw %}')
      pushText(beforeTag(source.slice(at, end.index), end[1], true, startsLine))
      moveTo(end.index + end[0].length)
    } else if (kind === '#') {
      const end = find(COMMENT_END, 'a comment has no end')
      moveTo(end.index + end[0].length)
    } else {
      push('begin', `{${kind}`)
      readTag(`{${kind}`)
    }
  }
  return tokens

  function readTag(begin: string): void {
    const open: string[] = []
    for (;;) {
      const end = open.length === 0 ? matchAt(ENDS[begin], source, at) : null
      if (end !== null) {
        push('end', begin)
        moveTo(at + end.length)
        return
      }
      const [type, text] = nextPart(source, at)
      if (text === '')
        throw new SyntaxError(`line ${line}: unexpected ${JSON.stringify(source[at] ?? 'end')}`)
      if (type === 'string') push(type, withoutEscapes(text.slice(1, -1)))
      else if (type !== null) push(type, text)
      if (type === 'operator') {
        if (CLOSING[text] !== undefined) open.push(CLOSING[text])
        else if (')]}'.includes(text) && open.pop() !== text)
          throw new SyntaxError(`line ${line}: unexpected '${text}'`)
      }
      moveTo(at + text.length)
    }
  }
}

/** Text before a tag: `-` strips its white space, and a tag that begins a line takes the white space before it. */
function beforeTag(text: string, sign: string, isStatement: boolean, startsLine: boolean): string {
  if (sign === '-') return stripEnd(text)
  if (sign === '+' || !isStatement) return text
  const lineAt = text.lastIndexOf('\n') + 1
  return (lineAt > 0 || startsLine) && stripEnd(text).length <= lineAt ? text.slice(0, lineAt) : text
}

const SPACES = new RegExp(`[${SPACE}]`)
export const isSpace = (letter: string): boolean => SPACES.test(letter)

function stripEnd(text: string): string {
  let end = text.length
  while (end > 0 && isSpace(text[end - 1])) end--
  return text.slice(0, end)
}

function matchAt(pattern: RegExp, source: string, at: number): string | null {
  pattern.lastIndex = at
  return pattern.exec(source)?.[0] ?? null
}

function nextPart(source: string, at: number): readonly [TokenType | null, string] {
  for (const [type, pattern] of PARTS) {
    const found = matchAt(pattern, source, at)
    if (found !== null) return [type, found]
  }
  return [null, '']
}

const ESCAPES: Readonly<Record<string, string>> = {
  ...{ n: '\n', t: '\t', r: '\r', a: '\x07', b: '\b', f: '\f', v: '\v' },
  ...{ '\\': '\\', "'": "'", '"': '"', '\n': '' },
}

/** Escapes of Python's strings; unknown ones are kept. */
function withoutEscapes(text: string): string {
  if (!text.includes('\\')) return text
  return text.replace(
    /\\(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U(000[\da-fA-F]{5}|0010[\da-fA-F]{4})|([0-7]{1,3})|(.))/gs,
    (whole, two?: string, four?: string, eight?: string, octal?: string, letter?: string) => {
      const hex = two ?? four ?? eight
      if (hex !== undefined) return String.fromCodePoint(Number.parseInt(hex, 16))
      if (octal !== undefined) return String.fromCharCode(Number.parseInt(octal, 8))
      return ESCAPES[letter ?? ''] ?? whole
    },
  )
}
