/**
 * The text view of one answer: splits its events into texts, passes these through the editors of the `onText` hooks, and puts
 * what the editors return into the events. Client formats and the store are written from the events, so that an edit reaches
 * every place where a text appears. What would repeat an edited text in the worker's own form is removed. @hot
 */
import type { GenerationEvent, HookSignatures, RequestContext, TextEditor, TextStream } from '#kernel'
import { editItemTexts } from '#shared'
import { EditedChoice, type TextEvent, withoutExtraContent, withoutTokens } from './edited-events.ts'

/** Steps that may wait for an editor before the worker is paused. */
const MAX_WAITING = 64
const CUSTOM_CALL = 'custom_tool_call'

type EventOf<Type extends GenerationEvent['type']> = Extract<GenerationEvent, { type: Type }>

/** A text that has not ended, and what its editor has made of it. */
class OpenText {
  readonly editor: TextEditor
  /** The last delta: the text that is passed on has its other members. */
  last: TextEvent
  /** First half of a character that the worker cut in two; empty for none. */
  half = ''
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

interface EditStep {
  readonly kind: 'edit'
  readonly text: OpenText
  readonly choice: OpenChoice
  /** The last of its deltas; null for the end of the text. */
  event: TextEvent | null
  delta: string
  readonly isLast: boolean
}

type Step =
  | EditStep
  | { readonly kind: 'pass'; readonly event: GenerationEvent }
  | { readonly kind: 'custom'; readonly event: EventOf<'native_item'>; readonly editor: TextEditor }
  | {
      readonly kind: 'native'
      readonly started: EventOf<'native_started'>
      readonly event: EventOf<'native_item'>
    }
  | { readonly kind: 'citation'; readonly event: EventOf<'annotation'> }

export interface TextViewOptions {
  readonly ctx: RequestContext
  readonly onText: NonNullable<HookSignatures['onText']>
  /** Receives the edited events, in order. May throw. */
  readonly deliver: (event: GenerationEvent) => void
  /** An editor or the receiver has thrown: no events follow. */
  readonly onError: (error: unknown) => void
  /** Too many events wait for an editor, or no longer do. */
  readonly onFull: (isFull: boolean) => void
}

export class TextView {
  readonly #options: TextViewOptions
  readonly #choices = new Map<number, OpenChoice>()
  /** Editors of the inputs of custom tools, by number. */
  readonly #customCalls = new Map<number, TextEditor>()
  /** Other output of kinds that have no events, which begins once it is complete and edited, by number. */
  readonly #natives = new Map<number, EventOf<'native_started'>>()
  /** Steps that wait for the editor at work. */
  #waiting: Step[] = []
  #isBusy = false
  #isFull = false
  #isClosed = false

  constructor(options: TextViewOptions) {
    this.#options = options
  }

