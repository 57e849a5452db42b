/** What waits, by choice or content block and field, and what a chunk needs that is written later; kept as JSON. */
import { Json, JsonWriter, toUtf8 } from 'weir-gateway/wasm-sdk/assembly'

export class Tail {
  constructor(
    readonly index: string,
    readonly field: string,
    readonly text: string,
  ) {}
}

export class Tails {
  id: string = ''
  model: string = ''
  created: i64 = 0
  private texts: Map<string, string> = new Map()

  constructor(state: string) {
    const json = state.length > 0 ? Json.parse(toUtf8(state)) : null
    if (json !== null) this.load(json)
  }

  private load(json: Json): void {
    this.id = json.find('id').text()
    this.model = json.find('model').text()
    this.created = json.find('created').integer()
    const texts = json.find('tails').members()
    while (texts.next()) this.texts.set(texts.key, texts.value.text())
  }

  /** Takes over what every chunk of a stream says alike. */
  remember(chunk: Json): void {
    this.id = chunk.get('id').text()
    this.model = chunk.get('model').text()
    this.created = chunk.get('created').integer()
  }

  take(name: string): string {
    if (!this.texts.has(name)) return ''
    const text = this.texts.get(name)
    this.texts.delete(name)
    return text
  }

  put(name: string, text: string): void {
    if (text.length > 0) this.texts.set(name, text)
  }

  takeOf(index: string): Tail[] {
    const tails = this.takeAll()
    const taken: Tail[] = []
    for (let i = 0; i < tails.length; i++) {
      if (tails[i].index == index) taken.push(tails[i])
      else this.put(`${tails[i].index}:${tails[i].field}`, tails[i].text)
    }
    return taken
  }

  takeAll(): Tail[] {
    const names = this.texts.keys()
    const tails: Tail[] = []
    for (let i = 0; i < names.length; i++) {
      const parts = names[i].split(':')
      tails.push(new Tail(parts[0], parts[1], this.texts.get(names[i])))
    }
    this.texts.clear()
    return tails
  }

  toString(): string {
    const json = new JsonWriter().beginObject()
    json.key('id').text(this.id).key('model').text(this.model).key('created').integer(this.created)
    json.key('tails').beginObject()
    const names = this.texts.keys()
    for (let i = 0; i < names.length; i++) json.key(names[i]).text(this.texts.get(names[i]))
    return json.endObject().endObject().toString()
  }
}
