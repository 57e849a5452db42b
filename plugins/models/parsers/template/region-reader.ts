/**
 * Reads one answer by a response template, chunk by chunk: finds the beginning and end of its parts, passes on text as soon as
 * it is certain, and calls when their part is complete. A part that does not match the template is text, with its marks. @hot
 */
import type { ToolTypes } from '../scan/tool-types.ts'
import { PartText, type TextSink } from './part-text.ts'
import { type PatternMatch, PatternRun } from './pattern-run.ts'
import { callsOf, contentOf, textOf } from './region-content.ts'
import type { ResponseTemplate, TemplateField } from './response-template.ts'

/** Receives the parts, in order. */
export interface RegionSink extends TextSink {
  call(name: string, argumentsText: string): void
  /** Number of further calls that are accepted. */
  readonly callsLeft: number
}

export interface RegionOptions {
  readonly tools: ToolTypes
  readonly maxArgumentChars: number
  readonly maxNameLength: number
  /** False: reasoning is text, with its marks. */
  readonly separatesReasoning: boolean
  /** False: calls are text. */
  readonly readsCalls: boolean
  /** Text outside all parts is the answer, because a grammar applies to it. */
  readonly keepsOutside: boolean
  /** Beginning of the answer in the prompt: it is parsed but not reported. */
  readonly prefix: string
}

/** Search for a mark. */
interface Watch {
  readonly field: TemplateField
  readonly isOpen: boolean
  readonly run: PatternRun
}

/** How the text of a part is passed on: as it arrives, as a value at its end, or unchanged with its marks. */
type Way = 'streamed' | 'gathered' | 'raw'

/** Maximum length of the searched text: it is searched for each mark, and again after each mark that is found. */
const MAX_PIECE = 512
/** Maximum length of buffered text outside all parts. */
const MAX_HELD = 65_536
const NO_GROUPS: ReadonlyMap<string, string> = new Map()

export class RegionReader {
  readonly #template: ResponseTemplate
  readonly #sink: RegionSink
  readonly #options: RegionOptions
  /** Undecided text; it begins at position `#base` of the answer. */
  #input = ''
  #base = 0
  /** Field of the current part; null outside all parts. */
  #field: TemplateField | null
  #watches: readonly Watch[]
  readonly #known = new Map<TemplateField | null, readonly Watch[]>()
  #isEnd = false

  /** Of the current part. */
  #way: Way = 'streamed'
  #isBegun = false
  #groups = NO_GROUPS
  /** Opening mark and text of a gathered part. */
  #opener = ''
  #body: string[] = []
  #bodyLength = 0
  /** Space before it. */
  #spaceBefore = ''
  /** The previous part was passed on as text, so space after it is kept. */
  #isBehindRaw = false
  readonly #text: PartText
  /** Text before the first part, which is the answer if no part follows; null once a part has begun. */
  #outside: string | null = ''
  #outsideLength = 0

  constructor(template: ResponseTemplate, sink: RegionSink, options: RegionOptions) {
    this.#template = template
    this.#sink = sink
    this.#options = options
    this.#field = template.implicit
    this.#text = new PartText(sink, options.prefix.length)
    this.#watches = this.#watchesOf(template.implicit)
    this.#enter(template.implicit, '', NO_GROUPS)
    if (options.prefix !== '') this.push(options.prefix)
  }

  get isReasoning(): boolean {
    return this.#field?.role === 'reasoning' && this.#way !== 'raw'
  }

  push(text: string): void {
    for (let at = 0; at < text.length; ) {
      let end = Math.min(at + MAX_PIECE, text.length)
      if (end < text.length && isFirstHalf(text.charCodeAt(end - 1))) end--
      this.#input += at === 0 && end === text.length ? text : text.slice(at, end)
      this.#read()
      at = end
    }
  }

