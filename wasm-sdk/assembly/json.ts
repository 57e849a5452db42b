/** Reads JSON in place: a value is a range of the text that is decoded on demand. */
import { equalsIgnoringCase } from './ascii'
import { checkValue, decodeString, skipSpace, skipString, skipValue, stringEquals } from './json-scan'

export class Json {
  /** @param start first byte of the value in `source`; equal to `end` if the value does not exist */
  constructor(
    readonly source: Uint8Array,
    readonly start: i32,
    readonly end: i32,
  ) {}

  /** A whole document; null if it is invalid or nested deeper than 256 levels. */
  static parse(bytes: Uint8Array): Json | null {
    const base = bytes.dataStart
    const last = base + bytes.length
    const start = skipSpace(base, last)
    const end = checkValue(start, last, 0)
    if (end == 0 || skipSpace(end, last) != last) return null
    return new Json(bytes, <i32>(start - base), <i32>(end - base))
  }

  get exists(): bool {
    return this.end > this.start
  }

  get isObject(): bool {
    return this.first == 0x7b
  }

  get isArray(): bool {
    return this.first == 0x5b
  }

  get isString(): bool {
    return this.first == 0x22
  }

  get isNumber(): bool {
    const first = this.first
    return first == 0x2d || (first >= 0x30 && first <= 0x39)
  }

  get isBool(): bool {
    return this.first == 0x74 || this.first == 0x66
  }

  get isNull(): bool {
    return this.first == 0x6e
  }

  /** The member of that name; of several the last, as in the parsers of the gateway. */
  get(key: string): Json {
    let found = this.missing()
    const members = this.members()
    while (members.next()) if (members.hasKey(key)) found = members.value
    return found
  }

  /** The first member of that name: faster, for documents with unique names. */
  find(key: string): Json {
    const members = this.members()
    while (members.next()) if (members.hasKey(key)) return members.value
    return this.missing()
  }

  /** Like `find`, but does not search the end of an object or array: only for callers that stop there themselves. */
  findOpen(key: string): Json {
    const members = this.members()
    while (members.nextKey()) {
      if (members.hasKey(key)) return members.open
      members.skipValue()
    }
    return this.missing()
  }

  at(index: i32): Json {
    const elements = this.elements()
    for (let i = 0; elements.next(); i++) if (i == index) return elements.value
    return this.missing()
  }

  /** Name and value of each member; empty unless the value is an object. */
  members(): JsonMembers {
    return new JsonMembers(this)
  }

  /** The elements; empty unless the value is an array. */
  elements(): JsonElements {
    return new JsonElements(this)
  }

  /** Text of a string; empty for other values. */
  text(): string {
    if (!this.isString) return ''
    const base = this.source.dataStart
    return decodeString(base + this.start + 1, base + this.end - 1)
  }

  /** Returns true for a string with that text. */
  is(text: string): bool {
    if (!this.isString) return false
    const base = this.source.dataStart
    return stringEquals(base + this.start + 1, base + this.end - 1, text)
  }

  /** Like `is`, ignoring case. @param lowerName ASCII in lower case */
  isNamed(lowerName: string): bool {
    if (!this.isString) return false
    const base = this.source.dataStart
    return equalsIgnoringCase(base + this.start + 1, base + this.end - 1, lowerName)
  }

  /** NaN unless it is a number. The last digit may differ: use `JsonWriter.copy` to copy numbers. */
  number(): f64 {
    return this.isNumber ? parseFloat(this.raw()) : NaN
  }

  /** Integer part of a number; 0 for other values. Exact up to 64 bits without fraction and exponent. */
  integer(): i64 {
    if (!this.isNumber) return 0
    const text = this.raw()
    return text.includes('.') || text.includes('e') || text.includes('E') ? <i64>parseFloat(text) : I64.parseInt(text)
  }

  bool(): bool {
    return this.first == 0x74
  }

  /** The JSON text of the value. */
  raw(): string {
    return String.UTF8.decodeUnsafe(this.source.dataStart + this.start, this.end - this.start)
  }

  private get first(): u8 {
    return this.exists ? load<u8>(this.source.dataStart + this.start) : 0
  }

  private missing(): Json {
    return new Json(this.source, this.end, this.end)
  }
}

/** `const members = value.members(); while (members.next()) … members.key, members.value` */
export class JsonMembers {
  private source: Uint8Array
  private at: usize
  private last: usize
  private keyStart: usize = 0
  private keyEnd: usize = 0
  private valueStart: usize = 0

  constructor(object: Json) {
    this.source = object.source
    const base = object.source.dataStart
    this.last = base + object.end
    this.at = object.isObject ? base + object.start + 1 : this.last
  }

  next(): bool {
    if (!this.nextKey()) return false
    this.skipValue()
    return true
  }

  /** Must be followed by `skipValue`. */
  nextKey(): bool {
    let at = this.at
    while (at < this.last && load<u8>(at) != 0x22) at++
    if (at >= this.last) return false
    this.keyStart = at + 1
    at = skipString(at, this.last)
    this.keyEnd = at - 1
    while (load<u8>(at) != 0x3a) at++
    this.valueStart = skipSpace(at + 1, this.last)
    return true
  }

  skipValue(): void {
    this.at = skipValue(this.valueStart, this.last)
  }

  /** The value and everything after it. */
  get open(): Json {
    const base = this.source.dataStart
    return new Json(this.source, <i32>(this.valueStart - base), <i32>(this.last - base))
  }

  get key(): string {
    return decodeString(this.keyStart, this.keyEnd)
  }

  hasKey(name: string): bool {
    return stringEquals(this.keyStart, this.keyEnd, name)
  }

  get value(): Json {
    const base = this.source.dataStart
    return new Json(this.source, <i32>(this.valueStart - base), <i32>(this.at - base))
  }
}

/** `const elements = value.elements(); while (elements.next()) … elements.value` */
export class JsonElements {
  private source: Uint8Array
  private at: usize
  private last: usize
  private valueStart: usize = 0

  constructor(array: Json) {
    this.source = array.source
    const base = array.source.dataStart
    this.last = base + array.end
    this.at = array.isArray ? base + array.start + 1 : this.last
  }

  next(): bool {
    let at = skipSpace(this.at, this.last)
    if (at < this.last && load<u8>(at) == 0x2c) at = skipSpace(at + 1, this.last)
    if (at >= this.last || load<u8>(at) == 0x5d) return false
    this.valueStart = at
    this.at = skipValue(at, this.last)
    return true
  }

  get value(): Json {
    const base = this.source.dataStart
    return new Json(this.source, <i32>(this.valueStart - base), <i32>(this.at - base))
  }
}
