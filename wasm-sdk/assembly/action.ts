/** What a handler answers with: go on, reject, or modify. */
import { Header } from './headers'
import { JsonWriter } from './json-writer'
import { toUtf8 } from './memory'
import { output, outputHead } from './output'

export enum ActionKind {
  Pass,
  Reject,
  Modify,
  Fetch,
}

export class Action {
  private status: i32 = 0
  private set: Header[] | null = null
  private added: Header[] | null = null
  private removed: string[] | null = null
  private body: Uint8Array | null = null
  private url: string = ''
  private method: string = ''
  private state: string = ''
  private timeoutMs: i32 = 0

  private constructor(readonly kind: ActionKind) {}

  /** Goes on with everything as it is. */
  static pass(): Action {
    return new Action(ActionKind.Pass)
  }

  /** Answers at once; no later module and no handler sees the request. */
  static reject(status: i32): Action {
    return new Action(ActionKind.Reject).withStatus(status)
  }

  /** Goes on with what is changed by the calls that follow. */
  static modify(): Action {
    return new Action(ActionKind.Modify)
  }

  /**
   * Fetches something: the handler is called again and finds what came of it in `request.fetched`. Headers and a body are
   * those of the request that is sent. The operator lists where modules may fetch from.
   */
  static fetch(url: string, method: string = 'GET'): Action {
    const action = new Action(ActionKind.Fetch)
    action.url = url
    action.method = method
    return action
  }

  /** Text that the handler finds in `request.state` when it is called again, 64 KiB at most. */
  keep(state: string): Action {
    this.state = state
    return this
  }

  /** Of a fetch: shorter than what the gateway allows. */
  within(timeoutMs: i32): Action {
    this.timeoutMs = timeoutMs
    return this
  }

  /** In the request phase a modification has no status: it is ignored. */
  withStatus(status: i32): Action {
    this.status = status
    return this
  }

  /** Replaces every value of a name. */
  setHeader(name: string, value: string): Action {
    this.set = withHeader(this.set, name, value)
    return this
  }

  /** Adds a value beside those that are there. A rejection only has headers of this kind. */
  addHeader(name: string, value: string): Action {
    if (this.kind != ActionKind.Modify) return this.setHeader(name, value)
    this.added = withHeader(this.added, name, value)
    return this
  }

  removeHeader(name: string): Action {
    let removed = this.removed
    if (removed === null) {
      removed = []
      this.removed = removed
    }
    removed.push(name)
    return this
  }

  withBody(body: Uint8Array): Action {
    this.body = body
    return this
  }

  withText(body: string): Action {
    return this.withBody(toUtf8(body))
  }

  /** A JSON body and its content type. */
  withJson(writer: JsonWriter): Action {
    return this.setHeader('content-type', 'application/json').withBody(writer.toBytes())
  }

  /** Hands the action to the host. */
  send(): void {
    if (this.kind == ActionKind.Pass) return
    if (this.kind == ActionKind.Fetch) return this.sendFetch()
    const isReject = this.kind == ActionKind.Reject
    const head = outputHead()
    head.key('action').text(isReject ? 'reject' : 'modify')
    if (this.status != 0 || isReject) head.key('status').integer(this.status)
    writeHeaders(head, isReject ? 'headers' : 'headers_set', this.set)
    writeHeaders(head, 'headers_add', this.added)
    const removed = this.removed
    if (removed !== null) {
      head.key('headers_remove').beginArray()
      for (let i = 0; i < removed.length; i++) head.text(removed[i])
      head.endArray()
    }
    const body = this.body
    if (body !== null && !isReject) head.key('replaces_body').bool(true)
    output(head.endObject(), body)
  }

  private sendFetch(): void {
    const head = outputHead()
    head.key('action').text('fetch')
    head.key('url').text(this.url)
    head.key('method').text(this.method)
    writeHeaders(head, 'headers', this.set)
    if (this.timeoutMs > 0) head.key('timeout_ms').integer(this.timeoutMs)
    if (this.state.length > 0) head.key('state').text(this.state)
    output(head.endObject(), this.body)
  }
}

function withHeader(list: Header[] | null, name: string, value: string): Header[] {
  const headers = list === null ? new Array<Header>() : list
  headers.push(new Header(name, value))
  return headers
}

function writeHeaders(head: JsonWriter, key: string, headers: Header[] | null): void {
  if (headers === null) return
  head.key(key).beginArray()
  for (let i = 0; i < headers.length; i++) {
    head.beginArray().text(headers[i].name).text(headers[i].value).endArray()
  }
  head.endArray()
}
