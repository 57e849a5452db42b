/** The chat templates of a tokenizer, compiled once: selects the template of a request and renders it. */
import { randomUUID } from 'node:crypto'
import type { ChatPrompt, ContentFormat, SpecialTokens } from '#kernel'
import { toTemplateMessages } from './chat-values.ts'
import { formatTime } from './format-time.ts'
import { compileTemplate, type Render } from './jinja/compile-template.ts'
import { parseJson } from './jinja/parse-json.ts'
import {
  fromJson,
  integerOf,
  isText,
  type Mapping,
  type Names,
  Namespace,
  Range,
  TemplateError,
  textOf,
  type Value,
} from './jinja/values.ts'
import { examineTemplate, refusesAll, type TemplateReport } from './message-form.ts'
import { DEFAULT_LIMITS, RenderLimitExceeded, type RenderLimits, withBudget } from './render-budget.ts'

/** Maximum length of a `range()`, as in Jinja2's sandbox. */
const MAX_RANGE = 100_000
/** Characters of a refusal, which is part of an error message, and of a format of `strftime_now`. */
const MAX_MESSAGE = 2_000
const MAX_FORMAT = 1_000
/** Variables that a client may not set, because the gateway sets them. */
const RESERVED = new Set(['messages', 'raise_exception', 'strftime_now', 'range', 'namespace', 'dict'])

/** Follows the text to be continued while it is rendered; its space is missing where a template trims the message. */
const END_TAG = `${randomUUID()}-end`

interface CompiledTemplate {
  readonly name: string
  readonly render: Render
  readonly report: TemplateReport
}

export interface ChatTemplateOptions {
  /** Limits of each rendering, and of the check of all templates together. */
  readonly limits?: RenderLimits
  /** Clock of the templates. */
  readonly now?: () => Date
  /** Reports by template of a check on another thread. Default: found by trials. */
  readonly reports?: ReadonlyMap<string, TemplateReport>
}

export class ChatTemplates {
  readonly #sources: ReadonlyMap<string, string>
  readonly #limits: RenderLimits
  readonly #compiled = new Map<string, CompiledTemplate>()
  readonly #reports: ReadonlyMap<string, TemplateReport>
  /** Functions and special tokens: the same for each prompt. */
  readonly #globals: ReadonlyMap<string, Value>