  push(event: GenerationEvent): void {
    if (this.#isClosed) return
    switch (event.type) {
      case 'text':
      case 'refusal':
        this.#add(event)
        return
      case 'reasoning':
        if (event.isBreak !== true) this.#add(event)
        else {
          this.#endText(this.#choice(event.choice))
          this.#pass(event)
        }
        return
      case 'tool_arguments':
        this.#addArguments(event)
        return
      case 'tool_call':
        this.#openCall(event)
        return
      case 'tool_call_done':
        this.#endCall(this.#choice(event.choice), event.index)
        this.#pass(event)
        return
      case 'native_started':
        this.#openNative(event)
        return
      // May repeat texts: of an item that is edited as a whole at its end, of a message, a call or the answer.
      case 'native_event':
        return
      case 'native_item':
        this.#endNative(event)
        return
      case 'reasoning_signature':
      case 'item_started':
      case 'part_done':
      case 'item_done':
        this.#endText(this.#choice(event.choice))
        this.#pass(event)
        return
      case 'choice_done':
        this.#endChoice(event.choice)
        this.#pass(event)
        return
      case 'finished':
        for (const choice of this.#choices.keys()) this.#endChoice(choice)
        this.#pass(event)
        return
      case 'annotation':
        if (this.#isBusy) this.#wait({ kind: 'citation', event })
        else this.#guard(() => this.#runCitation(event))
        return
      // Held-back text of a failed answer is dropped.
      case 'started':
      case 'failed':
        this.#pass(event)
    }
  }

  /** No events follow. */
  close(): void {
    this.#isClosed = true
    this.#waiting = []
  }

  #choice(index: number): OpenChoice {
    let choice = this.#choices.get(index)
    if (choice === undefined) {
      const edited = new EditedChoice(this.#options.deliver)
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
    const editor = this.#openEditor(stream)
    return editor === null ? null : new OpenText(editor, last)
  }

  #openEditor(stream: TextStream): TextEditor | null {
    const { ctx, onText } = this.#options
    return this.#guard(() => onText(ctx, stream)) || null
  }

  #edit(choice: OpenChoice, text: OpenText, event: TextEvent): void {
    const { delta } = event
    if (!this.#isBusy) {
      this.#guard(() => this.#runEdit({ kind: 'edit', text, choice, event, delta, isLast: false }))
      return
    }
    // Several pieces of one text become one call.
    const before = this.#waiting.at(-1)
    if (before?.kind === 'edit' && before.text === text && !before.isLast) {
      before.event = event
      before.delta += delta
    } else this.#wait({ kind: 'edit', text, choice, event, delta, isLast: false })
  }

  #endText(choice: OpenChoice): void {
    const { text } = choice
    choice.text = null
    choice.kind = null
    if (text !== null) this.#end(choice, text)
  }

  #endCall(choice: OpenChoice, index: number): void {
    const text = choice.calls.get(index)
    choice.calls.delete(index)
    if (text !== undefined) this.#end(choice, text)
  }

  #end(choice: OpenChoice, text: OpenText): void {
    const step: EditStep = { kind: 'edit', text, choice, event: null, delta: '', isLast: true }
    if (this.#isBusy) this.#wait(step)
    else this.#guard(() => this.#runEdit(step))
  }

  #endChoice(index: number): void {
    const choice = this.#choice(index)
    this.#endText(choice)
    for (const call of choice.calls.keys()) this.#endCall(choice, call)
  }

  #pass(event: GenerationEvent): void {
    if (this.#isBusy) this.#wait({ kind: 'pass', event })
    else this.#guard(() => this.#deliver(event))
  }

  // Output of kinds that have no events: the input of a custom tool, and calls of the vendor's tools with their results.

