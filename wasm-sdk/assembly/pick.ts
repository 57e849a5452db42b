/** The choice of a worker: the request and the candidates. */
import { Input } from './input'
import { Json } from './json'
import { skipString, skipValue } from './json-scan'
import { output, outputHead } from './output'

/** A worker that may take the request, or a target of a virtual model. Members are decoded on demand. */
export class Candidate {
  constructor(
    private section: Json,
    private places: StaticArray<i32>,
  ) {}

  get url(): string {
    return this.member(URL).text()
  }

  /** Of a target of a virtual model; null for workers. */
  get model(): string | null {
    return this.places[MODEL] == 0 ? null : this.member(MODEL).text()
  }

  /** Of a target of a virtual model; -1 for workers. */
  get weight(): f64 {
    return this.places[WEIGHT] == 0 ? -1 : this.member(WEIGHT).number()
  }

  /** Null without such a label. */
  label(name: string): string | null {
    const label = this.member(LABELS).find(name)
    return label.isString ? label.text() : null
  }

  /** Returns true if the label has this value; creates no string. */
  isLabelled(name: string, value: string): bool {
    return this.member(LABELS).find(name).is(value)
  }

  /** Lower is better. */
  get cost(): f64 {
    return this.member(COST).number()
  }

  /** Running requests of all threads. */
  get inFlight(): i32 {
    return <i32>this.member(IN_FLIGHT).integer()
  }

  /** False without a recent report of its engine; the members below are -1 then, or if they are unknown. */
  get hasLoad(): bool {
    return this.member(LOAD).isObject
  }

  get queuedTokens(): f64 {
    return this.load('queued_tokens')
  }

  get usedTokens(): f64 {
    return this.load('used_tokens')
  }

  /** Share of the KV cache in use, 0 to 1. */
  get kvUsage(): f64 {
    return this.load('kv_usage')
  }

  get tokensPerSecond(): f64 {
    return this.load('tokens_per_second')
  }

  private load(name: string): f64 {
    const value = this.member(LOAD).find(name)
    return value.isNumber ? value.number() : -1
  }

  private member(which: i32): Json {
    return new Json(this.section.source, this.places[which], this.places[which + 1])
  }
}

/** Indices of the members in the places of a candidate: start and end. */
const IN_FLIGHT = 0
const COST = 2
const LABELS = 4
const LOAD = 6
const URL = 8
const MODEL = 10
const WEIGHT = 12
const PLACES = 14

/** Identifies known names by their first letters; -1 for others. */
function placeOf(at: usize): i32 {
  switch (load<u8>(at)) {
    case 0x69: return load<u8>(at, 1) == 0x6e ? IN_FLIGHT : -1
    case 0x63: return COST
    case 0x75: return URL
    case 0x6d: return MODEL
    case 0x77: return WEIGHT
    case 0x6c: return load<u8>(at, 1) == 0x61 ? LABELS : LOAD
    default: return -1
  }
}

export class Pick {
  private section: Json

  constructor(input: Input) {
    this.section = input.head.findOpen('pick')
  }

  get model(): string {
    return this.section.find('model').text()
  }

  /** `whole`, `prefill` or `decode`; `target` if the candidates are the targets of the virtual model `model`. */
  get leg(): string {
    return this.section.find('leg').text()
  }

  /** Size of the request body, even if it is not passed. */
  get bodyBytes(): i32 {
    return <i32>this.section.find('body_bytes').integer()
  }

  /** Parsed at each access: keep the list. */
  get candidates(): Candidate[] {
    const list: Candidate[] = []
    const open = this.section.findOpen('candidates')
    const base = open.source.dataStart
    const last = base + open.end
    let at = base + open.start + 1
    while (at < last && load<u8>(at) != 0x5d) {
      if (load<u8>(at) != 0x7b) {
        at++
        continue
      }
      const places = new StaticArray<i32>(PLACES)
      while (load<u8>(at) != 0x7d) {
        if (load<u8>(at) != 0x22) {
          at++
          continue
        }
        const place = placeOf(at + 1)
        const start = skipString(at, last) + 1
        at = skipValue(start, last)
        if (place < 0) continue
        places[place] = <i32>(start - base)
        places[place + 1] = <i32>(at - base)
      }
      list.push(new Candidate(open, places))
      at++
    }
    return list
  }
}

/** @param choice index of a candidate; negative for the default policy */
export function sendChoice(choice: i32): void {
  if (choice < 0) return
  output(outputHead().key('choice').integer(choice).endObject())
}
