/**
 * The text view of one answer: splits its events into texts, passes these through the editors of the `onText` hooks, and puts
 * what the editors return into the events. Client formats and the store are written from the events, so that an edit reaches
 * every place where a text appears. What would repeat an edited text in the worker's own form is removed. @hot
 */
import type {
  GenerationEvent,
  HookSignatures,
  RequestContext,
  TextEditor,
  TextEditors,
  TextStream,
} from '#kernel'
import { LeftOut } from '#shared'
import { EditQueue, type EditQueueOptions } from './edit-queue.ts'
import { EditedChoice, type TextEvent, withoutTokens } from './edited-events.ts'
import { WholeItems } from './whole-items.ts'

type EventOf<Type extends GenerationEvent['type']> = Extract<GenerationEvent, { type: Type }>

/** Deltas of one text that are edited in one call. */
interface Piece {
  /** The last of them; null for the end of the text. */
  event: TextEvent | null
  delta: string
  /** Its step in the queue. */
  readonly run: () => void
}

/** A text that has not ended, and what its editor has made of it. */
class OpenText {
  readonly editor: TextEditor
  /** The last delta: the text that is passed on has its other members. */
  last: TextEvent
  /** First half of a character that the worker cut in two; empty for none. */
  half = ''
  /** The latest; null before the first. */
  piece: Piece | null = null
  #isChanged = false
  /** Text that was given to the editor and not passed on yet; not kept once the text is changed. */
  #unpassed = ''

  constructor(editor: TextEditor, last: TextEvent) {
    this.editor = editor
    this.last = last
  }

  /** @returns true if the text differs from the worker's */
  note(given: string, passed: string, isLast: boolean): boolean {
    if (this.#isChanged) return true
    const unpassed = this.#unpassed + given
    this.#isChanged = !unpassed.startsWith(passed) || (isLast && passed !== unpassed)
    this.#unpassed = this.#isChanged ? '' : unpassed.slice(passed.length)
    return this.#isChanged
  }
}

interface OpenChoice {
  readonly edited: EditedChoice
  /** Text, reasoning or refusal; null if there is none, or no editor wants it. */
  text: OpenText | null
  kind: TextStream['kind'] | null
  form: 'text' | 'summary' | undefined
  /** By index of the call. */
  readonly calls: Map<number, OpenText>
}

export interface TextViewOptions extends EditQueueOptions {
  readonly ctx: RequestContext
  readonly onText: NonNullable<HookSignatures['onText']>
  /** Receives the edited events, in order. May throw. */
  readonly deliver: (event: GenerationEvent) => void
}

export class TextView {
  readonly #deliverAll: TextViewOptions['deliver']
  readonly #editorOf: TextEditors
  readonly #queue: EditQueue
  readonly #items: WholeItems
  readonly #choices = new Map<number, OpenChoice>()
  readonly #ctx: RequestContext
  readonly #leftOut = new LeftOut()