  #openNative(event: EventOf<'native_started'>): void {
    const { type, call_id: id, name } = event.item
    this.#endText(this.#choice(event.choice))
    if (type === CUSTOM_CALL) {
      const call = { id: String(id), name: String(name) }
      const editor = this.#openEditor({ kind: 'tool_arguments', choice: event.choice, call })
      if (editor) {
        this.#customCalls.set(event.number, editor)
        this.#pass({ ...event, item: { ...withoutExtraContent(event.item), input: '' } })
        return
      }
    }
    this.#natives.set(event.number, event)
  }

  #endNative(event: EventOf<'native_item'>): void {
    const editor = this.#customCalls.get(event.number)
    const started = this.#natives.get(event.number)
    this.#customCalls.delete(event.number)
    this.#natives.delete(event.number)
    if (editor !== undefined) {
      if (this.#isBusy) this.#wait({ kind: 'custom', event, editor })
      else this.#guard(() => this.#runCustom(event, editor))
    } else if (started !== undefined) {
      if (this.#isBusy) this.#wait({ kind: 'native', started, event })
      else this.#guard(() => this.#runNative(started, event))
    }
  }

  #runNative(started: EventOf<'native_started'>, event: EventOf<'native_item'>): void {
    const { id, name, type } = event.item
    const call = { id: String(id ?? event.item.tool_use_id ?? ''), name: String(name ?? type) }
    const stream: TextStream = { kind: 'tool_output', choice: event.choice, call }
    this.#settle(this.#editTexts(event.item, stream), (item) => {
      const isChanged = item !== event.item
      if (isChanged) this.#choice(event.choice).edited.noteChange(null)
      this.#deliver({ ...started, item: isChanged ? item : started.item })
      this.#deliver({ ...event, item })
    })
  }

  #runCitation(event: EventOf<'annotation'>): void {
    const stream: TextStream = { kind: 'citation', choice: event.choice, call: null }
    this.#settle(this.#editTexts(event.annotation, stream), (annotation) => {
      if (annotation !== event.annotation) this.#choice(event.choice).edited.noteChange(null)
      this.#deliver({ ...event, annotation })
    })
  }

  #editTexts<Value>(value: Value, stream: TextStream): Value | Promise<Value> {
    const { ctx, onText } = this.#options
    return editItemTexts(value, (text) => onText(ctx, stream)?.edit(text, true) ?? text)
  }

  #runCustom(event: EventOf<'native_item'>, editor: TextEditor): void {
    const { input } = event.item
    const choice = this.#choice(event.choice)
    this.#settle(editor.edit(typeof input === 'string' ? input : '', true), (passed) => {
      if (passed === input) {
        this.#deliver(event)
        return
      }
      choice.edited.noteChange(null)
      this.#deliver({ ...event, item: { ...withoutExtraContent(event.item), input: passed } })
    })
  }

  #runEdit({ choice, text, event, delta: piece, isLast }: EditStep): void {
    let delta = text.half + piece
    text.half = ''
    text.last = event ?? text.last
    if (!isLast && endsInHalf(delta)) {
      text.half = delta.slice(-1)
      delta = delta.slice(0, -1)
      if (delta === '') return
    }
    const { last } = text
    this.#settle(text.editor.edit(delta, isLast), (passed) => {
      if (text.note(delta, passed, isLast)) choice.edited.noteChange(last)
      if (passed !== '') {
        const isUnchanged = passed === delta && last.delta === delta
        this.#deliver(isUnchanged ? last : { ...withoutTokens(last), delta: passed })
      }
      if (isLast && last.type === 'tool_arguments') choice.edited.endCall(last.index)
    })
  }

  #settle<Value>(edited: Value | Promise<Value>, then: (passed: Value) => void): void {
    if (!(edited instanceof Promise)) {
      then(edited)
      return
    }
    this.#isBusy = true
    edited
      .then((passed) => {
        this.#isBusy = false
        if (this.#isClosed) return
        then(passed)
        this.#runWaiting()
      })
      .catch((error: unknown) => this.#fail(error))
  }

  #wait(step: Step): void {
    this.#waiting.push(step)
    if (this.#isFull || this.#waiting.length < MAX_WAITING) return
    this.#isFull = true
    this.#options.onFull(true)
  }

  #runWaiting(): void {
    let step: Step | undefined
    while (!this.#isBusy && !this.#isClosed) {
      step = this.#waiting.shift()
      if (step === undefined) break
      if (step.kind === 'pass') this.#deliver(step.event)
      else if (step.kind === 'edit') this.#runEdit(step)
      else if (step.kind === 'custom') this.#runCustom(step.event, step.editor)
      else if (step.kind === 'native') this.#runNative(step.started, step.event)
      else this.#runCitation(step.event)
    }
    if (!this.#isFull || this.#waiting.length > 0 || this.#isClosed) return
    this.#isFull = false
    this.#options.onFull(false)
  }

  #deliver(event: GenerationEvent): void {
    if ('choice' in event) this.#choice(event.choice).edited.deliver(event)
    else this.#options.deliver(event)
  }

  /** Returns undefined for an exception, which ends the answer. */
  #guard<T>(step: () => T): T | undefined {
    try {
      return step()
    } catch (error) {
      this.#fail(error)
      return undefined
    }
  }

  #fail(error: unknown): void {
    if (this.#isClosed) return
    this.close()
    this.#options.onError(error)
  }
}

/** True for a text that ends in the first of two surrogates (UTF-16). */
function endsInHalf(text: string): boolean {
  const unit = text.charCodeAt(text.length - 1)
  return unit >= 0xd800 && unit <= 0xdbff
}
