#!/usr/bin/env bash
# @kubernetes/client-node 2.0.1 ignores `tokenFile` of a user in a kubeconfig, which the configuration API of Kubernetes defines
# (client authentication v1, AuthInfo.tokenFile) and kubectl reads: requests are sent without a token, as anonymous, and the API
# server answers 403, not 401. The same file as `auth-provider: {name: tokenFile, config: {tokenFile}}` is read. Seen:
#   token: Bearer secret, tokenFile: no Authorization, auth-provider: Bearer secret
# Exits with 1 if this changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
npm init --yes >/dev/null
npm install --silent --no-audit --no-fund @kubernetes/client-node@2.0.1 node@22.23.3
printf secret >token
cat >seen.mjs <<'SCRIPT'
import { KubeConfig } from '@kubernetes/client-node'

const authorization = async (user) => {
  const config = new KubeConfig()
  config.loadFromString(
    JSON.stringify({
      'apiVersion': 'v1',
      'kind': 'Config',
      'current-context': 'c',
      'clusters': [{ name: 'c', cluster: { server: 'https://127.0.0.1:6443' } }],
      'users': [{ name: 'u', user }],
      'contexts': [{ name: 'c', context: { cluster: 'c', user: 'u' } }],
    }),
  )
  const options = {}
  await config.applyToHTTPSOptions(options)
  return options.headers?.Authorization ?? 'no Authorization'
}
const provider = { name: 'tokenFile', config: { tokenFile: 'token' } }
const seen = [
  `token: ${await authorization({ token: 'secret' })}`,
  `tokenFile: ${await authorization({ tokenFile: 'token' })}`,
  `auth-provider: ${await authorization({ 'auth-provider': provider })}`,
].join(', ')
console.log(seen)
process.exit(seen === 'token: Bearer secret, tokenFile: no Authorization, auth-provider: Bearer secret' ? 0 : 1)
SCRIPT
PATH="$folder/node_modules/.bin:$PATH" node seen.mjs
