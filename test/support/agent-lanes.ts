/**
 * Workers of four kinds that play one scripted model, for agents whose requests the gateway translates: chat completions with
 * the rules of a strict chat template, Responses, Messages, and tokens over gRPC.
 */
import { readFileSync } from 'node:fs'
import { toByteLetters } from '../../plugins/models/tokenizers/byte-letters.ts'
import { CHAT, chatAnswer } from './chat-script.ts'
import { MESSAGES, messageSays } from './messages-script.ts'
import { NATIVE, nativeAnswer, text as textItem } from './responses-script.ts'
import { startScriptedEngine } from './scripted-engine.ts'
import {
  type Answer,
  jsonAnswer,
  type RecordedRequest,
  type Script,
  type ScriptedWorker,
  startScriptedWorker,
} from './scripted-worker.ts'

export const MODEL = 'test-model'
/** A name by which Codex offers a custom tool and searches for deferred ones. */
export const CODEX_MODEL = 'gpt-5.5'

/** What one model call generates. */
export interface ModelTurn {
  readonly text?: string
  readonly call?: { readonly name: string; readonly input: object }
}

/** A request as the worker got it. */
export interface ModelRequest {
  /** Names of the functions that it offers. */
  readonly tools: readonly string[]
  /** The whole request, or the prompt of a gRPC engine. */
  readonly text: string
}

/** Turns in order; requests without tools are side requests of agents, or summaries, and get `sideText`. */
export class ScriptedModel {
  readonly requests: ModelRequest[] = []
  readonly sideText: string
  #turns: ((request: ModelRequest) => ModelTurn)[] = []
  #calls = 0

  constructor(sideText: string) {
    this.sideText = sideText
  }

  /** Sets the turns of the next task. */
  plays(...turns: (ModelTurn | ((request: ModelRequest) => ModelTurn))[]): void {
    this.#turns = turns.map((turn) => (typeof turn === 'function' ? turn : () => turn))
  }

  answer(request: ModelRequest): ModelTurn {
    this.requests.push(request)
    if (request.tools.length === 0) return { text: this.sideText }
    return this.#turns.shift()?.(request) ?? { text: 'The script has no more turns.' }
  }

  nextId(): string {
    return `call_${++this.#calls}`
  }
}

const CARD = { id: MODEL, aliases: [CODEX_MODEL] }

export interface Lane {
  /** Worker of the gateway's configuration. */
  readonly worker: Record<string, unknown>
  /** Plugins that it needs. */
  readonly plugins: Record<string, unknown>
  close(): Promise<void>
}

export type LaneName = 'chat with a strict template' | 'responses' | 'messages' | 'gRPC'

export const LANES: Readonly<Record<LaneName, (model: ScriptedModel) => Promise<Lane>>> = {
  'chat with a strict template': (model) =>
    openHttpLane({}, CHAT, (request) => {
      const body = request.json() as ChatBody
      const fault = templateFault(body.messages)
      if (fault !== null) return jsonAnswer({ error: { message: fault, code: 400 } }, { status: 400 })
      const turn = model.answer({
        tools: (body.tools ?? []).map((tool) => tool.function.name),
        text: request.body.toString(),
      })
      return run(
        chatAnswer({
          content: turn.text ?? null,
          tool_calls: turn.call && [callOf(turn.call, model.nextId())],
        }),
        request,
      )
    }),
  responses: (model) =>
    openHttpLane({ apis: ['responses'] }, NATIVE, (request) => {
      const body = request.json() as NativeBody
      // The gateway looks whether the route exists.
      if (body.input === undefined) return jsonAnswer({ error: { message: 'no input' } }, { status: 400 })
      const tools = declaredTools(body)
      const { text, call } = model.answer({ tools: [...tools.keys()], text: request.body.toString() })
      const output: Record<string, unknown>[] = text === undefined ? [] : [textItem(text)]
      if (call !== undefined) output.push(toItem(call, tools, model.nextId()))
      return run(nativeAnswer({ output }), request)
    }),
  messages: (model) =>
    openHttpLane(
      { apis: ['messages'], runtime_type: 'external', provider: 'anthropic', api_key: 'vendor-key' },
      MESSAGES,
      (request) => {
        const { tools } = request.json() as { tools?: { name: string; defer_loading?: boolean }[] }
        const { text, call } = model.answer({
          tools: (tools ?? []).map(({ name }) => name),
          text: request.body.toString(),
        })
        return run(messageSays({ text, call: call && { id: `toolu_${model.nextId()}`, ...call } }), request)
      },
    ),
  gRPC: openGrpcLane,
}

interface ChatBody {
  readonly messages: readonly ChatMessage[]
  readonly tools?: readonly { readonly function: { readonly name: string } }[]
}

interface ChatMessage {
  readonly role: string
  readonly tool_calls?: readonly unknown[]
}

