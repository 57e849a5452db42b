/** Verifies JSON Web Tokens with HS256 (RFC 7515, RFC 7519). */
import { config, crypto, fromBase64Url, Json, toUtf8 } from 'weir-gateway/wasm-sdk/assembly'

/** The subject of a valid token, `unknown` when it names none; null when the token is not valid. */
export function subjectOf(token: string, secret: Uint8Array, nowSec: i64): string | null {
  const parts = token.split('.')
  if (parts.length != 3) return null
  const signature = fromBase64Url(parts[2])
  if (signature === null) return null
  const signed = toUtf8(`${parts[0]}.${parts[1]}`)
  // Before a byte of the token is believed, and whatever algorithm it names: `none` is never asked for.
  if (!crypto.equals(signature, crypto.hmacSha256(secret, signed))) return null
  const header = parse(parts[0])
  const claims = parse(parts[1])
  if (header === null || claims === null || !header.get('alg').is('HS256')) return null
  if (!isInTime(claims, nowSec) || !isFromIssuer(claims)) return null
  const subject = claims.get('sub').text()
  return subject.length > 0 ? subject : 'unknown'
}

/** A token without `exp` would be valid forever, so it is not valid at all. */
function isInTime(claims: Json, nowSec: i64): bool {
  const leewaySec = config.integer('leeway_s', 30)
  const expiry = claims.get('exp')
  const begin = claims.get('nbf')
  if (!expiry.isNumber || expiry.integer() + leewaySec <= nowSec) return false
  return !begin.exists || (begin.isNumber && begin.integer() - leewaySec <= nowSec)
}

function isFromIssuer(claims: Json): bool {
  const issuer = config.text('jwt_issuer', '')
  return issuer.length == 0 || claims.get('iss').is(issuer)
}

function parse(part: string): Json | null {
  const bytes = fromBase64Url(part)
  return bytes === null ? null : Json.parse(bytes)
}
