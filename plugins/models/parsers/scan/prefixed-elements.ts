/** Reads elements named by their keys, nested ones as objects and `item` elements as arrays. */
import { MAX_DEPTH } from './json-scanner.ts'
import { itemSchema, memberSchema, typesOf } from './tool-types.ts'
import { toTypedJson } from './typed-value.ts'

/** Stands before every tag, so that tags of the data are data. */
export const M3_PREFIX = ']<]minimax[>['

interface Element {
  readonly key: string
  readonly children: Element[]
  text: string
}

/** @returns the JSON value of one element with its tags; null if its elements are not well nested */
export function elementToJson(text: string, schema: unknown): string | null {
  const root = readElements(text)
  return root === null || root.children.length !== 1 ? null : jsonOf(root.children[0], schema)
}

function readElements(text: string): Element | null {
  const root: Element = { key: '', children: [], text: '' }
  const open: Element[] = [root]
  const parts = text.split(M3_PREFIX)
  // The first part is space before the first tag.
  for (let i = 1; i < parts.length; i++) {
    const part = parts[i]
    const end = part.indexOf('>')
    if (part[0] !== '<' || end < 0) return null
    const isClosing = part[1] === '/'
    const key = part.slice(isClosing ? 2 : 1, end).trim()
    const current = open[open.length - 1]
    if (isClosing) {
      if (open.length === 1 || current.key !== key) return null
      open.pop()
    } else {
      if (key === '' || open.length > MAX_DEPTH) return null
      const child = { key, children: [], text: '' }
      current.children.push(child)
      open.push(child)
    }
    open[open.length - 1].text += part.slice(end + 1)
  }
  return open.length === 1 ? root : null
}

/** The values of a repeated key become an array. */
function objectOf(elements: readonly Element[], schemaOf: (key: string) => unknown, text: string): string {
  const members = new Map<string, string[]>()
  for (const element of elements) {
    const values = members.get(element.key)
    const json = jsonOf(element, schemaOf(element.key))
    if (values === undefined) members.set(element.key, [json])
    else values.push(json)
  }
  const stray = text.trim()
  if (stray !== '') members.set('$text', [JSON.stringify(stray)])
  const written = [...members].map(
    ([key, values]) => `${JSON.stringify(key)}:${values.length === 1 ? values[0] : `[${values.join(',')}]`}`,
  )
  return `{${written.join(',')}}`
}

function jsonOf(element: Element, schema: unknown): string {
  const { children, text } = element
  const types = typesOf(schema)
  if (children.length === 0) return toTypedJson(text, types, 'infer', 'compact')
  const isArray = types.includes('array') && children.every(({ key }) => key === 'item')
  if (isArray) return `[${children.map((child) => jsonOf(child, itemSchema(schema))).join(',')}]`
  return objectOf(children, (key) => memberSchema(schema, key), text)
}
