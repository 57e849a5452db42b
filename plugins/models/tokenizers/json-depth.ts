/** How deeply a JSON text nests, looked at before it is parsed. Imports nothing: threads of the pool load it. */

const QUOTE = 0x22
const BACKSLASH = 0x5c
const OPEN_BRACKET = 0x5b
const CLOSE_BRACKET = 0x5d
const OPEN_BRACE = 0x7b
const CLOSE_BRACE = 0x7d

/** Whether more than so many lists and objects are open at once. What is no JSON gets any answer. */
export function isDeeperThan(levels: number, text: string): boolean {
  let depth = 0
  let isString = false
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at)
    if (isString) {
      if (code === QUOTE) isString = false
      else if (code === BACKSLASH) at++
    } else if (code === QUOTE) isString = true
    else if (code === OPEN_BRACKET || code === OPEN_BRACE) {
      if (++depth > levels) return true
    } else if (code === CLOSE_BRACKET || code === CLOSE_BRACE) depth--
  }
  return false
}
