/** Checks the event stream of a response: sequence numbers, order, ids, and that the deltas add up to the final items. */

type Json = Record<string, unknown>

export interface WireEvent {
  /** The event field. */
  readonly event: string
  readonly data: string
}

interface OpenItem {
  readonly item: Json
  readonly parts: OpenPart[]
  text: string
  phase: string
}

interface OpenPart {
  readonly type: string
  text: string
  final: string | null
  done: Json | null
}

export interface CheckedStream {
  /** The response of the terminal event. */
  readonly response: Json & { output: Json[] }
  readonly events: readonly Json[]
  readonly types: readonly string[]
  /** Text deltas of all messages. */
  readonly text: string
}

const TERMINAL = new Set(['response.completed', 'response.incomplete', 'response.failed'])

function require(condition: unknown, message: string): asserts condition {
  if (!condition) throw new Error(`event grammar: ${message}`)
}

/** @param events of the complete stream. @throws naming the violated rule */
export function checkResponseEvents(events: readonly WireEvent[], { isSocket = false } = {}): CheckedStream {
  const last = events.at(-1)
  if (!isSocket) require(last?.data === '[DONE]' && last.event === '', 'the stream must end with [DONE]')
  const parsed = (isSocket ? events : events.slice(0, -1)).map(({ event, data }) => {
    const parsed = JSON.parse(data) as Json
    if (!isSocket) require(parsed.type === event, `event ${event} carries type ${parsed.type}`)
    return parsed
  })
  parsed.forEach((event, index) => {
    require(event.sequence_number === index, `event ${index} has number ${event.sequence_number}`)
  })
  const checker = new EventChecker()
  for (const event of parsed) checker.add(event)
  return checker.end(parsed)
}

class EventChecker {
  readonly #items: OpenItem[] = []
  readonly #done: (Json | undefined)[] = []
  #created: Json | null = null
  #terminal: Json | null = null
  #hasError = false
  #text = ''
  #count = 0

