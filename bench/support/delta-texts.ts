/** The text of a streamed chat, delta by delta, however its chunks are worded. */

const BORDER = '\n\n'
const DATA = 'data: '

interface Chunk {
  readonly choices: readonly { readonly delta: { readonly content?: string | null } }[]
}

export class DeltaTexts {
  /** The stream has said that it is over. */
  isWhole = false
  readonly #onText: (text: string) => void
  readonly #decoder = new TextDecoder()
  #rest = ''

  constructor(onText: (text: string) => void) {
    this.#onText = onText
  }

  push(part: Buffer): void {
    this.#rest += this.#decoder.decode(part, { stream: true })
    let from = 0
    for (let end = this.#rest.indexOf(BORDER); end >= 0; end = this.#rest.indexOf(BORDER, from)) {
      this.#take(this.#rest.slice(from, end))
      from = end + BORDER.length
    }
    this.#rest = this.#rest.slice(from)
  }

  #take(event: string): void {
    if (!event.startsWith(DATA)) return
    const data = event.slice(DATA.length)
    if (data === '[DONE]') {
      this.isWhole = true
      return
    }
    const content = (JSON.parse(data) as Chunk).choices[0]?.delta.content
    if (typeof content === 'string') this.#onText(content)
  }
}
