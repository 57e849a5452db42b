/** Encodes the events of a stored response again, from its items: the same each time, so that numbers stay valid. */
import type { HistoryItem, ResponseRecord } from '#kernel'
import { PARTS_OF_TEXT, toClientItems } from '#shared'
import { EventEncoder, framesOf, ItemEncoder, type Part, type PartKind } from './event-encoder.ts'
import { storedResponse } from './response-encoder.ts'

interface NumberedFrame {
  readonly number: number
  readonly frame: string
}

/** @param record of a response that has ended */
export function replayFrames(record: ResponseRecord): readonly NumberedFrame[] {
  const all: NumberedFrame[] = []
  const events = new EventEncoder((frame, number) => all.push({ number, frame }))
  const begun = { ...record.reply, status: 'in_progress', usage: null, error: null, incomplete_details: null }
  events.begin(JSON.stringify({ ...begun, completed_at: null, output: [] }))
  for (const [index, item] of toClientItems(record.output).entries()) replayItem(events, index, item)
  sendEnd(events, record)
  return all
}

/** The frame that ends the stream of a response that has ended. */
export function terminalFrame(record: ResponseRecord, number: number): string {
  return framesOf(number, (events) => sendEnd(events, record))
}

function sendEnd(events: EventEncoder, record: ResponseRecord): void {
  events.end(record.status, JSON.stringify(storedResponse(record)))
}

function replayItem(events: EventEncoder, index: number, item: HistoryItem): void {
  const encoder = new ItemEncoder(index, item, events)
  encoder.added(asBegun(item))
  if (item.type === 'message') replayParts(encoder, item.content)
  else if (item.type === 'reasoning') {
    replayParts(encoder, item.content)
    replayParts(encoder, item.summary, 'summary_text')
  } else if (item.type === 'function_call') replayArguments(encoder, item, String(item.name))
  else if (item.type === 'mcp_call') {
    encoder.state('in_progress')
    replayArguments(encoder, item)
    encoder.state(item.status === 'completed' ? 'completed' : 'failed')
  } else if (item.type === 'mcp_list_tools') {
    encoder.state('in_progress')
    encoder.state(item.error === undefined ? 'completed' : 'failed')
  } else if (item.type === 'custom_tool_call') encoder.wholeMember('input', item.input ?? '')
  else if (item.type.endsWith('_call') && item.type !== 'tool_search_call') {
    encoder.state('in_progress')
    if (item.status === 'completed') encoder.state('completed')
  }
  encoder.done(item)
}

/** Members of items that have just begun; undefined for those that are absent then. */
const BEGUN: ReadonlyMap<string, object> = new Map([
  ['message', { content: [] }],
  ['reasoning', { content: undefined, encrypted_content: undefined, summary: [] }],
  ['function_call', { arguments: '' }],
  ['custom_tool_call', { input: '' }],
  ['mcp_call', { arguments: '', output: '', error: null }],
  ['mcp_list_tools', { tools: [] }],
])

function asBegun(item: HistoryItem): HistoryItem {
  return { ...item, ...(item.status !== undefined && { status: 'in_progress' }), ...BEGUN.get(item.type) }
}

function replayArguments(encoder: ItemEncoder, item: HistoryItem, name?: string): void {
  const args = String(item.arguments)
  if (args !== '') encoder.argumentsDelta({ delta: args })
  encoder.argumentsDone(args, name)
}

/** @param kind of the parts; their own type if undefined */
function replayParts(encoder: ItemEncoder, parts: unknown, kind?: PartKind): void {
  if (!Array.isArray(parts)) return
  for (const [index, part] of (parts as Part[]).entries()) {
    const { type, annotations = [], logprobs = [] } = part
    const isRefusal = type === 'refusal'
    const isText = type === 'output_text'
    const text = String(isRefusal ? part.refusal : part.text)
    const partEncoder = encoder.part(kind ?? (type as PartKind), index)
    if (kind === undefined && !PARTS_OF_TEXT.has(type)) {
      partEncoder.whole(part)
      continue
    }
    const empty = isRefusal ? { refusal: '' } : { text: '', ...(isText && { annotations: [], logprobs: [] }) }
    partEncoder.added({ ...part, ...empty })
    if (text !== '' && isText) partEncoder.deltaWithLogprobs(text, logprobs)
    else if (text !== '') partEncoder.delta({ delta: text })
    for (const [place, annotation] of annotations.entries()) partEncoder.annotation(place, annotation)
    partEncoder.done(part)
  }
}