/** Rules of the strictest templates: one system message in front, then user and assistant in turn. */
function templateFault(messages: readonly ChatMessage[]): string | null {
  let last = 'assistant'
  for (const [index, { role, tool_calls: calls }] of messages.entries()) {
    if (role === 'system') {
      if (index > 0) return `System message must be at the beginning, not at ${index}.`
      continue
    }
    if (role === 'tool') {
      if (last !== 'calls' && last !== 'tool') return `message ${index}: a result without a call`
      last = 'tool'
      continue
    }
    if (role !== 'user' && role !== 'assistant') return `message ${index}: unexpected role ${role}`
    if (role === 'user' && last === 'user')
      return `Conversation roles must alternate user/assistant (message ${index}).`
    if (role === 'user' && last === 'calls') return `message ${index}: a call has no result`
    last = role === 'assistant' && calls !== undefined ? 'calls' : role
  }
  return null
}

function callOf({ name, input }: NonNullable<ModelTurn['call']>, id: string) {
  return { id, name, arguments: JSON.stringify(input) }
}

interface NativeTool {
  readonly type: string
  readonly name?: string
  /** Of a namespace. */
  readonly tools?: readonly NativeTool[]
}

interface NativeBody {
  readonly tools?: readonly NativeTool[]
  readonly input?: readonly { readonly type?: string; readonly tools?: readonly NativeTool[] }[]
}

interface DeclaredTool {
  readonly type: string
  readonly namespace?: string
  readonly name?: string
}

/** Tools of the request and of its items, by the names that other workers get. */
function declaredTools({ tools = [], input = [] }: NativeBody): ReadonlyMap<string, DeclaredTool> {
  const added = input.flatMap((item) => (item.type === 'additional_tools' ? (item.tools ?? []) : []))
  return new Map(
    [...tools, ...added].flatMap(({ type, name, tools: members }): [string, DeclaredTool][] =>
      members === undefined
        ? [[name ?? type, { type, name }]]
        : members.map((member) => [`${name}__${member.name}`, { ...member, namespace: name }]),
    ),
  )
}

/** A call as the service writes it: of a custom tool, a search for tools, a function of a namespace, or a function. */
function toItem(
  { name, input }: NonNullable<ModelTurn['call']>,
  tools: ReadonlyMap<string, DeclaredTool>,
  id: string,
): Record<string, unknown> {
  // Tools that a search found are declared in its result.
  const [, namespace, member] = /^(mcp__\w+?)__(.+)$/.exec(name) ?? [name, undefined, name]
  const tool = tools.get(name) ?? { type: 'function', namespace, name: member }
  const head = { id: `item_${id}`, call_id: id, status: 'completed' }
  if (tool.type === 'tool_search')
    return { ...head, type: 'tool_search_call', execution: 'client', arguments: input }
  const called = { ...head, name: tool.name, ...(tool.namespace && { namespace: tool.namespace }) }
  if (tool.type === 'custom') return { ...called, type: 'custom_tool_call', ...input }
  return { ...called, type: 'function_call', arguments: JSON.stringify(input) }
}

function run(script: Script, request: RecordedRequest): Answer | Promise<Answer> {
  return typeof script === 'function' ? script(request) : script
}

async function openHttpLane(
  spec: Record<string, unknown>,
  route: string,
  script: (request: RecordedRequest) => Answer | Promise<Answer>,
): Promise<Lane> {
  const worker: ScriptedWorker = await startScriptedWorker({ models: [MODEL] })
  worker.script(route, script)
  return {
    worker: { url: worker.url, runtime_type: 'sglang', models: [CARD], ...spec },
    plugins: {},
    close: () => worker.close(),
  }
}

/** The engine writes calls in the format of the sample template, and text as one token per byte. */
async function openGrpcLane(model: ScriptedModel): Promise<Lane> {
  const engine = await startScriptedEngine({ model: MODEL })
  const encode = byteEncoder()
  engine.script = ({ request }) => {
    const { tokenized } = request as unknown as { tokenized: { originalText: string } }
    const prompt = tokenized.originalText
    const declared = /<tools>\n([\s\S]*?)\n<\/tools>/.exec(prompt)?.[1].split('\n') ?? []
    const tools = declared.map((line) => (JSON.parse(line) as { function: { name: string } }).function.name)
    const { text = '', call } = model.answer({ tools, text: prompt })
    const json = call && JSON.stringify({ name: call.name, arguments: call.input })
    const ids = encode(json === undefined ? text : `${text}<tool_call>\n${json}\n</tool_call>`)
    return engine.steps([ids.slice(0, 3), ids.slice(3)], {}, request)
  }
  return {
    worker: { url: engine.url, models: [CARD] },
    plugins: {
      grpc: {},
      parsers: { toolParser: 'qwen' },
      tokenizers: { load: [{ name: MODEL, source: 'weir:sample' }] },
    },
    close: () => engine.close(),
  }
}

/** Encodes by the sample vocabulary without merges: markers as such, everything else byte by byte. */
export function byteEncoder(): (text: string) => number[] {
  const file = new URL('../../plugins/models/tokenizers/sample/tokenizer.json', import.meta.url)
  const { model, added_tokens: added } = JSON.parse(readFileSync(file, 'utf8')) as {
    model: { vocab: Record<string, number> }
    added_tokens: { id: number; content: string }[]
  }
  const markers = new Map(added.map(({ id, content }) => [content, id]))
  return (text) =>
    text.split(/(<\/?tool_call>)/).flatMap((piece) => {
      const marker = markers.get(piece)
      if (marker !== undefined) return [marker]
      return [...Buffer.from(piece)].map((byte) => model.vocab[toByteLetters(Uint8Array.of(byte))])
    })
}