  constructor(options: TextViewOptions) {
    const { ctx, onText, deliver } = options
    this.#ctx = ctx
    this.#deliverAll = deliver
    this.#editorOf = (stream) => onText(ctx, stream)
    this.#queue = new EditQueue(options)
    this.#items = new WholeItems({
      queue: this.#queue,
      editorOf: this.#editorOf,
      deliver: (event) => this.#deliver(event),
      noteChange: (choice) => this.#choice(choice).edited.noteChange(null),
    })
  }

  push(event: GenerationEvent): void {
    if (this.#queue.isClosed) return
    switch (event.type) {
      case 'text':
      case 'refusal':
        this.#add(event)
        return
      case 'tool_arguments':
        this.#addArguments(event)
        return
      case 'tool_call':
        this.#openCall(event)
        return
      case 'native_started':
        this.#endText(this.#choice(event.choice))
        this.#items.begin(event)
        return
      // May repeat texts: of an item that is edited as a whole at its end, of a message, a call or the answer.
      case 'native_event':
        this.#leftOut.add(String(event.event.type))
        return
      case 'native_item':
        this.#items.end(event)
        return
      case 'annotation':
        this.#items.addSource(event)
        return
      case 'reasoning':
        if (event.isBreak !== true) {
          this.#add(event)
          return
        }
        this.#endText(this.#choice(event.choice))
        break
      case 'reasoning_signature':
      case 'item_started':
      case 'part_done':
      case 'item_done':
        this.#endText(this.#choice(event.choice))
        break
      case 'tool_call_done':
        this.#endCall(this.#choice(event.choice), event.index)
        break
      case 'choice_done':
        this.#endChoice(event.choice)
        break
      case 'finished':
        this.#leftOut.report(this.#ctx)
        for (const choice of this.#choices.keys()) this.#endChoice(choice)
        break
      // Held-back text of a failed answer is dropped.
    }
    this.#pass(event)
  }

  /** No events follow. */
  close(): void {
    this.#queue.close()
  }

  #choice(index: number): OpenChoice {
    let choice = this.#choices.get(index)
    if (choice === undefined) {
      const edited = new EditedChoice(this.#deliverAll)
      choice = { edited, text: null, kind: null, form: undefined, calls: new Map() }
      this.#choices.set(index, choice)
    }
    return choice
  }

  #add(event: EventOf<'text' | 'reasoning' | 'refusal'>): void {
    const choice = this.#choice(event.choice)
    const form = event.type === 'reasoning' ? event.form : undefined
    if (choice.kind !== event.type || choice.form !== form) {
      this.#endText(choice)
      choice.kind = event.type
      choice.form = form
      choice.text = this.#open({ kind: event.type, choice: event.choice, call: null }, event)
    }
    if (choice.text === null) this.#pass(event)
    else this.#edit(choice, choice.text, event)
  }

  #addArguments(event: EventOf<'tool_arguments'>): void {
    const choice = this.#choice(event.choice)
    const text = choice.calls.get(event.index)
    if (text === undefined) this.#pass(event)
    else this.#edit(choice, text, event)
  }

  #openCall(event: EventOf<'tool_call'>): void {
    const choice = this.#choice(event.choice)
    const { index, id, name } = event
    this.#endText(choice)
    const first: TextEvent = { type: 'tool_arguments', choice: event.choice, index, delta: '' }
    const text = this.#open({ kind: first.type, choice: event.choice, call: { id, name } }, first)
    if (text !== null) {
      choice.calls.set(index, text)
      choice.edited.openCall(event)
    }
    this.#pass(event)
  }

  #open(stream: TextStream, last: TextEvent): OpenText | null {
    const editor = this.#queue.guard(() => this.#editorOf(stream))
    return editor ? new OpenText(editor, last) : null
  }

  #endText(choice: OpenChoice): void {
    const { text } = choice
    choice.text = null
    choice.kind = null
    if (text !== null) this.#edit(choice, text, null)
  }

  #endCall(choice: OpenChoice, index: number): void {
    const text = choice.calls.get(index)
    choice.calls.delete(index)
    if (text !== undefined) this.#edit(choice, text, null)
  }

  #endChoice(index: number): void {
    const choice = this.#choice(index)
    this.#endText(choice)
    for (const call of choice.calls.keys()) this.#endCall(choice, call)
  }

  /** @param event null for the end of the text */
  #edit(choice: OpenChoice, text: OpenText, event: TextEvent | null): void {
    const before = text.piece
    // Several pieces of one text become one call.
    if (event !== null && before !== null && this.#queue.isLast(before.run)) {
      before.event = event
      before.delta += event.delta
      return
    }
    const piece: Piece = { event, delta: event?.delta ?? '', run: () => this.#runEdit(choice, text, piece) }
    text.piece = piece
    this.#queue.run(piece.run)
  }

  #runEdit(choice: OpenChoice, text: OpenText, { event, delta: piece }: Piece): void {
    const isLast = event === null
    let delta = text.half + piece
    text.half = ''
    text.last = event ?? text.last
    if (!isLast && endsInHalf(delta)) {
      text.half = delta.slice(-1)
      delta = delta.slice(0, -1)
      if (delta === '') return
    }
    const { last } = text
    this.#queue.settle(text.editor.edit(delta, isLast), (passed) => {
      if (text.note(delta, passed, isLast)) choice.edited.noteChange(last)
      if (passed !== '') {
        const isUnchanged = passed === delta && last.delta === delta
        this.#deliver(isUnchanged ? last : { ...withoutTokens(last), delta: passed })
      }
      if (isLast && last.type === 'tool_arguments') choice.edited.endCall(last.index)
    })
  }

  #pass(event: GenerationEvent): void {
    this.#queue.run(() => this.#deliver(event))
  }

  #deliver(event: GenerationEvent): void {
    if ('choice' in event) this.#choice(event.choice).edited.deliver(event)
    else this.#deliverAll(event)
  }
}

/** True for a text that ends in the first of two surrogates (UTF-16). */
function endsInHalf(text: string): boolean {
  const unit = text.charCodeAt(text.length - 1)
  return unit >= 0xd800 && unit <= 0xdbff
}