  constructor(
    sources: ReadonlyMap<string, string>,
    special: SpecialTokens,
    { limits = DEFAULT_LIMITS, now = () => new Date(), reports = new Map() }: ChatTemplateOptions = {},
  ) {
    this.#sources = sources
    this.#limits = limits
    this.#reports = reports
    const { bos, eos, unk, pad } = special
    const tokens = Object.entries({ bos_token: bos, eos_token: eos, unk_token: unk, pad_token: pad })
    this.#globals = new Map<string, Value>([
      ...tokens.filter((entry): entry is [string, string] => entry[1] !== null),
      ['raise_exception', ([message]) => refuse(message)],
      ['strftime_now', ([format]) => formatTime(toFormat(format), now())],
      ['range', range],
      ['namespace', namespace],
      ['dict', (places, names) => membersOf(places, names)],
    ])
  }

  /** Of the template for chats without tools. */
  get contentFormat(): ContentFormat {
    return this.#sources.size === 0 ? 'string' : this.#compile(this.#nameFor(false)).report.form.content
  }

  /** Reports by name of the templates compiled so far; of all after `check`. */
  get reports(): ReadonlyMap<string, TemplateReport> {
    return new Map([...this.#compiled.values()].map(({ name, report }) => [name, report]))
  }

  /**
   * Compiles all templates, and renders trial conversations with each.
   * @throws SyntaxError for an invalid template, and if all refuse every conversation; RenderLimitExceeded for one that
   * exceeds a limit
   */
  check(): void {
    withBudget(this.#limits, () => this.#compileAll())
    const compiled = [...this.#compiled.values()]
    if (compiled.length === 0 || !compiled.every(({ report }) => refusesAll(report))) return
    const [{ name, report }] = compiled
    throw new SyntaxError(
      `the chat template '${name}' refuses every conversation: ${report.refused[0].reason}`,
    )
  }

  #compileAll(): void {
    for (const name of this.#sources.keys()) {
      try {
        this.#compile(name)
      } catch (cause) {
        if (cause instanceof RenderLimitExceeded) throw cause
        throw new SyntaxError(`the chat template '${name}' is invalid: ${(cause as Error).message}`, {
          cause,
        })
      }
    }
  }

  /** @throws TemplateError, RenderLimitExceeded: both with a message for the client */
  render(prompt: ChatPrompt): string {
    const { tools, documents, templateKwargs, continueFinalMessage = false } = prompt
    if (this.#sources.size === 0) throw new TemplateError('the tokenizer has no chat template')
    const hasTools = tools !== undefined && tools.length > 0
    const { name, render, report } = this.#compile(this.#nameFor(hasTools))
    const messages = toTemplateMessages(prompt.messages, report.form)
    const beginning = continueFinalMessage ? markEnd(messages) : null
    const variables = new Map<string, Value>()
    // Missing tools and documents are none, not undefined, as in transformers.
    variables.set('tools', hasTools ? tools.map(toDeclared) : null)
    variables.set('documents', documents?.map(toDeclared) ?? null)
    variables.set('add_generation_prompt', !continueFinalMessage && (prompt.addGenerationPrompt ?? true))
    for (const [key, value] of Object.entries(templateKwargs ?? {}))
      if (!RESERVED.has(key)) variables.set(key, fromJson(value))
    variables.set('messages', messages)
    const text = this.#run(name, render, variables)
    return beginning === null ? text : cutAtEnd(text, beginning)
  }

  #run(name: string, render: Render, variables: Map<string, Value>): string {
    try {
      return withBudget(this.#limits, () => render(variables, this.#globals))
    } catch (cause) {
      const message = cause instanceof Error ? cause.message : String(cause)
      if (cause instanceof RenderLimitExceeded)
        throw new RenderLimitExceeded(`the chat template '${name}' needs more than ${message}`, { cause })
      throw new TemplateError(message.slice(0, MAX_MESSAGE), { cause })
    }
  }

  #nameFor(hasTools: boolean): string {
    if (hasTools && this.#sources.has('tool_use')) return 'tool_use'
    if (this.#sources.has('default')) return 'default'
    const [first = ''] = this.#sources.keys()
    return first
  }

  #compile(name: string): CompiledTemplate {
    const known = this.#compiled.get(name)
    if (known !== undefined) return known
    const render = compileTemplate(this.#sources.get(name) ?? '')
    const report =
      this.#reports.get(name) ??
      examineTemplate((variables) => this.#run(name, render, new Map(Object.entries(variables))))
    const compiled: CompiledTemplate = { name, render, report }
    this.#compiled.set(name, compiled)
    return compiled
  }
}

/** Marks the end of the last message's text. @returns the text */
function markEnd(messages: readonly Mapping[]): string {
  const last = messages.at(-1)
  const content = last?.get('content')
  if (
    last?.get('role') !== 'assistant' ||
    last.has('tool_calls') ||
    content === undefined ||
    content === null
  )
    throw new TemplateError(
      'continue_final_message requires that the last message is an assistant message with text',
    )
  if (isText(content)) {
    last.set('content', `${textOf(content)}${END_TAG} `)
    return textOf(content)
  }
  const parts = Array.isArray(content) ? content.filter((part): part is Mapping => part instanceof Map) : []
  const part = parts.findLast((candidate) => isText(candidate.get('text')))
  if (part === undefined) throw new TemplateError('the final message has no text to continue')
  const text = textOf(part.get('text'))
  part.set('text', `${text}${END_TAG} `)
  return text
}

/** The prompt up to the end of the last message's text, as transformers cuts it. */
function cutAtEnd(prompt: string, beginning: string): string {
  const at = prompt.lastIndexOf(END_TAG)
  if (at < 0 || !prompt.includes(beginning.trim()))
    throw new TemplateError(
      'the chat template does not show the final message, so that it cannot be continued',
    )
  const text = prompt.slice(0, at)
  return prompt[at + END_TAG.length] === ' ' ? text : text.trimEnd()
}

/** A tool or a document: an object, or its JSON text. */
const toDeclared = (given: unknown): Value => (typeof given === 'string' ? parseJson(given) : fromJson(given))

function refuse(message: Value | undefined): never {
  throw new TemplateError(isText(message) ? textOf(message) : 'no reason given')
}

function toFormat(format: Value | undefined): string {
  const text = textOf(format)
  if (text.length > MAX_FORMAT) throw new TemplateError('the format of strftime_now() is too long')
  return text
}

function range(places: readonly Value[]): Value {
  const numbers = places.map(integerOf)
  const [start, stop] = numbers.length > 1 ? numbers : [0, numbers[0]]
  const step = numbers[2] ?? 1
  if (step === 0) throw new TemplateError('range() arg 3 must not be zero')
  const value = new Range(start, stop, step)
  if (!(value.length <= MAX_RANGE)) throw new TemplateError('range() is too long')
  return value
}

/** Members of a mapping or of pairs, and of named arguments. */
function membersOf([given]: readonly Value[], names: Names): Mapping {
  const members: Mapping = new Map()
  if (given instanceof Map) for (const [key, value] of given) members.set(key, value)
  else if (given !== undefined) throw new TemplateError('a mapping is expected')
  for (const [name, value] of names) members.set(name, value)
  return members
}

function namespace(places: readonly Value[], names: Names): Value {
  const members = new Map<string, Value>()
  for (const [key, value] of membersOf(places, names)) {
    if (!isText(key) || textOf(key).startsWith('_'))
      throw new TemplateError('the names of a namespace are texts that do not begin with _')
    members.set(textOf(key), value)
  }
  return new Namespace(members)
}
