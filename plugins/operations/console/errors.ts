/** Errors of the console. None of them contains a credential. */
import { defineErrors } from '#kernel'

export const consoleErrors = defineErrors('console', {
  foreign_session_request: {
    kind: 'forbidden',
    source: 'client',
    text: () =>
      'a session of the console is valid for its own pages only: requests of other origins, and changes without `x-weir-console: 1`, are rejected',
  },
  too_many_sign_ins: {
    kind: 'rate_limited',
    source: 'client',
    text: (limit: number) =>
      `more than ${limit} failed sign-ins within a minute from this address; try again later`,
  },
  credential_too_long: {
    kind: 'bad_request',
    source: 'client',
    text: (bytes: number, limit: number) =>
      `the credential has ${bytes} bytes; a session cookie holds at most ${limit}: use a key or a shorter token`,
  },
  too_many_live_streams: {
    kind: 'rate_limited',
    source: 'client',
    text: (limit: number) => `${limit} pages with the overview are open on this thread; close one of them`,
  },
  console_file_not_found: {
    kind: 'not_found',
    source: 'client',
    text: (name: string) => `the console has no file ${name.slice(0, 200)}`,
  },
  console_not_built: {
    kind: 'unavailable',
    source: 'gateway',
    text: () => 'the pages of the console are missing in this installation: run npm run build',
  },
})
