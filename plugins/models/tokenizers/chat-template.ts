/** The chat templates of a tokenizer, compiled once: selects the template of a request and renders it. */
import { Environment } from '@huggingface/jinja'
import type { ChatPrompt, ContentFormat, SpecialTokens } from '#kernel'
import { type MessageForm, toTemplateMessages } from './chat-values.ts'
import { detectContentFormat } from './content-format.ts'
import { formatTime } from './format-time.ts'
import {
  DEFAULT_LIMITS,
  RenderLimitExceeded,
  type RenderLimits,
  spendSteps,
  withBudget,
} from './render-budget.ts'
import { TemplateInterpreter } from './template-interpreter.ts'
import { compileTemplate, type Program } from './template-program.ts'
import {
  type EngineValue,
  isString,
  TemplateError,
  toArrayValue,
  toFunctionValue,
  toIntegerValue,
  toStringValue,
  type Value,
} from './template-values.ts'

/** Maximum length of a `range()`, as in Jinja2's sandbox. */
const MAX_RANGE = 100_000
/** Characters of a refusal, which is part of an error message, and of a format of `strftime_now`. */
const MAX_MESSAGE = 2_000
const MAX_FORMAT = 1_000
/** Variables that a client may not set, because the gateway sets them. */
const RESERVED = new Set(['messages', 'true', 'false', 'none', 'True', 'False', 'None'])

const CONSTANTS: Readonly<Record<string, unknown>> = {
  true: true,
  True: true,
  false: false,
  False: false,
  none: null,
  None: null,
}

/** A word that occurs in no template. */
const PROBE = 'weir-probe-text'

const PROBE_CALL = (given: unknown) => [
  { role: 'user', content: PROBE },
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'abcdefghi', type: 'function', function: { name: 'probe', arguments: given } }],
  },
]

interface CompiledTemplate {
  readonly name: string
  readonly program: Program
  readonly form: MessageForm
}

type TrialTemplate = Pick<CompiledTemplate, 'name' | 'program'>

export interface ChatTemplateOptions {
  /** Limits of each rendering, and of the check of all templates together. */
  readonly limits?: RenderLimits
  /** Clock of the templates. */
  readonly now?: () => Date
  /** Forms by template that a check found on another thread. Default: found by trials. */
  readonly forms?: ReadonlyMap<string, MessageForm>
}

export class ChatTemplates {
  readonly #sources: ReadonlyMap<string, string>
  readonly #limits: RenderLimits
  readonly #compiled = new Map<string, CompiledTemplate>()
  readonly #forms: ReadonlyMap<string, MessageForm>
  readonly #functions = new Environment()
  /** Constants and special tokens: the same for each prompt. */
  readonly #constants = new Environment(this.#functions)

  constructor(
    sources: ReadonlyMap<string, string>,
    special: SpecialTokens,
    { limits = DEFAULT_LIMITS, now = () => new Date(), forms = new Map() }: ChatTemplateOptions = {},
  ) {
    this.#sources = sources
    this.#limits = limits
    this.#forms = forms
    const functions: readonly (readonly [string, Value])[] = [
      ['raise_exception', toFunctionValue(([message]) => refuse(message))],
      ['strftime_now', toFunctionValue(([format]) => toStringValue(formatTime(toFormat(format), now())))],
      ['range', toFunctionValue(range)],
    ]
    for (const [name, call] of functions) this.#functions.setVariable(name, call as EngineValue)
    for (const [name, value] of Object.entries(CONSTANTS)) this.#constants.set(name, value)
    const { bos, eos, unk, pad } = special
    for (const [name, token] of Object.entries({ bos, eos, unk, pad }))
      if (token !== null) this.#constants.set(`${name}_token`, token)
  }

  /** Of the template for chats without tools. */
  get contentFormat(): ContentFormat {
    return this.#sources.size === 0 ? 'string' : this.#compile(this.#nameFor(false)).form.content
  }

