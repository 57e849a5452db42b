/** The Prometheus text format, version 0.0.4: text to samples and back. */

/** One sample line. Values stay text, so that no digit is lost. */
export interface PrometheusSample {
  readonly name: string
  readonly labels: ReadonlyMap<string, string>
  readonly value: string
  /** Milliseconds since the epoch, as written; null when the line had none. */
  readonly timestamp: string | null
}

/** The samples under one HELP and TYPE; the family of a histogram includes its `_bucket`, `_sum` and `_count`. */
export interface PrometheusFamily {
  readonly name: string
  type: string | null
  help: string | null
  readonly samples: PrometheusSample[]
}

/** The text is not of the format. */
export class PrometheusSyntaxError extends Error {
  constructor(line: number, problem: string) {
    super(`line ${line}: ${problem}`)
    this.name = 'PrometheusSyntaxError'
  }
}

const METRIC_NAME = /[a-zA-Z_:][a-zA-Z0-9_:]*/y
const LABEL_NAME = /[a-zA-Z_][a-zA-Z0-9_]*/y
const BLANKS = /[ \t]*/y
const LABEL_TEXT = /[^\\"]*/y
const WORD = /[^ \t]+/y
/** No two parts match the same text, so that a long invalid number is rejected in linear time. */
const NUMBER = /^[+-]?(\d+(\.\d*)?(e[+-]?\d+)?|\.\d+(e[+-]?\d+)?|inf|infinity|nan)$/i
const INTEGER = /^-?\d+$/
/** Bounds for invalid pages; engines export some thousand samples with a dozen labels. */
const MAX_SAMPLES = 50_000
const MAX_LABELS = 64
/** Lines of one step, which takes less than a millisecond. */
const LINES_A_STEP = 256
/** Prometheus rejects a page with any other type. */
const TYPES: ReadonlySet<string> = new Set(['counter', 'gauge', 'histogram', 'summary', 'untyped'])
const SUFFIXES: Readonly<Record<string, readonly string[]>> = {
  histogram: ['_bucket', '_sum', '_count'],
  summary: ['_sum', '_count'],
}

/**
 * Reads a whole exposition.
 *
 * @throws PrometheusSyntaxError at the first line that is not of the format, or with more samples than any engine has
 * @source Prometheus exposition formats, text format 0.0.4
 */
export function parsePrometheusText(text: string): PrometheusFamily[] {
  const steps = readPrometheusText(text)
  let step = steps.next()
  while (step.done !== true) step = steps.next()
  return step.value
}

/** As `parsePrometheusText`, in steps: a page of megabytes would block the thread for too long. */
export function* readPrometheusText(text: string): Generator<void, PrometheusFamily[]> {
  const families = new Map<string, PrometheusFamily>()
  let lineNumber = 0
  let samples = 0
  for (const rawLine of text.split('\n')) {
    lineNumber += 1
    if (lineNumber % LINES_A_STEP === 0) yield
    const line = rawLine.trim()
    if (line === '') continue
    if (line.startsWith('#')) {
      readComment(line, families)
      continue
    }
    samples += 1
    if (samples > MAX_SAMPLES) throw new PrometheusSyntaxError(lineNumber, `more than ${MAX_SAMPLES} samples`)
    const sample = new LineReader(line, lineNumber).readSample()
    familyOf(sample.name, families).samples.push(sample)
  }
  return [...families.values()]
}

/** Writes families with their HELP and TYPE, in steps. */
export function* printPrometheusText(families: Iterable<PrometheusFamily>): Generator<void, string> {
  const lines: string[] = []
  for (const { name, type, help, samples } of families) {
    if (help !== null) lines.push(`# HELP ${name} ${escapeHelp(help)}`)
    if (type !== null) lines.push(`# TYPE ${name} ${type}`)
    for (const sample of samples) {
      lines.push(writeSample(sample))
      if (lines.length % LINES_A_STEP === 0) yield
    }
  }
  return lines.length === 0 ? '' : `${lines.join('\n')}\n`
}

function writeSample({ name, labels, value, timestamp }: PrometheusSample): string {
  const pairs = [...labels].map(([label, text]) => `${label}="${escapeLabel(text)}"`)
  const set = pairs.length === 0 ? '' : `{${pairs.join(',')}}`
  return timestamp === null ? `${name}${set} ${value}` : `${name}${set} ${value} ${timestamp}`
}

/** The end matches any text: an anchored text would be tried from each of its blanks. */
const COMMENT = /^#[ \t]+(HELP|TYPE)[ \t]+([a-zA-Z_:][a-zA-Z0-9_:]*)(?:[ \t]+([\s\S]*))?$/

/** Comments other than HELP and TYPE are ignored. */
function readComment(line: string, families: Map<string, PrometheusFamily>): void {
  const match = COMMENT.exec(line)
  if (match === null) return
  const [, kind, name, rest = ''] = match
  const family = ensureFamily(name, families)
  if (kind === 'HELP') family.help ??= unescaped(rest)
  else if (TYPES.has(rest.trim())) family.type ??= rest.trim()
}

function familyOf(sampleName: string, families: Map<string, PrometheusFamily>): PrometheusFamily {
  for (const [type, suffixes] of Object.entries(SUFFIXES)) {
    for (const suffix of suffixes) {
      if (!sampleName.endsWith(suffix)) continue
      const family = families.get(sampleName.slice(0, -suffix.length))
      if (family?.type === type) return family
    }
  }
  return ensureFamily(sampleName, families)
}

function ensureFamily(name: string, families: Map<string, PrometheusFamily>): PrometheusFamily {
  let family = families.get(name)
  if (family === undefined) {
    family = { name, type: null, help: null, samples: [] }
    families.set(name, family)
  }
  return family
}

/** Reads one sample line from left to right. */
class LineReader {
  readonly #line: string
  readonly #lineNumber: number
  #at = 0

  constructor(line: string, lineNumber: number) {
    this.#line = line
    this.#lineNumber = lineNumber
  }

  readSample(): PrometheusSample {
    const name = this.#take(METRIC_NAME, 'a metric name')
    this.#skipBlanks()
    const labels = this.#peek() === '{' ? this.#readLabels() : new Map<string, string>()
    this.#skipBlanks()
    const value = this.#take(WORD, 'a value')
    if (!NUMBER.test(value)) this.#fail(`${JSON.stringify(value)} is not a number`)
    this.#skipBlanks()
    const timestamp = this.#at < this.#line.length ? this.#take(WORD, 'a timestamp') : null
    if (timestamp !== null && !INTEGER.test(timestamp)) this.#fail('the timestamp is not an integer')
    if (this.#at < this.#line.length) this.#fail('there is text after the sample')
    return { name, labels, value, timestamp }
  }

  #readLabels(): Map<string, string> {
    const labels = new Map<string, string>()
    this.#expect('{')
    this.#skipBlanks()
    while (this.#peek() !== '}') {
      const name = this.#take(LABEL_NAME, 'a label name')
      this.#skipBlanks()
      this.#expect('=')
      this.#skipBlanks()
      if (labels.has(name)) this.#fail(`label ${name} is there twice`)
      if (labels.size === MAX_LABELS) this.#fail(`more than ${MAX_LABELS} labels`)
      labels.set(name, this.#readQuoted())
      this.#skipBlanks()
      if (this.#peek() !== ',') break
      this.#expect(',')
      this.#skipBlanks()
    }
    this.#expect('}')
    return labels
  }

  #readQuoted(): string {
    this.#expect('"')
    const start = this.#at
    for (;;) {
      this.#take(LABEL_TEXT, 'a label value')
      if (this.#peek() !== '\\') break
      // An escaped character cannot end the value.
      this.#at += 2
    }
    const raw = this.#line.slice(start, this.#at)
    this.#expect('"')
    return unescaped(raw)
  }

  #take(pattern: RegExp, what: string): string {
    pattern.lastIndex = this.#at
    const match = pattern.exec(this.#line)
    if (match === null) return this.#fail(`expected ${what} at column ${this.#at + 1}`)
    this.#at = pattern.lastIndex
    return match[0]
  }

  #skipBlanks(): void {
    this.#take(BLANKS, 'blanks')
  }

  #peek(): string | undefined {
    return this.#line[this.#at]
  }

  #expect(char: string): void {
    if (this.#peek() !== char) this.#fail(`expected ${char} at column ${this.#at + 1}`)
    this.#at += 1
  }

  #fail(problem: string): never {
    throw new PrometheusSyntaxError(this.#lineNumber, problem)
  }
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}

function escapeLabel(text: string): string {
  return escapeHelp(text).replaceAll('"', '\\"')
}

function unescaped(text: string): string {
  // Unknown escapes keep their backslash.
  return text.replaceAll(/\\([\\n"])/g, (_whole, char: string) => (char === 'n' ? '\n' : char))
}