  add(event: Json): void {
    const type = String(event.type)
    require(this.#terminal === null, `${type} after the end`)
    const place = this.#count++
    if (place === 0) {
      require(type === 'response.created', `the first event is ${type}`)
      this.#created = this.#response(event, [])
      return
    }
    if (type === 'response.queued') return
    if (place === 1) require(type === 'response.in_progress', `the second event is ${type}`)
    if (type === 'response.in_progress') {
      this.#response(event, [])
      return
    }
    if (type === 'error') {
      const { error } = event as { error?: Json }
      require(typeof event.code === 'string' && typeof event.message === 'string', 'error must be flat')
      require(error?.code === event.code && typeof error?.type === 'string', 'error must be nested too')
      this.#hasError = true
      return
    }
    require(!event.error, `${type} has a top-level error`)
    if (TERMINAL.has(type)) this.#endAll(type, event)
    else {
      require(!this.#hasError, `${type} after error`)
      this.#itemEvent(type, event)
    }
  }

  end(events: readonly Json[]): CheckedStream {
    require(this.#terminal !== null, 'no terminal event')
    return {
      response: this.#terminal as CheckedStream['response'],
      events,
      types: events.map(({ type }) => String(type)),
      text: this.#text,
    }
  }

  #response(event: Json, output: readonly unknown[] | null): Json {
    const response = event.response as Json
    require(response.object === 'response' && Array.isArray(response.output), 'not a whole response')
    require(this.#created === null || response.id === this.#created.id, 'the id of the response changed')
    if (output !== null) require(response.output.length === output.length, 'output before its time')
    return response
  }

  #endAll(type: string, event: Json): void {
    const response = this.#response(event, null)
    const output = response.output as Json[]
    if (type !== 'response.failed' && response.status !== 'cancelled') {
      require(`response.${response.status}` === type, `${type} with status ${response.status}`)
      require(output.length ===
        this.#items.length, `${output.length} items, ${this.#items.length} were added`)
      output.forEach((item, index) => {
        require(this.#done[index] !== undefined, `item ${index} never ended`)
        require(JSON.stringify(item) ===
          JSON.stringify(this.#done[index]), `item ${index} differs from its done event`)
      })
    } else if (type === 'response.failed')
      require(response.status === 'failed' && response.error !== null, 'failed without error')
    const usage = response.usage as Json | null
    require(typeof usage?.input_tokens === 'number', 'no usage at the end')
    this.#terminal = response
  }

  #itemEvent(type: string, event: Json): void {
    const index = event.output_index as number
    if (type === 'response.output_item.added') {
      const item = event.item as Json
      require(index === this.#items.length, `item ${index} added in place ${this.#items.length}`)
      require(typeof item.id === 'string' && item.id !== '', 'an item without id')
      require(this.#items.every((other) => other.item.id !== item.id), 'an id twice')
      if (item.type === 'message')
        require(item.status === 'in_progress' && (item.content as []).length === 0, 'a message with content')
      if (item.type === 'reasoning') require((item.summary as []).length === 0, 'reasoning with a summary')
      if (item.type === 'function_call' || item.type === 'mcp_call')
        require(item.arguments === '' && item.status === 'in_progress', 'a call with arguments')
      this.#items.push({ item, parts: [], text: '', phase: 'added' })
      return
    }
    const open = this.#items[index]
    require(open !== undefined &&
      this.#done[index] === undefined, `${type} for item ${index}, which is not open`)
    if (type === 'response.output_item.done') {
      const item = event.item as Json
      for (const name of ['id', 'type', 'call_id'])
        require(item[name] === open.item[name], `${name} of item ${index} changed`)
      this.#checkWhole(open, item)
      this.#done[index] = item
      return
    }
    require(event.item_id === open.item.id, `${type} with item_id ${event.item_id}`)
    this.#inside(type, event, open)
  }

  #inside(type: string, event: Json, open: OpenItem): void {
    const part = open.parts[(event.content_index ?? event.summary_index) as number]
    const kind = String(open.item.type)
    switch (type) {
      case 'response.content_part.added':
      case 'response.reasoning_summary_part.added': {
        const place = (event.content_index ?? event.summary_index) as number
        require(place === open.parts.length, 'parts must append')
        const added = event.part as Json
        require(!added.text && !added.refusal, 'a part begins empty')
        open.parts.push({ type: String(added.type), text: '', final: null, done: null })
        return
      }
      case 'response.output_text.delta':
        require(kind === 'message' && part?.type === 'output_text' && part.final === null, type)
        require(event.delta !== '' && Array.isArray(event.logprobs), 'an empty delta')
        part.text += event.delta
        this.#text += event.delta
        return
      case 'response.refusal.delta':
        require(part?.type === 'refusal' && part.final === null, type)
        part.text += event.delta
        return
      case 'response.reasoning_text.delta':
        require(kind === 'reasoning' && part?.type === 'reasoning_text' && part.final === null, type)
        part.text += event.delta
        return
      case 'response.reasoning_summary_text.delta':
        require(kind === 'reasoning' && part?.type === 'summary_text' && part.final === null, type)
        part.text += event.delta
        return
      case 'response.output_text.done':
      case 'response.reasoning_text.done':
      case 'response.reasoning_summary_text.done':
      case 'response.refusal.done':
        require(part !== undefined && part.final === null, type)
        part.final = String(event.text ?? event.refusal)
        require(part.final === part.text, `${type} differs from its deltas`)
        return
      case 'response.content_part.done':
      case 'response.reasoning_summary_part.done': {
        require(part !== undefined && part.final !== null && part.done === null, type)
        const done = event.part as Json
        require((done.text ?? done.refusal) === part.text, 'a part differs from its deltas')
        part.done = done
        return
      }
      case 'response.output_text.annotation.added':
        require(part?.type === 'output_text' && part.final === null, type)
        return
      case 'response.function_call_arguments.delta':
      case 'response.mcp_call_arguments.delta':
        require(kind === 'function_call' || kind === 'mcp_call', type)
        require(open.phase !== 'final', 'arguments after their end')
        open.text += event.delta
        return
      case 'response.function_call_arguments.done':
        require(typeof event.name === 'string', 'arguments.done without name')
        require(event.arguments === open.text, 'arguments differ from their deltas')
        open.phase = 'final'
        return
      case 'response.mcp_call_arguments.done':
        require(event.arguments === open.text, 'arguments differ from their deltas')
        open.phase = 'final'
        return
      default:
        require(type.startsWith(`response.${kind}`), `unknown event ${type} for ${kind}`)
    }
  }

  #checkWhole(open: OpenItem, item: Json): void {
    if (item.type === 'function_call') {
      require(open.phase === 'final' && item.arguments === open.text, 'a call differs from its arguments')
    }
    for (const part of open.parts) require(part.done !== null, 'an item ended before its part')
    if (item.type === 'message' || (item.type === 'reasoning' && item.content !== undefined)) {
      require(JSON.stringify(item.content) ===
        JSON.stringify(open.parts.map(({ done }) => done)), 'content differs from its parts')
    }
  }
}
