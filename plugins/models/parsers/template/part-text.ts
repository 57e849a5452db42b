/** How the text of the parts of an answer goes out: without the prompt's, without space at its ends, joined. @hot */
import type { TemplateField } from './response-template.ts'

export interface TextSink {
  reasoning(delta: string): void
  text(delta: string): void
}

export class PartText {
  readonly #sink: TextSink
  /** The place from which on text is the answer's own. */
  readonly #from: number
  #field: TemplateField | null = null
  #hasText = false
  /** At the end of what there is: it counts if more text comes. */
  #space = ''
  /** Fields that have had text. */
  readonly #told = new Set<TemplateField>()

  constructor(sink: TextSink, from: number) {
    this.#sink = sink
    this.#from = from
  }

  /** @param keepsSpace text goes on that came before, so that space at the beginning counts */
  begin(field: TemplateField | null, keepsSpace: boolean): void {
    this.#field = field
    this.#hasText = keepsSpace
  }

  /** @returns space at the end of the answer's text, which counts where no other part begins behind it after all */
  end(): string {
    const space = this.#field?.role === 'text' ? this.#space : ''
    this.#space = ''
    return space
  }

  /** A piece of the part. @param at its place */
  write(text: string, at: number): void {
    if (this.#field?.strips !== true) {
      this.tell(text, at)
      return
    }
    if (text.trim() === '') {
      if (this.#hasText) this.#space += text
      return
    }
    const whole = this.#hasText ? this.#space + text : text.trimStart()
    const certain = whole.trimEnd()
    this.#space = whole.slice(certain.length)
    this.tell(certain, at + text.length - whole.length)
  }

  /** All of the part, or what goes on to it, as it is. */
  tell(text: string, at: number): void {
    const field = this.#field
    if (field === null) return
    const isJoined = !this.#hasText && this.#told.has(field)
    this.#hasText = true
    this.#told.add(field)
    const own = this.own(text, at)
    if (own === '') return
    const joined = isJoined ? field.join + own : own
    if (field.role === 'reasoning') this.#sink.reasoning(joined)
    else this.#sink.text(joined)
  }

  /** Text of the answer, whatever the part. */
  raw(text: string, at: number): void {
    const own = this.own(text, at)
    if (own !== '') this.#sink.text(own)
  }

  /** Without what the prompt has written. */
  own(text: string, at: number): string {
    return at >= this.#from ? text : text.slice(this.#from - at)
  }
}
