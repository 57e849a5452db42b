/** Output of the export `describe`. */
import { ABI_VERSION } from './abi'
import { toLowerAscii } from './ascii'
import { Json } from './json'
import { JsonWriter } from './json-writer'
import { outputBytes } from './output'

/** `export function describe(): i32 { return new Description().needsRequestBody().send() }` */
export class Description {
  private credentials: bool = false
  private clientIp: bool = true
  private requestBody: bool = false
  private responseBody: bool = false
  private requestHeaders: string[] | null = null
  private responseHeaders: string[] | null = null
  private instance: string = 'fresh'
  private closed: bool = false
  private settings: JsonWriter | null = null

  needsRequestBody(): Description {
    this.requestBody = true
    return this
  }

  /** Includes `authorization`, `cookie` and other credentials if all headers are needed. Listed headers are always passed. */
  needsCredentials(): Description {
    this.credentials = true
    return this
  }

  /** The client address is not used and may be empty, which saves reading it from the connection. */
  needsNoClientIp(): Description {
    this.clientIp = false
    return this
  }

  /** Bodies of responses that are not streams. */
  needsResponseBody(): Description {
    this.responseBody = true
    return this
  }

  /** Request headers to pass; none for an empty list. Default: all. */
  needsHeaders(names: string[]): Description {
    this.requestHeaders = names
    return this
  }

  /** Response headers to pass; none for an empty list. Default: all. */
  needsResponseHeaders(names: string[]): Description {
    this.responseHeaders = names
    return this
  }

  /** Warm instances, one per tenant and thread: faster, for modules that keep no state between calls. Build with `minimal`. */
  reusesInstance(): Description {
    this.instance = 'reuse'
    return this
  }

  /** Warm instances for all tenants, for modules that keep only public state. */
  sharesInstance(): Description {
    this.instance = 'shared'
    return this
  }

  /** Rejects requests if the module fails. Default: continues without the module. */
  failsClosed(): Description {
    this.closed = true
    return this
  }

  /**
   * Declares a setting. With declared settings, registration rejects unknown settings and invalid values.
   * @param type text, integer, number, boolean or list (parts between commas)
   */
  setting(name: string, type: string = 'text', isRequired: bool = false, description: string = ''): Description {
    const json = this.begun()
    json.key(name).beginObject().key('type').text(type)
    if (isRequired) json.key('required').bool(true)
    if (description != '') json.key('description').text(description)
    json.endObject()
    return this
  }

  private begun(): JsonWriter {
    let json = this.settings
    if (json === null) {
      json = new JsonWriter().beginObject()
      this.settings = json
    }
    return json
  }

  send(): i32 {
    const json = new JsonWriter().beginObject()
    json.key('abi').integer(ABI_VERSION)
    json.key('needs').beginObject()
    writeNames(json, 'headers', this.requestHeaders)
    if (this.credentials) json.key('credentials').bool(true)
    if (!this.clientIp) json.key('client_ip').bool(false)
    if (this.requestBody) json.key('request_body').bool(true)
    writeNames(json, 'response_headers', this.responseHeaders)
    if (this.responseBody) json.key('response_body').bool(true)
    json.endObject()
    json.key('instance').text(this.instance)
    json.key('on_failure').text(this.closed ? 'closed' : 'open')
    const settings = this.settings
    if (settings !== null) {
      const bytes = settings.endObject().toBytes()
      json.key('settings').copy(new Json(bytes, 0, bytes.length))
    }
    outputBytes(json.endObject().toBytes())
    return 0
  }
}

function writeNames(json: JsonWriter, key: string, names: string[] | null): void {
  if (names === null) return
  json.key(key)
  if (names.length == 0) {
    json.bool(false)
    return
  }
  json.beginArray()
  for (let i = 0; i < names.length; i++) json.text(toLowerAscii(names[i]))
  json.endArray()
}
