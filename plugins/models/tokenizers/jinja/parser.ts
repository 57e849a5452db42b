/** Parses chat templates into a syntax tree: the grammar of Jinja2 without blocks of inheritance, imports and includes. */
import { type Token, type TokenType, tokenize } from './lexer.ts'

export type Expression =
  | { readonly kind: 'constant'; readonly value: Constant }
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'list' | 'tuple' | 'concat'; readonly items: readonly Expression[] }
  | { readonly kind: 'mapping'; readonly entries: readonly (readonly [Expression, Expression])[] }
  | { readonly kind: 'attribute'; readonly object: Expression; readonly name: string }
  | { readonly kind: 'item'; readonly object: Expression; readonly key: Expression }
  | { readonly kind: 'slice'; readonly object: Expression; readonly bounds: readonly (Expression | null)[] }
  | { readonly kind: 'call'; readonly callee: Expression; readonly args: Arguments }
  | {
      readonly kind: 'filter'
      readonly name: string
      readonly operand: Expression | null
      readonly args: Arguments
    }
  | { readonly kind: 'test'; readonly name: string; readonly operand: Expression; readonly args: Arguments }
  | { readonly kind: 'unary'; readonly operator: string; readonly operand: Expression }
  | {
      readonly kind: 'binary'
      readonly operator: string
      readonly left: Expression
      readonly right: Expression
    }
  | { readonly kind: 'compare'; readonly first: Expression; readonly rest: readonly Comparison[] }
  | {
      readonly kind: 'choice'
      readonly test: Expression
      readonly yes: Expression
      readonly no: Expression | null
    }

/** A float is an object, because its text may be that of an integer. */
export type Constant = string | number | bigint | boolean | null | { readonly float: number }
export type Comparison = readonly [operator: string, operand: Expression]

export interface Arguments {
  readonly places: readonly Expression[]
  readonly names: readonly (readonly [string, Expression])[]
  readonly spread: Expression | null
  readonly spreadNames: Expression | null
}

export type Target =
  | { readonly kind: 'name'; readonly name: string }
  | { readonly kind: 'member'; readonly object: string; readonly name: string }
  | { readonly kind: 'tuple'; readonly items: readonly Target[] }

export interface Parameter {
  readonly name: string
  readonly default: Expression | null
}

export type Statement =
  | { readonly kind: 'text'; readonly text: string }
  | { readonly kind: 'print'; readonly value: Expression }
  | { readonly kind: 'if'; readonly test: Expression; readonly yes: Block; readonly no: Block }
  | {
      readonly kind: 'for'
      readonly target: Target
      readonly items: Expression
      readonly test: Expression | null
      readonly isRecursive: boolean
      readonly body: Block
      readonly otherwise: Block
    }
  | { readonly kind: 'set'; readonly target: Target; readonly value: Expression }
  | {
      readonly kind: 'set-block'
      readonly target: Target
      readonly filter: Expression | null
      readonly body: Block
    }
  | {
      readonly kind: 'macro'
      readonly name: string
      readonly parameters: readonly Parameter[]
      readonly body: Block
    }
  | {
      readonly kind: 'call-block'
      readonly call: Expression
      readonly parameters: readonly Parameter[]
      readonly body: Block
    }
  | { readonly kind: 'filter-block'; readonly filter: Expression; readonly body: Block }
  | { readonly kind: 'with'; readonly sets: readonly (readonly [Target, Expression])[]; readonly body: Block }
  | { readonly kind: 'break' | 'continue' }

export type Block = readonly Statement[]

/** Deeper nesting would exhaust the stack somewhere. */
const MAX_DEPTH = 200
const NO_ARGUMENTS: Arguments = { places: [], names: [], spread: null, spreadNames: null }
const CONSTANTS: ReadonlyMap<string, Constant> = new Map<string, Constant>([
  ['true', true],
  ['True', true],
  ['false', false],
  ['False', false],
  ['none', null],
  ['None', null],
])
const COMPARISONS: ReadonlySet<string> = new Set(['==', '!=', '<', '<=', '>', '>='])
/** Operators of two operands, by ascending precedence. `~` stands between the first two. */
const SUMS: ReadonlySet<string> = new Set(['+', '-'])
const PRODUCTS: ReadonlySet<string> = new Set(['*', '/', '//', '%'])
const POWERS: ReadonlySet<string> = new Set(['**'])

