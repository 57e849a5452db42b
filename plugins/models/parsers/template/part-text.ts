/** Passes on the text of an answer's parts: without text of the prompt, stripped of space at its ends, joined. @hot */
import type { TemplateField } from './response-template.ts'

export interface TextSink {
  reasoning(delta: string): void
  text(delta: string): void
}

export class PartText {
  readonly #sink: TextSink
  /** Position from which on the text is not part of the prompt. */
  readonly #from: number
  #field: TemplateField | null = null
  #hasText = false
  /** Space at the end of the text so far; passed on if more text follows. */
  #space = ''
  /** Fields that have text already. */
  readonly #written = new Set<TemplateField>()

  constructor(sink: TextSink, from: number) {
    this.#sink = sink
    this.#from = from
  }

  /** @param keepsSpace the part continues earlier text, so that space at its beginning is kept */
  begin(field: TemplateField | null, keepsSpace: boolean): void {
    this.#field = field
    this.#hasText = keepsSpace
  }

  /** @returns space at the end of answer text, which is kept if no other part follows */
  end(): string {
    const space = this.#field?.role === 'text' ? this.#space : ''
    this.#space = ''
    return space
  }

  /** Passes on a piece of the part. @param at its position in the answer */
  write(text: string, at: number): void {
    if (this.#field?.strips !== true) {
      this.pass(text, at)
      return
    }
    if (text.trim() === '') {
      if (this.#hasText) this.#space += text
      return
    }
    const whole = this.#hasText ? this.#space + text : text.trimStart()
    const certain = whole.trimEnd()
    this.#space = whole.slice(certain.length)
    this.pass(certain, at + text.length - whole.length)
  }

  /** Passes on text of the part unchanged. */
  pass(text: string, at: number): void {
    const field = this.#field
    if (field === null) return
    const isJoined = !this.#hasText && this.#written.has(field)
    this.#hasText = true
    this.#written.add(field)
    const own = this.own(text, at)
    if (own === '') return
    const joined = isJoined ? field.join + own : own
    if (field.role === 'reasoning') this.#sink.reasoning(joined)
    else this.#sink.text(joined)
  }

  /** Passes on text of the answer, regardless of the part. */
  raw(text: string, at: number): void {
    const own = this.own(text, at)
    if (own !== '') this.#sink.text(own)
  }

  /** Removes the text that is part of the prompt. */
  own(text: string, at: number): string {
    return at >= this.#from ? text : text.slice(this.#from - at)
  }
}