  /** @param isFinished the model ended by a token of its own, which may have been the end of the part */
  end(isFinished: boolean): void {
    this.#isEnd = true
    this.#read()
    const { close, content } = this.#field ?? { close: null, content: 'text' }
    // The parser of JSON tells whether the value is complete.
    this.#leave('', isFinished || close === null || content === 'json')
    if (this.#outside !== null && this.#outside.trim() !== '') this.#sink.text(this.#outside)
  }

  #read(): void {
    for (;;) {
      const end = this.#base + this.#input.length
      const input = { text: this.#input, base: this.#base, isEnd: this.#isEnd }
      let best: PatternMatch | null = null
      let found: Watch | null = null
      let hold = end
      for (const watch of this.#watches) {
        const match = watch.run.advance(input)
        if (typeof match === 'number') hold = Math.min(hold, match)
        else if (best === null || found === null || isBefore(match, watch, best, found)) {
          best = match
          found = watch
        }
      }
      // A match that begins earlier or at the same position may still take precedence.
      if (best === null || found === null || (best.start >= hold && !this.#isEnd)) {
        this.#take(hold)
        return
      }
      this.#take(best.start)
      this.#pass(found, best)
    }
  }

  #pass({ field, isOpen }: Watch, { start, end, groups }: PatternMatch): void {
    const mark = this.#input.slice(0, end - start)
    if (isOpen) this.#leave('', true)
    else {
      const all = new Map(this.#groups)
      for (const [name, text] of groups) all.set(name, text)
      this.#groups = all
      this.#leave(mark, true)
    }
    this.#input = this.#input.slice(mark.length)
    this.#base = end
    if (isOpen) this.#outside = null
    this.#enter(isOpen ? field : this.#template.implicit, isOpen ? mark : '', isOpen ? groups : NO_GROUPS)
    // An empty mark is found once at a position.
    for (const { run } of this.#watches) run.reset(end, start === end ? end : -1)
  }

  #enter(field: TemplateField | null, opener: string, groups: ReadonlyMap<string, string>): void {
    this.#field = field
    this.#watches = this.#watchesOf(field)
    this.#way = this.#wayOf(field)
    this.#groups = groups
    this.#isBegun = opener !== '' || field?.open != null
    this.#text.begin(field, this.#isBehindRaw && field === this.#template.implicit)
    this.#isBehindRaw = false
    const begun = this.#spaceBefore + opener
    this.#opener = this.#way === 'gathered' ? begun : ''
    if (this.#way === 'raw') this.#text.raw(begun, this.#base - begun.length)
  }

  #wayOf(field: TemplateField | null): Way {
    if (field === null) return 'streamed'
    const { role, isStreamed } = field
    if (role === 'reasoning' && !this.#options.separatesReasoning) return 'raw'
    if (role === 'calls' && !this.#options.readsCalls) return 'raw'
    return isStreamed ? 'streamed' : 'gathered'
  }

  /** Inside a part its end mark, elsewhere the opening marks of all fields. */
  #watchesOf(field: TemplateField | null): readonly Watch[] {
    const known = this.#known.get(field)
    if (known !== undefined) return known
    const watches: Watch[] = []
    const isPart = field !== null && field !== this.#template.implicit
    if (!isPart)
      for (const other of this.#template.fields)
        if (other.open !== null) watches.push({ field: other, isOpen: true, run: new PatternRun(other.open) })
    if (field !== null && field.close !== null)
      watches.push({ field, isOpen: false, run: new PatternRun(field.close) })
    this.#known.set(field, watches)
    return watches
  }

  /** Adds everything up to a position to the current part. */
  #take(place: number): void {
    const count = place - this.#base
    if (count <= 0) return
    const text = this.#input.slice(0, count)
    const at = this.#base
    this.#input = this.#input.slice(count)
    this.#base = place
    this.#isBegun = true
    if (this.#field === null) this.#keepOutside(text, at)
    else if (this.#way === 'streamed') this.#text.write(text, at)
    else if (this.#way === 'raw') this.#text.raw(text, at)
    else this.#gather(text)
  }

  #keepOutside(text: string, at: number): void {
    const own = this.#text.own(text, at)
    if (own === '') return
    if (this.#options.keepsOutside) this.#sink.text(own)
    if (this.#outside === null || this.#options.keepsOutside) return
    if (this.#outsideLength <= MAX_HELD) this.#outside += own
    else this.#sink.text(own)
    this.#outsideLength += own.length
    if (this.#outside.length <= MAX_HELD) return
    // More text than this is not space between parts: it is passed on as it arrives.
    this.#sink.text(this.#outside)
    this.#outside = ''
  }

  #gather(text: string): void {
    this.#body.push(text)
    this.#bodyLength += text.length
    if (this.#bodyLength <= this.#options.maxArgumentChars) return
    this.#giveUp()
    this.#way = 'raw'
  }

  /** @param isWhole its end mark was read, or may be missing */
  #leave(mark: string, isWhole: boolean): void {
    const field = this.#field
    if (field !== null && this.#isBegun) {
      this.#isBehindRaw = this.#way === 'raw'
      if (this.#way === 'raw') this.#text.raw(mark, this.#base)
      else if (this.#way === 'gathered' && !(isWhole && this.#value(field))) this.#giveUp(mark)
    }
    this.#spaceBefore = this.#text.end()
    this.#opener = ''
    this.#body = []
    this.#bodyLength = 0
  }

  /** Passes on the value of the part. @returns false if it does not match the template */
  #value(field: TemplateField): boolean {
    const text = this.#body.join('')
    let value: unknown
    try {
      value = contentOf(field, text, this.#groups)
    } catch {
      return false
    }
    const prompted = this.#options.prefix.length - (this.#base - text.length)
    // Content of the prompt is not part of this answer.
    if (prompted >= text.length && prompted > 0) return true
    if (field.role === 'calls') return this.#call(value)
    // The prompt's share of a converted value cannot be determined.
    if (prompted > 0 && text.slice(0, prompted).trim() !== '') return false
    this.#text.pass(textOf(value), this.#base)
    return true
  }

  #call(value: unknown): boolean {
    const calls = callsOf(value, this.#options.tools)
    if (calls === null || calls.length > this.#sink.callsLeft) return false
    if (calls.some(({ name }) => name.length > this.#options.maxNameLength)) return false
    for (const call of calls) this.#sink.call(call.name, call.arguments)
    return true
  }

  /** Passes on the part as text. */
  #giveUp(mark = ''): void {
    const begun = this.#opener + this.#body.join('')
    this.#text.raw(begun + mark, this.#base - begun.length)
    this.#isBehindRaw = true
    this.#opener = ''
    this.#body = []
    this.#bodyLength = 0
  }
}

function isFirstHalf(code: number): boolean {
  return code >= 0xd800 && code < 0xdc00
}

/** Order of matches: the earlier, then the longer, then an opening mark. */
function isBefore(match: PatternMatch, watch: Watch, best: PatternMatch, found: Watch): boolean {
  if (match.start !== best.start) return match.start < best.start
  if (match.end !== best.end) return match.end > best.end
  if (watch.isOpen !== found.isOpen) return watch.isOpen
  return watch.field.name < found.field.name
}