/** @throws SyntaxError for an invalid or too deeply nested template */
export function parseTemplate(template: string): Block {
  const parser = new Parser(tokenize(template))
  const block = parser.block([])
  return block
}

class Parser {
  readonly #tokens: readonly Token[]
  #at = 0
  #depth = 0

  constructor(tokens: readonly Token[]) {
    this.#tokens = tokens
  }

  /** Statements up to a tag with one of the names, of which the name is read; to the end of the template without names. */
  block(ends: readonly string[]): Block {
    return this.#nested(() => {
      const statements: Statement[] = []
      for (;;) {
        const token = this.#tokens[this.#at]
        if (token === undefined) {
          if (ends.length === 0) return statements
          throw new SyntaxError(`the template ended where {% ${ends.join(' %} or {% ')} %} was expected`)
        }
        this.#at++
        if (token.type === 'text') statements.push({ kind: 'text', text: token.value })
        else if (token.value === '{{') {
          statements.push({ kind: 'print', value: this.#tuple() })
          this.#take('end')
        } else {
          const name = this.#take('name')
          if (ends.includes(name)) return statements
          statements.push(this.#statement(name))
        }
      }
    })
  }

  #statement(name: string): Statement {
    switch (name) {
      case 'for':
        return this.#for()
      case 'if':
        return this.#if()
      case 'set':
        return this.#set()
      case 'macro':
        return this.#macro()
      case 'call': {
        const parameters = this.#is('(') ? this.#parameters() : []
        const call = this.#expression()
        if (call.kind !== 'call') this.#fail('a call')
        return { kind: 'call-block', call, parameters, body: this.#body('endcall') }
      }
      case 'filter': {
        const filter = this.#filters(null, true)
        return { kind: 'filter-block', filter, body: this.#body('endfilter') }
      }
      case 'generation':
        return { kind: 'with', sets: [], body: this.#body('endgeneration') }
      case 'with': {
        const sets: (readonly [Target, Expression])[] = []
        while (!this.#isType('end')) {
          if (sets.length > 0) this.#expect(',')
          const target = this.#target()
          this.#expect('=')
          sets.push([target, this.#expression()])
        }
        return { kind: 'with', sets, body: this.#body('endwith') }
      }
      case 'break':
      case 'continue':
        this.#take('end')
        return { kind: name }
      default:
        throw new SyntaxError(`line ${this.#line}: the tag {% ${name} %} is not supported`)
    }
  }

  /** Body of a statement, of which the head is read except for its end. */
  #body(end: string): Block {
    this.#take('end')
    const body = this.block([end])
    this.#take('end')
    return body
  }

  /** Name of the tag that ended the last block. */
  get #lastName(): string {
    return this.#tokens[this.#at - 1].value
  }

  #for(): Statement {
    const target = this.#target()
    if (!this.#skipName('in')) this.#fail("'in'")
    const items = this.#tuple(() => this.#or(), ['recursive'])
    const test = this.#skipName('if') ? this.#expression() : null
    const isRecursive = this.#skipName('recursive')
    this.#take('end')
    const body = this.block(['endfor', 'else'])
    const otherwise = this.#lastName === 'else' ? this.#body('endfor') : this.#noBlock()
    return { kind: 'for', target, items, test, isRecursive, body, otherwise }
  }

  #noBlock(): Block {
    this.#take('end')
    return []
  }

  #if(): Statement {
    const test = this.#tuple(() => this.#or())
    this.#take('end')
    const yes = this.block(['elif', 'else', 'endif'])
    const end = this.#lastName
    if (end === 'elif') return { kind: 'if', test, yes, no: [this.#nested(() => this.#if())] }
    return { kind: 'if', test, yes, no: end === 'else' ? this.#body('endif') : this.#noBlock() }
  }

  #set(): Statement {
    const target = this.#target(true)
    if (this.#skip('=')) {
      const value = this.#tuple()
      this.#take('end')
      return { kind: 'set', target, value }
    }
    const filter = this.#is('|') ? this.#filters(null, false) : null
    return { kind: 'set-block', target, filter, body: this.#body('endset') }
  }

  #macro(): Statement {
    const name = this.#take('name')
    return { kind: 'macro', name, parameters: this.#parameters(), body: this.#body('endmacro') }
  }

  #parameters(): Parameter[] {
    const parameters: Parameter[] = []
    this.#expect('(')
    while (!this.#is(')')) {
      if (parameters.length > 0) this.#expect(',')
      const name = this.#take('name')
      const value = this.#skip('=') ? this.#expression() : null
      if (value === null && parameters.at(-1)?.default != null) this.#fail('a default value')
      parameters.push({ name, default: value })
    }
    this.#expect(')')
    return parameters
  }

  #target(allowsMembers = false): Target {
    const targets: Target[] = []
    let isTuple = false
    do {
      if (this.#isName('in') || this.#is('=')) break
      targets.push(this.#oneTarget(allowsMembers))
      if (this.#is(',')) isTuple = true
    } while (this.#skip(','))
    if (targets.length === 0) this.#fail('a variable')
    return isTuple ? { kind: 'tuple', items: targets } : targets[0]
  }

  #oneTarget(allowsMembers: boolean): Target {
    if (this.#skip('(')) {
      const target = this.#target()
      this.#expect(')')
      return target
    }
    const name = this.#take('name')
    if (CONSTANTS.has(name)) throw new SyntaxError(`line ${this.#line}: ${name} cannot be set`)
    if (!allowsMembers || !this.#skip('.')) return { kind: 'name', name }
    return { kind: 'member', object: name, name: this.#take('name') }
  }

  #expression(): Expression {
    return this.#nested(() => {
      let value = this.#or()
      while (this.#skipName('if')) {
        const test = this.#or()
        value = { kind: 'choice', test, yes: value, no: this.#skipName('else') ? this.#expression() : null }
      }
      return value
    })
  }

  /** One expression, or a tuple without parentheses. @param ends names that end it */
  #tuple(one: () => Expression = () => this.#expression(), ends: readonly string[] = []): Expression {
    const items = [one()]
    if (!this.#is(',')) return items[0]
    while (this.#skip(',')) {
      if (this.#isType('end') || this.#is(')') || ends.some((name) => this.#isName(name))) break
      items.push(one())
    }
    return { kind: 'tuple', items }
  }

  #or(): Expression {
    let left = this.#and()
    while (this.#skipName('or')) left = { kind: 'binary', operator: 'or', left, right: this.#and() }
    return left
  }

  #and(): Expression {
    let left = this.#not()
    while (this.#skipName('and')) left = { kind: 'binary', operator: 'and', left, right: this.#not() }
    return left
  }

  #not(): Expression {
    if (!this.#skipName('not')) return this.#compare()
    return this.#nested(() => ({ kind: 'unary', operator: 'not', operand: this.#not() }))
  }

  #compare(): Expression {
    const first = this.#sum()
    const rest: Comparison[] = []
    for (;;) {
      const token = this.#tokens[this.#at]
      if (token?.type === 'operator' && COMPARISONS.has(token.value)) {
        this.#at++
        rest.push([token.value, this.#sum()])
      } else if (this.#skipName('in')) rest.push(['in', this.#sum()])
      else if (this.#isName('not') && this.#isName('in', 1)) {
        this.#at += 2
        rest.push(['not in', this.#sum()])
      } else return rest.length === 0 ? first : { kind: 'compare', first, rest }
    }
  }

  #sum(): Expression {
    return this.#binary(SUMS, () => this.#concat())
  }

  #concat(): Expression {
    const product = () => this.#binary(PRODUCTS, () => this.#binary(POWERS, () => this.#unary()))
    const items = [product()]
    while (this.#skip('~')) items.push(product())
    return items.length === 1 ? items[0] : { kind: 'concat', items }
  }

  #binary(operators: ReadonlySet<string>, operand: () => Expression): Expression {
    let left = operand()
    for (;;) {
      const token = this.#tokens[this.#at]
      if (token?.type !== 'operator' || !operators.has(token.value)) return left
      this.#at++
      left = { kind: 'binary', operator: token.value, left, right: operand() }
    }
  }

  #unary(takesFilters = true): Expression {
    return this.#nested(() => {
      const token = this.#tokens[this.#at]
      const isSigned = token?.type === 'operator' && SUMS.has(token.value)
      if (isSigned) this.#at++
      const value: Expression = isSigned
        ? { kind: 'unary', operator: token.value, operand: this.#unary(false) }
        : this.#primary()
      const whole = this.#postfix(value)
      return takesFilters ? this.#filters(whole, false) : whole
    })
  }

  #primary(): Expression {
    const token = this.#tokens[this.#at++]
    switch (token?.type) {
      case 'name': {
        const constant = CONSTANTS.get(token.value)
        return constant === undefined
          ? { kind: 'name', name: token.value }
          : { kind: 'constant', value: constant }
      }
      case 'string': {
        let value = token.value
        while (this.#isType('string')) value += this.#take('string')
        return { kind: 'constant', value }
      }
      case 'integer':
        return { kind: 'constant', value: toInteger(BigInt(token.value.replaceAll('_', ''))) }
      case 'float':
        return { kind: 'constant', value: { float: Number(token.value.replaceAll('_', '')) } }
      case 'operator':
        if (token.value === '(') return this.#parentheses()
        if (token.value === '[') return { kind: 'list', items: this.#items(']', () => this.#expression()) }
        if (token.value === '{') return { kind: 'mapping', entries: this.#items('}', () => this.#entry()) }
    }
    this.#at--
    return this.#fail('an expression')
  }

  #parentheses(): Expression {
    if (this.#skip(')')) return { kind: 'tuple', items: [] }
    const value = this.#tuple()
    this.#expect(')')
    return value
  }

  #items<T>(end: string, one: () => T): T[] {
    const items: T[] = []
    while (!this.#skip(end)) {
      if (items.length > 0) {
        this.#expect(',')
        if (this.#skip(end)) break
      }
      items.push(one())
    }
    return items
  }

  #entry(): readonly [Expression, Expression] {
    const key = this.#expression()
    this.#expect(':')
    return [key, this.#expression()]
  }

  #postfix(value: Expression): Expression {
    let whole = value
    for (;;) {
      if (this.#skip('.')) {
        const token = this.#tokens[this.#at++]
        if (token?.type === 'name') whole = { kind: 'attribute', object: whole, name: token.value }
        else if (token?.type === 'integer')
          whole = { kind: 'item', object: whole, key: { kind: 'constant', value: Number(token.value) } }
        else this.#fail('the name of a member')
      } else if (this.#skip('[')) whole = this.#subscript(whole)
      else if (this.#is('(')) whole = { kind: 'call', callee: whole, args: this.#arguments() }
      else return whole
    }
  }

  #subscript(object: Expression): Expression {
    const bounds: (Expression | null)[] = []
    let isSlice = false
    let pending: Expression | null = null
    while (!this.#skip(']')) {
      if (this.#skip(':')) {
        isSlice = true
        bounds.push(pending)
        pending = null
      } else if (pending === null) pending = this.#tuple()
      else this.#fail("']'")
    }
    if (isSlice) return { kind: 'slice', object, bounds: [...bounds, pending] }
    return pending === null ? this.#fail('a key') : { kind: 'item', object, key: pending }
  }

  /** Filters and tests of a value. @param startsInline the first filter has no `|` before it */
  #filters(value: Expression | null, startsInline: boolean): Expression {
    let whole = value
    let isInline = startsInline
    for (;;) {
      if (isInline || this.#skip('|')) {
        isInline = false
        const name = this.#dottedName()
        whole = {
          kind: 'filter',
          name,
          operand: whole,
          args: this.#is('(') ? this.#arguments() : NO_ARGUMENTS,
        }
      } else if (whole === null) return this.#fail('a filter')
      else if (this.#skipName('is')) whole = this.#test(whole)
      else if (this.#is('(')) whole = { kind: 'call', callee: whole, args: this.#arguments() }
      else return whole
    }
  }

  #dottedName(): string {
    let name = this.#take('name')
    while (this.#skip('.')) name += `.${this.#take('name')}`
    return name
  }

  #test(operand: Expression): Expression {
    const isNegated = this.#skipName('not')
    const name = this.#dottedName()
    let args = NO_ARGUMENTS
    if (this.#is('(')) args = this.#arguments()
    else if (this.#startsOperand()) args = { ...NO_ARGUMENTS, places: [this.#postfix(this.#primary())] }
    const test: Expression = { kind: 'test', name, operand, args }
    return isNegated ? { kind: 'unary', operator: 'not', operand: test } : test
  }

  #startsOperand(): boolean {
    const { type, value } = this.#tokens[this.#at] ?? {}
    if (type === 'name') return !['else', 'or', 'and', 'is', 'if', 'not', 'in'].includes(value)
    return (
      type === 'string' ||
      type === 'integer' ||
      type === 'float' ||
      (type === 'operator' && '[{'.includes(value))
    )
  }

  #arguments(): Arguments {
    this.#expect('(')
    const places: Expression[] = []
    const names: (readonly [string, Expression])[] = []
    let spread: Expression | null = null
    let spreadNames: Expression | null = null
    let isFirst = true
    while (!this.#skip(')')) {
      if (!isFirst) {
        this.#expect(',')
        if (this.#skip(')')) break
      }
      isFirst = false
      if (this.#skip('**')) spreadNames = this.#expression()
      else if (this.#skip('*')) spread = this.#expression()
      else if (this.#isType('name') && this.#is('=', 1)) {
        const name = this.#take('name')
        if (names.some(([known]) => known === name)) this.#fail('another name')
        this.#expect('=')
        names.push([name, this.#expression()])
      } else if (names.length > 0 || spread !== null || spreadNames !== null) this.#fail('a named argument')
      else places.push(this.#expression())
    }
    return { places, names, spread, spreadNames }
  }

  #nested<T>(parse: () => T): T {
    if (++this.#depth > MAX_DEPTH) throw new SyntaxError('the template is nested too deeply')
    const value = parse()
    this.#depth--
    return value
  }

  #isType(type: TokenType): boolean {
    return this.#tokens[this.#at]?.type === type
  }

  #is(operator: string, ahead = 0): boolean {
    const token = this.#tokens[this.#at + ahead]
    return token?.type === 'operator' && token.value === operator
  }

  #isName(name: string, ahead = 0): boolean {
    const token = this.#tokens[this.#at + ahead]
    return token?.type === 'name' && token.value === name
  }

  #skip(operator: string): boolean {
    const isThere = this.#is(operator)
    if (isThere) this.#at++
    return isThere
  }

  #skipName(name: string): boolean {
    const isThere = this.#isName(name)
    if (isThere) this.#at++
    return isThere
  }

  #expect(operator: string): void {
    if (!this.#skip(operator)) this.#fail(`'${operator}'`)
  }

  #take(type: TokenType): string {
    if (!this.#isType(type)) this.#fail(type === 'end' ? 'the end of the tag' : `a ${type}`)
    return this.#tokens[this.#at++].value
  }

  get #line(): number {
    return (this.#tokens[this.#at] ?? this.#tokens.at(-1))?.line ?? 1
  }

  #fail(expected: string): never {
    const token = this.#tokens[this.#at]
    const found = token === undefined || token.type === 'end' ? 'the end' : JSON.stringify(token.value)
    throw new SyntaxError(`line ${this.#line}: expected ${expected}, got ${found}`)
  }
}

function toInteger(value: bigint): number | bigint {
  const number = Number(value)
  return Number.isSafeInteger(number) ? number : value
}
