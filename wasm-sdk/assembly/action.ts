/** Result of a handler: continue, reject, modify or fetch. */
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

/** A linked list in the order of the calls, since an array needs three objects more. */
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

  /** Continues without changes. */
  static pass(): Action {
    return new Action(ActionKind.Pass)
  }

  /** Responds at once; later modules and the handler do not run. */
  static reject(status: i32): Action {
    return new Action(ActionKind.Reject).withStatus(status)
  }

  /** Continues with the changes of the following calls. */
  static modify(): Action {
    return new Action(ActionKind.Modify)
  }

  /**
   * Sends a request with the headers and the body of this action; the handler is called again with the result in
   * `request.fetched`. The operator lists the origins that modules may fetch from.
   */
  static fetch(url: string, method: string = 'GET'): Action {
    const action = new Action(ActionKind.Fetch)
    action.url = url
    action.method = method
    return action
  }

  /**
   * Asks a model; the handler is called again with the text of the answer in `request.fetched`. The operator lists the
   * models.
   *
   * @param question such as `{"messages":[{"role":"user","content":"…"}],"max_tokens":20}`
   */
  static ask(model: string, question: JsonWriter): Action {
    return Action.fetch('model:' + model, 'POST').withBody(question.toBytes())
  }

  /** Sets `request.state` of the next call, at most 64 KiB. */
  keep(state: string): Action {
    this.state = state
    return this
  }

  /** Shortens the timeout of a fetch. */
  within(timeoutMs: i32): Action {
    this.timeoutMs = timeoutMs
    return this
  }

  /** Ignored for a modification in the request phase. */
  withStatus(status: i32): Action {
    this.status = status
    return this
  }

  /** Replaces all values of a name. */
  setHeader(name: string, value: string): Action {
    return this.edit(new HeaderEdit(Edit.Set, name, value))
  }

  /** Adds a value to those of a name. Rejections and fetches set the header. */
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

  /** Writes the output of the call. */
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

  /** Writes the edits of one kind; without any, omits the member. */
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
