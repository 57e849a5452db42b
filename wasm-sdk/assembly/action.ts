/** What a handler answers with: go on, reject, or modify. */
import { JsonWriter } from './json-writer'
import { toUtf8 } from './memory'
import { outputHead, outputWithBody } from './output'

export enum ActionKind {
  Pass,
  Reject,
  Modify,
  Fetch,
}

enum Edit {
  Set,
  Add,
  Remove,
}

/** They hang together in the order in which they were asked for: a list would be three more objects for a single one. */
class HeaderEdit {
  next: HeaderEdit | null = null

  constructor(
    readonly kind: Edit,
    readonly name: string,
    readonly value: string,
  ) {}
}

export class Action {
  private status: i32 = 0
  private first: HeaderEdit | null = null
  private last: HeaderEdit | null = null
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
    return this.edit(new HeaderEdit(Edit.Set, name, value))
  }

  /** Adds a value beside those that are there. A rejection only has headers of this kind. */
  addHeader(name: string, value: string): Action {
    if (this.kind != ActionKind.Modify) return this.setHeader(name, value)
    return this.edit(new HeaderEdit(Edit.Add, name, value))
  }

  removeHeader(name: string): Action {
    return this.edit(new HeaderEdit(Edit.Remove, name, ''))
  }

  private edit(edit: HeaderEdit): Action {
    const last = this.last
    if (last === null) this.first = edit
    else last.next = edit
    this.last = edit
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
    const head = outputHead(isReject ? '"action":"reject"' : '"action":"modify"')
    if (this.status != 0 || isReject) head.key('status').integer(this.status)
    this.writeHeaders(head, isReject ? 'headers' : 'headers_set', Edit.Set)
    this.writeHeaders(head, 'headers_add', Edit.Add)
    this.writeHeaders(head, 'headers_remove', Edit.Remove)
    const body = this.body
    if (body !== null && !isReject) head.key('replaces_body').bool(true)
    outputWithBody(head.endObject(), body)
  }

  private sendFetch(): void {
    const head = outputHead('"action":"fetch"')
    head.key('url').text(this.url)
    head.key('method').text(this.method)
    this.writeHeaders(head, 'headers', Edit.Set)
    if (this.timeoutMs > 0) head.key('timeout_ms').integer(this.timeoutMs)
    if (this.state.length > 0) head.key('state').text(this.state)
    outputWithBody(head.endObject(), this.body)
  }

  /** Those of one kind; none leaves the member out. */
  private writeHeaders(head: JsonWriter, key: string, kind: Edit): void {
    let isOpen = false
    let edit: HeaderEdit | null = this.first
    while (edit !== null) {
      if (edit.kind == kind) {
        if (!isOpen) head.key(key).beginArray()
        isOpen = true
        if (kind == Edit.Remove) head.text(edit.name)
        else head.beginArray().text(edit.name).text(edit.value).endArray()
      }
      edit = edit.next
    }
    if (isOpen) head.endArray()
  }
}
