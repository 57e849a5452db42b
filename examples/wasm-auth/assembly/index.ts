/** Authenticates callers by API key or JSON Web Token (HS256), and passes their identity to the worker. */
import { Action, config, Description, handleRequest, JsonWriter, metric, toLowerAscii, toUtf8 } from 'weir-gateway/wasm-sdk/assembly'
import { isKnownKey } from './api-key'
import { subjectOf } from './jwt'

/** Who calls, for the worker. What a client sends under this name never gets through. */
const SUBJECT_HEADER = 'x-auth-subject'

export function describe(): i32 {
  return new Description().needsHeaders(['authorization', 'x-api-key']).failsClosed().reusesInstance().send()
}

export function on_request(): i32 {
  return handleRequest((request) => {
    const secret = config.text('jwt_secret', '')
    const hashes = config.list('key_sha256')
    assert(secret.length > 0 || hashes.length > 0, 'neither jwt_secret nor key_sha256 is set')

    const apiKey = request.headers.get('x-api-key')
    const bearer = bearerOf(request.headers.get('authorization'))
    if (apiKey !== null && isKnownKey(apiKey, hashes)) return pass('')
    if (bearer !== null && isKnownKey(bearer, hashes)) return pass('')
    if (bearer !== null && secret.length > 0) {
      const subject = subjectOf(bearer, toUtf8(secret), request.nowMs / 1000)
      if (subject !== null) return pass(subject)
    }
    return refuse(apiKey === null && bearer === null)
  })
}

function pass(subject: string): Action {
  const action = Action.modify()
  return subject.length > 0 ? action.setHeader(SUBJECT_HEADER, subject) : action.removeHeader(SUBJECT_HEADER)
}

/** One text for every reason, so that it does not reveal which part of a credential was wrong. */
function refuse(isMissing: bool): Action {
  metric.increment('refused_total')
  const body = new JsonWriter().beginObject().key('error').beginObject()
  body.key('message').text(isMissing ? 'an API key or a token is needed' : 'the credential is not valid')
  body.key('type').text('authentication_error').key('param').nil().key('code').text('unauthorized')
  return Action.reject(401).setHeader('www-authenticate', 'Bearer').withJson(body.endObject().endObject())
}

function bearerOf(authorization: string | null): string | null {
  if (authorization === null || authorization.length < 8) return null
  return toLowerAscii(authorization.substring(0, 7)) == 'bearer ' ? authorization.substring(7).trim() : null
}
