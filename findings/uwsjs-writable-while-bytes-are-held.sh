#!/usr/bin/env bash
# npm @uwsjs/core 20.51.4 (builds of uWebSockets.js): `onWritable` of a chunked response is called as soon as the socket takes
# data again, while the library still holds bytes of earlier `write` calls; it is not called when they have been sent, and no
# method returns their number. A server that closes the connection in answer to it, or at the end of a shutdown, loses them.
# Seen: 4 MB written to a client that reads late; at `onWritable` the connection is closed; the client gets 34 kB less than was written.
# Output: bytes written and received. Exits with 1 if the client receives everything.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init -y >/dev/null
npm install --silent --no-audit --no-fund node@22
# Its builds are chosen by the Node that runs npm.
PATH=$folder/node_modules/.bin:$PATH npm install --silent --no-audit --no-fund @uwsjs/core@20.51.4
cat > run.cjs <<'JS'
const uws = require('@uwsjs/core')
const net = require('node:net')
const PIECE = Buffer.alloc(16_000, 'x')
const WRITTEN = 4_000_000
let client
const app = uws.App().get('/', (res) => {
  res.onAborted(() => {})
  let isOver = false
  res.onWritable(() => {
    if (!isOver) setImmediate(() => res.close())
    isOver = true
    return true
  })
  let left = WRITTEN
  const next = () => {
    if (left === 0) return setTimeout(() => client.resume(), 100)
    res.cork(() => res.write(PIECE))
    left -= PIECE.length
    setImmediate(next)
  }
  next()
})
app.listen('127.0.0.1', 0, (socket) => {
  client = net.connect(uws.us_socket_local_port(socket), '127.0.0.1')
  client.pause()
  client.write('GET / HTTP/1.1\r\nhost: a\r\n\r\n')
  let received = 0
  client.on('data', (bytes) => (received += bytes.length))
  client.on('error', () => {})
  client.on('close', () => {
    console.log(`written ${WRITTEN}, received ${received}`)
    process.exit(received < WRITTEN ? 0 : 1)
  })
})
JS
node_modules/.bin/node run.cjs
