/**
 * Edits what has no deltas and is edited once it is complete: sources of a text, the input of a custom tool, and calls of the
 * vendor's tools with their results.
 */
import type { GenerationEvent, TextEditor, TextEditors, TextStream } from '#kernel'
import { CUSTOM_CALL, editItemTexts } from '#shared'
import type { EditQueue } from './edit-queue.ts'
import { withoutExtraContent } from './edited-events.ts'

type EventOf<Type extends GenerationEvent['type']> = Extract<GenerationEvent, { type: Type }>
type WholeEvent = EventOf<'native_started' | 'native_item' | 'annotation'>

export interface WholeItemsOptions {
  readonly queue: EditQueue
  readonly editorOf: TextEditors
  readonly deliver: (event: WholeEvent) => void
  /** The text of an item of this choice differs from the worker's. */
  readonly noteChange: (choice: number) => void
}

export class WholeItems {
  readonly #options: WholeItemsOptions
  /** Editors of the inputs of custom tools, by number. */
  readonly #customCalls = new Map<number, TextEditor>()
  /** Other items, which begin once they are complete and edited, by number. */
  readonly #natives = new Map<number, EventOf<'native_started'>>()

  constructor(options: WholeItemsOptions) {
    this.#options = options
  }

  begin(event: EventOf<'native_started'>): void {
    const { queue, editorOf, deliver } = this.#options
    const { type, call_id: id, name } = event.item
    if (type === CUSTOM_CALL) {
      const call = { id: textOf(id), name: textOf(name) }
      const editor = queue.guard(() => editorOf({ kind: 'tool_arguments', choice: event.choice, call }))
      if (editor) {
        this.#customCalls.set(event.number, editor)
        queue.run(() => deliver({ ...event, item: { ...withoutExtraContent(event.item), input: '' } }))
        return
      }
    }
    this.#natives.set(event.number, event)
  }

  end(event: EventOf<'native_item'>): void {
    const editor = this.#customCalls.get(event.number)
    const started = this.#natives.get(event.number)
    this.#customCalls.delete(event.number)
    this.#natives.delete(event.number)
    const { queue } = this.#options
    if (editor !== undefined) queue.run(() => this.#editInput(event, editor))
    else if (started !== undefined) queue.run(() => this.#editItem(started, event))
  }

  addSource(event: EventOf<'annotation'>): void {
    const { queue, deliver, noteChange } = this.#options
    queue.run(() => {
      const stream: TextStream = { kind: 'citation', choice: event.choice, call: null }
      queue.settle(this.#editTexts(event.annotation, stream), (annotation) => {
        if (annotation !== event.annotation) noteChange(event.choice)
        deliver({ ...event, annotation })
      })
    })
  }

  #editInput(event: EventOf<'native_item'>, editor: TextEditor): void {
    const { queue, deliver, noteChange } = this.#options
    const { input } = event.item
    queue.settle(editor.edit(typeof input === 'string' ? input : '', true), (passed) => {
      if (passed === input) {
        deliver(event)
        return
      }
      noteChange(event.choice)
      deliver({ ...event, item: { ...withoutExtraContent(event.item), input: passed } })
    })
  }

  #editItem(started: EventOf<'native_started'>, event: EventOf<'native_item'>): void {
    const { queue, deliver, noteChange } = this.#options
    const { id, name, type, tool_use_id: useId } = event.item
    const call = { id: textOf(id ?? useId), name: textOf(name ?? type) }
    const stream: TextStream = { kind: 'tool_output', choice: event.choice, call }
    queue.settle(this.#editTexts(event.item, stream), (item) => {
      const isChanged = item !== event.item
      if (isChanged) noteChange(event.choice)
      deliver({ ...started, item: isChanged ? item : started.item })
      deliver({ ...event, item })
    })
  }

  #editTexts<Value>(value: Value, stream: TextStream): Value | Promise<Value> {
    return editItemTexts(value, (text) => this.#options.editorOf(stream)?.edit(text, true) ?? text)
  }
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : ''
}
