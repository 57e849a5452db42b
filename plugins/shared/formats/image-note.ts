/** Text in place of an image. */

const MAX_SHOWN = 200
const DATA_URL = /^data:([a-z0-9/.+-]{1,80})[^,]{0,200},/i

/** Type and size of the image in a data URL; any other URL itself, truncated. */
export function imageNote(url: string): string {
  const head = DATA_URL.exec(url)
  if (head === null) return `[image: ${url.slice(0, MAX_SHOWN)}]`
  return `[image: ${head[1]}, ${Buffer.byteLength(url.slice(head[0].length), 'base64')} bytes]`
}
