/** The gateway's own HTTP client, for tests of plugins that are given one. */
export { outgoingHttp } from '../../plugins/workers/http/http-transport.ts'
