/** What a handler answers with: go on, reject, or modify. */
import { Header } from './headers'
import { JsonWriter } from './json-writer'
import { toUtf8 } from './memory'
import { output } from './output'

export enum ActionKind {
  Pass,
  Reject,
  Modify,
}

export class Action {
  private status: i32 = 0
  private set: Header[] = []
  private added: Header[] = []
  private removed: string[] = []
  private body: Uint8Array | null = null

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

  /** In the request phase a modification has no status: it is ignored. */
  withStatus(status: i32): Action {
    this.status = status
    return this
  }

  /** Replaces every value of a name. */
  setHeader(name: string, value: string): Action {
    this.set.push(new Header(name, value))
    return this
  }

  /** Adds a value beside those that are there. A rejection only has headers of this kind. */
  addHeader(name: string, value: string): Action {
    if (this.kind == ActionKind.Reject) return this.setHeader(name, value)
    this.added.push(new Header(name, value))
    return this
  }

  removeHeader(name: string): Action {
    this.removed.push(name)
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
    const isReject = this.kind == ActionKind.Reject
    const head = new JsonWriter().beginObject()
    head.key('action').text(isReject ? 'reject' : 'modify')
    if (this.status != 0 || isReject) head.key('status').integer(this.status)
    writeHeaders(head, isReject ? 'headers' : 'headers_set', this.set)
    writeHeaders(head, 'headers_add', this.added)
    if (this.removed.length > 0) {
      head.key('headers_remove').beginArray()
      for (let i = 0; i < this.removed.length; i++) head.text(this.removed[i])
      head.endArray()
    }
    const body = this.body
    if (body !== null && !isReject) head.key('replaces_body').bool(true)
    output(head.endObject(), body)
  }
}

function writeHeaders(head: JsonWriter, key: string, headers: Header[]): void {
  if (headers.length == 0) return
  head.key(key).beginArray()
  for (let i = 0; i < headers.length; i++) {
    head.beginArray().text(headers[i].name).text(headers[i].value).endArray()
  }
  head.endArray()
}