  /** Forms by name of the templates compiled so far; of all after `check`. */
  get forms(): ReadonlyMap<string, MessageForm> {
    return new Map([...this.#compiled.values()].map(({ name, form }) => [name, form]))
  }

  /**
   * Compiles all templates, which renders each with a short chat.
   * @throws SyntaxError for an invalid template; RenderLimitExceeded for one that exceeds a limit
   */
  check(): void {
    withBudget(this.#limits, () => this.#compileAll())
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
    const { tools, continueFinalMessage = false } = prompt
    if (this.#sources.size === 0) throw new TemplateError('the tokenizer has no chat template')
    const hasTools = tools !== undefined && tools.length > 0
    const compiled = this.#compile(this.#nameFor(hasTools))
    const messages = toTemplateMessages(prompt.messages, compiled.form)
    const beginning = continueFinalMessage ? takeBeginning(messages) : ''
    return this.#run(compiled, this.#variables(prompt, messages)) + beginning
  }

  /** Most templates serialize the arguments of calls; some expect the JSON text. */
  #takesValues(template: TrialTemplate): boolean {
    const renders = (given: unknown) => {
      const messages = PROBE_CALL(given)
      try {
        return this.#run(template, this.#variables({ messages }, messages)) !== ''
      } catch (error) {
        if (error instanceof RenderLimitExceeded) throw error
        return false
      }
    }
    return renders({ city: PROBE }) || !renders(`{"city": "${PROBE}"}`)
  }

  #variables(prompt: ChatPrompt, messages: readonly unknown[]): ReadonlyMap<string, unknown> {
    const { tools, documents, templateKwargs, continueFinalMessage = false } = prompt
    const variables = new Map<string, unknown>()
    variables.set('messages', messages)
    variables.set('add_generation_prompt', continueFinalMessage || (prompt.addGenerationPrompt ?? true))
    // Missing tools and documents are none, not undefined, as in transformers.
    variables.set('tools', tools !== undefined && tools.length > 0 ? tools : null)
    variables.set('documents', documents ?? null)
    for (const [name, value] of Object.entries(templateKwargs ?? {}))
      if (!RESERVED.has(name)) variables.set(name, value)
    return variables
  }

  #run({ name, program }: TrialTemplate, variables: ReadonlyMap<string, unknown>): string {
    try {
      const environment = new Environment(this.#constants)
      for (const [name, value] of variables)
        if (!this.#functions.variables.has(name)) environment.set(name, value)
      const text = withBudget(this.#limits, () => new TemplateInterpreter(environment).run(program))
      return isString(text) ? text.value : ''
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
    const source = this.#sources.get(name) ?? ''
    const program = compileTemplate(source)
    const form = this.#forms.get(name) ?? this.#tryForm(source, { name, program })
    const compiled: CompiledTemplate = { name, program, form }
    this.#compiled.set(name, compiled)
    return compiled
  }

  #tryForm(source: string, trial: TrialTemplate): MessageForm {
    const isForParts = detectContentFormat(source) === 'parts' && this.#takesParts(trial)
    return {
      content: isForParts ? 'parts' : 'string',
      toolArguments: this.#takesValues(trial) ? 'value' : 'text',
    }
  }

  /** Templates that iterate over the content of some messages may still expect the user's as one string. */
  #takesParts(template: TrialTemplate): boolean {
    const message = { role: 'user', content: [{ type: 'text', text: PROBE }] }
    try {
      const text = this.#run(template, this.#variables({ messages: [message] }, [message]))
      return text.includes(PROBE) && !/["']type["']\s*:\s*["']text["']/.test(text)
    } catch (error) {
      if (error instanceof RenderLimitExceeded) throw error
      return false
    }
  }
}

/** Removes the last message and returns its text, which ends the prompt. */
function takeBeginning(messages: Readonly<Record<string, unknown>>[]): string {
  const last = messages.at(-1)
  if (last?.role !== 'assistant' || last.tool_calls !== undefined)
    throw new TemplateError(
      'continue_final_message requires that the last message is an assistant message with text',
    )
  messages.pop()
  const { content } = last
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) throw new TemplateError('the final message has no text to continue')
  return content.map((part) => String((part as { text?: unknown }).text ?? '')).join('')
}

function refuse(message: Value | undefined): never {
  throw new TemplateError(isString(message) ? message.value : 'no reason given')
}

function toFormat(format: Value | undefined): string {
  const text = String(format?.value)
  if (text.length > MAX_FORMAT) throw new TemplateError('the format of strftime_now() is too long')
  return text
}

function range(args: readonly Value[]): Value {
  const numbers = args.map(({ value }) => Number(value))
  const [start, stop] = numbers.length > 1 ? numbers : [0, numbers[0]]
  const step = numbers[2] ?? 1
  const size = Math.max(0, Math.ceil((stop - start) / step))
  if (!(size <= MAX_RANGE)) throw new TemplateError('range() is too long')
  spendSteps(size / 4)
  return toArrayValue(Array.from({ length: size }, (_, place) => toIntegerValue(start + place * step)))
}
