/**
 * Reads one answer by a response template, piece by piece: finds where its parts begin and end, hands on text as soon as it
 * is certain, and calls when their part is whole. What turns out to be none of it is text, with its marks. @hot
 */
import type { ToolTypes } from '../scan/tool-types.ts'
import { PartText, type TextSink } from './part-text.ts'
import { type PatternMatch, PatternRun } from './pattern-run.ts'
import { callsOf } from './region-calls.ts'
import { contentOf, textOf } from './region-content.ts'
import type { ResponseTemplate, TemplateField } from './response-template.ts'

/** Receives what is found, in order. */
export interface RegionSink extends TextSink {
  call(name: string, argumentsText: string): void
  /** Calls that it takes still. */
  readonly callsLeft: number
}

export interface RegionOptions {
  readonly tools: ToolTypes
  readonly maxArgumentChars: number
  readonly maxNameLength: number
  /** Otherwise what was thought is text, marks and all. */
  readonly separatesReasoning: boolean
  /** Otherwise calls are text. */
  readonly readsCalls: boolean
  /** Text outside all parts is the answer, because a grammar applies. */
  readonly keepsOutside: boolean
  /** Beginning of the answer in the prompt: it is parsed but not reported. */
  readonly prefix: string
}

/** A mark that is looked for. */
interface Watch {
  readonly field: TemplateField
  readonly isOpen: boolean
  readonly run: PatternRun
}

/** How the text of the part goes out: as it comes, as a value at its end, or marks and all. */
type Way = 'streamed' | 'gathered' | 'raw'

/** Each mark is looked for in all that is there, and again behind each mark that is found: there must not be much. */
const MAX_PIECE = 512
/** Text that is no part's and is kept at most. */
const MAX_HELD = 65_536
const NO_GROUPS: ReadonlyMap<string, string> = new Map()

export class RegionReader {
  readonly #template: ResponseTemplate
  readonly #sink: RegionSink
  readonly #options: RegionOptions
  /** What is undecided yet, from place `#base` of the whole on. */
  #input = ''
  #base = 0
  /** Null outside of all parts. */
  #field: TemplateField | null
  #watches: readonly Watch[]
  readonly #known = new Map<TemplateField | null, readonly Watch[]>()
  #isEnd = false

  /** Of the part under way. */
  #way: Way = 'streamed'
  #isBegun = false
  #groups = NO_GROUPS
  /** What began it, and its text, where they may still be needed. */
  #opener = ''
  #body: string[] = []
  #bodyLength = 0
  /** Space in front of it. */
  #spaceBefore = ''
  /** The part before was text after all: space behind it counts. */
  #isBehindRaw = false
  readonly #text: PartText
  /** No part has begun: all of this may be an answer that keeps to no template. */
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
    // JSON says itself whether it is whole.
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
      // What begins earlier, or here as well, may still be the one that counts.
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
    // A mark of no character stands at a place once.
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

  /** Inside of a part its end, elsewhere whatever may begin. */
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

  /** Everything up to a place belongs to the part under way. */
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
    // So much is no space between parts: it goes on as it comes.
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

  /** @param isWhole its end was there, or may have been */
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

  /** Hands on what the part holds. @returns false when that is not what the template says */
  #value(field: TemplateField): boolean {
    const text = this.#body.join('')
    let value: unknown
    try {
      value = contentOf(field, text, this.#groups)
    } catch {
      return false
    }
    const prompted = this.#options.prefix.length - (this.#base - text.length)
    // What the prompt has called or said is none of this answer.
    if (prompted >= text.length && prompted > 0) return true
    if (field.role === 'calls') return this.#call(value)
    // The value says the same in other words, of which the prompt's part cannot be told.
    if (prompted > 0 && text.slice(0, prompted).trim() !== '') return false
    this.#text.tell(textOf(value), this.#base)
    return true
  }

  #call(value: unknown): boolean {
    const calls = callsOf(value, this.#options.tools)
    if (calls === null || calls.length > this.#sink.callsLeft) return false
    if (calls.some(({ name }) => name.length > this.#options.maxNameLength)) return false
    for (const call of calls) this.#sink.call(call.name, call.arguments)
    return true
  }

  /** What was begun is text. */
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

/** The earlier one counts, of two at one place the longer one, a beginning before an end. */
function isBefore(match: PatternMatch, watch: Watch, best: PatternMatch, found: Watch): boolean {
  if (match.start !== best.start) return match.start < best.start
  if (match.end !== best.end) return match.end > best.end
  if (watch.isOpen !== found.isOpen) return watch.isOpen
  return watch.field.name < found.field.name
}
