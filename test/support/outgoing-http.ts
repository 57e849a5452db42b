/** The gateway's HTTP client, for tests of plugins that use it. */
export { outgoingHttp } from '../../plugins/workers/http/http-transport.ts'
