/** A tokenizer's chat templates, compiled once: chooses the one that fits a request and renders it. @source grpc facts 6.2 */
import { Environment } from '@huggingface/jinja'
import type { ChatPrompt, ContentFormat, SpecialTokens } from '#contracts'
import { type MessageForm, toTemplateMessages } from './chat-values.ts'
import { detectContentFormat } from './content-format.ts'
import { formatTime } from './format-time.ts'
import { type Program, parseTemplate, REWRITE_FUNCTIONS } from './rewrite-template.ts'
import { TemplateRefusal } from './template-functions.ts'
import { TemplateInterpreter } from './template-interpreter.ts'
import {
  type EngineValue,
  isString,
  toArrayValue,
  toFunctionValue,
  toIntegerValue,
  toStringValue,
  type Value,
} from './template-values.ts'

/** Numbers of one `range()`, as Python's sandbox allows. */
const MAX_RANGE = 100_000
/** Variables that a client may not set: the engine would be told twice. */
const RESERVED = new Set(['messages', 'true', 'false', 'none', 'True', 'False', 'None'])

const CONSTANTS: Readonly<Record<string, unknown>> = {
  true: true,
  True: true,
  false: false,
  False: false,
  none: null,
  None: null,
}

/** A word that no template has. */
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
  readonly program: Program
  readonly form: MessageForm
}

export class ChatTemplates {
  readonly #sources: ReadonlyMap<string, string>
  readonly #compiled = new Map<string, CompiledTemplate>()
  readonly #functions = new Environment()
  /** Constants and special tokens: the same for each prompt. */
  readonly #constants = new Environment(this.#functions)

  /** @param now of the clock that templates see */
  constructor(
    sources: ReadonlyMap<string, string>,
    special: SpecialTokens,
    now: () => Date = () => new Date(),
  ) {
    this.#sources = sources
    const functions: readonly (readonly [string, Value])[] = [
      ...REWRITE_FUNCTIONS,
      ['raise_exception', toFunctionValue(([message]) => refuse(message))],
      [
        'strftime_now',
        toFunctionValue(([format]) => toStringValue(formatTime(String(format?.value), now()))),
      ],
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

  /** Compiles all. @throws SyntaxError naming the one that is no template */
  check(): void {
    for (const name of this.#sources.keys()) {
      try {
        this.#compile(name)
      } catch (cause) {
        throw new SyntaxError(`the chat template '${name}' cannot be read: ${(cause as Error).message}`, {
          cause,
        })
      }
    }
  }

  /** @throws TemplateRefusal with a message for the client */
  render(prompt: ChatPrompt): string {
    const { tools, continueFinalMessage = false } = prompt
    if (this.#sources.size === 0) throw new TemplateRefusal('the tokenizer has no chat template')
    const hasTools = tools !== undefined && tools.length > 0
    const { program, form } = this.#compile(this.#nameFor(hasTools))
    const messages = toTemplateMessages(prompt.messages, form)
    const beginning = continueFinalMessage ? takeBeginning(messages) : ''
    return this.#run(program, this.#variables(prompt, messages)) + beginning
  }

  /** Most templates write the values of arguments themselves; some want the text as it came. */
  #takesValues(program: Program): boolean {
    const renders = (given: unknown) => {
      const messages = PROBE_CALL(given)
      try {
        return this.#run(program, this.#variables({ messages }, messages)) !== ''
      } catch {
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
    // Absent ones are none and not undefined: templates are written against a renderer that passes them so.
    variables.set('tools', tools !== undefined && tools.length > 0 ? tools : null)
    variables.set('documents', documents ?? null)
    for (const [name, value] of Object.entries(templateKwargs ?? {}))
      if (!RESERVED.has(name) && !name.startsWith('weir_')) variables.set(name, value)
    return variables
  }

  #run(program: Program, variables: ReadonlyMap<string, unknown>): string {
    try {
      const environment = new Environment(this.#constants)
      for (const [name, value] of variables)
        if (!this.#functions.variables.has(name)) environment.set(name, value)
      const text = new TemplateInterpreter(environment).run(program)
      return isString(text) ? text.value : ''
    } catch (cause) {
      if (cause instanceof TemplateRefusal) throw cause
      throw new TemplateRefusal(cause instanceof Error ? cause.message : String(cause), { cause })
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
    const program = parseTemplate(source)
    const isForParts = detectContentFormat(source) === 'parts' && this.#takesParts(program)
    const form: MessageForm = {
      content: isForParts ? 'parts' : 'string',
      toolArguments: this.#takesValues(program) ? 'value' : 'text',
    }
    const compiled: CompiledTemplate = { program, form }
    this.#compiled.set(name, compiled)
    return compiled
  }

  /** Templates that go through the content of some messages may still want that of the user as one string. */
  #takesParts(program: Program): boolean {
    const message = { role: 'user', content: [{ type: 'text', text: PROBE }] }
    try {
      const text = this.#run(program, this.#variables({ messages: [message] }, [message]))
      return text.includes(PROBE) && !/["']type["']\s*:\s*["']text["']/.test(text)
    } catch {
      return false
    }
  }
}

/** Takes the last message away and gives its text, which the prompt ends with. */
function takeBeginning(messages: Readonly<Record<string, unknown>>[]): string {
  const last = messages.at(-1)
  if (last?.role !== 'assistant' || last.tool_calls !== undefined)
    throw new TemplateRefusal('continue_final_message needs an assistant message with text at the end')
  messages.pop()
  const { content } = last
  if (typeof content === 'string') return content
  if (!Array.isArray(content)) throw new TemplateRefusal('the final message has no text to continue')
  return content.map((part) => String((part as { text?: unknown }).text ?? '')).join('')
}

function refuse(message: Value | undefined): never {
  throw new TemplateRefusal(isString(message) ? message.value : 'no reason given')
}

function range(args: readonly Value[]): Value {
  const numbers = args.map(({ value }) => Number(value))
  const [start, stop] = numbers.length > 1 ? numbers : [0, numbers[0]]
  const step = numbers[2] ?? 1
  const size = Math.max(0, Math.ceil((stop - start) / step))
  if (!(size <= MAX_RANGE)) throw new TemplateRefusal('range() is too long')
  return toArrayValue(Array.from({ length: size }, (_, place) => toIntegerValue(start + place * step)))
}
