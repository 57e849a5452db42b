/** One piece of a text of an answer, the same for every client format, and the result of its handler. */
import { Action } from './action'
import { ByteBuffer } from './byte-buffer'
import { Input, Section } from './input'
import { JsonWriter } from './json-writer'
import { fromUtf8 } from './memory'
import { output, outputHead } from './output'
import { WordReplacer } from './word-replacer'

export class TextPiece extends Section {
  private whole: string | null = null

  constructor(input: Input) {
    super(input, 'text')
  }

  /** The held-back text of the previous call, followed by the new text. Tool arguments are JSON text as the model wrote it. */
  get text(): string {
    let whole = this.whole
    if (whole === null) {
      whole = fromUtf8(this.input.rest)
      this.whole = whole
    }
    return whole
  }

  /** `text`, `reasoning`, `refusal`, `tool_arguments`, `tool_output` or `citation`. */
  get kind(): string {
    return this.section.find('kind').text()
  }

  /** Index of the choice, 0-based. */
  get choice(): i32 {
    return <i32>this.section.find('choice').integer()
  }

  /** Id of the call that arguments or output belong to, or null. */
  get callId(): string | null {
    return this.optional('call_id')
  }

  /** Name of the called tool, or null. */
  get callName(): string | null {
    return this.optional('call_name')
  }

  /** The text ends with this piece: nothing can be held back. */
  get isLast(): bool {
    return this.section.find('is_last').bool()
  }

  /**
   * Replaces words, also those that come in pieces: the end of the text is held back while it may be the beginning of one.
   * In tool arguments and tool output, words are also found as JSON writes them.
   */
  replaceAll(words: string[], replacement: string): TextAction {
    const kind = this.kind
    const isJson = kind == 'tool_arguments'
    const mayBeJson = isJson || kind == 'tool_output'
    const replacer = new WordReplacer(mayBeJson ? withQuoted(words) : words, isJson ? quoted(replacement) : replacement)
    const passed = replacer.replace(this.text, this.isLast)
    return TextAction.pass(passed, replacer.tail)
  }
}

function withQuoted(words: string[]): string[] {
  const all = words.slice()
  for (let i = 0; i < words.length; i++) {
    const word = quoted(words[i])
    if (word != words[i]) all.push(word)
  }
  return all
}

/** A text as the content of a JSON string. */
function quoted(text: string): string {
  const json = new JsonWriter().text(text).toString()
  return json.substring(1, json.length - 1)
}

/** Result of a handler of text: the text to pass on now, and the text to hold back. */
export class TextAction {
  private constructor(
    private passed: string | null,
    private held: string,
    private fetched: Action | null = null,
  ) {}

  /** Passes the whole text on unchanged. */
  static unchanged(): TextAction {
    return new TextAction(null, '')
  }

  /**
   * @param text sent to the client now, instead of the piece's text
   * @param held at most 64 KiB: the next piece of this text begins with it
   */
  static pass(text: string, held: string = ''): TextAction {
    return new TextAction(text, held)
  }

  /** Fetches before the text is passed on, see `Action.fetch`: the handler is called again with the same text. */
  static fetch(action: Action): TextAction {
    return new TextAction(null, '', action)
  }

  /** Writes the output of the call. */
  send(): void {
    const fetched = this.fetched
    if (fetched !== null) return fetched.send()
    const passed = this.passed
    if (passed === null) return
    const body = new ByteBuffer(passed.length + this.held.length + 16)
    body.text(passed)
    const length = body.length
    body.text(this.held)
    const head = outputHead()
    if (body.length > length) head.key('held_bytes').integer(body.length - length)
    output(head.endObject(), body.start, body.length)
  }
}
