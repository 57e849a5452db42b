/** The events of a response made anew of what is stored of it: the same each time, so that numbers stay true. */
import type { HistoryItem, ResponseRecord } from '#kernel'
import { toClientItems } from '#shared'
import { Frames } from '../output/frames.ts'
import { replyObject } from '../run/reply-object.ts'

interface NumberedFrame {
  readonly number: number
  readonly frame: string
}

type Part = { readonly type: string; readonly [member: string]: unknown }

/** @param record of a response that has ended */
export function replayFrames(record: ResponseRecord): readonly NumberedFrame[] {
  const all: NumberedFrame[] = []
  const frames = new Frames((frame, number) => all.push({ number, frame }))
  const items = toClientItems(record.output)
  const begun = { ...record.reply, status: 'in_progress', usage: null, error: null, incomplete_details: null }
  const response = JSON.stringify(replyObject({ ...begun, completed_at: null }, []))
  frames.send('response.created', `"response":${response}`)
  frames.send('response.in_progress', `"response":${response}`)
  for (const [index, item] of items.entries()) replayItem(frames, index, item)
  const number = all.length
  all.push({ number, frame: terminalFrame(record, number) })
  return all
}

/** What ends the stream of a response that has ended. Nobody has a name for the end of a cancelled one. */
export function terminalFrame({ reply, status, output }: ResponseRecord, number: number): string {
  let text = ''
  const type = status === 'completed' || status === 'failed' ? status : 'incomplete'
  const response = JSON.stringify(replyObject(reply, toClientItems(output)))
  new Frames((frame) => {
    text = frame
  }, number).send(`response.${type}`, `"response":${response}`)
  return text
}

function replayItem(frames: Frames, index: number, item: HistoryItem): void {
  const where = `"item_id":${JSON.stringify(item.id)},"output_index":${index}`
  const tell = (type: string, members = '') =>
    frames.send(type, members === '' ? where : `${where},${members}`)
  frames.send('response.output_item.added', `"output_index":${index},"item":${JSON.stringify(asBegun(item))}`)
  if (item.type === 'message') replayParts(tell, item.content, 'content')
  else if (item.type === 'reasoning') {
    replayParts(tell, item.content, 'content')
    replayParts(tell, item.summary, 'summary')
  } else if (item.type === 'function_call') {
    const args = JSON.stringify(item.arguments)
    if (item.arguments !== '') tell('response.function_call_arguments.delta', `"delta":${args}`)
    tell('response.function_call_arguments.done', `"name":${JSON.stringify(item.name)},"arguments":${args}`)
  } else if (item.type === 'mcp_call') {
    const args = JSON.stringify(item.arguments)
    tell('response.mcp_call.in_progress')
    if (item.arguments !== '') tell('response.mcp_call_arguments.delta', `"delta":${args}`)
    tell('response.mcp_call_arguments.done', `"arguments":${args}`)
    tell(`response.mcp_call.${item.status === 'completed' ? 'completed' : 'failed'}`)
  } else if (item.type === 'mcp_list_tools') {
    tell('response.mcp_list_tools.in_progress')
    tell(`response.mcp_list_tools.${item.error === undefined ? 'completed' : 'failed'}`)
  } else if (item.type.endsWith('_call')) {
    tell(`response.${item.type}.in_progress`)
    if (item.status === 'completed') tell(`response.${item.type}.completed`)
  }
  frames.send('response.output_item.done', `"output_index":${index},"item":${JSON.stringify(item)}`)
}

function asBegun(item: HistoryItem): object {
  const begun = item.status === undefined ? item : { ...item, status: 'in_progress' }
  if (item.type === 'message') return { ...begun, content: [] }
  if (item.type === 'reasoning') {
    const { content: _, encrypted_content: __, ...rest } = begun
    return { ...rest, summary: [] }
  }
  if (item.type === 'function_call') return { ...begun, arguments: '' }
  if (item.type === 'mcp_call') return { ...begun, arguments: '', output: '', error: null }
  return item.type === 'mcp_list_tools' ? { ...begun, tools: [] } : begun
}

function replayParts(
  tell: (type: string, members: string) => void,
  parts: unknown,
  kind: 'content' | 'summary',
): void {
  if (!Array.isArray(parts)) return
  for (const [index, part] of (parts as Part[]).entries()) {
    const at = `"${kind}_index":${index}`
    const isRefusal = part.type === 'refusal'
    const name = kind === 'summary' ? 'reasoning_summary_text' : isRefusal ? 'refusal' : part.type
    const around = kind === 'summary' ? 'reasoning_summary_part' : 'content_part'
    const text = String(isRefusal ? part.refusal : part.text)
    const logprobs = part.type === 'output_text' ? `,"logprobs":${JSON.stringify(part.logprobs ?? [])}` : ''
    const empty = isRefusal
      ? { ...part, refusal: '' }
      : {
          ...part,
          text: '',
          ...(part.type === 'output_text' && { annotations: [], logprobs: [] }),
        }
    tell(`response.${around}.added`, `${at},"part":${JSON.stringify(empty)}`)
    if (text !== '') tell(`response.${name}.delta`, `${at},"delta":${JSON.stringify(text)}${logprobs}`)
    const annotations = Array.isArray(part.annotations) ? part.annotations : []
    for (const [place, annotation] of annotations.entries())
      tell(
        'response.output_text.annotation.added',
        `${at},"annotation_index":${place},"annotation":${JSON.stringify(annotation)}`,
      )
    const member = isRefusal ? 'refusal' : 'text'
    tell(`response.${name}.done`, `${at},"${member}":${JSON.stringify(text)}${logprobs}`)
    tell(`response.${around}.done`, `${at},"part":${JSON.stringify(part)}`)
  }
}
