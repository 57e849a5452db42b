/** Takes the slashes off the end of a text, in time that grows with its length: a pattern would try at every slash. */
export function trimSlashes(text: string): string {
  let end = text.length
  while (end > 0 && text.charCodeAt(end - 1) === 0x2f) end--
  return text.slice(0, end)
}
