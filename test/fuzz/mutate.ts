/** Breaks bytes in ways that parsers dislike. The same seed gives the same bytes. */

/** Whole numbers from 0 to below `limit`. */
export type Draw = (limit: number) => number

export function seeded(seed: number): Draw {
  let state = seed >>> 0
  return (limit) => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) % limit
  }
}

const TOKENS = [
  '{',
  '}',
  '[',
  ']',
  '"',
  ',',
  ':',
  '\\',
  '\\u0000',
  '\\ud800',
  'null',
  'true',
  '-0',
  '1e999',
  '0.1e-400',
  '9'.repeat(400),
  '"__proto__":',
  '"constructor":',
  '"model":"m",',
  '"model":7,',
  '"stream":true,',
  '"messages":{},',
  '\0',
  '\u2028',
  '['.repeat(200),
  '{"a":'.repeat(200),
  ' '.repeat(500),
  '/*',
  'NaN',
  '\r\n',
  '\r\n\r\n',
  '\n\n',
  'data: ',
  'data: [DONE]\n\n',
  'content-length: 5\r\n',
  'transfer-encoding: chunked\r\n',
  'ffffffffffffffff\r\n',
  '0\r\n\r\n',
  'HTTP/1.1 200 OK\r\n',
].map((text) => Buffer.from(text))
TOKENS.push(
  Buffer.from([0xff, 0xfe]),
  Buffer.from([0xc0, 0x80]),
  Buffer.from([0xed, 0xa0, 0x80]),
  Buffer.from([0xf4, 0x90]),
)

const MAX_BYTES = 65_536

/** One to six changes. */
export function mutate(base: Buffer, others: readonly Buffer[], draw: Draw): Buffer {
  let bytes: Buffer = Buffer.from(base)
  for (let left = 1 + draw(6); left > 0 && bytes.length < MAX_BYTES; left--)
    bytes = change(bytes, others, draw)
  return bytes
}

function change(bytes: Buffer, others: readonly Buffer[], draw: Draw): Buffer {
  const at = draw(bytes.length + 1)
  const end = Math.min(bytes.length, at + 1 + draw(24))
  switch (draw(8)) {
    case 0: // one bit
      if (at < bytes.length) bytes[at] ^= 1 << draw(8)
      return bytes
    case 1: // any byte
      if (at < bytes.length) bytes[at] = draw(256)
      return bytes
    case 2: // cut out
      return Buffer.concat([bytes.subarray(0, at), bytes.subarray(end)])
    case 3: // twice
      return Buffer.concat([bytes.subarray(0, end), bytes.subarray(at)])
    case 4: // cut off
      return bytes.subarray(0, at)
    case 5: {
      // the beginning of one, the end of another
      const other = others[draw(others.length)]
      return Buffer.concat([bytes.subarray(0, at), other.subarray(draw(other.length + 1))])
    }
    default: // what parsers look for
      return Buffer.concat([bytes.subarray(0, at), TOKENS[draw(TOKENS.length)], bytes.subarray(at)])
  }
}
