/** The gateway's own HTTP client, for tests of plugins that are given one. */
export { outgoingHttp } from '../../plugins/http-workers/outgoing-http.ts'
