/** Headers of the input; lookups ignore case. Actions change headers. */
import { toLowerAscii } from './ascii'
import { Json } from './json'

export class Headers {
  constructor(private pairs: Json) {}

  /** The first value of a name, or null. */
  get(name: string): string | null {
    const lower = toLowerAscii(name)
    const pairs = this.pairs.elements()
    while (pairs.next()) {
      const pair = pairs.value
      if (pair.at(0).isNamed(lower)) return pair.at(1).text()
    }
    return null
  }

  /** All values of a name, in order. */
  all(name: string): string[] {
    const lower = toLowerAscii(name)
    const values: string[] = []
    const pairs = this.pairs.elements()
    while (pairs.next()) {
      const pair = pairs.value
      if (pair.at(0).isNamed(lower)) values.push(pair.at(1).text())
    }
    return values
  }

  has(name: string): bool {
    return this.get(name) !== null
  }

  /** All names and values, in order. */
  list(): Header[] {
    const headers: Header[] = []
    const pairs = this.pairs.elements()
    while (pairs.next()) headers.push(new Header(pairs.value.at(0).text(), pairs.value.at(1).text()))
    return headers
  }
}

export class Header {
  constructor(
    readonly name: string,
    readonly value: string,
  ) {}
}
